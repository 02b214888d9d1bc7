# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The life of a generated claim in every generation of the API, over real HTTP, request by request."""

# Pylint takes the second context of one "async with" for evaluated before the first.
# pylint: disable=used-before-assignment

from __future__ import annotations

import pytest

from .world import GENERATIONS, NS, eventually, quiet, world

pytestmark = pytest.mark.asyncio
EVERY = pytest.mark.parametrize("version", GENERATIONS)


@EVERY
async def test_a_claim_takes_two_requests_to_make_and_three_to_release(version: str) -> None:
    async with world(version) as cluster, cluster.controller() as controller:
        await cluster.template(metadata={"labels": {"a": "b"}, "annotations": {"x": "y"}})
        await quiet(cluster, controller)
        cluster.server.recorder.reset()
        pod = await cluster.pod()
        await quiet(cluster, controller)
        assert cluster.writes() == {"create pods": 1, "create resourceclaims": 1, "patch pods/status": 1}
        (claim,) = cluster.stored("ResourceClaim")
        assert cluster.names("p-1") == {"gpu": claim["metadata"]["name"]}
        assert claim["metadata"]["generateName"] == "p-1-gpu-"
        assert claim["metadata"]["name"].startswith("p-1-gpu-")
        assert claim["metadata"]["labels"] == {"a": "b"}
        assert claim["metadata"]["annotations"] == {"x": "y", "resource.kubernetes.io/pod-claim-name": "gpu"}
        (owner,) = claim["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", pod["metadata"]["uid"], True)
        assert owner.get("blockOwnerDeletion", False) is (cluster.release < (1, 36))

        await cluster.allocate(claim["metadata"]["name"], pod)
        await cluster.bind("p-1")
        await quiet(cluster, controller)
        cluster.server.recorder.reset()
        await cluster.finish("p-1")
        await quiet(cluster, controller)
        assert cluster.stored("ResourceClaim") == []
        assert cluster.writes() == {
            "patch pods/status": 1,
            "patch resourceclaims/status": 1,
            "patch resourceclaims": 1,
            "delete resourceclaims": 1,
        }
        assert cluster.server.recorder.count("get") == 0


@EVERY
@pytest.mark.parametrize("collector", [True, False], ids=["collector", "no-collector"])
async def test_a_pod_that_is_deleted_frees_its_claim_and_nobody_asks_for_it(version: str, collector: bool) -> None:
    async with world(version, garbage_collection=collector) as cluster, cluster.controller() as controller:
        await cluster.template()
        pod = await cluster.pod()
        await quiet(cluster, controller)
        (claim,) = cluster.stored("ResourceClaim")
        await cluster.allocate(claim["metadata"]["name"], pod)
        await cluster.bind("p-1")
        await quiet(cluster, controller)
        cluster.server.recorder.reset()
        await cluster.delete("Pod", "p-1")
        await quiet(cluster, controller)
        assert cluster.server.recorder.count("get") == 0
        if collector:  # the collector marks the claim at the same time, which may cost a conflict
            assert cluster.stored("ResourceClaim") == []
            return
        assert cluster.writes() == {"delete pods": 1, "patch resourceclaims/status": 1, "patch resourceclaims": 1}
        (claim,) = cluster.stored("ResourceClaim")
        assert "finalizers" not in claim["metadata"]
        assert not {"allocation", "reservedFor"} & claim.get("status", {}).keys()


@EVERY
async def test_a_claim_of_a_user_is_released_and_stays(version: str) -> None:
    async with world(version) as cluster, cluster.controller() as controller:
        await cluster.claim("shared")
        first = await cluster.pod("p-1", claims={"gpu": "shared"})
        second = await cluster.pod("p-2", claims={"gpu": "shared"})
        await cluster.allocate("shared", first, second)
        for name in ("p-1", "p-2"):
            await cluster.bind(name)
        await quiet(cluster, controller)
        await cluster.finish("p-1")
        await quiet(cluster, controller)
        (claim,) = cluster.stored("ResourceClaim")
        assert [entry["name"] for entry in claim["status"]["reservedFor"]] == ["p-2"]
        assert "allocation" in claim["status"]
        await cluster.delete("Pod", "p-2")
        await quiet(cluster, controller)
        (claim,) = cluster.stored("ResourceClaim")
        assert not claim.get("status", {}).get("reservedFor")
        assert "allocation" not in claim.get("status", {})
        assert "finalizers" not in claim["metadata"]


