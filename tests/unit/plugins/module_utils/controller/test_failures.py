# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Requests that fail, answers that are lost, controllers that die or meet: the state comes out right all the same."""

# Pylint takes the second context of one "async with" for evaluated before the first.
# pylint: disable=used-before-assignment

from __future__ import annotations

import asyncio

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.controller.caches import Caches
from ansible_collections.nodeops.dra.plugins.module_utils.controller.controller import Controller
from ansible_collections.nodeops.dra.plugins.module_utils.controller.gateway import Gateway
from ansible_collections.nodeops.dra.plugins.module_utils.controller.metrics import Metrics
from ansible_collections.nodeops.dra.plugins.module_utils.controller.needs import MissingRightsError
from ansible_collections.nodeops.dra.plugins.module_utils.controller.performing import Performer
from ansible_collections.nodeops.dra.plugins.module_utils.controller.plan import DeleteClaim, Plan
from ansible_collections.nodeops.dra.plugins.module_utils.controller.shapes import codec_of
from ansible_collections.nodeops.dra.plugins.module_utils.kube import errors
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.cluster import resolve
from ansible_collections.nodeops.dra.plugins.module_utils.kube.fence import Fence, lease_clock
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import ConnectionOptions
from ansible_collections.nodeops.dra.plugins.module_utils.resource.names import derived_name

from .world import NS, TOKEN, World, eventually, quiet, settings, world

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("kind", ["error", "error_after", "close", "close_after", "conflict", "throttle"])
@pytest.mark.parametrize(
    "target",
    [
        "verb=create,resource=resourceclaims",
        "verb=patch,resource=pods/status",
        "verb=patch,resource=resourceclaims/status",
        "verb=patch,resource=resourceclaims",
        "verb=delete,resource=resourceclaims",
    ],
)
async def test_one_claim_lives_and_ends_whatever_fails_on_the_way(kind: str, target: str) -> None:
    seconds = ",seconds=0" if kind == "throttle" else ""
    async with world() as cluster, cluster.controller(longest_delay=0.1) as controller:
        await cluster.template()
        await quiet(cluster, controller)
        making = "create" in target or "pods/status" in target
        if making:
            cluster.server.add_fault(f"{kind}:{target},times=2{seconds}")
            body = cluster.pod_body("p-1", templates={"gpu": "t1"})
            pod = cluster.server.seed("v1", "pods", {"apiVersion": "v1", "kind": "Pod", **body}, NS)
        else:
            pod = await cluster.pod()
        await eventually(lambda: cluster.names("p-1"), "the claim is named")
        await quiet(cluster, controller)
        (claim,) = cluster.stored("ResourceClaim")
        cluster.server.faults.clear()
        await cluster.allocate(claim["metadata"]["name"], pod)
        await cluster.bind("p-1")
        await quiet(cluster, controller)
        if not making:
            cluster.server.add_fault(f"{kind}:{target},times=2{seconds}")
        await cluster.finish("p-1")
        await eventually(lambda: cluster.stored("ResourceClaim") == [], "the claim is gone")


async def test_a_create_whose_answer_was_lost_is_not_made_twice() -> None:
    async with world() as cluster, cluster.controller() as controller:
        await cluster.template()
        await quiet(cluster, controller)
        cluster.server.add_fault("silent_watch:verb=watch,resource=resourceclaims")
        cluster.server.add_fault("close_after:verb=create,resource=resourceclaims,times=1")
        await cluster.pod()
        await eventually(lambda: cluster.names("p-1"), "the claim is named")
        (claim,) = cluster.stored("ResourceClaim")
        assert cluster.names("p-1") == {"gpu": claim["metadata"]["name"]}
        assert controller.metrics.queue.retries == 1


async def test_a_claim_that_changed_meanwhile_is_not_deleted() -> None:
    async with world() as cluster, cluster.connection() as client:
        seen = await cluster.claim("c1")
        await cluster.patch("ResourceClaim", "c1", {"metadata": {"labels": {"a": "b"}}})
        performer = Performer(Gateway(client, cluster.target), Metrics())
        outcome = await performer.perform(Caches(cluster.target), Plan((DeleteClaim(seen, "it was made twice"),)))
        assert isinstance(outcome.error, errors.ConflictError)
        assert outcome.done == []
        assert len(cluster.stored("ResourceClaim")) == 1


async def test_own_writes_count_before_any_watch_tells_of_them() -> None:
    async with world() as cluster:
        cluster.server.add_fault("silent_watch:verb=watch,resource=resourceclaims")
        async with cluster.controller() as controller:
            await cluster.template()
            await cluster.pod()
            await eventually(lambda: cluster.names("p-1"), "the claim is named")
            await controller.drained()
            await controller.sweep()
            await controller.drained()
            assert cluster.server.recorder.count("get", "resourceclaims") == 0
            writes = cluster.writes()
            assert (writes["create resourceclaims"], writes["patch pods/status"]) == (1, 1)


