# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""``dra-checkpoint.pyz``: one file, the same bytes each time, no need of anything beside Python."""

from __future__ import annotations

import os
import pathlib
import stat
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILDER = ROOT / "hack" / "build_zipapp.py"

pytestmark = pytest.mark.skipif(
    not (ROOT / "plugins" / "module_utils" / "checkpoint" / "__main__.py").exists(), reason="no program to pack yet"
)


def build(target: pathlib.Path) -> pathlib.Path:
    """A program made by the builder."""
    subprocess.run([sys.executable, str(BUILDER), str(target)], check=True)
    return target


def run(program: pathlib.Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run the program with a bare interpreter: no site-packages, no environment, another folder."""
    return subprocess.run(
        [sys.executable, "-I", "-S", str(program), *argv],
        cwd=program.parent,
        env={},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_same_sources_give_the_same_bytes(tmp_path: pathlib.Path) -> None:
    first = build(tmp_path / "a.pyz").read_bytes()
    os.utime(ROOT / "plugins" / "module_utils" / "checkpoint" / "errors.py")
    assert build(tmp_path / "b" / "b.pyz").read_bytes() == first


def test_it_is_an_executable_with_a_shebang(tmp_path: pathlib.Path) -> None:
    program = build(tmp_path / "dra-checkpoint.pyz")
    assert program.read_bytes().startswith(b"#!/usr/bin/env python3\n")
    assert stat.S_IMODE(program.stat().st_mode) == 0o755
    with zipfile.ZipFile(program) as packed:
        assert packed.testzip() is None
        assert {name.split("/")[0] for name in packed.namelist()} == {"__main__.py", "LICENSE.txt", "dra_checkpoint"}


def test_it_tells_its_usage(tmp_path: pathlib.Path) -> None:
    told = run(build(tmp_path / "dra-checkpoint.pyz"), "--help")
    assert told.returncode == 0, told.stderr
    assert "inspect" in told.stdout


def test_a_broken_file_is_told_without_a_stack_trace(tmp_path: pathlib.Path) -> None:
    (tmp_path / "dra_manager_state").write_bytes(b"\0" * 100)
    told = run(build(tmp_path / "dra-checkpoint.pyz"), "inspect", "dra_manager_state")
    assert told.returncode == 1, told.stderr
    assert "dra_manager_state" in told.stdout
    assert "Traceback" not in told.stdout + told.stderr


def test_a_folder_cannot_be_looked_at(tmp_path: pathlib.Path) -> None:
    told = run(build(tmp_path / "dra-checkpoint.pyz"), "inspect", str(tmp_path))
    assert told.returncode == 2, told.stdout
    assert "Traceback" not in told.stdout + told.stderr
