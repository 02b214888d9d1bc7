# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Run checks and say one line for each; show what a check printed only when it failed.

    .venv/bin/python hack/gate.py lint sanity units integration

All named checks run even when an earlier one fails, so that one run shows everything that is wrong. The exit status is
1 when any of them failed. What each command printed stays in ``.build/log``.
"""

from __future__ import annotations

import concurrent.futures
import signal
import subprocess
import sys
import time
import types
import typing as t

import checks
import programs
import pythons
import workspace
from commands import Outcome, end_all


def report(name: str, outcome: Outcome, seconds: float) -> None:
    """One line for a check, and everything that its failed commands printed."""
    for command in outcome.failed:
        sys.stdout.write(f"\n--- {name}: {command.label} failed: {' '.join(command.argv)}\n{command.output.rstrip()}\n")
    state = "FAILED" if outcome.failed else "ok"
    sys.stdout.write(f"{name:<12} {state:<6} {seconds:6.1f} s  {outcome.detail}\n")
    sys.stdout.flush()


def timed(name: str) -> tuple[Outcome, float]:
    """Run one check; what it found and the seconds it took."""
    before = time.monotonic()
    return checks.CHECKS[name](), time.monotonic() - before


def run_checks(names: t.Sequence[str]) -> int:
    """Run the named checks, two at a time, in the order of ``checks.CHECKS``; count the tests at the end."""
    started = time.monotonic()
    passed = failed = skipped = red = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        running = {pool.submit(timed, name): name for name in sorted(names, key=list(checks.CHECKS).index)}
        try:
            for done in concurrent.futures.as_completed(running):
                outcome, seconds = done.result()
                report(running[done], outcome, seconds)
                red += bool(outcome.failed)
                passed, failed, skipped = passed + outcome.passed, failed + outcome.broken, skipped + outcome.skipped
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            end_all()
            raise
    if len(names) > 1:
        state = f"{red} of {len(names)} checks FAILED" if red else "all checks ok"
        sys.stdout.write(f"{'total':<12} {state}, {time.monotonic() - started:.0f} s\n")
    if passed or failed or skipped:
        sys.stdout.write(f"{passed} passed, {failed} failed, {skipped} skipped\n")
    return 1 if red else 0


def terminated(number: int, _frame: types.FrameType | None) -> t.NoReturn:
    """End as after an interrupt, which ends the running commands too."""
    raise SystemExit(128 + number)


def main(argv: t.Sequence[str]) -> int:
    """Entry point; returns the exit status."""
    signal.signal(signal.SIGTERM, terminated)
    if subprocess.run(["git", "rev-parse"], cwd=workspace.ROOT, capture_output=True, check=False).returncode:
        sys.stderr.write(f"{workspace.ROOT} is no git checkout that git trusts; see what `git status` says there\n")
        return 2
    workspace.link_collection()
    if len(argv) == 1 and argv[0] in programs.PROGRAMS:
        return programs.PROGRAMS[argv[0]]()
    unknown = [name for name in argv if name not in checks.CHECKS]
    if unknown or not argv:
        sys.stderr.write(f"usage: gate.py {' | '.join([*checks.CHECKS, *programs.PROGRAMS])}\n")
        return 2
    if {"sanity", "units", "integration"} & set(argv):
        pythons.link(pythons.find(), workspace.PYTHONS)
    try:
        return run_checks(argv)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
