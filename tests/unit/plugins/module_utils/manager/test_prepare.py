# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Preparing the claims of a pod, against simulated drivers on real sockets and with real files."""

from __future__ import annotations

import asyncio
import logging
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.manager.admission import (
    BeingUnpreparedError,
    DeviceTakenError,
    NameTakenError,
    ReallocatedError,
)
from ansible_collections.nodeops.dra.plugins.module_utils.manager.planning import ClaimMissingError
from ansible_collections.nodeops.dra.plugins.module_utils.manager.prepare import PrepareFailedError
from ansible_collections.nodeops.dra.plugins.module_utils.manager.unprepare import UnprepareFailedError
from ansible_collections.nodeops.dra.plugins.module_utils.resource.consumers import NotReservedError
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver import SimulatedDriver
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.node import LosingDrivers, Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import (
    GPU,
    NIC,
    claim,
    device,
    pod,
)

pytestmark = pytest.mark.asyncio


# kubelet: TestPrepareResources
async def test_a_container_gets_the_cdi_names_of_its_claim(node: Node) -> None:
    await node.add_driver()
    await node.start()
    assert await node.prepare(claim()) == ["k8s.gpu.test.example/claim=u-1-dev-0"]
    assert node.asked() == ["prepare u-1"]


async def test_each_driver_gets_one_call_for_all_claims_of_the_pod(node: Node) -> None:
    await node.add_driver(GPU)
    await node.add_driver(NIC)
    await node.start()
    await node.prepare(
        claim("c1", "u-1", device("dev-0"), device("nic-0", NIC, request="r1")), claim("c2", "u-2", device("dev-1"))
    )
    assert node.asked(GPU) == ["prepare u-1,u-2"]
    assert node.asked(NIC) == ["prepare u-1"]


async def test_the_claim_is_on_disk_before_the_driver_is_called(node: Node) -> None:
    driver = await node.add_driver(GPU, "hang:method=prepare")
    await node.start()
    preparing = asyncio.ensure_future(node.prepare(claim()))
    await driver.wait_for(lambda: node.asked() != [])
    state = node.state()["u-1"]
    assert (state.pod_uids, dict(state.drivers)) == ({"p-1"}, {GPU: None})
    preparing.cancel()
    await asyncio.wait([preparing])


async def test_a_claim_for_a_second_pod_is_not_prepared_again(node: Node) -> None:
    await node.add_driver()
    await node.start()
    shared = claim(pods=["p-1", "p-2"])
    first = await node.prepare(shared)
    assert await node.prepare(shared, pod_uid="p-2") == first
    assert node.asked() == ["prepare u-1"]
    assert node.state()["u-1"].pod_uids == {"p-1", "p-2"}


async def test_what_one_driver_answered_is_kept_when_another_fails(node: Node) -> None:
    await node.add_driver(GPU)
    await node.add_driver(NIC, "claim_error:times=1,text=boom-42")
    await node.start()
    two = claim("c1", "u-1", device("dev-0"), device("nic-0", NIC))
    with pytest.raises(PrepareFailedError, match="boom-42"):
        await node.prepare(two)
    assert node.state()["u-1"].drivers[GPU] is not None
    assert node.state()["u-1"].drivers[NIC] is None
    await node.prepare(two)
    assert node.asked(GPU) == ["prepare u-1"]
    assert node.asked(NIC) == ["prepare u-1", "prepare u-1"]


async def test_renew_asks_the_drivers_again(node: Node) -> None:
    await node.add_driver()
    await node.start()
    first = await node.prepare(claim())
    assert await node.prepare(claim(), renew=True) == first
    assert node.asked() == ["prepare u-1", "prepare u-1"]


async def test_claims_of_one_pod_must_not_share_a_device(node: Node) -> None:
    await node.add_driver()
    await node.start()
    with pytest.raises(DeviceTakenError, match=r"u-2.*dev-0.*u-1"):
        await node.prepare(claim("c1", "u-1"), claim("c2", "u-2"))
    assert node.asked() == []
    assert node.state() == {}


