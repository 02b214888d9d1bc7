# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What only some clusters have: PodGroups of 1.36, and PodSchedulingContexts up to 1.31."""

# Pylint takes the second context of one "async with" for evaluated before the first.
# pylint: disable=used-before-assignment

from __future__ import annotations

import typing as t

import pytest

from .world import NS, World, eventually, quiet, world

pytestmark = pytest.mark.asyncio
MEMBER: dict[str, t.Any] = {"schedulingGroup": {"podGroupName": "pg"}}


async def group(cluster: World, **entry: str) -> dict[str, t.Any]:
    """PodGroup pg with one claim."""
    spec = {"resourceClaims": [{"name": "gpu", **entry}], "schedulingPolicy": {"basic": {}}}
    return await cluster.create("PodGroup", {"metadata": {"name": "pg"}, "spec": spec})


async def test_the_claim_of_a_pod_group_is_made_once_and_shared_by_its_pods() -> None:
    async with world() as cluster, cluster.controller() as controller:
        await cluster.template()
        members = [await cluster.pod(f"p-{number}", **MEMBER) for number in range(3)]
        await quiet(cluster, controller)
        assert cluster.stored("ResourceClaim") == []
        made = await group(cluster, resourceClaimTemplateName="t1")
        await quiet(cluster, controller)
        (claim,) = cluster.stored("ResourceClaim")
        name = claim["metadata"]["name"]
        owner = claim["metadata"]["ownerReferences"][0]
        assert (owner["apiVersion"], owner["kind"]) == ("scheduling.k8s.io/v1alpha2", "PodGroup")
        assert owner["uid"] == made["metadata"]["uid"]
        assert [cluster.names(f"p-{number}") for number in range(3)] == [{"gpu": name}] * 3
        (there,) = cluster.stored("PodGroup")
        assert there["status"]["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": name}]

        await cluster.allocate(name)
        for pod in members:
            await cluster.bind(pod["metadata"]["name"])
        await quiet(cluster, controller)
        (claim,) = cluster.stored("ResourceClaim")
        entry = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "pg", "uid": made["metadata"]["uid"]}
        assert claim["status"]["reservedFor"] == [entry]

        for pod in members:
            await cluster.delete("Pod", pod["metadata"]["name"])
        await quiet(cluster, controller)
        assert cluster.stored("ResourceClaim")[0]["status"]["reservedFor"] == [entry]
        await cluster.delete("PodGroup", "pg")
        await quiet(cluster, controller)
        assert cluster.stored("ResourceClaim") == []


async def test_the_missing_template_of_a_pod_group_is_told_on_the_group() -> None:
    async with world() as cluster, cluster.controller():
        await group(cluster, resourceClaimTemplateName="t9")
        await eventually(cluster.events, "an event")
        (event,) = await cluster.all("Event")
        assert event["involvedObject"]["kind"] == "PodGroup"
        assert event["message"].startswith('PodGroupResourceClaim gpu: resource claim template "t9"')


async def test_a_consumer_group_that_went_unseen_is_asked_for_and_dropped() -> None:
    async with world() as cluster:
        await cluster.claim("c1")
        gone = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "pg", "uid": "u-gone"}
        await cluster.allocate("c1", consumers=[gone])
        cluster.server.recorder.reset()
        async with cluster.controller() as controller:
            await quiet(cluster, controller)
        assert cluster.server.recorder.count("get", "podgroups") == 1
        (claim,) = cluster.stored("ResourceClaim")
        assert not claim.get("status")


async def test_pods_name_groups_in_vain_where_none_are_served() -> None:
    async with world("v1", (1, 34, 0)) as cluster, cluster.controller() as controller:
        await cluster.template()
        await cluster.pod(**MEMBER)
        await quiet(cluster, controller)
        assert controller.stats().pod_groups == ""
        assert len(cluster.stored("ResourceClaim")) == 1
        assert len(cluster.names("p-1")) == 1


