# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Giving claims back, by what is recorded on the node alone."""

from __future__ import annotations

import asyncio
import os

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.manager.context import BusyError
from ansible_collections.nodeops.dra.plugins.module_utils.manager.prepare import PrepareFailedError
from ansible_collections.nodeops.dra.plugins.module_utils.manager.unprepare import UnprepareFailedError
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.node import LosingDrivers, Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import GPU, NIC, claim, device, pod

pytestmark = pytest.mark.asyncio


# kubelet: TestUnprepareResources
async def test_the_last_pod_takes_the_claim_with_it(node: Node) -> None:
    await node.add_driver()
    await node.start()
    shared = claim(pods=["p-1", "p-2"])
    await node.prepare(shared)
    await node.prepare(shared, pod_uid="p-2")
    assert (await node.manager.unprepare("p-1")).kept == ("u-1",)
    assert node.state()["u-1"].pod_uids == {"p-2"}
    assert (await node.manager.unprepare("p-2")).gone == ("u-1",)
    assert node.state() == {}
    assert node.asked() == ["prepare u-1", "unprepare u-1"]
    assert node.simulated[GPU].prepared() == {}


async def test_unprepare_is_idempotent(node: Node) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim())
    assert (await node.manager.unprepare("p-1")).changed
    assert not (await node.manager.unprepare("p-1")).changed
    assert not (await node.manager.unprepare("nobody")).changed
    assert node.asked() == ["prepare u-1", "unprepare u-1"]


async def test_each_driver_gets_one_call_for_all_claims(node: Node) -> None:
    await node.add_driver(GPU)
    await node.add_driver(NIC)
    await node.start()
    await node.prepare(claim("c1", "u-1", device("dev-0"), device("nic-0", NIC)), claim("c2", "u-2", device("dev-1")))
    await node.manager.unprepare("p-1")
    assert node.asked(GPU)[-1] == "unprepare u-1,u-2"
    assert node.asked(NIC)[-1] == "unprepare u-1"


async def test_a_claim_stays_whole_until_all_its_drivers_agree(node: Node) -> None:
    await node.add_driver(GPU)
    await node.add_driver(NIC, "claim_error:method=unprepare,times=1,text=busy")
    await node.start()
    await node.prepare(claim("c1", "u-1", device("dev-0"), device("nic-0", NIC)), claim("c2", "u-2", device("dev-1")))
    before = node.state()["u-1"]
    with pytest.raises(UnprepareFailedError, match=r"u-1.*nic\.test\.example.*busy"):
        await node.manager.unprepare("p-1")
    assert node.state() == {"u-1": before}
    await node.manager.unprepare("p-1")
    assert node.state() == {}
    assert node.asked(GPU) == ["prepare u-1,u-2", "unprepare u-1,u-2", "unprepare u-1"]


async def test_a_single_claim_of_a_pod_can_be_given_back(node: Node) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim("c1", "u-1", device("dev-0")), claim("c2", "u-2", device("dev-1")))
    assert (await node.manager.unprepare_claims(["u-1"], pod_uid="p-1")).gone == ("u-1",)
    assert set(node.state()) == {"u-2"}
    assert not (await node.manager.unprepare_claims(["u-2"], pod_uid="p-9")).changed
    assert (await node.manager.unprepare_claims(["u-2"])).gone == ("u-2",)


async def test_who_has_to_wait_too_long_is_told_so(node: Node) -> None:
    driver = await node.add_driver(GPU, "hang:method=prepare")
    await node.start()
    preparing = asyncio.ensure_future(node.prepare(claim()))
    await driver.wait_for(lambda: node.asked() != [])
    with pytest.raises(BusyError, match="did not end within"):
        await node.manager.unprepare("p-1", timeout=0.05)
    preparing.cancel()
    await asyncio.wait([preparing])
    await node.manager.unprepare("p-1")


# Reports


