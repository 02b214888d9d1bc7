# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""From pods and claims of every generation to what has to be prepared, and what of it goes over the wire."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.manager.notes import ClaimNote, Notes, after_boot
from ansible_collections.nodeops.dra.plugins.module_utils.manager.planning import (
    Holder,
    holders_label,
    plan_claim,
    plan_pod,
)
from ansible_collections.nodeops.dra.plugins.module_utils.resource.allocation import NotAllocatedError
from ansible_collections.nodeops.dra.plugins.module_utils.resource.handles import ResourceHandle
from ansible_collections.nodeops.dra.plugins.module_utils.resource.ownership import NotOwnerError
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.node import Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import (
    GPU,
    NIC,
    Json,
    claim,
    device,
    pod,
)


def classic(name: str = "c1", uid: str = "u-1", handles: t.Sequence[Json] = ()) -> Json:
    return {
        "metadata": {"namespace": "team-a", "name": name, "uid": uid},
        "spec": {"resourceClassName": "gpu"},
        "status": {
            "driverName": GPU,
            "allocation": {"resourceHandles": list(handles), "shareable": True},
            "reservedFor": [{"resource": "pods", "name": "name-of-p-1", "uid": "p-1"}],
        },
    }


def test_a_structured_claim_needs_the_drivers_of_its_results() -> None:
    plan = plan_claim(claim("c1", "u-1", device("dev-0"), device("nic-0", NIC), device("dev-1")))
    assert (plan.drivers, len(plan.allocated), bool(plan.note)) == ((GPU, NIC), 3, False)


def test_a_classic_claim_keeps_its_handles_for_the_unprepare() -> None:
    plan = plan_claim(classic(handles=[{"driverName": NIC, "data": "n"}, {"data": "g"}]))
    assert plan.drivers == (NIC, GPU)
    assert plan.note.handles == (ResourceHandle(NIC, "n"), ResourceHandle(GPU, "g"))
    (handle,) = plan.ref(GPU).resource_handles
    assert (handle.driver_name, handle.data) == (GPU, "g")


def test_a_classic_claim_that_no_container_uses_is_left_out() -> None:
    unused = pod("p-1", "c1", containers=[{"name": "main"}])
    assert plan_pod(unused, [classic()]) == []
    assert [plan.uid for plan in plan_pod(unused, [claim()])] == ["u-1"]
    assert [plan.uid for plan in plan_pod(pod(), [classic()])] == ["u-1"]


def test_two_entries_for_one_claim_are_one_plan() -> None:
    made = pod("p-1", "c1")
    made["spec"]["resourceClaims"].append({"name": "again", "resourceClaimName": "c1"})
    assert len(plan_pod(made, [claim()])) == 1


def test_a_generated_claim_must_belong_to_the_pod() -> None:
    made = pod("p-1", "c1")
    made["spec"]["resourceClaims"] = [{"name": "ref-c1", "resourceClaimTemplateName": "t"}]
    made["status"] = {"resourceClaimStatuses": [{"name": "ref-c1", "resourceClaimName": "c1"}]}
    with pytest.raises(NotOwnerError, match="Pod is not owner"):
        plan_pod(made, [claim()])
    owned = claim()
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": "name-of-p-1", "uid": "p-1", "controller": True}
    ]
    assert len(plan_pod(made, [owned])) == 1
    made["status"]["resourceClaimStatuses"][0].pop("resourceClaimName")
    assert plan_pod(made, []) == []


def test_a_reservation_for_the_pod_group_counts() -> None:
    member = pod()
    member["spec"]["schedulingGroup"] = {"podGroupName": "pg"}
    grouped = claim(pods=[])
    grouped["status"]["reservedFor"] = [
        {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "pg", "uid": "u-pg"}
    ]
    assert len(plan_pod(member, [grouped])) == 1


@pytest.mark.parametrize("results", [[], None])
def test_an_allocation_without_results_is_refused(results: t.Any) -> None:
    empty = claim()
    empty["status"]["allocation"] = {"devices": {"results": results}}
    with pytest.raises(NotAllocatedError, match=r"team-a/c1 \(u-1\).*no results"):
        plan_pod(pod(), [empty])


def test_skipped_operations_leave_drivers_out() -> None:
    everything = {"skipNodeOperations": ["*"]}
    only_unprepare = {"skipNodeOperations": ["NodeUnprepareResources"]}
    plan = plan_claim(claim("c1", "u-1", device("dev-0", **everything), device("nic-0", NIC, **only_unprepare)))
    assert (plan.drivers, plan.note.skip_unprepare) == ((NIC,), {NIC})
    partly = plan_claim(claim("c1", "u-1", device("dev-0", **everything), device("dev-1")))
    assert partly.drivers == (GPU,)


def test_a_holder_is_told_with_name_and_uid() -> None:
    assert str(Holder("p-1", "team-a", "web")) == "team-a/web (p-1)"
    assert Holder("p-1", "team-a", "web").label == "pod team-a/web (p-1)"


