# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What has gone wrong in the field with controllers of claims, each by its smallest scenario."""

# Pylint takes the second context of one "async with" for evaluated before the first.
# pylint: disable=used-before-assignment

from __future__ import annotations

import asyncio

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.controller.keys import POD, Key
from ansible_collections.nodeops.dra.plugins.module_utils.controller.settings import Switches

from .world import NS, World, eventually, quiet, world

pytestmark = pytest.mark.asyncio
GONE = {"resource": "pods", "name": "p-1", "uid": "00000000-0000-4000-8000-000000000001"}


async def mark_deleted(cluster: World, name: str) -> None:
    """Delete a claim that its finalizer keeps."""
    await cluster.delete("ResourceClaim", name)
    assert "deletionTimestamp" in (await cluster.get("ResourceClaim", name))["metadata"]


@pytest.mark.report("F059")
async def test_a_claim_deleted_while_nobody_was_there_is_cleaned_at_the_start() -> None:
    async with world() as cluster:
        await cluster.claim("c1")
        await cluster.allocate("c1", consumers=[GONE])
        await mark_deleted(cluster, "c1")
        cluster.server.recorder.reset()
        async with cluster.controller() as controller:
            await quiet(cluster, controller)
        assert cluster.stored("ResourceClaim") == []
        assert cluster.writes() == {"patch resourceclaims/status": 1, "patch resourceclaims": 1}


@pytest.mark.report("F059")
async def test_a_deleted_claim_that_a_later_list_shows_first_is_cleaned_too() -> None:
    async with world(history_limit=5) as cluster, cluster.controller() as controller:
        await quiet(cluster, controller)
        cluster.server.add_fault("close:verb=watch,resource=resourceclaims,times=3")
        for caches in controller.session.caches.values() if controller.session else ():
            assert len(caches.stores["ResourceClaim"]) == 0
        await cluster.claim("c1")
        await cluster.allocate("c1", consumers=[GONE])
        await mark_deleted(cluster, "c1")
        cluster.server.cluster.store.compact()
        await eventually(lambda: cluster.stored("ResourceClaim") == [], "the claim is gone")


@pytest.mark.report("F060")
async def test_zombies_whose_pods_went_unheard_are_cleaned_by_one_sweep() -> None:
    async with world(garbage_collection=False) as cluster:
        cluster.server.add_fault("lost_deletes:verb=watch,resource=pods")
        await zombies(cluster)


async def zombies(cluster: World) -> None:
    """Thirty claims, of which one is alive."""
    async with cluster.controller() as controller:
        pods = {}
        for number in range(30):
            name = f"c{number}"
            await cluster.claim(name)
            pods[name] = await cluster.pod(f"p-{number}", claims={"gpu": name}, node="node-1")
            await cluster.allocate(name, pods[name])
        await quiet(cluster, controller)
        for number in range(30):
            await mark_deleted(cluster, f"c{number}")
        for number in range(29):
            await cluster.delete("Pod", f"p-{number}")
        await quiet_but_for_pods(controller)
        assert len(cluster.stored("ResourceClaim")) == 30
        cluster.server.recorder.reset()
        await controller.sweep()
        await eventually(lambda: len(cluster.stored("ResourceClaim")) == 1, "the zombies are gone")
        await quiet_but_for_pods(controller)
        (alive,) = cluster.stored("ResourceClaim")
        assert [entry["name"] for entry in alive["status"]["reservedFor"]] == ["p-29"]
        assert cluster.writes() == {"patch resourceclaims/status": 29, "patch resourceclaims": 29}


async def quiet_but_for_pods(controller: object) -> None:
    """Wait until the controller has nothing to do."""
    for _unused in range(3):
        await controller.drained()  # type: ignore[attr-defined]
        await asyncio.sleep(0.05)


@pytest.mark.report("F061")
async def test_a_status_always_names_all_claims_and_then_rests() -> None:
    async with world() as cluster, cluster.controller() as controller:
        await cluster.template("t1")
        await quiet(cluster, controller)
        cluster.server.recorder.reset()
        await cluster.pod(templates={"a": "t1", "b": "t2"})
        await eventually(lambda: len(cluster.names("p-1")) == 1, "the first claim is named")
        await cluster.template("t2")
        await eventually(lambda: len(cluster.names("p-1")) == 2, "both claims are named")
        await quiet(cluster, controller)
        assert set(cluster.names("p-1")) == {"a", "b"}
        assert cluster.server.recorder.count("patch", "pods/status") == 2
        await controller.sweep()
        await quiet(cluster, controller)
        assert cluster.server.recorder.count("patch", "pods/status") == 2