@EVERY
async def test_the_whole_flow_with_a_scheduler(version: str) -> None:
    async with world(version, allocator=True) as cluster, cluster.controller() as controller:
        await cluster.template()
        if cluster.version.structured:
            classes = cluster.target.resource("DeviceClass")
            slices = cluster.target.resource("ResourceSlice")
            await cluster.client.create(classes, {"metadata": {"name": "gpu.test.example"}, "spec": {}})
            device = {"name": "dev-0"} if cluster.version.exact_requests else {"name": "dev-0", "basic": {}}
            pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": "gpu.test.example", "pool": pool, "nodeName": "node-1", "devices": [device]}
            await cluster.client.create(slices, {"metadata": {"name": "s1"}, "spec": spec})
        else:
            classes = cluster.target.resource("ResourceClass")
            await cluster.client.create(
                classes, {"metadata": {"name": "gpu.test.example"}, "driverName": "gpu.test.example"}
            )
        await cluster.pod()
        await eventually(lambda: any(pod["spec"].get("nodeName") for pod in cluster.stored("Pod")), "the pod is bound")
        await quiet(cluster, controller)
        (claim,) = cluster.stored("ResourceClaim")
        assert [entry["name"] for entry in claim["status"]["reservedFor"]] == ["p-1"]
        await cluster.finish("p-1")
        await eventually(lambda: cluster.stored("ResourceClaim") == [], "the claim is gone")
        assert await cluster.events() == []


async def test_up_to_1_27_the_name_is_fixed_and_no_status_is_written() -> None:
    async with world("v1alpha2", (1, 27, 3)) as cluster, cluster.controller() as controller:
        await cluster.template()
        await quiet(cluster, controller)
        cluster.server.recorder.reset()
        pod = await cluster.pod()
        await quiet(cluster, controller)
        assert cluster.writes() == {"create pods": 1, "create resourceclaims": 1}
        (claim,) = cluster.stored("ResourceClaim")
        assert claim["metadata"]["name"] == "p-1-gpu"
        assert "annotations" not in claim["metadata"]
        await cluster.allocate("p-1-gpu", pod)
        await cluster.finish("p-1")
        await quiet(cluster, controller)
        assert cluster.stored("ResourceClaim") == []


async def test_up_to_1_27_a_claim_of_somebody_else_is_in_the_way_until_it_goes() -> None:
    async with world("v1alpha2", (1, 27, 3)) as cluster, cluster.controller() as controller:
        await cluster.claim("p-1-gpu")
        await cluster.template()
        await cluster.pod()
        await eventually(cluster.events, "an event")
        ((reason, message, _count),) = await cluster.events()
        assert reason == "FailedResourceClaimCreation"
        assert "team-a/p-1-gpu was not created for Pod team-a/p-1" in message
        await cluster.delete("ResourceClaim", "p-1-gpu")
        await quiet(cluster, controller)
        (claim,) = cluster.stored("ResourceClaim")
        assert claim["metadata"]["ownerReferences"][0]["name"] == "p-1"


async def test_an_old_claim_without_annotation_is_adopted_up_to_1_30() -> None:
    async with world("v1alpha2", (1, 30, 0)) as cluster:
        await cluster.template()
        pod = await cluster.pod()
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p-1", "uid": pod["metadata"]["uid"], "controller": True}
        await cluster.claim("p-1-gpu", ownerReferences=[owner])
        async with cluster.controller() as controller:
            await quiet(cluster, controller)
            assert cluster.names("p-1") == {"gpu": "p-1-gpu"}
            assert len(cluster.stored("ResourceClaim")) == 1


@pytest.mark.report("F067")
async def test_the_version_is_discovered_again_when_it_is_served_no_more() -> None:
    async with world("v1beta1") as old, world("v1") as new:
        await old.template()
        await new.grant()
        port = old.server.url.rsplit(":", 1)[1]
        async with old.controller() as controller:
            await old.pod()
            await quiet(old, controller)
            assert controller.stats().version == "v1beta1"
            await old.server.stop()
            upgraded = type(old.server)(new.server.settings)
            upgraded.settings.port = int(port)
            async with upgraded:
                upgraded.seed(
                    "resource.k8s.io/v1",
                    "resourceclaimtemplates",
                    {
                        "apiVersion": "resource.k8s.io/v1",
                        "kind": "ResourceClaimTemplate",
                        "metadata": {"name": "t1"},
                        "spec": {"spec": new.spec()},
                    },
                    NS,
                )
                upgraded.seed(
                    "v1",
                    "pods",
                    {"apiVersion": "v1", "kind": "Pod", **new.pod_body("p-2", templates={"gpu": "t1"})},
                    NS,
                )
                claims = upgraded.served("resource.k8s.io/v1", "resourceclaims")
                await eventually(
                    lambda: upgraded.cluster.collection(claims.kind).in_namespace(NS), "a claim in the new version"
                )
                assert controller.stats().version == "v1"
                assert controller.stats().sessions == 2
