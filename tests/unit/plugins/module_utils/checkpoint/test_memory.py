# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A look at a file full of claims, and every change of it, take less than ten times its size, each in a process."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import typing as t

import pytest

from . import builders as b

SIZE = 4_000_000
CHANGED_SIZE = 2_000_000
LOOK = """
import sys
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import diagnosis, report, store
report.diagnosis_report(diagnosis.diagnose(store.read_file(sys.argv[1]).data))
# not ru_maxrss: that begins with what the process that started this one had
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""


CHANGE = """
import sys
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import statefile
path, state, target, ring = sys.argv[1:]
location = statefile.Location(path, "/nonexistent", "a test")
made = statefile.change(location, statefile.Request(state, target or None, ring=ring or None, force=True))
assert made["changed"], made
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""


def _fnv(count: int) -> bytes:
    # any checksum: that it is wrong costs nothing but one fault
    return b.fnv_file(*[b.fnv_claim(number) for number in range(count)], checksum=1)


def _crc(count: int) -> bytes:
    return b.crc_file(*[b.crc_claim(number) for number in range(count)])


def _crc_of_others(count: int) -> bytes:
    return b.crc_file(*[b.crc_claim(500_000 + number) for number in range(count)])


FILES: dict[str, t.Callable[[int], bytes]] = {
    "crc": _crc,
    "crc that is cut": lambda count: _crc(count)[:-100],
    "fnv": _fnv,
    "fnv that is cut": lambda count: _fnv(count)[:-100],
    "crc with one name for each claim": lambda count: b.crc_file(
        *[b.crc_claim(number, ClaimName="same") for number in range(count)]
    ),
}


CHANGES: dict[str, tuple[t.Callable[[int], bytes], str, str]] = {
    "crc that is cut": (FILES["crc that is cut"], "repaired", ""),
    "fnv that is cut": (FILES["fnv that is cut"], "repaired", ""),
    "crc with a wrong checksum": (
        lambda count: b.crc_file(*[b.crc_claim(number) for number in range(count)], checksum=1),
        "repaired",
        "",
    ),
    "fnv with a wrong checksum": (_fnv, "repaired", ""),
    "crc with zeros behind": (lambda count: _crc(count) + bytes(4096), "repaired", ""),
    "crc with something wrong in each claim": (
        lambda count: b.crc_file(*[b.crc_claim(number, PodUIDs=None) for number in range(count)]),
        "repaired",
        "",
    ),
    "crc to an older format": (_crc, "converted", "1.31"),
    "crc to fnv, where each claim loses something": (_crc, "converted", "1.30"),
    "crc to all releases": (_crc, "converted", "universal"),
    "fnv to crc": (_fnv, "repaired", "1.36"),
    "from a backup": (FILES["crc that is cut"], "restored", ""),
    "from a backup of other claims": (FILES["crc that is cut"], "restored", ""),
    "from a ring": (FILES["crc that is cut"], "restored", "ring"),
    "absent": (_crc, "absent", ""),
}


def _peak(path: pathlib.Path, program: str = LOOK, *arguments: str) -> int:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, str(path), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout) * 1024


def _skip_large_objects(name: str) -> None:
    if sys.version_info < (3, 11) and "each claim" in name:
        pytest.skip("Objects are larger there: a step or a fault for every claim takes a little more.")


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_look_takes_less_than_ten_times_the_size(name: str, tmp_path: pathlib.Path) -> None:
    _skip_large_objects(name)
    make = FILES[name]
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(make(2))
    large.write_bytes(make(SIZE // (len(make(101)) - len(make(1))) * 100))
    size = large.stat().st_size
    assert size > SIZE // 2
    assert _peak(large) - _peak(small) < 10 * size


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_takes_less_than_ten_times_the_size(name: str, tmp_path: pathlib.Path) -> None:
    _skip_large_objects(name)
    make, state, target = CHANGES[name]
    many = CHANGED_SIZE // (len(make(101)) - len(make(1))) * 100
    others = "of other claims" in name  # then all of the answer is new: both files count
    size, peaks = 0, []
    for count in (2, many):
        folder = tmp_path / str(count)
        ring = folder / "ring" if target == "ring" else None
        (ring or folder).mkdir(parents=True)
        (folder / "dra_manager_state").write_bytes(make(count))
        if state == "restored":
            copy = "dra_manager_state.20260807T101112Z"
            copied = _crc_of_others(count) if others else _crc(count)
            (ring / copy if ring else folder / f"{copy}.bak").write_bytes(copied)
        size = (folder / "dra_manager_state").stat().st_size * (2 if others else 1)
        release = "" if ring else target
        peaks.append(_peak(folder / "dra_manager_state", CHANGE, state, release, str(ring or "")))
    assert size > CHANGED_SIZE // 2
    assert peaks[1] - peaks[0] < 10 * size