@pytest.mark.report("F064")
async def test_pods_that_are_done_or_were_never_scheduled_free_their_devices() -> None:
    async with world() as cluster, cluster.controller() as controller:
        await cluster.template()
        await cluster.claim("named")
        pod = await cluster.pod("p-1", templates={"gpu": "t1"}, claims={"own": "named"})
        await quiet(cluster, controller)
        generated = cluster.names("p-1")["gpu"]
        assert generated is not None
        for name in (generated, "named"):
            await cluster.allocate(name, pod)
        await cluster.finish("p-1")
        await quiet(cluster, controller)
        (left,) = cluster.stored("ResourceClaim")
        assert left["metadata"]["name"] == "named"
        assert not {"allocation", "reservedFor"} & left.get("status", {}).keys()

        waiting = await cluster.pod("p-2", claims={"own": "named"})
        await cluster.patch("Pod", "p-2", {"metadata": {"finalizers": ["test.example/hold"]}})
        await cluster.allocate("named", waiting)
        await cluster.delete("Pod", "p-2")
        await quiet(cluster, controller)
        assert "deletionTimestamp" in (await cluster.get("Pod", "p-2"))["metadata"]
        (left,) = cluster.stored("ResourceClaim")
        assert not {"allocation", "reservedFor"} & left.get("status", {}).keys()


@pytest.mark.report("F071")
async def test_fields_that_nobody_here_knows_survive_every_write() -> None:
    async with world(keep_unknown_fields=True) as cluster, cluster.controller() as controller:
        await cluster.claim("c1")
        pod = await cluster.pod("p-1", claims={"gpu": "c1"}, node="node-1")
        other = {"resource": "pods", "name": "p-0", "uid": GONE["uid"], "futureEntry": {"a": [1]}}
        keep = {"apiGroup": "jobs.test", "resource": "jobs", "name": "j", "uid": "u-j", "futureEntry": {"b": 2}}
        await cluster.allocate("c1", consumers=[other, keep])
        await cluster.patch("ResourceClaim", "c1", {"status": {"futureField": {"deep": [1, 2]}}}, "status")
        await cluster.patch("Pod", "p-1", {"status": {"futureField": "x"}}, "status")
        await quiet(cluster, controller)
        status = (await cluster.get("ResourceClaim", "c1"))["status"]
        assert status["futureField"] == {"deep": [1, 2]}
        mine = {"resource": "pods", "name": "p-1", "uid": pod["metadata"]["uid"]}
        assert status["reservedFor"] == [keep, mine]
        assert (await cluster.get("Pod", "p-1"))["status"]["futureField"] == "x"


@pytest.mark.report("F073")
async def test_templates_are_not_changed_by_the_claims_made_from_them() -> None:
    async with world() as cluster, cluster.controller() as controller:
        await cluster.template(metadata={"annotations": {"a": "b"}})
        await quiet(cluster, controller)
        for number in range(4):
            await cluster.pod(f"p-{number}", templates={"x": "t1", "y": "t1"})
        await quiet(cluster, controller)
        assert controller.session is not None
        cached = controller.session.caches[""].template(NS, "t1")
        assert cached is not None
        assert cached["spec"]["metadata"]["annotations"] == {"a": "b"}
        entries = sorted(
            claim["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"]
            for claim in cluster.stored("ResourceClaim")
        )
        assert entries == ["x"] * 4 + ["y"] * 4
        assert all(claim["metadata"]["annotations"]["a"] == "b" for claim in cluster.stored("ResourceClaim"))


@pytest.mark.report("F074")
async def test_a_late_template_is_noticed_at_once_past_any_back_off() -> None:
    async with world() as cluster, cluster.controller() as controller:
        await cluster.pod()
        await eventually(cluster.events, "the missing template was told")
        # A failure of another sort has put the pod off for longer than this test may take.
        assert controller.session is not None
        for _unused in range(15):
            controller.session.queue.add_rate_limited(Key(POD, NS, "p-1"))
        await cluster.template()
        await eventually(lambda: cluster.names("p-1"), "the claim is named")
        await quiet(cluster, controller)
        assert len(cluster.stored("ResourceClaim")) == 1


