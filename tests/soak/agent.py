# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Kill the node agent at random moments, under load, many times.

    python tests/soak/agent.py [--kills 500] [--nodes 2] [--seed 1]

Each node has an API server, three drivers and the agent, all of them processes. Pods and services come and go, drivers
fail and die. After each kill, and again and again at rest, nothing may be lost, leaked, held twice or left over. The
same seed plays the same events again; when each of them happens is up to the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import pathlib
import shutil
import sys
import tempfile
import time

# The link that `make` keeps: through it the collection can be imported from any checkout.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / ".build"))

from ansible_collections.nodeops.dra.tests.soak.agent_kills import Count, KilledNode, WrongError

EVERY = 10.0
"""Seconds between two lines that tell how far it is."""


def tell(count: Count, kills: int, started: float) -> None:
    """One line."""
    sys.stdout.write(
        f"  {count.kills} of {kills} kills ({count.starting} while starting), {count.drivers} drivers died, "
        f"{count.pods} pods, {count.faults} faults, {count.rests} looks at rest, {time.monotonic() - started:.0f} s\n"
    )
    sys.stdout.flush()


async def play(root: pathlib.Path, kills: int, nodes: int, seed: int) -> Count:
    """Play all nodes at the same time. Raises WrongError."""
    count, started = Count(), time.monotonic()
    budget = iter(range(kills))

    async def progress() -> None:
        while True:
            await asyncio.sleep(EVERY)
            tell(count, kills, started)

    async def one(number: int) -> None:
        folder = root / str(number)
        folder.mkdir()
        await KilledNode(folder, f"{seed}.{number}", count).play(budget)

    telling = asyncio.create_task(progress())
    playing = [asyncio.create_task(one(number)) for number in range(nodes)]
    try:
        await asyncio.gather(*playing)
    finally:
        for task in (telling, *playing):
            task.cancel()
        await asyncio.wait(playing)  # each ends its processes
        tell(count, kills, started)
    return count


def main() -> int:
    """Entry point; the exit status is 1 when anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--nodes", type=int, default=2, help="how many play at the same time")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000, help="any number [the time]")
    options = parser.parse_args()
    root = pathlib.Path(tempfile.mkdtemp(prefix="dra-kills-"))
    again = f"tests/soak/agent.py --kills {options.kills} --nodes {options.nodes} --seed {options.seed}"
    sys.stdout.write(f"repeat with: {again}\n")
    try:
        count = asyncio.run(play(root, options.kills, options.nodes, options.seed))
    except WrongError as error:
        sys.stdout.write(f"WRONG: {error}\nrepeat with: {again}\n")
        return 1
    shutil.rmtree(root)
    sys.stdout.write(f"{count.kills} kills, every invariant held\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
