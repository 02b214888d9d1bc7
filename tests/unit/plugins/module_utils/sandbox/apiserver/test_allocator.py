# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The allocator that plays the scheduler, and the part of CEL that it knows."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver import cel

BASE = "/apis/resource.k8s.io/v1"
CLAIMS = f"{BASE}/namespaces/default/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


class World:
    """A server with an allocator, a class for one driver, and slices."""

    def __init__(self, client: t.Any) -> None:
        self.client = client

    def add(self, plural: str, name: str, spec: t.Any, namespace: str = "default", **metadata: t.Any) -> None:
        version = "v1" if plural in ("pods", "nodes", "namespaces") else "resource.k8s.io/v1"
        namespace = namespace if plural in ("pods", "resourceclaims") else ""
        self.client.server.seed(version, plural, {"metadata": {"name": name, **metadata}, "spec": spec}, namespace)

    def device_class(self, name: str = "gpu", expression: str = 'device.driver == "gpu.test.example"') -> None:
        self.add("deviceclasses", name, {"selectors": [{"cel": {"expression": expression}}]})

    def slice(self, node: str = "n1", count: int = 2, **device: t.Any) -> None:
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"d{number}", **device} for number in range(count)]
        spec = {"driver": "gpu.test.example", "pool": pool, "nodeName": node, "devices": devices}
        self.add("resourceslices", f"s-{node}", spec)

    def claim(self, name: str = "c1", *requests: t.Any, **devices: t.Any) -> None:
        wanted = requests or ({"name": "gpu", "exactly": {"deviceClassName": "gpu"}},)
        self.add("resourceclaims", name, {"devices": {"requests": list(wanted), **devices}})

    def pod(self, name: str = "p1", *claims: str, **spec: t.Any) -> None:
        references = [{"name": claim, "resourceClaimName": claim} for claim in claims]
        body = {"containers": [{"name": "c", "image": "x"}], "resourceClaims": references, **spec}
        self.add("pods", name, body)

    async def node_of(self, name: str = "p1") -> str:
        await self.client.server.settled()
        return str((await self.client.must("GET", f"{PODS}/{name}"))["spec"].get("nodeName", ""))

    async def why(self, name: str = "p1") -> str:
        await self.client.server.settled()
        pod = await self.client.must("GET", f"{PODS}/{name}")
        conditions = {part["type"]: part for part in pod["status"].get("conditions", ())}
        assert conditions["PodScheduled"]["status"] == "False"
        return str(conditions["PodScheduled"]["message"])

    async def status(self, name: str = "c1") -> t.Any:
        await self.client.server.settled()
        return (await self.client.must("GET", f"{CLAIMS}/{name}")).get("status", {})

    async def devices(self, name: str = "c1") -> list[tuple[str, str]]:
        results = (await self.status(name)).get("allocation", {}).get("devices", {}).get("results", [])
        return [(result["request"], result["device"]) for result in results]


@pytest.fixture
def world(serve: t.Any) -> t.Any:
    def make(**settings: t.Any) -> t.Any:
        return serve(allocator=True, **settings)

    return make


@pytest.mark.asyncio
async def test_a_claim_is_allocated_reserved_and_its_pod_bound(world: t.Any) -> None:
    async with world() as client:
        here = World(client)
        here.device_class()
        here.slice()
        here.claim()
        here.pod("p1", "c1")
        assert await here.node_of() == "n1"
        claim = await client.must("GET", f"{CLAIMS}/c1")
        pod = await client.must("GET", f"{PODS}/p1")
    assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    result = {"request": "gpu", "driver": "gpu.test.example", "pool": "n1", "device": "d0"}
    assert claim["status"]["allocation"]["devices"]["results"] == [result]
    consumer = {"resource": "pods", "name": "p1", "uid": pod["metadata"]["uid"]}
    assert claim["status"]["reservedFor"] == [consumer]
    assert claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"] == ["n1"]


@pytest.mark.asyncio
async def test_a_pod_waits_for_a_device_and_gets_it_when_it_is_free(world: t.Any) -> None:
    async with world() as client:
        here = World(client)
        here.device_class()
        here.slice(count=1)
        here.claim("c1")
        here.claim("c2")
        here.pod("p1", "c1")
        here.pod("p2", "c2")
        assert await here.node_of("p1") == "n1"
        assert "no node has the devices" in await here.why("p2")
        released = {"status": {"allocation": None, "reservedFor": None}}
        await client.must("PATCH", f"{CLAIMS}/c1/status", released, MERGE)
        assert await here.node_of("p2") == "n1"


@pytest.mark.asyncio
async def test_order_does_not_matter(world: t.Any) -> None:
    async with world() as client:
        here = World(client)
        here.pod("p1", "c1")
        assert 'resourceclaim "c1" not found' in await here.why()
        here.claim()
        assert "no node has the devices" in await here.why()
        here.slice()
        here.device_class()
        assert await here.node_of() == "n1"