async def test_a_missing_claim_is_named(node: Node) -> None:
    await node.start()
    with pytest.raises(ClaimMissingError, match="team-a/c1, which pod team-a/name-of-p-1"):
        await node.manager.prepare(pod(), [])


@pytest.mark.parametrize("uid", ["../u", "u/1", "", "u 1", ".u"])
async def test_unsafe_names_are_refused_before_anything_happens(node: Node, uid: str) -> None:
    await node.add_driver()
    await node.start()
    with pytest.raises(DraError, match=r"metadata\.uid"):
        await node.prepare(claim("c1", uid))
    assert node.asked() == []
    assert not node.state_path.exists()


async def test_bytes_that_are_no_answer_fail_all_claims(node: Node) -> None:
    await node.add_driver(GPU, "nonsense:method=prepare,times=1")
    await node.start()
    with pytest.raises(PrepareFailedError, match=r"c1 \(u-1\).*answered nonsense"):
        await node.prepare(claim())
    assert node.state()["u-1"].drivers == {GPU: None}
    await node.prepare(claim())


async def test_a_call_that_fails_as_a_whole_fails_all_its_claims(node: Node) -> None:
    await node.add_driver(GPU, "error:code=INTERNAL,text=go away,times=1")
    await node.start()
    claims = [claim("c1", "u-1", device("dev-0")), claim("c2", "u-2", device("dev-1"))]
    with pytest.raises(PrepareFailedError, match=r"INTERNAL.*go away") as caught:
        await node.prepare(*claims)
    assert [one["claim_uid"] for one in caught.value.facts["failures"]] == ["u-1", "u-2"]
    await node.prepare(*claims)


# Reports


@pytest.mark.report("F003")
async def test_a_device_that_another_claim_still_holds_is_refused(node: Node) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim("c1", "u-1", device("dev-0")))
    with pytest.raises(DeviceTakenError, match=r"u-2.*pool-0/dev-0.*u-1") as caught:
        await node.prepare(claim("c2", "u-2", device("dev-0"), pods=["p-2"]), pod_uid="p-2")
    assert (caught.value.facts["claim_uid"], caught.value.facts["held_uid"]) == ("u-2", "u-1")
    assert node.asked() == ["prepare u-1"]
    await node.manager.unprepare("p-1")
    await node.prepare(claim("c2", "u-2", device("dev-0"), pods=["p-2"]), pod_uid="p-2")


@pytest.mark.report("F003")
@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("admin", ["u-1", "u-2"])
async def test_admin_access_on_one_side_is_no_overlap(node: Node, admin: str, restart: bool) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim("c1", "u-1", device("dev-0", adminAccess=admin == "u-1")))
    if restart:
        await node.start()
    await node.prepare(claim("c2", "u-2", device("dev-0", adminAccess=admin == "u-2"), pods=["p-2"]), pod_uid="p-2")


@pytest.mark.report("F003")
@pytest.mark.parametrize("restart", [False, True])
async def test_a_device_is_shared_under_different_share_ids_only(node: Node, restart: bool) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim("c1", "u-1", device("dev-0", shareID="s-1")))
    if restart:
        await node.start()
    await node.prepare(claim("c2", "u-2", device("dev-0", shareID="s-2"), pods=["p-2"]), pod_uid="p-2")
    with pytest.raises(DeviceTakenError, match="share s-1"):
        await node.prepare(claim("c3", "u-3", device("dev-0", shareID="s-1"), pods=["p-3"]), pod_uid="p-3")


@pytest.mark.report("F003")
async def test_the_overlap_is_seen_after_a_restart_too(node: Node) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim("c1", "u-1", device("dev-0")))
    await node.start()
    with pytest.raises(DeviceTakenError, match="u-1"):
        await node.prepare(claim("c2", "u-2", device("dev-0"), pods=["p-2"]), pod_uid="p-2")


async def lose_an_answer(node: Node, *devices: t.Any) -> SimulatedDriver:
    """The manager dies after the driver has prepared u-1 and before the answer is recorded."""
    driver = await node.add_driver()
    await node.start()
    driver.faults.add("hang_after:method=prepare,times=1")
    asked = asyncio.create_task(node.prepare(claim("c1", "u-1", *devices)))
    await driver.wait_for(lambda: "u-1" in driver.prepared())
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    await node.start()
    return driver


