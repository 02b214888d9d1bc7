# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Letting go of what no living pod holds, and forgetting what no driver can be told any more."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.claims import ClaimState, assemble, encode
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import StoreError
from ansible_collections.nodeops.dra.plugins.module_utils.manager.planning import Holder, plan_claim
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.node import Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import GPU, NIC, claim, device

pytestmark = pytest.mark.asyncio


# kubelet: TestReconcile
async def test_pods_that_are_gone_lose_their_claims(node: Node) -> None:
    await node.add_driver()
    await node.start()
    shared = claim("c3", "u-3", device("dev-2"), pods=["p-1", "p-2"])
    await node.prepare(claim("c1", "u-1", device("dev-0")), claim("c2", "u-2", device("dev-1")), shared)
    await node.prepare(shared, pod_uid="p-2")
    await node.start()
    done = await node.manager.reconcile(lambda: {"p-2"})
    assert (done.gone, done.kept, done.failures) == (["u-1", "u-2"], ["u-3"], [])
    assert node.state()["u-3"].pod_uids == {"p-2"}
    assert node.asked() == ["prepare u-1,u-2,u-3", "unprepare u-1,u-2"]
    again = await node.manager.reconcile(lambda: {"p-2"})
    assert (again.gone, again.kept) == ([], [])


async def test_what_a_service_holds_is_no_claim_of_a_pod_that_is_gone(node: Node) -> None:
    await node.add_driver()
    await node.start()
    shared = claim(pods=["p-1"])
    await node.prepare(shared)
    await node.manager.prepare_claims(Holder.named("training.service"), [plan_claim(shared)])
    assert (await node.manager.reconcile(lambda: ())).kept == ["u-1"]
    assert node.state()["u-1"].pod_uids == {"holder:training.service"}
    again = await node.manager.reconcile(lambda: ())
    assert (again.gone, again.kept, node.asked()) == ([], [], ["prepare u-1"])


async def test_a_claim_that_no_pod_holds_goes_too(node: Node) -> None:
    orphan = ClaimState("u-1", "c1", "team-a", frozenset(), {GPU: None})
    node.state_path.write_bytes(assemble([encode(orphan)]))
    await node.add_driver()
    await node.start()
    assert (await node.manager.reconcile(lambda: {"p-1"})).gone == ["u-1"]
    assert node.asked() == ["unprepare u-1"]


async def test_a_pod_that_appears_meanwhile_keeps_its_claim(node: Node) -> None:
    driver = await node.add_driver(GPU)
    await node.start()
    shared = claim(pods=["p-1", "p-2"])
    await node.prepare(shared)
    active: set[str] = set()
    driver.faults.add("slow:method=prepare,seconds=0.1")
    preparing = asyncio.ensure_future(node.prepare(shared, pod_uid="p-2", renew=True))
    await driver.wait_for(lambda: len(node.asked()) == 2)
    reconciling = asyncio.ensure_future(node.manager.reconcile(lambda: set(active)))
    await asyncio.sleep(0)
    active.add("p-2")
    await preparing
    assert (await reconciling).kept == ["u-1"]
    assert node.state()["u-1"].pod_uids == {"p-2"}


async def test_one_claim_that_cannot_go_does_not_hold_up_the_others(node: Node) -> None:
    await node.add_driver(GPU)
    await node.add_driver(NIC)
    await node.start()
    await node.prepare(claim("c1", "u-1", device("dev-0")))
    await node.prepare(claim("c2", "u-2", device("nic-0", NIC), pods=["p-2"]), pod_uid="p-2")
    await node.remove_driver(NIC)
    done = await node.manager.reconcile(set)
    assert (done.gone, len(done.failures)) == (["u-1"], 1)
    waiting = await node.manager.reconcile(set)
    assert (waiting.waiting, waiting.failures) == (["u-2"], [])
    await node.add_driver(NIC)
    node.manager.driver_returned(NIC)
    assert (await node.manager.reconcile(set)).gone == ["u-2"]


# Forgetting


async def test_forgetting_drops_the_claim_and_leaves_a_record(node: Node) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim())
    await node.remove_driver()
    forgotten = await node.manager.forget("u-1", reason="driver uninstalled", by="root")
    assert forgotten is not None
    assert forgotten.devices == (f"{GPU}/pool-0/dev-0",)
    assert forgotten.cdi_device_ids == (f"k8s.{GPU}/claim=u-1-dev-0",)
    (leak,) = forgotten.may_leak
    assert all(part in leak for part in (GPU, "dev-0", "u-1"))
    assert node.state() == {}
    (line,) = (node.root / "dra_manager_audit.log").read_text().splitlines()
    record = json.loads(line)
    assert (record["claim_uid"], record["reason"], record["by"], record["pods"]) == (
        "u-1",
        "driver uninstalled",
        "root",
        ["p-1"],
    )
    assert node.asked() == ["prepare u-1"]
    assert await node.manager.forget("u-1", reason="again", by="root") is None


async def test_what_a_driver_never_answered_may_leak_too(node: Node) -> None:
    driver = await node.add_driver()
    await node.start()
    driver.faults.add("hang:method=prepare")
    preparing = asyncio.ensure_future(node.prepare(claim()))
    await driver.wait_for(lambda: node.asked() != [])
    preparing.cancel()
    await asyncio.wait([preparing])
    forgotten = await node.manager.forget("u-1", reason="test", by="test")
    assert forgotten is not None
    assert forgotten.devices == (f"{GPU}/pool-0/dev-0",), "what it was asked for"
    assert f"devices {GPU}/pool-0/dev-0" in forgotten.may_leak[0]


async def test_what_nobody_knows_may_leak_too(node: Node) -> None:
    """A kubelet's file says of a driver that has not answered only that it was called."""
    node.state_path.write_bytes(assemble([encode(ClaimState("u-1", "c1", "team-a", frozenset({"p-1"}), {GPU: None}))]))
    await node.start()
    forgotten = await node.manager.forget("u-1", reason="test", by="test")
    assert forgotten is not None
    assert "whatever it has prepared" in forgotten.may_leak[0]


async def test_without_a_record_nothing_is_forgotten(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim())
    before = node.state()

    def full(*_args: t.Any, **_options: t.Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(StoreError, match=r"audit\.log.*nothing was forgotten"):
            await node.manager.forget("u-1", reason="test", by="test")
    assert node.state() == before
    assert dataclasses.asdict(node.manager.claims()[0].record.state)["uid"] == "u-1"
