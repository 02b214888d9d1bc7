# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A look at a file full of claims takes less than ten times its size, in a process of its own."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import typing as t

import pytest

from . import builders as b

SIZE = 4_000_000
LOOK = """
import sys
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import diagnosis, report, store
report.diagnosis_report(diagnosis.diagnose(store.read_file(sys.argv[1]).data))
# not ru_maxrss: that begins with what the process that started this one had
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""


def _fnv(count: int) -> bytes:
    # any checksum: that it is wrong costs nothing but one fault
    return b.fnv_file(*[b.fnv_claim(number) for number in range(count)], checksum=1)


def _crc(count: int) -> bytes:
    return b.crc_file(*[b.crc_claim(number) for number in range(count)])


FILES: dict[str, t.Callable[[int], bytes]] = {
    "crc": _crc,
    "crc that is cut": lambda count: _crc(count)[:-100],
    "fnv": _fnv,
    "fnv that is cut": lambda count: _fnv(count)[:-100],
}


def _peak(path: pathlib.Path) -> int:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", LOOK, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout) * 1024


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_look_takes_less_than_ten_times_the_size(name: str, tmp_path: pathlib.Path) -> None:
    make = FILES[name]
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(make(2))
    large.write_bytes(make(SIZE // (len(make(101)) - len(make(1))) * 100))
    size = large.stat().st_size
    assert size > SIZE // 2
    assert _peak(large) - _peak(small) < 10 * size
