# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Mutated state files in great number: no stack trace, no wrong verdict, bounded time and memory.

    python tests/fuzz/run.py [--files 100000] [--seed 1]

Every mutant is judged, repaired for no release and for each family, and the repaired file is judged again. It is wrong
when an error escapes, when a file that no kubelet reads is called sound, when a repair gives a file that is refused or
holds other claims than planned, and when repairing twice changes it again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pathlib
import resource
import sys
import time

# The link that `make` keeps: through it the collection can be imported from any checkout.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / ".build"))

import mutations
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.diagnosis import REFUSED, diagnose
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.other_files import read_other
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.planning import plan_repair
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.report import diagnosis_report

BATCH = 500
TARGETS = (None, "1.30", "1.36")


def check(name: str, data: bytes, target: str | None) -> str | None:
    """What is wrong with our answer to one file, or None."""
    report = diagnosis_report(diagnose(data))
    starts = report["kubelet_start"].values()
    if report["status"] == "sound" and report["format"] and "ok" not in starts:
        return "called sound, but no kubelet starts with it"
    try:
        plan = plan_repair(data, target=target)
    except DraError:
        return None  # a decision for a person, said in words
    after = diagnose(plan.after, release=target)
    if after.status == REFUSED:
        return f"the repaired file is refused: {after.faults[0].text if after.faults else ''}"
    if len(after.entries) != len(plan.entries):
        return f"{len(plan.entries)} claims planned, {len(after.entries)} in the file"
    again = plan_repair(plan.after, target=target)
    return "repairing twice changes it again" if again.changed else None


def run_batch(job: tuple[int, int, int]) -> tuple[int, list[str]]:
    """Check some mutants; the seed and the number name each of them for good."""
    seed, first, count = job
    problems = []
    for number in range(first, first + count):
        name, data = mutations.mutant(seed, number)
        target = TARGETS[number % len(TARGETS)]
        try:
            problem = check(name, data, target)
            read_other(data)
        except Exception as error:
            problem = f"{type(error).__name__} escaped: {error}"
        if problem:
            problems.append(f"seed {seed} number {number} ({name}): {problem}")
    return count, problems


def extreme(name: str, megabytes: int) -> list[str]:
    """A file that is hard by its size or shape, with its time and peak memory."""
    data = mutations.EXTREMES[name](megabytes * 1_000_000)
    started = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        diagnosis_report(diagnose(data))
        read_other(data)
    except Exception as error:
        return [f"{name}: {type(error).__name__} escaped: {error}"]
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / len(data)
    seconds = time.monotonic() - started
    sys.stdout.write(f"  {name:<40} {len(data) / 1e6:6.1f} MB {seconds:7.1f} s  {grown:5.1f} x its size\n")
    return [f"{name}: memory is {grown:.1f} times the file's size"] if grown > 10 and len(data) >= 10_000_000 else []


def main() -> int:
    """Entry point; the exit status is 1 when anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--megabytes", type=int, default=50, help="size of the files that are hard by their shape")
    options = parser.parse_args()
    problems: list[str] = []
    for name in mutations.EXTREMES:
        with multiprocessing.Pool(1) as pool:  # a process of its own: its peak memory is that of this file
            problems += pool.apply(extreme, (name, options.megabytes))
    jobs = [(options.seed, first, min(BATCH, options.files - first)) for first in range(0, options.files, BATCH)]
    started = time.monotonic()
    done = 0
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for count, found in pool.imap_unordered(run_batch, jobs):
            done += count
            problems += found
            if sys.stdout.isatty():
                sys.stdout.write(f"\r  {done} of {options.files} files")
                sys.stdout.flush()
    seconds = time.monotonic() - started
    for problem in problems[:50]:
        sys.stdout.write(f"{problem}\n")
    sys.stdout.write(f"{done} mutated files, {len(problems)} problems, {seconds:.0f} s\n")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