async def test_a_name_that_is_taken_by_somebody_else_is_left_to_him() -> None:
    async with world() as cluster, cluster.controller() as controller:
        pod = await cluster.pod()
        await quiet(cluster, controller)
        name = derived_name("p-1-gpu-", pod["metadata"]["uid"], "gpu")
        await cluster.claim(name)
        await cluster.template()
        await quiet(cluster, controller)
        assert cluster.names("p-1") == {"gpu": derived_name("p-1-gpu-", pod["metadata"]["uid"], "gpu", 1)}
        assert len(cluster.stored("ResourceClaim")) == 2


async def test_two_controllers_make_one_claim() -> None:
    async with world() as cluster, cluster.controller() as one, cluster.controller() as two:
        await cluster.template()
        for number in range(10):
            await cluster.pod(f"p-{number}", templates={"a": "t1", "b": "t1"})
        await quiet(cluster, one, two)
        claims = cluster.stored("ResourceClaim")
        assert len(claims) == 20
        named = {name for number in range(10) for name in cluster.names(f"p-{number}").values()}
        assert named == {claim["metadata"]["name"] for claim in claims}


async def test_a_second_claim_of_another_controller_goes_and_the_published_one_stays() -> None:
    async with world() as cluster, cluster.controller() as controller:
        await cluster.template()
        pod = await cluster.pod()
        await quiet(cluster, controller)
        published = cluster.names("p-1")["gpu"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p-1", "uid": pod["metadata"]["uid"], "controller": True}
        made = {"ownerReferences": [owner], "annotations": {"resource.kubernetes.io/pod-claim-name": "gpu"}}
        await cluster.claim("p-1-gpu-other", **made)
        await quiet(cluster, controller)
        (claim,) = cluster.stored("ResourceClaim")
        assert claim["metadata"]["name"] == published
        # The other controller publishes its own: whichever it is in the end, there is one.
        await cluster.claim("p-1-gpu-third", **made)
        status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-1-gpu-third"}]}
        await cluster.patch("Pod", "p-1", {"status": status}, "status")
        await quiet(cluster, controller)
        (claim,) = cluster.stored("ResourceClaim")
        assert cluster.names("p-1") == {"gpu": claim["metadata"]["name"]}


async def test_a_claim_that_a_user_deletes_is_made_again() -> None:
    async with world() as cluster, cluster.controller() as controller:
        await cluster.template()
        await cluster.pod()
        await quiet(cluster, controller)
        (first,) = cluster.stored("ResourceClaim")
        await cluster.delete("ResourceClaim", first["metadata"]["name"])
        await quiet(cluster, controller)
        (second,) = cluster.stored("ResourceClaim")
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        assert cluster.names("p-1") == {"gpu": second["metadata"]["name"]}


async def test_a_pod_that_was_replaced_does_not_get_the_names_of_its_predecessor() -> None:
    async with world() as cluster, cluster.controller(longest_delay=0.1) as controller:
        await cluster.template()
        await quiet(cluster, controller)
        cluster.server.add_fault("latency:verb=patch,resource=pods/status,seconds=0.3,times=1")
        await cluster.pod()
        await eventually(lambda: cluster.stored("ResourceClaim"), "a claim for the first pod")
        await cluster.delete("Pod", "p-1")
        second = await cluster.pod()
        await eventually(lambda: cluster.names("p-1"), "names in the status of the second pod")
        await quiet(cluster, controller)
        (claim,) = cluster.stored("ResourceClaim")
        assert claim["metadata"]["ownerReferences"][0]["uid"] == second["metadata"]["uid"]
        assert cluster.names("p-1") == {"gpu": claim["metadata"]["name"]}
        history = cluster.server.cluster.store.collection("pods.").log
        ever = {
            entry["resourceClaimName"]
            for change in history
            if change.record.uid == second["metadata"]["uid"]
            for entry in change.record.object()["status"].get("resourceClaimStatuses") or ()
        }
        assert ever == {claim["metadata"]["name"]}


@pytest.mark.report("F070")
async def test_nothing_is_written_once_the_fence_is_shut() -> None:
    async with world() as cluster:
        await cluster.grant()
        await cluster.template()
        fence = Fence(lease_clock() + 1000)
        async with cluster.connection(TOKEN) as client:
            controller = Controller(client.with_fence(fence), settings())
            task = asyncio.create_task(controller.run())
            await eventually(lambda: controller.ready, "the controller is ready")
            await quiet(cluster, controller)
            fence.revoke("somebody else holds the lease")
            cluster.server.recorder.reset()
            await cluster.pod()
            with pytest.raises(errors.FenceLostError, match="somebody else holds the lease"):
                await asyncio.wait_for(task, 20)
        assert cluster.writes() == {"create pods": 1}
        assert not controller.ready


@pytest.mark.report("F101")
async def test_missing_rights_are_named_before_the_work_begins() -> None:
    from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.rights import user_from
    from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.controller_account import account_rules

    async with world() as cluster:
        rules = [
            {**rule, "resources": [name for name in rule["resources"] if name != "resourceclaims/status"]}
            for rule in account_rules(cluster.target)
        ]
        cluster.server.settings.tokens[TOKEN] = user_from({"name": "controller", "rules": rules})
        async with cluster.connection(TOKEN) as client:
            with pytest.raises(MissingRightsError) as raised:
                await Controller(client, settings()).run()
    assert "patch resourceclaims/status.resource.k8s.io" in raised.value.message
    assert "reservation, release and deallocation" in raised.value.message
    assert "patch resourceclaims/status.resource.k8s.io" in raised.value.facts["missing"]
    assert cluster.server.recorder.count("list") == 0


async def test_bad_connections_end_in_one_sentence() -> None:
    async with world() as cluster:
        access = resolve(ConnectionOptions(host=cluster.server.url, api_key="wrong"), {})
        async with KubeClient.connect(access) as client:
            with pytest.raises(errors.UnauthorizedError, match=r"401 Unauthorized"):
                await Controller(client, settings()).run()
            controller = Controller(client, settings())
            with pytest.raises(errors.UnauthorizedError):
                async with controller:
                    await controller.wait_ready()
    access = resolve(ConnectionOptions(host=cluster.server.url, api_key="wrong"), {})
    async with KubeClient.connect(access, timeout=0.5) as client:
        with pytest.raises(errors.UnreachableError):
            await Controller(client, settings()).run()


async def test_an_object_that_cannot_be_read_keeps_nobody_else_from_his_turn() -> None:
    async with world() as cluster, cluster.controller() as controller:
        await cluster.template()
        collection = cluster.server.cluster.store.collection("pods.")
        broken = await cluster.pod("p-0")
        body = collection.records[f"{NS}/p-0"].object()
        body["spec"]["resourceClaims"] = "nonsense"
        cluster.server.cluster.store.put(collection, f"{NS}/p-0", body)
        assert broken
        await cluster.pod("p-1")
        await eventually(lambda: cluster.names("p-1"), "the claim is named")
        assert controller.failure is None


async def test_an_object_without_a_uid_is_passed_over() -> None:
    codec = codec_of("ResourceClaim")
    with pytest.raises(ValueError, match="no metadata"):
        codec.decode(b'{"metadata": {"name": "c1"}}')
    assert codec.decode(b'{"metadata": {"name": "c1", "uid": "u"}}') == {"metadata": {"name": "c1", "uid": "u"}}


@pytest.mark.report("F066")
async def test_a_request_that_hangs_holds_up_nobody_else() -> None:
    async with world() as cluster, cluster.controller() as controller:
        await cluster.template()
        await quiet(cluster, controller)
        cluster.server.add_fault("hang:verb=create,resource=resourceclaims,times=3")
        for number in range(20):
            await cluster.pod(f"p-{number}")
        named = [f"p-{number}" for number in range(20)]
        await eventually(lambda: sum(bool(cluster.names(name)) for name in named) == 17, "all but three are named")
        assert controller.session is not None
        assert controller.session.queue.unfinished_seconds() > 0


async def test_a_failure_that_nobody_has_seen_comes_out_at_the_end() -> None:
    async with world() as cluster:
        access = resolve(ConnectionOptions(host=cluster.server.url, api_key="wrong"), {})
        async with KubeClient.connect(access) as client:
            with pytest.raises(errors.UnauthorizedError):
                async with Controller(client, settings()) as controller:
                    await eventually(lambda: controller.failure, "it has failed")


async def test_nothing_is_left_behind_however_often_it_is_cancelled() -> None:
    async with world() as cluster, cluster.connection() as client:
        await cluster.template()
        cluster.server.add_fault("hang:verb=create,resource=resourceclaims")
        controller = Controller(client, settings(drain=60.0))
        task = asyncio.create_task(controller.run())
        await eventually(lambda: controller.ready, "the controller is ready")
        assert controller.session is not None
        await cluster.pod()
        await eventually(lambda: controller.session and controller.session.queue.unfinished_seconds() > 0, "it works")
        for _unused in range(4):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 20)


async def start_with(cluster: World, count: int) -> dict[str, int]:
    """Writes of a controller that starts where so many claims are in use."""
    await cluster.template()
    async with cluster.controller() as controller:
        pods = [await cluster.pod(f"p-{number}") for number in range(count)]
        await quiet(cluster, controller)
        for pod in pods:
            name = cluster.names(pod["metadata"]["name"])["gpu"]
            await cluster.allocate(str(name), pod)
            await cluster.bind(pod["metadata"]["name"])
        await quiet(cluster, controller)
    cluster.server.recorder.reset()
    async with cluster.controller() as controller:
        await quiet(cluster, controller)
        await controller.sweep()
        await quiet(cluster, controller)
    return cluster.writes()


async def test_a_start_where_all_is_well_writes_nothing() -> None:
    async with world() as cluster:
        assert await start_with(cluster, 30) == {}
        assert cluster.server.recorder.count("get", "pods") == 0
