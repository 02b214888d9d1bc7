# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The guide to the state file: its commands are run, its outputs are what they print, and it knows every code."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import subprocess
import sys
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import faults

from . import vectors
from .child_process import LAYER, environment

GUIDE = pathlib.Path(faults.__file__).parents[3] / "docs" / "docsite" / "rst" / "checkpoint.rst"
PROGRAM = "python3 dra-checkpoint.pyz "
CUT = "damaged/1.35-1.36/truncated_half.json"
RING = {
    "dra_manager_state.20261129T080000Z": "1.35-1.36/one_claim_one_device.json",
    "dra_manager_state.20261130T080000Z": "1.35-1.36/multi_claim_order_a.json",
}
# The file on the node when these sections of the guide begin; the others go on with what is there.
FILES = {
    "Look at the file": CUT,
    "Go back to a copy": CUT,
    "Before an upgrade": "1.30/one_claim_one_device.json",
}


class Command(t.NamedTuple):
    """A command of the guide, the section it stands in, and what it prints there."""

    section: str
    line: str
    output: str


def guide() -> str:
    return GUIDE.read_text(encoding="utf-8")


def commands(text: str) -> list[Command]:
    """The commands of all console blocks, in order."""
    found: list[Command] = []
    section = ""
    lines = text.splitlines()
    in_block = False
    for number, line in enumerate(lines):
        if re.fullmatch("-{4,}", line):
            section = lines[number - 1]
        if line and not line.startswith(" "):
            in_block = line == ".. code-block:: console"
        elif in_block and line.startswith("    $ "):
            found.append(Command(section, line[6:], ""))
        elif in_block and found and number and (line.strip() or found[-1].output):
            found[-1] = found[-1]._replace(output=found[-1].output + line[4:] + "\n")
    return [command._replace(output=command.output.strip("\n")) for command in found]


class Node:
    """A folder in which the paths of the guide lie; what is printed is told with the paths of the guide."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.places = {"/var/lib/kubelet": folder / "kubelet", "/var/lib/nodeops-dra/ring": folder / "ring"}
        for place in self.places.values():
            place.mkdir()
        for name, source in RING.items():
            (folder / "ring" / name).write_bytes(vectors.read(source))

    def begin(self, section: str) -> None:
        """Put the file there with which a section begins."""
        if section in FILES:
            for path in (self.folder / "kubelet").iterdir():
                path.unlink()
            (self.folder / "kubelet" / "dra_manager_state").write_bytes(vectors.read(FILES[section]))

    def run(self, line: str) -> str:
        """What the program prints, with one time for all backups."""
        words, _unused, target = line[len(PROGRAM) :].partition(" > ")
        for place, path in self.places.items():
            words = words.replace(place, str(path))
        done = subprocess.run(
            [sys.executable, "-m", LAYER, *shlex.split(words)],
            cwd=self.folder,
            env={**environment(), "COLUMNS": "80"},
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        if target:
            (self.folder / target).write_text(done.stdout)
            return ""
        text = re.sub(r"[0-9]{8}T[0-9]{6}Z(\.[0-9]+)?\.bak", "20261130T081500Z.bak", done.stdout)
        for place, path in self.places.items():
            text = text.replace(os.path.realpath(path), place).replace(str(path), place)
        return text.strip("\n")


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_every_command_prints_what_the_guide_shows(tmp_path: pathlib.Path) -> None:
    node = Node(tmp_path)
    section = ""
    count = 0
    for command in commands(guide()):
        if not command.line.startswith(PROGRAM):
            continue
        if command.section != section:
            section = command.section
            node.begin(section)
        assert node.run(command.line) == command.output, command.line
        count += 1
    assert count >= 12


def rows(text: str, heading: str) -> list[list[str]]:
    """The rows of the table whose first column has this heading, literals without their quotes."""
    table = text[text.index(f"   * - {heading}\n") :].replace("``", "")
    table = table[: re.search(r"\n(?!   )\S", table).start()]  # type: ignore[union-attr]
    return [re.split(r"\n     - ", row.strip("\n").strip()) for row in table.split("   * - ")[2:]]


def test_the_table_has_every_code_and_no_other() -> None:
    listed = {row[0]: row[1:] for row in rows(guide(), "Code")}
    assert list(listed) == sorted(listed)
    assert listed.keys() == faults.KINDS.keys()
    for code, kind in faults.KINDS.items():
        severity, meaning, repair = listed[code]
        assert (severity, repair) == (kind.severity, kind.repair or "none"), code
        assert meaning.endswith("."), code


def test_every_repair_is_explained() -> None:
    explained = [row[0] for row in rows(guide(), "Repair")]
    assert explained == sorted({kind.repair for kind in faults.KINDS.values() if kind.repair})


def test_the_exit_statuses_are_those_of_the_program() -> None:
    from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import __main__ as program

    told = [int(row[0]) for row in rows(guide(), "Exit status")]
    assert told == [program.EXIT_SOUND, program.EXIT_FAULTS, program.EXIT_FAILED]
