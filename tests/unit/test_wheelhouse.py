# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""``make wheelhouse``: what is downloaded, and that no damaged, missing or loose file passes."""

from __future__ import annotations

import base64
import hashlib
import pathlib
import subprocess
import sys
import types
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PINS = {"some-thing==1.2", "other==3"}
WHEELS = ("some_thing-1.2-py3-none-any.whl", "other-3-cp311-cp311-manylinux2014_x86_64.whl")


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """``hack/wheelhouse.py`` as a module."""
    monkeypatch.syspath_prepend(str(ROOT / "hack"))
    module = __import__("wheelhouse")
    for name in ("wheelhouse", "make_venv"):
        monkeypatch.delitem(sys.modules, name)
    return module


@pytest.fixture
def filled(program: types.ModuleType, tmp_path: pathlib.Path) -> pathlib.Path:
    """A sound folder."""
    folder = tmp_path / "wheelhouse"
    folder.mkdir()
    for name in WHEELS:
        (folder / name).write_text(name, encoding="utf-8")
    program.write_sums(folder)
    return folder


def test_a_sound_folder_passes(program: types.ModuleType, filled: pathlib.Path) -> None:
    program.verify(filled, PINS)
    told = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=filled, check=False)
    assert told.returncode == 0


def test_every_fault_is_told_at_once(program: types.ModuleType, filled: pathlib.Path) -> None:
    (filled / WHEELS[0]).write_text("other bytes", encoding="utf-8")
    (filled / WHEELS[1]).unlink()
    (filled / "late-1-py3-none-any.whl").touch()
    with pytest.raises(program.WheelhouseError) as caught:
        program.verify(filled, PINS)
    assert str(caught.value).splitlines()[1:] == [
        "late-1-py3-none-any.whl: is not in SHA256SUMS",
        f"{WHEELS[1]}: is missing",
        f"{WHEELS[0]}: has another sum",
        "late-1-py3-none-any.whl: is no wheel in a version that requirements/constraints.txt names",
    ]


def test_a_version_that_is_not_pinned_is_told(program: types.ModuleType, filled: pathlib.Path) -> None:
    with pytest.raises(program.WheelhouseError, match=rf"{WHEELS[0]}: is no wheel in a version"):
        program.verify(filled, {"some-thing==1.3", "other==3"})


def test_a_newer_glibc_takes_wheels_for_older_ones(program: types.ModuleType) -> None:
    tags = program.platform_tags("manylinux_2_28_aarch64")
    assert tags[0] == "manylinux_2_28_aarch64"
    assert {"manylinux_2_17_aarch64", "manylinux2014_aarch64", "manylinux1_aarch64"} < set(tags)
    assert "manylinux_2_29_aarch64" not in tags
    assert program.platform_tags("musllinux_1_2_x86_64") == ["musllinux_1_2_x86_64"]


def make_wheel(folder: pathlib.Path, tag: str) -> str:
    """A wheel of the empty distribution ``tiny`` 1.0 for these interpreters and platforms; its file name."""
    files = {
        "tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        "tiny-1.0.dist-info/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: {tag}\n",
    }
    record = ""
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(text)}\n"
    files["tiny-1.0.dist-info/RECORD"] = f"{record}tiny-1.0.dist-info/RECORD,,\n"
    name = f"tiny-1.0-{tag}.whl"
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / name, "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    return name


def test_wheels_for_that_python_and_platform_are_taken(
    program: types.ModuleType, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered, folder = tmp_path / "offered", tmp_path / "wheels"
    for tag in ("cp312-cp312-manylinux2014_aarch64", "cp313-cp313-manylinux_2_28_aarch64", "cp312-cp312-win_arm64"):
        make_wheel(offered, tag)
    folder.mkdir()
    requirements, constraints = tmp_path / "requirements.txt", tmp_path / "constraints.txt"
    requirements.write_text("tiny\n", encoding="utf-8")
    constraints.write_text("tiny==1.0\n", encoding="utf-8")
    for name, value in {"CONFIG_FILE": "/dev/null", "NO_INDEX": "1", "FIND_LINKS": str(offered)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    for python in ("3.12", "3.13"):
        program.download(folder, python, "manylinux_2_28_aarch64", [requirements], constraints)
    assert sorted(path.name for path in folder.iterdir()) == [
        "tiny-1.0-cp312-cp312-manylinux2014_aarch64.whl",
        "tiny-1.0-cp313-cp313-manylinux_2_28_aarch64.whl",
    ]
    with pytest.raises(program.WheelhouseError, match=r"no wheels for Python 3\.11 on manylinux_2_28_x86_64"):
        program.download(folder, "3.11", "manylinux_2_28_x86_64", [requirements], constraints)


def test_versions_that_are_none_are_refused(
    program: types.ModuleType,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("WHEEL_PYTHONS", "3.12 3.9 python3")
    assert program.main([str(tmp_path / "wheels")]) == 2
    assert "WHEEL_PYTHONS: 3.9, python3: expected versions such as 3.11" in capsys.readouterr().err
