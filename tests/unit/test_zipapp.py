# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""``dra-checkpoint.pyz``: one file, the same bytes each time, no need of anything beside Python."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import typing as t
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILDER = ROOT / "hack" / "build_zipapp.py"

LAYER = "ansible_collections.nodeops.dra.plugins.module_utils.checkpoint"
FIXTURES = ROOT / "tests" / "unit" / "fixtures" / "checkpoint"


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


def by_collection(folder: pathlib.Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run the same program from the collection."""
    collections = next(path for path in sys.path if (pathlib.Path(path) / "ansible_collections" / "nodeops").is_dir())
    return subprocess.run(
        [sys.executable, "-m", LAYER, *argv],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": collections},
        capture_output=True,
        text=True,
        check=False,
    )


COMMANDS: t.Sequence[tuple[str, ...]] = (
    ("inspect", "dra_manager_state"),
    ("inspect", "dra_manager_state", "--output", "json", "--kubelet", "1.36"),
    ("repair", "dra_manager_state", "--check"),
    ("repair", "dra_manager_state"),
    ("inspect", "dra_manager_state"),
    ("convert", "dra_manager_state", "--to", "universal", "--output", "json"),
    ("repair", "dra_manager_state", "--drop", "default/claim-1"),
    ("restore", "dra_manager_state", "--from", "copy"),
    ("convert", "dra_manager_state", "--to", "1.26"),
    ("convert", "dra_manager_state"),
    ("inspect", "."),
)


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_it_does_what_the_collection_does(tmp_path: pathlib.Path) -> None:
    """One broken file through all commands: the same words, the same exit status, the same bytes."""
    packed, unpacked = tmp_path / "a", tmp_path / "b"
    for folder in (packed, unpacked):
        folder.mkdir()
        shutil.copy(FIXTURES / "damaged/1.35-1.36/bad_checksum_zero.json", folder / "dra_manager_state")
        shutil.copy(FIXTURES / "1.35-1.36/multi_claim_order_a.json", folder / "copy")
    program = build(packed / "dra-checkpoint.pyz")
    statuses = []
    for command in COMMANDS:
        by_program, expected = run(program, *command), by_collection(unpacked, *command)
        answers = [
            (
                done.returncode,
                re.sub(r"Z(\.[0-9]+)?\.bak", "Z.bak", re.sub("[0-9]{8}T[0-9]{6}", "T", done.stdout + done.stderr)),
            )
            for done in (by_program, expected)
        ]
        assert answers[0] == (answers[1][0], answers[1][1].replace(str(unpacked), str(packed))), command
        assert (packed / "dra_manager_state").read_bytes() == (unpacked / "dra_manager_state").read_bytes(), command
        statuses.append(by_program.returncode)
    assert statuses == [1, 1, 0, 0, 0, 0, 0, 0, 2, 2, 2]


def test_a_folder_cannot_be_looked_at(tmp_path: pathlib.Path) -> None:
    told = run(build(tmp_path / "dra-checkpoint.pyz"), "inspect", str(tmp_path))
    assert told.returncode == 2, told.stdout
    assert "Traceback" not in told.stdout + told.stderr
