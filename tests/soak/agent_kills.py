# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A node whose agent is killed again and again while pods come and go, and what must hold after each kill."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import pathlib
import random
import re
import typing as t

from ansible_collections.nodeops.dra.tests.soak.agent_invariants import Told, always, at_rest
from ansible_collections.nodeops.dra.tests.soak.agent_load import DEVICES, Load
from ansible_collections.nodeops.dra.tests.soak.agent_node import DRIVERS, SoakNode, until

REST_EVERY = 25
"""Kills between two looks at a node at rest."""


@dataclasses.dataclass
class Count:
    """What has happened on all nodes so far."""

    kills: int = 0
    starting: int = 0
    drivers: int = 0
    pods: int = 0
    faults: int = 0
    rests: int = 0


class WrongError(Exception):
    """An invariant does not hold; the text says which and where the logs are."""


class KilledNode:
    """Plays one node. ``seed`` decides what happens; when exactly it happens is up to the machine.

    With few ``devices`` a driver, each is soon used again.
    """

    def __init__(
        self,
        root: pathlib.Path,
        seed: str,
        count: Count,
        drivers: t.Sequence[str] = DRIVERS,
        *,
        devices: int = DEVICES,
    ) -> None:
        self._chance = random.Random(seed)
        self._seed, self._count, self._devices = seed, count, devices
        self.node = SoakNode(root, drivers)
        self.node.heard = self._hear
        self._told = Told()
        self._at_work = asyncio.Event()
        self._wrongs: list[str] = []
        self._kills = 0

    def _hear(self, line: str) -> None:
        found = re.search(r" pod (prepared|released) pod=\S+ uid=(\S+)", line)
        if found:
            self._at_work.set()
            (self._told.prepared if found[1] == "prepared" else self._told.released).add(found[2])
        if "by a bug" in line or "Traceback" in line or " critical " in line.lower():
            self._wrongs.append(f"the agent said: {line}")

    async def play(self, budget: t.Iterator[int]) -> None:
        """Kill the agent once for each item of ``budget``, then end all pods. Raises WrongError."""
        try:
            await self.node.start_all()
            async with self.node.cluster() as client:
                self.load = Load(self.node, client, self._chance, devices=self._devices)
                for _number in budget:
                    await self._one_life()
                await self._rest("after the last kill")
                await self._end_all()
        except AssertionError as error:
            raise self._wrong([str(error)], "while it waited") from error
        finally:
            await self.node.end_all()

    async def _one_life(self) -> None:
        """The agent lives for a moment under load; it is killed, looked at, and started."""
        node, chance = self.node, self._chance
        load = asyncio.create_task(self._work())
        drivers = asyncio.create_task(self._tend_drivers())
        try:
            if chance.random() < 0.2:  # while it starts
                await asyncio.sleep(chance.uniform(0.1, 0.8))
                self._count.starting += not node.ready.is_set()
            else:
                await node.until_ready()
                with contextlib.suppress(TimeoutError):  # there may be nothing to do
                    await asyncio.wait_for(self._at_work.wait(), 5)
                await asyncio.sleep(min(2, chance.expovariate(1.5)))
            assert node.agent is not None
            status = await node.agent.end(kill=True)
            self._kills += 1
            self._count.kills += 1
        finally:
            for task in (load, drivers):
                task.cancel()
            results = await asyncio.gather(load, drivers, return_exceptions=True)
        for result in results:
            if not isinstance(result, asyncio.CancelledError):
                raise self._wrong([f"the load ended: {result!r}"], "under load")
        if status != -9:
            self._wrongs.append(f"the agent had ended by itself with status {status}")
        self._check([*self._wrongs, *always(node, self.load, self._told)], "right after a kill")
        self._told = Told(self._told.prepared & {pod.uid for pod in self.load.living}, self._told.released)
        self._at_work.clear()
        await node.start_agent()
        if self._kills % REST_EVERY == 0:
            await self._rest("at rest")

    async def _work(self) -> None:
        while True:
            before = len(self.load.pods), self.load.faults
            # A step that has begun is finished: the API server must not be left with half of it.
            await _finished(self.load.step())
            self._count.pods += len(self.load.pods) - before[0]
            self._count.faults += self.load.faults - before[1]
            await asyncio.sleep(self._chance.uniform(0, 0.06))

    async def _tend_drivers(self) -> None:
        """Kill a driver now and then, and start those that died."""
        while True:
            await asyncio.sleep(self._chance.uniform(0.1, 1.0))
            if self._chance.random() < 0.1:
                with contextlib.suppress(ProcessLookupError):
                    self.node.drivers[self._chance.choice(self.node.names)].child.kill()
            await _finished(self._start_dead_drivers())

    async def _start_dead_drivers(self) -> None:
        for name, process in list(self.node.drivers.items()):
            if not process.runs:
                self._count.drivers += 1
                await process.end(kill=True)
                await self.node.start_driver(name)

    # Rest

    async def _rest(self, when: str) -> None:
        """Let everything finish: then nothing may be lost, leaked, or left over."""
        self._count.rests += 1
        await self.node.until_ready()
        await self._start_dead_drivers()
        for name in self.node.names:
            await self.node.tell_driver(name, "clear")
        # A crash that was due when the faults were cleared.
        await self._start_dead_drivers()
        for uid, is_held in list(self.load.services.items()):
            if is_held is None:
                wanted = self._chance.random() < 0.5

                async def settled(uid: str = uid, wanted: bool = wanted) -> bool:
                    await self.load.put_service(uid, wanted)
                    return self.load.services[uid] is not None

                await until(settled, f"claim {uid} of a service is settled")
        wrongs: list[str] = ["not looked yet"]

        async def right() -> bool:
            wrongs[:] = at_rest(self.node, self.load) or await self._not_content()
            return not wrongs

        try:
            await until(right, when)
        except AssertionError:
            self._check(wrongs, f"{when}, and it stays so")
        self._check(self._wrongs, when)

    async def _not_content(self) -> list[str]:
        """What the agent itself still has to tell."""
        async with self.node.local() as client:
            claims, findings = await client.claims(), await client.findings()
        found = [f"finding: {one['text']}" for one in findings]
        # What a service holds is prepared again when it asks: it knows of no restart, and nothing has changed for it.
        pods = [one for one in claims if one["uid"] not in self.load.services]
        return found + [f"claim {one['name']} is {one['status']}" for one in pods if one["status"] != "prepared"]

    async def _end_all(self) -> None:
        """All pods and services end; then nothing is held, and the agent ends and leaves nothing."""
        while self.load.living:
            await self.load.delete_pod()
        for uid in list(self.load.services):
            await self.load.put_service(uid, wanted=False)
        await self._rest("after all pods have ended")
        assert self.node.agent is not None
        status = await self.node.agent.end()
        left = sorted(path.name for path in self.node.run.iterdir())
        wrongs = [f"it ended with status {status}"] if status else []
        if left != ["nodeops-dra-agent.lock"]:
            wrongs.append(f"it left {left} in {self.node.run}")
        self._check([*wrongs, *at_rest(self.node, self.load)], "after its end")

    def _check(self, wrongs: t.Sequence[str], when: str) -> None:
        if wrongs:
            raise self._wrong(wrongs, when)

    def _wrong(self, wrongs: t.Sequence[str], when: str) -> WrongError:
        text = "\n  ".join(wrongs)
        return WrongError(
            f"node {self._seed}, kill {self._kills}, {when}:\n  {text}\n  files and logs are kept in {self.node.root}"
        )


async def _finished(work: t.Coroutine[t.Any, t.Any, None]) -> None:
    """Run ``work`` to its end even when the caller is cancelled, who is cancelled then."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