@pytest.mark.asyncio
async def test_a_claim_of_a_template_is_waited_for(world: t.Any) -> None:
    async with world() as client:
        here = World(client)
        here.device_class()
        here.slice()
        here.pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])
        assert "waiting for the ResourceClaim" in await here.why()
        here.claim("p1-gpu-x")
        told = {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p1-gpu-x"}]}}
        await client.must("PATCH", f"{PODS}/p1/status", told, MERGE)
        assert await here.node_of() == "n1"


@pytest.mark.asyncio
async def test_all_claims_of_a_pod_are_on_one_node(world: t.Any) -> None:
    async with world() as client:
        here = World(client)
        here.device_class()
        here.slice("n1", count=1)
        here.slice("n2", count=2)
        here.claim("c1")
        here.claim("c2")
        here.pod("p1", "c1", "c2")
        assert await here.node_of() == "n2"
        assert {device for _request, device in [*await here.devices("c1"), *await here.devices("c2")]} == {"d0", "d1"}


@pytest.mark.asyncio
async def test_a_shared_claim_pulls_pods_to_its_node(world: t.Any) -> None:
    async with world() as client:
        here = World(client)
        here.device_class()
        for node in ("n1", "n2"):
            here.add("nodes", node, {})
        here.slice("n2")
        here.claim()
        here.pod("p1", "c1")
        here.pod("p2", "c1")
        assert [await here.node_of("p1"), await here.node_of("p2")] == ["n2", "n2"]
        assert len((await here.status())["reservedFor"]) == 2


@pytest.mark.asyncio
async def test_prioritised_list_takes_the_first_that_fits(world: t.Any) -> None:
    async with world() as client:
        here = World(client)
        here.device_class()
        here.device_class("none", 'device.driver == "other.example"')
        here.slice()
        subs = [{"name": "best", "deviceClassName": "none"}, {"name": "good", "deviceClassName": "gpu", "count": 2}]
        here.claim("c1", {"name": "gpu", "firstAvailable": subs})
        here.pod("p1", "c1")
        assert await here.devices() == [("gpu/good", "d0"), ("gpu/good", "d1")]


@pytest.mark.asyncio
async def test_admin_access_takes_nothing_away(world: t.Any) -> None:
    async with world() as client:
        here = World(client)
        label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        await client.must("PATCH", "/api/v1/namespaces/default", label, MERGE)
        here.device_class()
        here.slice(count=1)
        admin = {"deviceClassName": "gpu", "adminAccess": True, "allocationMode": "All"}
        here.claim("admin", {"name": "all", "exactly": admin})
        here.pod("p1", "admin")
        here.claim("c1")
        here.pod("p2", "c1")
        assert await here.devices("admin") == [("all", "d0")]
        assert await here.devices("c1") == [("gpu", "d0")]


@pytest.mark.asyncio
async def test_all_devices_or_none(world: t.Any) -> None:
    async with world() as client:
        here = World(client)
        here.device_class()
        here.slice(count=3)
        here.claim("all", {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}})
        here.pod("p1", "all")
        assert len(await here.devices("all")) == 3


@pytest.mark.asyncio
async def test_constraint_matches_an_attribute(world: t.Any) -> None:
    async with world() as client:
        here = World(client)
        here.device_class()
        pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"d{n}", "attributes": {"numa": {"int": n % 2}}} for n in range(3)]
        here.add(
            "resourceslices", "s", {"driver": "gpu.test.example", "pool": pool, "allNodes": True, "devices": devices}
        )
        request = {"deviceClassName": "gpu", "count": 2}
        constraint = {"matchAttribute": "gpu.test.example/numa"}
        here.claim("c1", {"name": "r", "exactly": request}, constraints=[constraint])
        here.pod("p1", "c1")
        assert await here.node_of() == "sandbox-node"
        assert await here.devices() == [("r", "d0"), ("r", "d2")]


@pytest.mark.asyncio
async def test_old_generations_of_a_pool_do_not_count(world: t.Any) -> None:
    async with world() as client:
        here = World(client)
        here.device_class()
        for generation, name in ((1, "old"), (2, "new")):
            pool = {"name": "p", "generation": generation, "resourceSliceCount": 1}
            spec = {"driver": "gpu.test.example", "pool": pool, "nodeName": "n1", "devices": [{"name": name}]}
            here.add("resourceslices", name, spec)
        here.claim()
        here.pod("p1", "c1")
        assert await here.devices() == [("gpu", "new")]


@pytest.mark.asyncio
async def test_tainted_devices_need_a_toleration(world: t.Any) -> None:
    async with world() as client:
        here = World(client)
        here.device_class()
        here.slice(taints=[{"key": "broken", "effect": "NoSchedule"}])
        here.claim("c1")
        here.pod("p1", "c1")
        assert "no node has the devices" in await here.why("p1")
        tolerated = {"deviceClassName": "gpu", "tolerations": [{"operator": "Exists"}]}
        here.claim("c2", {"name": "r", "exactly": tolerated})
        here.pod("p2", "c2")
        assert await here.node_of("p2") == "n1"


@pytest.mark.asyncio
async def test_an_expression_beyond_the_sandbox_is_told_on_the_pod(world: t.Any) -> None:
    async with world() as client:
        here = World(client)
        here.device_class("gpu", "device.attributes.all(a, a.startsWith('x'))")
        here.slice()
        here.claim()
        here.pod("p1", "c1")
        assert "The sandbox knows a small part of CEL only" in await here.why()