@pytest.mark.report("F077")
async def test_a_bound_pod_gets_its_reservation() -> None:
    async with world() as cluster, cluster.controller() as controller:
        await cluster.claim("c1")
        await cluster.claim("c2")
        await cluster.allocate("c1")
        pod = await cluster.pod("p-1", claims={"a": "c1"}, node="node-1")
        await cluster.pod("p-2", claims={"a": "c2"}, node="node-1")
        await quiet(cluster, controller)
        first, second = sorted(cluster.stored("ResourceClaim"), key=lambda claim: str(claim["metadata"]["name"]))
        assert first["status"]["reservedFor"] == [{"resource": "pods", "name": "p-1", "uid": pod["metadata"]["uid"]}]
        assert "reservedFor" not in second.get("status", {})
        await eventually(cluster.events, "an event about the claim that is not allocated")
        ((reason, message, count),) = await cluster.events()
        assert (reason, count) == ("FailedResourceClaimReservation", 1)
        assert "c2 is not allocated" in message
        # Allocated late, it is reserved late.
        await cluster.allocate("c2")
        await quiet(cluster, controller)
        assert [len(claim["status"]["reservedFor"]) for claim in cluster.stored("ResourceClaim")] == [1, 1]


@pytest.mark.report("F078")
@pytest.mark.parametrize(("version", "limit"), [("v1", 256), ("v1alpha3", 32)])
async def test_a_full_list_of_consumers_is_left_alone_and_told_once(version: str, limit: int) -> None:
    async with world(version) as cluster:
        await cluster.claim("c1")
        crowd = [
            {"apiGroup": "jobs.test", "resource": "jobs", "name": f"j{number}", "uid": f"u-{number}"}
            for number in range(limit)
        ]
        await cluster.allocate("c1", consumers=crowd)
        await cluster.pod("p-1", claims={"a": "c1"}, node="node-1")
        cluster.server.recorder.reset()
        async with cluster.controller() as controller:
            await quiet(cluster, controller)
            await eventually(cluster.events, "an event")
            await controller.sweep()
            await quiet(cluster, controller)
        ((reason, message, count),) = await cluster.events()
        assert (reason, count) == ("FailedResourceClaimReservation", 1)
        assert f"has {limit} consumers, the limit is {limit}" in message
        assert cluster.writes() == {"create events": 1}
        (claim,) = cluster.stored("ResourceClaim")
        assert claim["status"]["reservedFor"] == crowd


@pytest.mark.report("F079")
async def test_a_missing_template_is_told_once_and_by_name() -> None:
    async with world() as cluster, cluster.controller() as controller:
        await cluster.pod()
        await eventually(cluster.events, "an event")
        for _unused in range(3):
            await controller.sweep()
            await quiet(cluster, controller)
        message = (
            'PodResourceClaim gpu: resource claim template "t1": resourceclaimtemplate.resource.k8s.io "t1" not found'
        )
        assert await cluster.events() == [("FailedResourceClaimCreation", message, 1)]
        (event,) = await cluster.all("Event")
        assert event["source"]["component"] == "resource_claim"
        assert event["type"] == "Warning"
        assert event["involvedObject"]["name"] == "p-1"
        assert controller.stats().in_trouble == 1
        await cluster.template()
        await quiet(cluster, controller)
        assert controller.stats().in_trouble == 0


@pytest.mark.report("F079")
async def test_nothing_is_done_before_all_caches_are_full() -> None:
    async with world() as cluster:
        await cluster.template()
        await cluster.pod()
        cluster.server.add_fault("latency:verb=list,resource=resourceclaimtemplates,seconds=0.5,times=1")
        async with cluster.controller() as controller:
            await quiet(cluster, controller)
        assert await cluster.events() == []
        assert len(cluster.stored("ResourceClaim")) == 1


@pytest.mark.report("F119")
async def test_admin_access_is_refused_with_an_event_when_its_switch_is_off() -> None:
    async with world() as cluster:
        label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        namespaces = cluster.target.resource("Namespace")
        await cluster.client.patch(namespaces, label, NS)
        await cluster.template(adminAccess=True)
        await cluster.pod()
        async with cluster.controller(switches=Switches(admin_access=False)) as controller:
            await quiet(cluster, controller)
            await eventually(cluster.events, "an event")
            ((reason, message, count),) = await cluster.events()
            assert (reason, count) == ("FailedResourceClaimCreation", 1)
            assert "admin access is requested, but the feature is disabled" in message
            assert cluster.stored("ResourceClaim") == []
        async with cluster.controller() as controller:
            await quiet(cluster, controller)
            assert len(cluster.stored("ResourceClaim")) == 1
