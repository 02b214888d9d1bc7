# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Many random histories of a cluster with controllers that fail and die.

    python tests/soak/run.py [--count 2000] [--seed 1]

A history that goes wrong is told with its number; ``--only NUMBER`` plays it again. How far the run is, is told every
15 seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import multiprocessing
import os
import pathlib
import sys
import time

# The link that `make` keeps: through it the collection can be imported from any checkout.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / ".build"))

from ansible_collections.nodeops.dra.tests.soak.model import play

TELL_EVERY = 15.0
"""Seconds between two lines that tell how far the run is."""


def one(number: int) -> list[str]:
    """What is wrong with one history."""
    logging.disable(logging.CRITICAL)
    try:
        return asyncio.run(asyncio.wait_for(play(number), 120))
    except Exception as error:
        return [f"history {number}: {type(error).__name__} escaped: {error}"]


def main() -> int:
    """Entry point; the exit status is 1 when anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="play this history alone, with the log of the controllers")
    options = parser.parse_args()
    if options.only is not None:
        logging.basicConfig(level=logging.INFO, format="%(relativeCreated)6d %(message)s")
        problems = asyncio.run(play(options.only))
        sys.stdout.write("\n".join(problems) + "\n")
        return 1 if problems else 0
    first = options.seed * 1_000_000
    return 1 if play_all(range(first, first + options.count)) else 0


def play_all(numbers: range) -> int:
    """Play these histories, tell how far that is and what is wrong; the number of problems."""
    problems, done = 0, 0
    started = told = time.monotonic()
    with multiprocessing.Pool(os.cpu_count()) as pool:
        # One history a piece: the iterator of larger pieces cannot wait with a limit.
        results = pool.imap_unordered(one, numbers)
        while done < len(numbers):
            with contextlib.suppress(multiprocessing.TimeoutError):
                found = results.next(max(0.0, told + TELL_EVERY - time.monotonic()))
                done += 1
                problems += len(found)
                sys.stdout.write("".join(f"{problem}\n" for problem in found))
            now = time.monotonic()
            if now - told >= TELL_EVERY or done == len(numbers):
                told = now
                sys.stdout.write(f"{done} of {len(numbers)} histories, {problems} problems, {now - started:.0f} s\n")
                sys.stdout.flush()
    return problems


if __name__ == "__main__":
    raise SystemExit(main())
