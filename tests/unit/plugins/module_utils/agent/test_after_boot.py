# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Claims of services after a boot: the state file is there, and what drivers had prepared is not."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.after_boot import planned, prepare_again
from ansible_collections.nodeops.dra.plugins.module_utils.manager.durable_claims import Record
from ansible_collections.nodeops.dra.plugins.module_utils.manager.notes import ClaimNote
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Node, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.running_agent import RunningAgent, running
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import NIC


@contextlib.asynccontextmanager
async def preparing(agent: RunningAgent) -> t.AsyncIterator[asyncio.Task[None]]:
    """The work, as a task that is cancelled at the end if it is not over."""
    task = asyncio.create_task(prepare_again(agent.place, pause=0.05))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.report("F005", "F050", "F109")
@pytest.mark.asyncio
async def test_a_service_gets_its_devices_and_their_cdi_files_again(node: Node) -> None:
    node.manager_has(recorded("u-1", "c1", pods=["holder:unit"]), recorded("u-2", "c2", "dev-1", pods=["p-1"]))
    async with node.driver() as driver, running(node) as agent, preparing(agent) as task:
        await task
        claims = {one["name"]: one["status"] for one in await agent.client.claims()}
        event = await agent.client.watch().__anext__()
    # The pod's claim waits for its pod.
    assert claims == {"c1": "prepared", "c2": "needs_prepare"}
    assert [call.uids for call in driver.calls if call.method == "prepare"] == [["u-1"]]
    assert [path.name for path in node.cdi.glob("*u-1*")] != []
    assert (event["kind"], event["text"]) == ("claim_prepared", "for holder unit, after the boot")


@pytest.mark.asyncio
async def test_one_claim_does_not_wait_for_the_driver_of_another(node: Node) -> None:
    node.manager_has(
        recorded("u-1", "c1", pods=["holder:a"]), recorded("u-2", "c2", "dev-1", pods=["holder:b"], driver=NIC)
    )
    late = node.driver(NIC)  # comes later than the first try
    async with node.driver(GPU, "hang"), running(node) as agent, preparing(agent), late:
        assert (await agent.client.watch().__anext__())["subject"] == "team-a/c2 (u-2)"


@pytest.mark.asyncio
async def test_a_claim_that_was_given_back_meanwhile_is_not_prepared(node: Node) -> None:
    node.manager_has(recorded(pods=["holder:unit"]))
    async with running(node) as agent, preparing(agent) as task:
        await agent.client.change(node.request("forgotten", {"metadata": {"uid": "u-1"}}, reason="no driver"))
        async with node.driver() as driver:
            await task
        assert await agent.client.claims() == []
    assert [call for call in driver.calls if call.method == "prepare"] == []


def test_a_plan_from_what_is_recorded() -> None:
    key = (GPU, "pool-0", "dev-0", "s-1")
    note = ClaimNote(admin_devices=frozenset({key}))
    state = recorded(share_id="s-1")
    state = dataclasses.replace(state, drivers={**state.drivers, NIC: None})
    plan = planned(Record(state, note))
    assert (plan.uid, plan.full_name, plan.drivers) == ("u-1", "team-a/c1", (GPU, NIC))
    assert [(one.key, one.request, one.admin_access) for one in plan.allocated] == [(key, "r0", True)]
