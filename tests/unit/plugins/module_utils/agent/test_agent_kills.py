# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""An agent that is killed in the middle of its work: what it said is true afterwards, and nothing is left over."""

from __future__ import annotations

import asyncio
import pathlib
import random

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.local_client import LocalClient
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.tests.soak.agent_kills import Count, KilledNode
from ansible_collections.nodeops.dra.tests.soak.agent_node import DRIVERS
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.agent_process import agent_process
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import Json, Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim, device

KILLS = 3
CLIENTS = 4


class Told:
    """What the agent has confirmed: UID to whether it is prepared, None while an answer is outstanding."""

    def __init__(self, seed: int) -> None:
        self.states: dict[str, bool | None] = {}
        self.count = 0
        self._random = random.Random(seed)
        self._news = asyncio.Event()

    async def ask(self, node: Node, client: LocalClient, number: int) -> None:
        """Change claims of one client's own at random, until the agent dies."""
        while True:
            which = CLIENTS * self._random.randrange(8) + number
            wanted = self._random.random() < 0.6
            uid, one = f"u-{which}", claim(f"c{which}", f"u-{which}", device(f"allocated-{which}"))
            self.states[uid] = None
            await client.change(node.request("prepared" if wanted else "unprepared", one, holder="unit"))
            self.states[uid] = wanted
            self.count += 1
            self._news.set()

    async def more(self, answers: int) -> None:
        """Wait for so many more answers."""
        until = self.count + answers
        while self.count < until:
            self._news.clear()
            await self._news.wait()

    def contradictions(self, claims: list[Json]) -> list[str]:
        """Where the agent has forgotten what it said."""
        known = {one["uid"] for one in claims}
        return [uid for uid, state in self.states.items() if state is not None and (uid in known) is not state]


@pytest.mark.report("F044")
@pytest.mark.asyncio
async def test_what_an_agent_said_holds_after_it_was_killed(node: Node) -> None:
    told = Told(seed=7)
    dice = random.Random(11)
    # The driver gives devices of its own choice: other names than the allocation's, so that none is held twice.
    async with node.driver(devices=8 * CLIENTS):
        for _kill in range(KILLS):
            async with agent_process(node) as agent:
                await agent.until("ready daemon=")
                async with agent.client() as client:
                    assert told.contradictions(await client.claims()) == []
                    asked = [asyncio.create_task(told.ask(node, client, number)) for number in range(CLIENTS)]
                    enough = asyncio.create_task(told.more(dice.randint(3, 30)))
                    done, _waiting = await asyncio.wait([enough, *asked], return_when=asyncio.FIRST_COMPLETED)
                    assert done == {enough}, done
                    await agent.end(kill=True)
                    ended = await asyncio.gather(*asked, return_exceptions=True)
                    assert all(isinstance(one, DraError) for one in ended), ended
        async with agent_process(node) as agent:
            await agent.until("ready daemon=")
            async with agent.client() as client:
                left = await client.claims()
                assert told.contradictions(left) == []
                await client.change(node.request("unprepared", *[{"metadata": {"uid": one["uid"]}} for one in left]))
                assert await client.claims() == []
            assert await agent.end() == 0
    assert list(node.cdi.glob("*claim*")) == []


@pytest.mark.report("F044", "F048", "F059")
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.asyncio
async def test_kills_under_load_lose_nothing_and_leave_nothing(root: pathlib.Path) -> None:
    """A few of the kills of `make kills`: processes for the API server, two drivers and the agent."""
    count = Count()
    await KilledNode(root / "n", "unit", count, DRIVERS[:2], devices=1000).play(iter(range(3)))
    assert (count.kills, count.rests) == (3, 2)
    assert count.pods