def test_a_holder_that_is_no_pod_is_told_from_pods_wherever_it_is_recorded() -> None:
    service = Holder.named("training.service")
    assert (service.label, service.is_pod) == ("holder training.service", False)
    assert holders_label({service.uid, "p-2", "p-1"}) == "pods p-1, p-2 and holder training.service"
    assert holders_label([]) == "nobody"


# Over the wire


@pytest.mark.asyncio
@pytest.mark.parametrize("api", ["v1alpha2", "v1alpha3"])
async def test_a_classic_claim_goes_through_prepare_restart_and_unprepare(node: Node, api: str) -> None:
    driver = await node.add_driver(apis=(api,))
    driver._allocate = None
    await node.start()
    made = classic(handles=[{"data": "handle-1"}])
    names = await node.prepare(made)
    assert len(names) == 1
    await node.start()
    await node.manager.unprepare("p-1")
    asked = [(call.method, one.handle) for call in driver.calls for one in call.claims]
    assert asked == [("prepare", "handle-1"), ("unprepare", "handle-1")]
    assert node.state() == {}


@pytest.mark.asyncio
async def test_structured_data_of_a_classic_claim_comes_back_for_the_unprepare(node: Node) -> None:
    driver = await node.add_driver(apis=("v1alpha3",))
    driver._allocate = None
    await node.start()
    structured = {"nodeName": "node-1", "results": [{"namedResources": {"name": "gpu-1"}}]}
    await node.prepare(classic(handles=[{"structuredData": structured}]))
    await node.start()
    await node.manager.unprepare("p-1")
    sent = [one.structured for call in driver.calls for one in call.claims]
    assert len(sent) == 2
    assert sent[0] == sent[1]
    assert sent[0] is not None
    assert sent[0]["nodeName"] == "node-1"


@pytest.mark.asyncio
@pytest.mark.parametrize("api", ["v1alpha4", "v1beta1", "v1"])
async def test_a_structured_claim_goes_through_with_every_generation(node: Node, api: str) -> None:
    await node.add_driver(apis=(api,))
    await node.start()
    names = await node.prepare(claim("c1", "u-1", device("dev-0", shareID="s-1")))
    assert names == [f"k8s.{GPU}/claim=u-1-dev-0"]
    (recorded,) = node.state()["u-1"].drivers[GPU] or ()
    assert recorded.share_id == "s-1", "v1beta1 has no field for it, the allocation does"
    await node.manager.unprepare("p-1")
    assert node.asked() == ["prepare u-1", "unprepare u-1"]


@pytest.mark.asyncio
async def test_of_two_shares_of_one_device_each_request_keeps_its_own(node: Node) -> None:
    # The simulated driver writes a CDI entry for each of the two, under one name.
    node.settings = dataclasses.replace(node.settings, cdi_policy="off")
    await node.add_driver(apis=("v1beta1",))
    await node.start()
    await node.prepare(
        claim("c1", "u-1", device("dev-0", request="a", shareID="s-a"), device("dev-0", request="b", shareID="s-b"))
    )
    shares = {one.request_names: one.share_id for one in node.state()["u-1"].drivers[GPU] or ()}
    assert shares == {("a",): "s-a", ("b",): "s-b"}


@pytest.mark.asyncio
async def test_a_driver_that_skips_unprepare_is_not_told(node: Node) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim("c1", "u-1", device("dev-0", skipNodeOperations=["NodeUnprepareResources"])))
    await node.start()
    await node.remove_driver()
    assert (await node.manager.unprepare("p-1")).gone == ("u-1",)


@pytest.mark.asyncio
async def test_a_claim_whose_drivers_skip_everything_needs_no_driver(node: Node) -> None:
    await node.start()
    assert await node.prepare(claim("c1", "u-1", device("dev-0", skipNodeOperations=["*"]))) == []
    assert node.state()["u-1"].drivers == {}
    assert (await node.manager.unprepare("p-1")).gone == ("u-1",)


# Notes


def test_a_note_survives_its_file() -> None:
    note = ClaimNote(
        earlier_boot="b-0",
        admin_devices=frozenset({(GPU, "pool-0", "dev-0", None), (GPU, "pool-0", "dev-1", "s-1")}),
        skip_unprepare=frozenset({NIC}),
        handles=(ResourceHandle(GPU, "data"), ResourceHandle(NIC, "", {"nodeName": "n"})),
        stopped=("dead", 5.0),
    )
    notes = Notes("b-1", {"u-1": note, "u-2": ClaimNote()})
    assert Notes.from_fields(notes.to_fields()) == Notes("b-1", {"u-1": note})


def test_a_boot_marks_what_was_there_before_it_and_drops_what_is_gone() -> None:
    before = Notes("b-0", {"u-1": ClaimNote(earlier_boot="b-9"), "u-3": ClaimNote(stopped=("x", 1.0))})
    after = after_boot(before, "b-1", ["u-1", "u-2"])
    assert after == Notes("b-1", {"u-1": ClaimNote(earlier_boot="b-9"), "u-2": ClaimNote(earlier_boot="b-0")})
    assert after_boot(after, "b-1", ["u-2"]) == Notes("b-1", {"u-2": ClaimNote(earlier_boot="b-0")})
    assert after_boot(Notes(), "b-1", ["u-1"]).claims["u-1"].earlier_boot == "unknown"