@pytest.mark.report("F003")
async def test_a_claim_whose_answer_was_lost_has_the_devices_that_were_asked_for(node: Node) -> None:
    await lose_an_answer(node, device("dev-0"))
    other = claim("c2", "u-2", device("dev-0"), pods=["p-2"])
    for _restart in range(2):
        with pytest.raises(DeviceTakenError, match=r"u-2.*dev-0.*u-1.*still holds"):
            await node.prepare(other, pod_uid="p-2")
        assert "u-2" not in node.state()
        await node.start()
    assert await node.prepare(claim("c3", "u-3", device("dev-1"), pods=["p-3"]), pod_uid="p-3")
    await node.manager.unprepare("p-1")
    assert await node.prepare(other, pod_uid="p-2")


async def test_what_was_asked_for_is_forgotten_with_the_answer(node: Node) -> None:
    driver = await lose_an_answer(node, device("dev-0"))
    assert "planned" in node.state_path.read_text()
    driver.faults.add("claim_error:method=prepare,times=1")
    with pytest.raises(PrepareFailedError):
        await node.prepare(claim("c1", "u-1", device("dev-0")))
    assert "planned" in node.state_path.read_text()
    await node.prepare(claim("c1", "u-1", device("dev-0")))
    assert "planned" not in node.state_path.read_text()


async def test_admin_access_asks_for_nothing_that_others_cannot_have(node: Node) -> None:
    await lose_an_answer(node, device("dev-0", adminAccess=True))
    assert await node.prepare(claim("c2", "u-2", device("dev-0"), pods=["p-2"]), pod_uid="p-2")


async def test_the_devices_of_a_new_allocation_are_taken_although_the_answer_was_lost(node: Node) -> None:
    """The claim was allocated anew while no manager ran, and then the manager died before the driver answered."""
    driver = await node.add_driver()
    await node.start()
    await node.prepare(claim("c1", "u-1", device("dev-0")))
    await node.start()
    driver.faults.add("hang_after:method=prepare,times=1")
    calls = len(node.asked())
    asked = asyncio.create_task(node.prepare(claim("c1", "u-1", device("dev-7"))))
    await driver.wait_for(lambda: len(node.asked()) > calls)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    await node.start()
    for taken in ("dev-0", "dev-7"):
        with pytest.raises(DeviceTakenError, match="u-1"):
            await node.prepare(claim("c2", "u-2", device(taken), pods=["p-2"]), pod_uid="p-2")


@pytest.mark.report("F003")
async def test_a_device_stays_taken_until_the_driver_has_answered_for_another(node: Node) -> None:
    """The claim was allocated anew while no manager ran; what it had may still be in use on the node."""
    driver = await node.add_driver()
    await node.start()
    await node.prepare(claim("c1", "u-1", device("dev-0")))
    await node.start()
    driver.faults.add("claim_error:method=prepare,times=1")
    moved = claim("c1", "u-1", device("dev-7"))
    with pytest.raises(PrepareFailedError):
        await node.prepare(moved)
    other = claim("c2", "u-2", device("dev-0"), pods=["p-2"])
    with pytest.raises(DeviceTakenError, match=r"u-2.*dev-0.*u-1"):
        await node.prepare(other, pod_uid="p-2")
    await node.prepare(moved)
    await node.prepare(other, pod_uid="p-2")


@pytest.mark.report("F003")
async def test_a_claim_that_was_allocated_anew_does_not_get_its_old_devices(node: Node) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim("c1", "u-1", device("dev-0")))
    anew = claim("c1", "u-1", device("dev-7"), pods=["p-2"])
    with pytest.raises(ReallocatedError, match=r"u-1.*it now has gpu.*dev-7, while gpu.*dev-0 are still.*pods p-1"):
        await node.prepare(anew, pod_uid="p-2")
    await node.manager.unprepare("p-1")
    assert await node.prepare(anew, pod_uid="p-2") == [f"k8s.{GPU}/claim=u-1-dev-7"]