@pytest.mark.asyncio
async def test_pods_of_other_schedulers_and_pods_without_claims(world: t.Any) -> None:
    async with world() as client:
        here = World(client)
        here.pod("mine")
        here.pod("other", schedulerName="other")
        assert await here.node_of("mine") == "sandbox-node"
        assert await here.node_of("other") == ""


@pytest.mark.asyncio
async def test_classic_claims_are_allocated_and_deallocated(world: t.Any) -> None:
    async with world(versions=("v1alpha2",)) as client:
        base = "/apis/resource.k8s.io/v1alpha2"
        claims = f"{base}/namespaces/default/resourceclaims"
        await client.must("POST", f"{base}/resourceclasses", {"metadata": {"name": "gpu"}, "driverName": "d.example"})
        await client.must("POST", claims, {"metadata": {"name": "c"}, "spec": {"resourceClassName": "gpu"}})
        reference = {"name": "g", "source": {"resourceClaimName": "c"}}
        spec = {"containers": [{"name": "c", "image": "x"}], "resourceClaims": [reference]}
        await client.must("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})
        await client.server.settled()
        claim = await client.must("GET", f"{claims}/c")
        assert claim["metadata"]["finalizers"] == ["d.example/deletion-protection"]
        assert claim["status"]["driverName"] == "d.example"
        assert claim["status"]["reservedFor"][0]["name"] == "p"
        change = {"status": {"reservedFor": None, "deallocationRequested": True}}
        await client.must("PATCH", f"{claims}/c/status", change, MERGE)
        await client.server.settled()
        claim = await client.must("GET", f"{claims}/c")
    assert claim["status"] == {}
    assert "finalizers" not in claim["metadata"]


@pytest.mark.asyncio
async def test_classic_claims_follow_the_node_of_a_scheduling_context(world: t.Any) -> None:
    async with world(versions=("v1alpha2",)) as client:
        base = "/apis/resource.k8s.io/v1alpha2"
        claims = f"{base}/namespaces/default/resourceclaims"
        await client.must("POST", f"{base}/resourceclasses", {"metadata": {"name": "gpu"}, "driverName": "d.example"})
        await client.must("POST", claims, {"metadata": {"name": "c"}, "spec": {"resourceClassName": "gpu"}})
        now = {"resourceClassName": "gpu", "allocationMode": "Immediate"}
        await client.must("POST", claims, {"metadata": {"name": "now"}, "spec": now})
        reference = {"name": "g", "source": {"resourceClaimName": "c"}}
        spec = {"containers": [{"name": "c", "image": "x"}], "resourceClaims": [reference], "nodeName": "n7"}
        await client.must("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})
        await client.server.settled()
        assert (await client.must("GET", f"{claims}/c"))["status"] == {}
        assert "allocation" in (await client.must("GET", f"{claims}/now"))["status"]
        context = {"metadata": {"name": "p"}, "spec": {"selectedNode": "n7"}}
        await client.must("POST", f"{base}/namespaces/default/podschedulingcontexts", context)
        await client.server.settled()
        allocation = (await client.must("GET", f"{claims}/c"))["status"]["allocation"]
    assert allocation["availableOnNodes"]["nodeSelectorTerms"][0]["matchFields"][0]["values"] == ["n7"]


DEVICE = {
    "driver": "gpu.test.example",
    "attributes": {"gpu.test.example": {"model": "A100", "ready": True, "slots": 4}},
    "capacity": {"gpu.test.example": {"memory": cel.quantity("40Gi")}},
}
PREFIX = 'device.attributes["gpu.test.example"]'


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ('device.driver == "gpu.test.example"', True),
        ("device.driver == 'other'", False),
        ("true", True),
        ("!true || false", False),
        (f'{PREFIX}.model == "A100" && {PREFIX}.slots >= 4', True),
        (f"{PREFIX}.ready", True),
        (f"!{PREFIX}.ready", False),
        (f"{PREFIX}.slots", False),
        (f"{PREFIX}.ready == 1", False),
        (f'{PREFIX}.none == "x"', False),
        (f"has({PREFIX}.none)", False),
        (f"has({PREFIX}.model)", True),
        (f'{PREFIX}.model in ["A100", "H100"]', True),
        (f'{PREFIX}.model.startsWith("A") && {PREFIX}.model.matches("^A[0-9]+$")', True),
        ('device.capacity["gpu.test.example"].memory.compareTo(quantity("39Gi")) > 0', True),
        ('device.capacity["gpu.test.example"].memory.isLessThan(quantity("40G"))', False),
        ('(device.driver != "a") == true', True),
    ],
)
def test_expressions(expression: str, result: bool) -> None:
    assert cel.selects(expression, DEVICE) is result


@pytest.mark.parametrize(
    "expression", ["a + b", "device.driver ==", "x ? y : z", "semver('1')", "device.driver.size()", "("]
)
def test_expressions_that_are_not_known(expression: str) -> None:
    with pytest.raises(cel.CelError):
        cel.selects(expression, DEVICE)
