# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Run checks and say one line for each; show what a check printed only when it failed.

    .venv/bin/python hack/gate.py lint sanity units integration

All named checks run even when an earlier one fails, so that one run shows everything that is wrong. The exit status is
1 when any of them failed. What each command printed stays in ``.build/log``.
"""

from __future__ import annotations

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
from commands import Outcome


def report(name: str, outcome: Outcome, seconds: float) -> None:
    """One line for a check, and everything that its failed commands printed."""
    for command in outcome.failed:
        sys.stdout.write(f"\n--- {name}: {command.label} failed: {' '.join(command.argv)}\n{command.output.rstrip()}\n")
    state = "FAILED" if outcome.failed else "ok"
    sys.stdout.write(f"{name:<12} {state:<6} {seconds:6.1f} s  {outcome.detail}\n")
    sys.stdout.flush()


def run_checks(names: t.Sequence[str]) -> int:
    """Run the named checks in turn; a closing line counts the tests when any ran."""
    started = time.monotonic()
    passed = failed = skipped = red = 0
    for name in names:
        before = time.monotonic()
        outcome = checks.CHECKS[name]()
        report(name, outcome, time.monotonic() - before)
        red += bool(outcome.failed)
        passed, failed, skipped = passed + outcome.passed, failed + outcome.broken, skipped + outcome.skipped
    if len(names) > 1:
        state = f"{red} of {len(names)} checks FAILED" if red else "all checks ok"
        sys.stdout.write(f"{'total':<12} {state}, {time.monotonic() - started:.0f} s\n")
    if passed or failed or skipped:
        sys.stdout.write(f"{passed} passed, {failed} failed, {skipped} skipped\n")
    return 1 if red else 0


def terminated(number: int, _frame: types.FrameType | None) -> t.NoReturn:
    """End like an interrupt does, so that running commands are ended too."""
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
    return run_checks(argv)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