@pytest.mark.report("F004")
async def test_a_claim_with_the_name_of_one_still_held_is_refused(node: Node) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim("c1", "u-1"))
    before = node.state_path.read_bytes()
    with pytest.raises(NameTakenError, match="different UID u-1 still exists") as caught:
        await node.prepare(claim("c1", "u-2", device("dev-1"), pods=["p-2"]), pod_uid="p-2")
    assert caught.value.facts["held_uid"] == "u-1"
    assert node.asked() == ["prepare u-1"]
    assert node.state_path.read_bytes() == before
    await node.manager.unprepare("p-1")
    await node.prepare(claim("c1", "u-2", device("dev-1"), pods=["p-2"]), pod_uid="p-2")
    assert node.asked()[-1] == "prepare u-2"


@pytest.mark.report("F005")
async def test_after_a_restart_each_claim_is_prepared_once_more(node: Node) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim())
    await node.start()
    assert [one.status for one in node.manager.claims()] == ["needs_prepare"]
    await node.prepare(claim())
    assert [one.status for one in node.manager.claims()] == ["prepared"]
    await node.prepare(claim())
    assert node.asked() == ["prepare u-1", "prepare u-1"]


@pytest.mark.report("F008")
async def test_retries_and_restarts_do_not_double_the_devices(node: Node) -> None:
    await node.add_driver(GPU)
    await node.add_driver(NIC, "claim_error:times=2")
    await node.start()
    two = claim("c1", "u-1", device("dev-0"), device("nic-0", NIC))
    for _unused in range(2):
        with pytest.raises(PrepareFailedError):
            await node.prepare(two)
    names = await node.prepare(two)
    assert len(names) == 2
    after_one = node.state_path.read_bytes()
    for _unused in range(5):
        await node.start()
        assert await node.prepare(two) == names
    assert node.state_path.read_bytes() == after_one
    assert len(node.state()["u-1"].drivers[GPU] or ()) == 1


@pytest.mark.report("F008")
async def test_a_new_answer_replaces_the_old_one(node: Node) -> None:
    await node.add_driver(GPU, "new_devices")
    await node.start()
    node.simulated[GPU]._allocate = None  # let the driver itself choose, something new each time
    first = await node.prepare(claim())
    second = await node.prepare(claim(), renew=True)
    assert first != second
    assert [list(one.cdi_device_ids) for one in node.state()["u-1"].drivers[GPU] or ()] == [second]


@pytest.mark.report("F010")
async def test_without_its_driver_a_pod_leaves_nothing_behind(node: Node) -> None:
    await node.start()
    with pytest.raises(DraError, match=r"c1 \(u-1\).*pod team-a/name-of-p-1 \(p-1\): No DRA driver gpu\.test\.example"):
        await node.prepare(claim())
    assert not node.state_path.exists()
    assert not node.manager.pod_might_need_unprepare("p-1")
    assert not (await node.manager.unprepare("p-1")).changed


@pytest.mark.report("F010")
async def test_a_driver_that_goes_right_before_the_call_leaves_nothing_behind(node: Node) -> None:
    await node.add_driver()
    await node.start(LosingDrivers(node, GPU, times=1))
    with pytest.raises(PrepareFailedError, match=r"gpu\.test\.example.*No DRA driver"):
        await node.prepare(claim())
    assert node.state() == {}
    assert not (await node.manager.unprepare("p-1")).changed
    assert node.asked() == []


