# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Mutated state files in great number: no stack trace, no wrong verdict, bounded time and memory.

    python tests/fuzz/run.py [--files 100000] [--seed 1]

Every mutant is judged, repaired for no release and for each family, and the repaired file is judged again. It is wrong
when an error escapes, when the verdict of any release differs from that of `reference`, which shares no code with the
layer, when a file is called sound that one of its kubelets refuses, or refused that all of them start with, when a
repair gives a file that is refused or holds other claims than planned, and when repairing twice changes it again.

Files that are hard by their size or shape, and those that are full of claims, must take less than ten times their size
in memory to look at and to repair on disk, and no more time than in proportion to their size.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import pathlib
import sys
import tempfile
import time
import typing as t

# The link that `make` keeps: through it the collection can be imported from any checkout.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / ".build"))

import mutations
import reference
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import statefile
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.diagnosis import REFUSED, SOUND, diagnose
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.other_files import read_other
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.planning import Plan, plan_repair
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.report import diagnosis_report

BATCH = 500
TARGETS = (None, "1.30", "1.36")
LARGE = 10_000_000
MEMORY = 10
"""How many times its size a large file may take in memory."""


def check(data: bytes, target: str | None) -> str | None:
    """What is wrong with our answer to one file, or None."""
    diagnosis = diagnose(data)
    report = diagnosis_report(diagnosis)
    loaded = reference.claims_loaded(data)
    ours = {release: _count(verdict) for release, verdict in report["kubelet_verdicts"].items()}
    if ours != loaded:
        return f"kubelets load {loaded}, not {ours}"
    starts = [report["kubelet_start"][release] for release in diagnosis.releases]
    if report["status"] == SOUND and (set(starts) != {"ok"} or None in [loaded[one] for one in diagnosis.releases]):
        return "called sound, but one of its kubelets does not start with it"
    if report["status"] == REFUSED and set(starts) == {"ok"}:
        return "called refused, but all of its kubelets start with it"
    try:
        plan = plan_repair(data, target=target)
    except DraError:
        return None  # a decision for a person, said in words
    return _wrong_with_repair(plan, target)


def _count(verdict: str) -> int | None:
    return int(verdict[3:]) if verdict.startswith("ok:") else None


def _wrong_with_repair(plan: Plan, target: str | None) -> str | None:
    after = diagnose(plan.after, release=target)
    if after.status == REFUSED:
        return f"the repaired file is refused: {after.faults[0].text if after.faults else ''}"
    if plan.after is not None:
        loaded = reference.claims_loaded(plan.after)
        if {loaded[release] for release in after.releases} != {len(plan.entries)}:
            return f"{len(plan.entries)} claims planned, kubelets load {loaded}"
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
            problem = check(data, target)
            read_other(data)
        except Exception as error:
            problem = f"{type(error).__name__} escaped: {error}"
        if problem:
            problems.append(f"seed {seed} number {number} ({name}): {problem}")
    return count, problems


def extreme(name: str, size: int) -> tuple[int, float, float, float, str]:
    """The size of a file that is hard by its size or shape, its CPU seconds, its memory as multiples of its size: of a
    look, and of a change.

    The last item tells what escaped, if anything did.
    """
    started = time.process_time()
    problem, length, grown = "", 1, []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "dra_manager_state"
        for work in (_look, _change):
            data = {**mutations.EXTREMES, **mutations.FULL}[name](size)
            path.write_bytes(data)
            length = len(data)
            del data
            with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
                file.write("5")  # forget the peak that making the file has left
            before = _peak()
            try:
                work(path)
            except Exception as error:
                problem = f"{name}: {type(error).__name__} escaped: {error}"
            grown.append((_peak() - before) / length)
    return length, time.process_time() - started, grown[0], grown[1], problem


def _look(path: pathlib.Path) -> None:
    statefile.inspect(statefile.locate(str(path)))
    read_other(path.read_bytes())


def _change(path: pathlib.Path) -> None:
    with contextlib.suppress(DraError):
        statefile.change(statefile.locate(str(path)), statefile.Request("repaired", force=True))


def _peak() -> int:
    """The most bytes of memory that this process has had, since the peak was forgotten."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))


def extremes(megabytes: int) -> t.Iterator[str]:
    """What is wrong with our answers to hard files; each has a process of its own, so its peak memory is its own."""
    for name in (*mutations.EXTREMES, *mutations.FULL):
        results = []
        for size in (megabytes * 250_000, megabytes * 1_000_000):
            with multiprocessing.Pool(1) as pool:
                results.append(pool.apply(extreme, (name, size)))
        (_unused, quarter, *_rest), (size, seconds, look, change, problem) = results
        multiples = f"{look:5.1f} x its size, a repair {change:5.1f} x"
        sys.stdout.write(f"  {name:<40} {size / 1e6:6.1f} MB {seconds:7.1f} s  {multiples}\n")
        sys.stdout.flush()
        if problem:
            yield problem
        if max(look, change) > MEMORY and size >= LARGE:
            yield f"{name}: memory is {max(look, change):.1f} times the file's size, the limit is {MEMORY}"
        if seconds > 2 and seconds > 8 * quarter:
            yield f"{name}: {seconds:.1f} s, a quarter of it {quarter:.1f} s: more than in proportion"


def main() -> int:
    """Entry point; the exit status is 1 when anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--megabytes", type=int, default=50, help="size of the files that are hard by their shape")
    options = parser.parse_args()
    problems: list[str] = []
    problems += extremes(options.megabytes)
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
