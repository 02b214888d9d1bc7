# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Run the commands of a check: captured, bounded in time, ended with everything that they started."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import threading
import time
import typing as t

import workspace

# A hung tool must not hold a build forever. The longest check takes two minutes with nothing cached.
TIME_LIMIT = 1800.0

# Process groups that run now, so that an interrupted make leaves none behind.
_groups: set[int] = set()
_ending = threading.Event()


def end_all() -> None:
    """Kill every running command and what it started; no other starts."""
    _ending.set()
    for group in tuple(_groups):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


@dataclasses.dataclass
class Command:
    """A command of a check, and after ``run`` what became of it."""

    label: str
    argv: list[str]
    cwd: pathlib.Path = workspace.ROOT
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    status: int = 0
    output: str = ""
    seconds: float = 0.0

    def run(self) -> Command:
        """Run to the end, keep the output, and write it to the log folder too."""
        if _ending.is_set():
            raise SystemExit(1)
        started = time.monotonic()
        with subprocess.Popen(
            self.argv,
            cwd=self.cwd,
            env={**workspace.environment(), **self.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            _groups.add(process.pid)
            try:
                output, _errors = process.communicate(timeout=TIME_LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output = process.communicate()[0] + f"\nkilled after {TIME_LIMIT:.0f} s\n".encode()
            finally:
                _groups.discard(process.pid)
        self.status, self.output = process.returncode, output.decode(errors="replace")
        self.seconds = time.monotonic() - started
        log = workspace.BUILD / "log" / f"{self.label.replace(' ', '-').replace('/', '-')}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(self.output, encoding="utf-8")
        return self


@dataclasses.dataclass
class Outcome:
    """What a check found: the commands that failed, one line for people, and counted tests if it runs any."""

    failed: list[Command] = dataclasses.field(default_factory=list)
    detail: str = ""
    passed: int = 0
    broken: int = 0
    skipped: int = 0


def outcome_of(commands: t.Sequence[Command], *notes: str) -> Outcome:
    """Outcome of finished commands; the line gives the seconds of each and then the notes."""
    timed = ", ".join(f"{command.label} {command.seconds:.1f}" for command in commands)
    return Outcome([command for command in commands if command.status], "; ".join([timed, *filter(None, notes)]))


def run_together(commands: t.Sequence[Command], workers: int = 2) -> Outcome:
    """Run independent commands, two at a time: the machines that we build on have two cores."""
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return outcome_of(list(pool.map(Command.run, commands)))