@pytest.mark.report("F014")
async def test_a_failure_names_everybody_and_is_logged_once(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    await node.add_driver(GPU, "claim_error:text=boom-42")
    await node.start()
    with caplog.at_level(logging.INFO):
        for _unused in range(3):
            with pytest.raises(PrepareFailedError, match="boom-42") as caught:
                await node.prepare(claim())
    for part in ("driver gpu.test.example", "ResourceClaim team-a/c1 (u-1)", "team-a/name-of-p-1 (p-1)"):
        assert part in caught.value.message
    loud = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert len(loud) == 1
    assert all(part in loud[0] for part in ("gpu.test.example", "team-a/c1", "p-1", "boom-42"))
    quiet = [one.getMessage() for one in caplog.records if "failed again" in one.getMessage()]
    assert len(quiet) == 2
    assert "boom-42" not in quiet[-1]
    assert "count=3" in quiet[-1]
    assert caught.value.facts["failures"][0]["count"] == 3


@pytest.mark.report("F015")
async def test_an_empty_message_is_success_without_devices(node: Node) -> None:
    await node.add_driver(GPU, "blank:method=prepare")
    await node.start()
    assert await node.prepare(claim()) == []
    assert node.state()["u-1"].drivers[GPU] == ()


@pytest.mark.report("F015")
async def test_a_claim_left_out_of_the_answer_is_a_failure(node: Node) -> None:
    await node.add_driver(GPU, "skip:uids=u-1,times=1")
    await node.start()
    both = [claim("c1", "u-1", device("dev-0")), claim("c2", "u-2", device("dev-1"))]
    with pytest.raises(
        PrepareFailedError, match=r"c1 \(u-1\): NodePrepareResources.*left the claim.*out of its answer"
    ) as caught:
        await node.prepare(*both)
    assert [one["claim_uid"] for one in caught.value.facts["failures"]] == ["u-1"]
    assert node.state()["u-2"].drivers[GPU] is not None


@pytest.mark.report("F015")
async def test_an_answer_with_an_unknown_claim_is_not_used(node: Node) -> None:
    await node.add_driver(GPU, "unknown_uid:method=prepare,times=1")
    await node.start()
    with pytest.raises(PrepareFailedError, match="claims nobody asked about: uid-nobody-asked-for"):
        await node.prepare(claim())
    assert node.state()["u-1"].drivers[GPU] is None
    await node.prepare(claim())


@pytest.mark.report("F019")
async def test_a_pod_without_reservation_is_refused(node: Node) -> None:
    await node.add_driver()
    await node.start()
    old = claim(pods=[])
    old["status"]["reservedFor"] = [{"resource": "pods", "name": "name-of-p-1", "uid": "uid-old"}]
    with pytest.raises(NotReservedError, match=r"p-1.*u-1.*uid-old") as caught:
        await node.prepare(old)
    assert caught.value.facts["reserved_uids"] == ["uid-old"]
    assert "controller" in caught.value.hint
    assert node.asked() == []
    assert not node.state_path.exists()


@pytest.mark.report("F021")
async def test_retries_repeat_prepare_with_the_same_claim_and_nothing_in_between(node: Node) -> None:
    await node.add_driver(GPU, "error_after:method=prepare,times=2")
    await node.start()
    for _unused in range(2):
        with pytest.raises(PrepareFailedError):
            await node.prepare(claim())
    await node.prepare(claim())
    assert node.asked() == ["prepare u-1"] * 3


@pytest.mark.report("F054")
async def test_a_repeated_prepare_leaves_the_file_as_it_is(node: Node) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim())
    before, facts = node.state_path.read_bytes(), node.state_path.stat()
    await node.prepare(claim())
    assert node.state_path.read_bytes() == before
    assert (node.state_path.stat().st_ino, node.state_path.stat().st_mtime_ns) == (facts.st_ino, facts.st_mtime_ns)
    assert (await node.manager.unprepare("p-1")).gone == ("u-1",)


@pytest.mark.report("F054")
async def test_a_claim_on_its_way_out_is_not_taken_back(node: Node) -> None:
    await node.add_driver(GPU, "claim_error:method=unprepare,times=1")
    await node.start()
    shared = claim(pods=["p-1", "p-2"])
    await node.prepare(shared)
    with pytest.raises(UnprepareFailedError):
        await node.manager.unprepare("p-1")
    with pytest.raises(BeingUnpreparedError, match="u-1"):
        await node.prepare(shared, pod_uid="p-2")
    await node.manager.unprepare("p-1")
    await node.prepare(shared, pod_uid="p-2")
    assert node.asked() == ["prepare u-1", "unprepare u-1", "unprepare u-1", "prepare u-1"]
