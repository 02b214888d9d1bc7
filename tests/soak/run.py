# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Many random histories of a cluster with controllers that fail and die.

    python tests/soak/run.py [--count 2000] [--seed 1]

A history that goes wrong is told with its number; ``--only NUMBER`` plays it again.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import multiprocessing
import os
import pathlib
import sys
import time

# The link that `make` keeps: through it the collection can be imported from any checkout.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / ".build"))

from ansible_collections.nodeops.dra.tests.soak.model import play


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
    numbers = range(options.seed * 1_000_000, options.seed * 1_000_000 + options.count)
    problems, done, started = [], 0, time.monotonic()
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for found in pool.imap_unordered(one, numbers, chunksize=4):
            problems += found
            done += 1
            for problem in found:
                sys.stdout.write(f"{problem}\n")
            if sys.stdout.isatty():
                sys.stdout.write(f"\r  {done} of {options.count} histories")
                sys.stdout.flush()
    sys.stdout.write(f"{done} histories, {len(problems)} problems, {time.monotonic() - started:.0f} s\n")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
