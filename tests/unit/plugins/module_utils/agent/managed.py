# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A node whose pods are kept: an embedded API server, a manager, and what prepares and unprepares between them."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.agent.driver_events import follow_drivers
from ansible_collections.nodeops.dra.plugins.module_utils.agent.events import Event, EventLog
from ansible_collections.nodeops.dra.plugins.module_utils.agent.keeping import Keeper
from ansible_collections.nodeops.dra.plugins.module_utils.agent.node_pods import NodePods
from ansible_collections.nodeops.dra.plugins.module_utils.agent.workplace import Directories, Workplace
from ansible_collections.nodeops.dra.plugins.module_utils.driver.registry import DriverRegistry
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import options_from
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of
from ansible_collections.nodeops.dra.plugins.module_utils.manager.failures import Backoff
from ansible_collections.nodeops.dra.plugins.module_utils.manager.manager import DraManager
from ansible_collections.nodeops.dra.plugins.module_utils.manager.opening import Settings
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.test_with_api import Cluster

QUICK = Backoff(0.05, 0.2)


@dataclasses.dataclass
class Managed:
    """The parts that a test looks at, and the events as they come."""

    place: Workplace
    pods: NodePods
    keeper: Keeper
    cluster: Cluster
    seen: int = 0

    async def event(self, kind: str, text: str = "") -> Event:
        """The next event of a kind, with this in its subject or text."""
        async for event in self.place.events.follow(self.seen):
            self.seen = event.number
            if event.kind == kind and text in f"{event.subject} {event.text}":
                return event
        raise AssertionError("the agent has ended")

    def holders(self) -> dict[str, list[str]]:
        """Names of recorded claims to who holds them."""
        states = [report.record.state for report in self.place.manager.claims()]
        return {state.name: sorted(state.pod_uids) for state in states}

    async def delete(self, kind: str, name: str) -> None:
        """Delete an object at once."""
        await self.cluster.client.delete(resource_of(kind), name, "default", grace_period_seconds=0)

    async def until(self, condition: t.Callable[[], object]) -> None:
        """Wait for something that nobody tells of."""
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def managed(
    node: Node, cluster: Cluster, *, options: t.Mapping[str, t.Any] | None = None, period: float = 3600.0
) -> t.AsyncIterator[Managed]:
    """The agent's work for ``node-1`` without its socket."""
    node.state_directory.mkdir(exist_ok=True)
    cdi = (str(node.cdi),)
    settings = Settings(str(node.state_directory), timeout=20.0, backoff=QUICK, cdi_directories=cdi)
    async with DriverRegistry(node.registry) as registry, await DraManager.open(settings, registry) as manager:
        directories = Directories(str(node.state_directory), str(node.root), str(node.registry), cdi)
        place = Workplace(directories, manager, registry, EventLog())
        pods = NodePods("node-1", options_from(cluster.options if options is None else options))
        place.pod_sources.insert(0, pods)
        keeper = place.keeper = Keeper(place, pods, period=period, backoff=QUICK)
        work = (pods.run(), keeper.run(), follow_drivers(place, keeper.driver_returned))
        tasks = [asyncio.create_task(one) for one in work]
        try:
            yield Managed(place, pods, keeper, cluster)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(one, asyncio.CancelledError) for one in results), results
