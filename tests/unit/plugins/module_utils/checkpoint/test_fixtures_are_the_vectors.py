# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The golden files of this repository are those that were recorded, byte for byte."""

from __future__ import annotations

import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[5]
COPY = ROOT / "tests" / "unit" / "fixtures" / "checkpoint"
ORIGINAL = ROOT.parent / "shared" / "vectors" / "checkpoint"


def files(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}


def differences(copy: pathlib.Path, original: pathlib.Path) -> list[str]:
    """Names of copied files that are not in the original or differ from it."""
    originals = files(original)
    return [
        name
        for name, path in files(copy).items()
        if name not in originals or path.read_bytes() != originals[name].read_bytes()
    ]


@pytest.mark.skipif(not ORIGINAL.is_dir(), reason="the recorded files are not beside this checkout")
def test_every_copied_file_equals_its_original() -> None:
    assert len(files(COPY)) > 100
    assert differences(COPY, ORIGINAL) == []


def test_a_changed_and_an_additional_file_are_found(tmp_path: pathlib.Path) -> None:
    for folder in ("copy", "original"):
        (tmp_path / folder / "sub").mkdir(parents=True)
        for name in ("same", "sub/changed"):
            (tmp_path / folder / name).write_bytes(b"{}")
    (tmp_path / "copy" / "sub" / "changed").write_bytes(b"{}\n")
    (tmp_path / "copy" / "more").write_bytes(b"")
    assert differences(tmp_path / "copy", tmp_path / "original") == ["more", "sub/changed"]


def test_git_keeps_the_bytes_of_fixtures() -> None:
    attributes = (ROOT / ".gitattributes").read_text(encoding="utf-8")
    assert "tests/unit/fixtures/** -text" in attributes
