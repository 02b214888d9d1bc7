# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Let everything go wrong around the node agent, and print what it told and how it came out.

    python tests/soak/agent_chaos.py [--only NAME]... [--together 3]

Each scenario has a node of its own: an API server, two drivers and the agent, all of them processes. Some mount file
systems below their own directory and need root for that.
"""

from __future__ import annotations

import argparse
import asyncio
import pathlib
import shutil
import sys
import tempfile
import time
import traceback

# The link that `make` keeps: through it the collection can be imported from any checkout.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / ".build"))

from ansible_collections.nodeops.dra.tests.soak.agent_chaos_node import Row
from ansible_collections.nodeops.dra.tests.soak.agent_scenarios import SCENARIOS

WIDTH = 78
"""Characters of what was told that go into the table."""


def told(name: str, row: Row, seconds: float) -> str:
    """A scenario in the table."""
    recovered = "-" if row.recovered is None else f"{row.recovered:.1f} s"
    memory = " -> ".join(f"{one:.0f}" for one in (row.memory[0], row.memory[-1])) if row.memory else "-"
    lines = [f"{name:<24} recovered {recovered:>7}   memory {memory} MB   ({seconds:.0f} s)"]
    for what in ("health", "metrics", "findings"):
        text = " ".join(getattr(row, what).split())
        if text:
            lines.append(f"    {what:<9} {text if len(text) <= WIDTH else text[: WIDTH - 3] + '...'}")
    return "\n".join(lines) + "\n"


async def play(root: pathlib.Path, names: list[str], together: int) -> list[str]:
    """Play scenarios, so many at a time; names of those that went wrong."""
    places = asyncio.Semaphore(together)
    wrong: list[str] = []

    async def one(number: int, name: str) -> None:
        async with places:
            folder, started = root / str(number), time.monotonic()
            folder.mkdir()
            try:
                row = await SCENARIOS[name](folder)
            except Exception as error:
                wrong.append(name)
                if not isinstance(error, AssertionError):
                    traceback.print_exc()
                sys.stdout.write(f"{name:<24} WRONG: {error}\n    logs are kept in {folder / 'log'}\n")
            else:
                sys.stdout.write(told(name, row, time.monotonic() - started))
            sys.stdout.flush()

    await asyncio.gather(*(one(number, name) for number, name in enumerate(names)))
    return wrong


def main() -> int:
    """Entry point; the exit status is 1 when anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=sorted(SCENARIOS), help="play this one; may be repeated")
    parser.add_argument("--together", type=int, default=3, help="how many play at the same time")
    options = parser.parse_args()
    root = pathlib.Path(tempfile.mkdtemp(prefix="dra-chaos-"))
    names = options.only or list(SCENARIOS)
    wrong = asyncio.run(play(root, names, options.together))
    if not wrong:
        shutil.rmtree(root)
    sys.stdout.write(f"{len(names)} scenarios, {len(wrong)} went wrong{': ' if wrong else ''}{', '.join(wrong)}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
