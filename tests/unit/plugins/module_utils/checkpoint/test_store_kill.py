# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A writer killed at any system call leaves the old file or the new one, and never stands in the way of the next."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

from .child_process import environment

STEPPER = Path(__file__).with_name("kill_stepper.py")
NO_PTRACE = 77


def swept(scenario: str, how: str, directory: Path) -> dict[str, t.Any]:
    done = subprocess.run(
        [sys.executable, str(STEPPER), scenario, how, str(directory)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    if how == "ptrace" and done.returncode == NO_PTRACE:
        pytest.skip("ptrace is forbidden here; the wrapped calls of the same test are what is covered")
    assert done.returncode == 0, done.stderr
    return t.cast("dict[str, t.Any]", json.loads(done.stdout))


@pytest.mark.slow
@pytest.mark.report("F085")
@pytest.mark.parametrize("how", ["ptrace", "calls"])
@pytest.mark.parametrize(
    ("scenario", "before", "after"),
    [
        pytest.param("replace", "old", "new", id="replace"),
        pytest.param("create", "missing", "new", id="create"),
        pytest.param("remove", "old", "missing", id="remove"),
        pytest.param("backup", "old", "old", id="backup"),
    ],
)
def test_killed_at_every_system_call(tmp_path: Path, scenario: str, how: str, before: str, after: str) -> None:
    result = swept(scenario, how, tmp_path)
    held = [outcome["held"] for outcome in result["outcomes"]]

    assert result["points"] > 10, "too few points: the writer was not really stepped through"
    assert set(held) == {before, after}
    assert held == sorted(held, key=[before, after].index), "once the new file is there it stays"
    assert held[-1] == after, "the run that was not killed"
    assert all(outcome["recovered"] for outcome in result["outcomes"])
    for outcome in result["outcomes"]:
        temporaries = {name for name in outcome["others"] if re.fullmatch(r"\.[0-9]+", name)}
        finished = {name: what for name, what in outcome["others"].items() if name not in temporaries}
        assert len(temporaries) <= 1
        assert set(finished.values()) <= {"old"}, "a copy appears complete or not at all"
        assert not finished or scenario == "backup"
    assert [outcome["others"] for outcome in result["outcomes"]][-1] == (
        {"dra_manager_state.19700101T000000Z.bak": "old"} if scenario == "backup" else {}
    )
    means = "system call" if how == "ptrace" else "wrapped call"
    sys.stdout.write(f"{scenario}: killed at each of {result['points']} points ({means}), old or new file each time\n")
