# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Device health: what drivers report, how long it holds, and what the pod status shows."""

from __future__ import annotations

import asyncio
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.driver.claims import DeviceHealth, Health
from ansible_collections.nodeops.dra.plugins.module_utils.manager.device_health import HealthChange, HealthTable
from ansible_collections.nodeops.dra.plugins.module_utils.manager.health_streams import follow_all
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.node import Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import GPU, claim, device, pod

pytestmark = pytest.mark.asyncio


def report(
    name: str = "dev-0", health: Health = Health.HEALTHY, timeout: float = 2.0, message: str = ""
) -> DeviceHealth:
    return DeviceHealth("pool-0", name, health, timeout, message)


class Told:
    """A listener that remembers what it was told, and when."""

    def __init__(self, table: HealthTable) -> None:
        self.changes: list[str] = []
        self.times: list[float] = []
        self._pulse = asyncio.Event()
        table.listen(self.take)

    def take(self, changes: t.Sequence[HealthChange]) -> None:
        self.changes += [f"{one.device} {one.state.health.value}" for one in changes]
        self.times.append(asyncio.get_running_loop().time())
        self._pulse.set()

    async def until(self, count: int) -> list[str]:
        async with asyncio.timeout(20):
            while len(self.changes) < count:
                self._pulse.clear()
                await self._pulse.wait()
        return self.changes


@pytest.fixture
def table() -> t.Iterator[HealthTable]:
    made = HealthTable()
    yield made
    made.close()


@pytest.mark.report("F017")
@pytest.mark.looptime
async def test_silence_makes_a_device_unknown_once_and_in_time(table: HealthTable) -> None:
    told = Told(table)
    start = asyncio.get_running_loop().time()
    table.update(GPU, [report(timeout=2.0)])
    await asyncio.sleep(300)
    assert told.changes == ["dev-0 Healthy", "dev-0 Unknown"]
    assert told.times[1] - start == pytest.approx(2.0, abs=0.5)
    assert table.state_of(GPU, "pool-0", "dev-0").health is Health.UNKNOWN


@pytest.mark.looptime
async def test_each_device_has_its_own_time(table: HealthTable) -> None:
    told = Told(table)
    table.update(GPU, [report("dev-0", timeout=2), report("dev-1", timeout=9)])
    await asyncio.sleep(3)
    table.update(GPU, [report("dev-2", timeout=50)])  # the others were left out
    await asyncio.sleep(10)
    assert told.changes == ["dev-0 Healthy", "dev-1 Healthy", "dev-0 Unknown", "dev-2 Healthy", "dev-1 Unknown"]


@pytest.mark.looptime
async def test_reports_that_go_on_change_nothing(table: HealthTable) -> None:
    told = Told(table)
    for _unused in range(20):
        table.update(GPU, [report(timeout=2)])
        await asyncio.sleep(1.5)
    assert told.changes == ["dev-0 Healthy"]


async def test_a_lost_stream_makes_all_devices_unknown(table: HealthTable) -> None:
    told = Told(table)
    table.update(
        GPU, [report("dev-0"), report("dev-1", Health.UNHEALTHY, message="hot"), report("dev-2", Health.UNKNOWN)]
    )
    table.drop(GPU)
    table.drop(GPU)
    assert told.changes[3:] == ["dev-0 Unknown", "dev-1 Unknown"]


async def test_a_new_message_is_a_change_and_a_long_one_is_cut(table: HealthTable) -> None:
    told = Told(table)
    table.update(GPU, [report(message="warm")])
    table.update(GPU, [report(message="ö" * 2000)])
    assert len(told.changes) == 2
    message = table.state_of(GPU, "pool-0", "dev-0").message
    assert len(message.encode()) <= 1024
    assert message.endswith("ö...")


async def test_who_listens_no_more_is_not_told(table: HealthTable) -> None:
    changes: list[HealthChange] = []
    stop = table.listen(changes.extend)
    stop()
    table.update(GPU, [report()])
    assert changes == []


async def test_pods_show_the_health_of_their_devices(node: Node) -> None:
    driver = await node.add_driver(health=("v1alpha1",))
    manager = await node.start()
    two = claim("c1", "u-1", device("dev-0"), device("dev-1", request="r1"))
    uses = [{"name": "ref-c1", "request": "r0"}, {"name": "ref-c1"}]
    made = pod(containers=[{"name": "main", "resources": {"claims": uses}}])
    made["spec"]["initContainers"] = [{"name": "first", "resources": {"claims": uses}}]
    node.claims["u-1"] = two
    await manager.prepare(made, [two])
    told = Told(manager.health)
    following = asyncio.create_task(follow_all(node.registry, manager.health))
    driver.set_health("dev-0", "UNHEALTHY", "fell off the bus", timeout=60)
    assert await told.until(1) == ["dev-0 Unhealthy"]
    sick = {"resourceID": f"k8s.{GPU}/claim=u-1-dev-0", "health": "Unhealthy", "message": "fell off the bus"}
    unknown = {"resourceID": f"k8s.{GPU}/claim=u-1-dev-1", "health": "Unknown"}
    found = manager.allocated_resources_status(made, "main")
    assert [(one.name, list(one.resources)) for one in found] == [
        ("claim:ref-c1/r0", [sick]),
        ("claim:ref-c1", [sick, unknown]),
    ]
    assert manager.allocated_resources_status(made, "first") == []
    await node.remove_driver()
    assert (await told.until(2))[1:] == ["dev-0 Unknown"]
    again = await node.add_driver(health=("v1alpha1",))
    again.set_health("dev-0", "HEALTHY", timeout=60)
    assert (await told.until(3))[2:] == ["dev-0 Healthy"]
    following.cancel()
    await asyncio.wait([following])


@pytest.mark.report("F038")
async def test_a_driver_without_health_is_not_asked(node: Node) -> None:
    driver = await node.add_driver()
    manager = await node.start()
    following = asyncio.create_task(follow_all(node.registry, manager.health))
    await node.prepare(claim())
    following.cancel()
    await asyncio.wait([following])
    assert driver.calls_of("health") == []