@pytest.mark.report("F001")
async def test_while_the_driver_is_absent_the_entry_stays_and_nothing_is_lost(node: Node) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim())
    await node.remove_driver()
    before = node.state_path.read_bytes()
    firsts = set()
    for count in (1, 2, 3):
        with pytest.raises(UnprepareFailedError, match=r"c1 \(u-1\).*gpu\.test\.example, pods p-1.*regist") as caught:
            await node.manager.unprepare("p-1")
        (failure,) = caught.value.facts["failures"]
        assert (failure["driver"], failure["pods"], failure["count"]) == (GPU, ["p-1"], count)
        firsts.add(failure["first"])
    assert "state=forgotten" in caught.value.hint
    assert len(firsts) == 1
    assert node.state_path.read_bytes() == before
    (report,) = node.manager.claims()
    assert (report.status, report.failures[0].first) == ("unpreparing", firsts.pop())
    await node.add_driver()
    assert (await node.manager.unprepare("p-1")).gone == ("u-1",)
    assert node.asked() == ["unprepare u-1"]
    assert node.state() == {}


@pytest.mark.report("F001")
async def test_after_a_restart_the_driver_is_still_waited_for(node: Node) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim())
    await node.remove_driver()
    await node.start()
    with pytest.raises(UnprepareFailedError):
        await node.manager.unprepare("p-1")
    await node.add_driver()
    await node.manager.unprepare("p-1")
    assert node.asked() == ["unprepare u-1"]


@pytest.mark.report("F010")
async def test_a_driver_that_was_never_called_is_not_needed_to_unprepare(node: Node) -> None:
    await node.add_driver(GPU)
    await node.add_driver(NIC)
    await node.start(LosingDrivers(node, GPU, times=1))
    with pytest.raises(PrepareFailedError):
        await node.prepare(claim("c1", "u-1", device("dev-0"), device("nic-0", NIC)))
    assert set(node.state()["u-1"].drivers) == {GPU, NIC}
    await node.manager.unprepare("p-1")
    assert node.asked(NIC) == ["prepare u-1", "unprepare u-1"]
    assert node.asked(GPU) == []
    assert node.state() == {}


@pytest.mark.report("F011")
async def test_unprepare_needs_the_pod_uid_and_nothing_else(node: Node) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim())
    await node.start()  # a new process, which never saw pod or claim
    node.claims.clear()  # and neither does the API server have them any more
    assert (await node.manager.unprepare("p-1")).gone == ("u-1",)
    assert node.asked() == ["prepare u-1", "unprepare u-1"]


@pytest.mark.report("F013")
async def test_after_a_prepare_that_took_too_long_unprepare_is_sent_and_the_late_answer_dropped(node: Node) -> None:
    driver = await node.add_driver(GPU, "hang_after:method=prepare")
    await node.start()
    with pytest.raises(PrepareFailedError, match=r"DEADLINE_EXCEEDED|no answer within"):
        await node.prepare(claim(), timeout=0.3)
    assert node.state()["u-1"].drivers == {GPU: None}
    await node.manager.unprepare("p-1")
    assert node.asked() == ["prepare u-1", "unprepare u-1"]
    assert node.state() == {}
    assert node.manager.claims() == []
    assert driver.prepared() == {}


@pytest.mark.report("F013")
async def test_calls_for_one_claim_never_overlap(node: Node) -> None:
    driver = await node.add_driver(GPU, "slow:method=prepare,seconds=0.2")
    await node.start()
    node.claims["u-1"] = claim()
    preparing = asyncio.ensure_future(node.manager.prepare(pod(), [claim()]))
    await driver.wait_for(lambda: node.asked() != [])
    await asyncio.gather(node.manager.unprepare("p-1"), preparing)
    first, second = driver.calls_of("prepare") + driver.calls_of("unprepare")
    assert (first.method, second.method) == ("prepare", "unprepare")
    assert first.ended is not None
    assert first.ended <= second.started


@pytest.mark.report("F058")
async def test_all_claims_of_a_pod_go_in_one_write(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    await node.add_driver()
    await node.start()
    shared = claim("c3", "u-3", device("dev-2"), pods=["p-1", "p-2"])
    await node.prepare(claim("c1", "u-1", device("dev-0")), claim("c2", "u-2", device("dev-1")), shared)
    await node.prepare(shared, pod_uid="p-2")
    seen: list[dict[str, list[str]]] = []
    rename = os.rename

    def watched(*args: object, **options: object) -> None:
        rename(*args, **options)  # type: ignore[arg-type]
        seen.append({uid: sorted(state.pod_uids) for uid, state in node.state().items()})

    monkeypatch.setattr(os, "rename", watched)
    await node.manager.unprepare("p-1")
    assert seen == [{"u-3": ["p-2"]}]