@pytest.mark.parametrize(("version", "spec"), [("v1alpha2", {}), ("v1alpha3", {"controller": "dra.test.example"})])
async def test_a_bound_pod_names_its_node_to_the_drivers_controller(version: str, spec: dict[str, t.Any]) -> None:
    async with world(version) as cluster, cluster.controller() as controller:
        body = {"spec": {**cluster.spec(), **spec}}
        await cluster.create("ResourceClaimTemplate", {"metadata": {"name": "t1"}, "spec": body})
        pod = await cluster.pod(node="node-7")
        await quiet(cluster, controller)
        (context,) = cluster.stored("PodSchedulingContext")
        assert context["metadata"]["name"] == "p-1"
        assert context["metadata"]["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
        assert context["spec"]["selectedNode"] == "node-7"
        assert cluster.server.recorder.count("create", "podschedulingcontexts") == 1

        # Somebody chooses another node: that cannot be, the pod is bound.
        await cluster.patch("PodSchedulingContext", "p-1", {"spec": {"selectedNode": "node-1"}})
        await quiet(cluster, controller)
        assert cluster.stored("PodSchedulingContext")[0]["spec"]["selectedNode"] == "node-7"


async def test_a_classic_claim_is_deallocated_by_its_driver() -> None:
    async with world("v1alpha2") as cluster, cluster.controller() as controller:
        await cluster.claim("c1")
        pod = await cluster.pod(claims={"gpu": "c1"})
        finalizers = ["gpu.test.example/deletion-protection"]
        await cluster.patch("ResourceClaim", "c1", {"metadata": {"finalizers": finalizers}})
        entry = {"resource": "pods", "name": "p-1", "uid": pod["metadata"]["uid"]}
        status = {"driverName": "gpu.test.example", "allocation": cluster.allocation, "reservedFor": [entry]}
        await cluster.patch("ResourceClaim", "c1", {"status": status}, "status")
        await cluster.bind("p-1")
        await quiet(cluster, controller)
        await cluster.finish("p-1")
        await quiet(cluster, controller)
        (claim,) = cluster.stored("ResourceClaim")
        assert claim["status"]["deallocationRequested"] is True
        assert "reservedFor" not in claim["status"]
        assert claim["status"]["allocation"]
        assert claim["metadata"]["finalizers"] == ["gpu.test.example/deletion-protection"]


async def test_a_pod_of_extended_resources_and_its_claim() -> None:
    async with world() as cluster, cluster.controller() as controller:
        containers = [{"name": "c", "image": "x"}]
        pod = await cluster.create("Pod", {"metadata": {"name": "p-1"}, "spec": {"containers": containers}})
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p-1", "uid": pod["metadata"]["uid"], "controller": True}
        name = "p-1-extended-resources-abcde"
        annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
        await cluster.claim(name, ownerReferences=[owner], annotations=annotations)
        await cluster.allocate(name)
        mapping = {"containerName": "c", "resourceName": "test.example/gpu", "requestName": "gpu"}
        status = {"extendedResourceClaimStatus": {"resourceClaimName": name, "requestMappings": [mapping]}}
        await cluster.patch("Pod", "p-1", {"status": status}, "status")
        await cluster.bind("p-1")
        await quiet(cluster, controller)
        (claim,) = cluster.stored("ResourceClaim")
        assert [entry["uid"] for entry in claim["status"]["reservedFor"]] == [pod["metadata"]["uid"]]
        sources = {one.labels["source"] for one in controller.samples() if "source" in one.labels and one.value}
        assert sources == {"extended_resource"}
        await cluster.finish("p-1")
        await quiet(cluster, controller)
        assert cluster.stored("ResourceClaim") == []


async def test_only_the_given_namespaces_are_looked_at() -> None:
    async with world() as cluster:
        await cluster.grant()
        await cluster.template()
        body = cluster.pod_body("p-0", templates={"gpu": "t1"})
        body["metadata"]["namespace"] = "default"
        await cluster.client.create(cluster.target.resource("Pod"), body, "default")
        async with cluster.controller(namespaces=(NS, "kube-system")) as controller:
            await cluster.pod()
            await eventually(lambda: cluster.names("p-1"), "the claim is named")
            await controller.drained()
            assert controller.stats().objects["Pod"] == 1
            assert {state.namespace for state in controller.stats().reflectors} == {NS, "kube-system"}
