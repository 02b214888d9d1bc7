# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A release on a node: complete or not there, never over another one, and nothing outside of its folder."""

from __future__ import annotations

import io
import json
import os
import pathlib
import tarfile
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.release import MANIFEST, faults, sha256, unpack
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError

FILES = {"code/a.py": b"A = 1\n", "code/deeper/b.py": b"B = 2\n"}


def archive(path: pathlib.Path, files: t.Mapping[str, bytes]) -> str:
    """An archive of the files, with a manifest that lists ``FILES``; the SHA-256 of the manifest."""
    manifest = json.dumps({"files": {name: sha256(data) for name, data in FILES.items()}}).encode()
    with tarfile.open(path, "w:gz") as packed:
        for name in ("code", "code/deeper"):
            folder = tarfile.TarInfo(name)
            folder.type = tarfile.DIRTYPE
            packed.addfile(folder)
        for name, data in {**files, MANIFEST: manifest}.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(data), 315532800
            packed.addfile(entry, io.BytesIO(data))
    return sha256(manifest)


def tree(folder: pathlib.Path) -> list[str]:
    """All below the folder."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_what_was_packed_is_there_for_everybody_and_nothing_else(tmp_path: pathlib.Path) -> None:
    name = archive(tmp_path / "a.tar.gz", FILES)
    umask = os.umask(0o077)
    try:
        unpack(str(tmp_path / "a.tar.gz"), str(tmp_path / "releases" / "1"), name)
    finally:
        os.umask(umask)
    release = tmp_path / "releases" / "1"
    assert tree(tmp_path / "releases") == [
        "1",
        *(f"1/{name}" for name in sorted(["code", "code/deeper", *FILES, MANIFEST])),
    ]
    assert {oct(path.stat().st_mode & 0o777) for path in release.rglob("*.py")} == {"0o644"}
    assert {oct(path.stat().st_mode & 0o777) for path in (release, release / "code")} == {"0o755"}
    assert faults(str(release), name) == []


def test_every_file_that_is_not_as_it_was_is_told(tmp_path: pathlib.Path) -> None:
    name = archive(tmp_path / "a.tar.gz", FILES)
    unpack(str(tmp_path / "a.tar.gz"), str(tmp_path / "r"), name)
    (tmp_path / "r" / "code" / "a.py").write_text("A = 2\n", encoding="utf-8")
    (tmp_path / "r" / "code" / "deeper" / "b.py").unlink()
    (tmp_path / "r" / "venv").mkdir()
    assert faults(str(tmp_path / "r"), name) == [
        "code/a.py: was changed",
        "code/deeper/b.py: No such file or directory",
    ]
    assert faults(str(tmp_path / "r"), "0" * 64) == [f"{MANIFEST}: is that of other content"]
    assert faults(str(tmp_path / "nowhere"), name) == [f"{MANIFEST}: No such file or directory"]


def test_a_folder_that_is_there_goes_whole(tmp_path: pathlib.Path) -> None:
    name = archive(tmp_path / "a.tar.gz", FILES)
    (tmp_path / "r" / "code" / "__pycache__").mkdir(parents=True)
    unpack(str(tmp_path / "a.tar.gz"), str(tmp_path / "r"), name)
    assert "code/__pycache__" not in tree(tmp_path / "r")
    assert tree(tmp_path)[:2] == ["a.tar.gz", "r"]


@pytest.mark.parametrize(
    ("files", "says"),
    [
        pytest.param({**FILES, "code/a.py": b"A = 3\n"}, "is damaged: code/a.py: was changed", id="other-content"),
        pytest.param({"code/a.py": FILES["code/a.py"]}, "is damaged: code/deeper/b.py: No such file", id="incomplete"),
        pytest.param({**FILES, "../escaped": b""}, "holds '../escaped'", id="path-upwards"),
        pytest.param({**FILES, "/escaped": b""}, "holds '/escaped'", id="absolute-path"),
    ],
)
def test_what_is_wrong_with_an_archive_leaves_everything_as_it_was(
    tmp_path: pathlib.Path, files: dict[str, bytes], says: str
) -> None:
    good = archive(tmp_path / "good.tar.gz", FILES)
    unpack(str(tmp_path / "good.tar.gz"), str(tmp_path / "releases" / "1"), good)
    before = tree(tmp_path / "releases")
    name = archive(tmp_path / "bad.tar.gz", files)
    with pytest.raises(DraError, match=says):
        unpack(str(tmp_path / "bad.tar.gz"), str(tmp_path / "releases" / "1"), name)
    assert tree(tmp_path / "releases") == before
    assert faults(str(tmp_path / "releases" / "1"), good) == []


def test_a_link_in_an_archive_is_refused(tmp_path: pathlib.Path) -> None:
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as packed:
        entry = tarfile.TarInfo("code")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc"
        packed.addfile(entry)
    with pytest.raises(DraError, match=r"holds 'code'.* Expected plain files and folders"):
        unpack(str(tmp_path / "a.tar.gz"), str(tmp_path / "r"), "0" * 64)
    assert tree(tmp_path) == ["a.tar.gz"]


def test_half_an_archive_is_told_as_such(tmp_path: pathlib.Path) -> None:
    name = archive(tmp_path / "a.tar.gz", {"big": os.urandom(100_000), **FILES})
    (tmp_path / "a.tar.gz").write_bytes((tmp_path / "a.tar.gz").read_bytes()[:50_000])
    with pytest.raises(DraError, match="Run the task again"):
        unpack(str(tmp_path / "a.tar.gz"), str(tmp_path / "r"), name)
    assert tree(tmp_path) == ["a.tar.gz"]


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: pathlib.Path) -> None:
    name = archive(tmp_path / "a.tar.gz", FILES)
    (tmp_path / "file").touch()
    with pytest.raises(DraError, match=r"file.*Not a directory.*agent_prefix"):
        unpack(str(tmp_path / "a.tar.gz"), str(tmp_path / "file" / "releases" / "1"), name)
