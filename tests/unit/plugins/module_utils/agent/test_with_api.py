# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The modules' work against the embedded API server: objects are fetched, compared, and never changed."""

from __future__ import annotations

import contextlib
import socket
import sys
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.claim_look import look
from ansible_collections.nodeops.dra.plugins.module_utils.agent.claim_task import perform
from ansible_collections.nodeops.dra.plugins.module_utils.agent.driver_report import driver_report
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.cluster import resolve
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import options_from
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.server import ApiServer
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.settings import ServerSettings
from ansible_collections.nodeops.dra.plugins.module_utils.wire import messages
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Json, Node, codes, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import NIC, device

TOKEN = "tok-SYNTH-1"
NO_API: Json = {"with_api": False, "node_name": None, "registry_directory": None}


class Cluster:
    """An API server with the node ``node-1``, and what tasks say to reach it."""

    def __init__(self, server: ApiServer, client: KubeClient) -> None:
        self.server = server
        self.client = client
        self.options: Json = {"kubeconfig": server.kubeconfig(), "context": None, "host": None, "api_key": None}

    async def pod(self, name: str, *claims: str, phase: str = "Pending") -> str:
        """A pod that is bound to the node; its UID."""
        refs = [{"name": one, "resourceClaimName": one} for one in claims]
        container = {"name": "main", "image": "i", "resources": {"claims": [{"name": one} for one in claims]}}
        spec = {"nodeName": "node-1", "containers": [container], "resourceClaims": refs}
        made = self.server.seed("v1", "pods", {"metadata": {"name": name}, "spec": spec}, "default")
        await self.client.patch(resource_of("Pod"), {"status": {"phase": phase}}, name, "default", subresource="status")
        return str(made["metadata"]["uid"])

    async def claim(self, name: str, *pods: str, driver: str = GPU, allocated: bool = True) -> str:
        """A claim, allocated and reserved for pods; its UID."""
        requests = [{"name": "r0", "exactly": {"deviceClassName": "any"}}]
        body = {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}
        made = self.server.seed("resource.k8s.io/v1", "resourceclaims", body, "default")
        status: Json = {"reservedFor": [{"resource": "pods", "name": f"p{uid}", "uid": uid} for uid in pods]}
        if allocated:
            status["allocation"] = {"devices": {"results": [device(driver=driver)]}}
            await self.client.patch(
                resource_of("ResourceClaim"), {"status": status}, name, "default", subresource="status"
            )
        return str(made["metadata"]["uid"])

    def slice(self, driver: str = GPU, node: str = "node-1", devices: int = 2, version: str = "v1") -> None:
        spec: Json = {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "resourceSliceCount": 1, "generation": 1},
            "devices": [{"name": f"dev-{number}"} for number in range(devices)],
        }
        if version == "v1beta1":
            spec["devices"] = [{**one, "basic": {}} for one in spec["devices"]]
        body: Json = {"metadata": {"name": f"{node}-{driver}"}, "spec": spec}
        if version == "v1alpha2":
            instances = [{"name": f"dev-{number}"} for number in range(devices)]
            body = {**body, "driverName": driver, "nodeName": node, "namedResources": {"instances": instances}}
            del body["spec"]
        self.server.seed(f"resource.k8s.io/{version}", "resourceslices", body)


@contextlib.asynccontextmanager
async def cluster(version: str = "v1") -> t.AsyncIterator[Cluster]:
    async with ApiServer(ServerSettings(versions=(version,))) as server:
        access = resolve(options_from({"kubeconfig": server.kubeconfig()}))
        async with KubeClient.connect(access) as client:
            yield Cluster(server, client)


def named(name: str, **more: str) -> Json:
    return {"metadata": {"namespace": "default", "name": name, **more}}


# nodeops.dra.claim


@pytest.mark.asyncio
async def test_a_claim_is_fetched_by_name(node: Node) -> None:
    async with cluster() as api, node.driver():
        uid = await api.claim("c1")
        result = await perform(node.request("prepared", named("c1")), api.options, check=False)
        assert [(one["uid"], one["pods"]) for one in result["claims"]] == [(uid, ["holder:nodeops.dra"])]
        same = await perform(node.request("prepared", named("c1", uid=uid)), api.options, check=False)
        assert not same["changed"]


@pytest.mark.asyncio
async def test_a_pod_and_its_claims_are_fetched(node: Node) -> None:
    async with cluster() as api, node.driver():
        pod_uid = await api.pod("training-0", "c1")
        uid = await api.claim("c1", pod_uid)
        request = node.request("prepared", pod=named("training-0"))
        planned = await perform(request, api.options, check=True)
        done = await perform(request, api.options, check=False)
    assert (planned["changed"], planned["calls"]) == (True, done["calls"])
    assert [(one["uid"], one["pods"]) for one in done["claims"]] == [(uid, [pod_uid])]


@pytest.mark.asyncio
async def test_only_what_was_not_given_is_fetched(node: Node) -> None:
    async with cluster() as api, node.driver():
        pod_uid = await api.pod("training-0", "c1")
        await api.claim("c1", pod_uid)
        whole = await api.client.get(resource_of("ResourceClaim"), "c1", "default")
        api.server.recorder.reset()
        await perform(node.request("prepared", whole, pod=named("training-0")), api.options, check=False)
        assert api.server.recorder.count("get", "pods") == 1
        assert api.server.recorder.count("get", "resourceclaims") == 0


@pytest.mark.report("F011")
@pytest.mark.asyncio
async def test_unprepare_and_forget_ask_no_api(node: Node) -> None:
    async with cluster() as api, node.driver():
        await api.claim("c1")
        await perform(node.request("prepared", named("c1")), api.options, check=False)
        api.server.recorder.reset()
        assert (await perform(node.request("unprepared", named("c1")), api.options, check=False))["changed"]
        assert not (await perform(node.request("forgotten", named("c1"), reason="a"), api.options, check=False))[
            "changed"
        ]
        assert api.server.recorder.count() == 0


@pytest.mark.parametrize(
    ("asked", "parts"),
    [
        pytest.param(named("nobody"), ("nobody", "default"), id="no such claim"),
        pytest.param(named("c1", uid="u-old"), ("default/c1", "u-old", "made anew"), id="made anew"),
        pytest.param({"metadata": {"name": "c1"}}, ("namespace ''", "name 'c1'"), id="no namespace"),
        pytest.param(named("free"), ("default/free", "not allocated"), id="not allocated"),
        pytest.param(named("../c1"), ("../c1",), id="name with a slash"),
    ],
)
@pytest.mark.asyncio
async def test_a_claim_of_the_api_that_cannot_be_had(node: Node, asked: Json, parts: tuple[str, ...]) -> None:
    async with cluster() as api, node.driver() as driver:
        await api.claim("c1")
        await api.claim("free", allocated=False)
        for check in (True, False):
            tree = node.tree()
            with pytest.raises(DraError) as failed:
                await perform(node.request("prepared", asked), api.options, check=check)
            assert [part for part in parts if part not in str(failed.value)] == [], str(failed.value)
            assert node.tree() == tree
        assert driver.calls_of("prepare") == []


@pytest.mark.asyncio
async def test_without_a_way_to_the_api_the_message_says_what_is_missing(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "K8S_AUTH_KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(node.root))
    with pytest.raises(DraError, match="kubeconfig") as failed:
        await perform(node.request("prepared", named("c1")), {"kubeconfig": None}, check=True)
    assert "ResourceClaim default/c1 was given without its status" in failed.value.message, "why the API is needed"
    assert "Set kubeconfig" in failed.value.hint


@pytest.mark.report("F082")
@pytest.mark.asyncio
async def test_a_token_is_in_no_error(node: Node) -> None:
    async with cluster() as api:
        config = api.server.kubeconfig(token=TOKEN)
        for options in ({"kubeconfig": config}, {"host": "http://127.0.0.1:9", "api_key": TOKEN}):
            with pytest.raises(DraError) as failed:
                await perform(node.request("prepared", named("c1")), options, check=True)
            assert TOKEN not in f"{failed.value} {failed.value.facts}"


# nodeops.dra.claim_info


async def looked(node: Node, **changes: t.Any) -> Json:
    options: Json = {
        "state_directory": str(node.state_directory),
        "cdi_directories": [str(node.cdi)],
        **NO_API,
        **changes,
    }
    return await look(str(node.root), options)


@pytest.mark.report("F052", "F095")
@pytest.mark.asyncio
async def test_a_look_with_drivers_and_api(node: Node) -> None:
    async with cluster() as api, node.driver():
        pod_uid = await api.pod("training-0", "c1", phase="Running")
        uid = await api.claim("c1", pod_uid)
        waiting = await api.pod("training-1", "c2")
        second = await api.claim("c2", waiting, driver=NIC)
        await perform(node.request("prepared", pod=named("training-0")), api.options, check=False)
        writes = api.server.recorder.count("create") + api.server.recorder.count("patch")
        result = await looked(node, with_api=True, node_name="node-1", **api.options)
        assert api.server.recorder.count("create") + api.server.recorder.count("patch") == writes

    first, other = result["claims"]
    assert (first["uid"], first["in_manager"], first["in_api"], first["waits_for"]) == (uid, True, True, "")
    assert first["pods"] == [
        {"uid": pod_uid, "name": "training-0", "phase": "Running", "alive": True, "deleting_since": None}
    ]
    assert (other["uid"], other["source"], other["waits_for"]) == (second, "api", "its driver to come back")
    assert codes(result) == ["driver_missing"]
    assert (result["drivers_checked"], result["kubelet_root"], result["changed"]) == (True, str(node.root), False)


@pytest.mark.report("F116")
@pytest.mark.asyncio
async def test_drivers_are_looked_for_where_the_option_says(node: Node) -> None:
    (node.root / "elsewhere").mkdir()
    async with cluster() as api, node.driver():
        await api.claim("c1")
        await perform(node.request("prepared", named("c1")), api.options, check=False)
        assert codes(await looked(node)) == []
        assert codes(await looked(node, registry_directory=f"{node.registry}//")) == []
        assert codes(await looked(node, registry_directory=str(node.root / "elsewhere"))) == ["driver_missing"]


@pytest.mark.report("F081")
@pytest.mark.asyncio
async def test_a_look_changes_nothing(node: Node) -> None:
    async with node.driver() as driver:
        node.spec("u-77")
        tree = node.tree()
        await looked(node)
        assert node.tree() == tree
        assert driver.notifications == []
        assert {call.method for call in driver.calls} == {"get_info"}


@pytest.mark.parametrize("library", ["grpc", "google.protobuf"])
@pytest.mark.asyncio
async def test_a_look_needs_no_library(node: Node, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it fail because there is a driver that it cannot ask."""
    monkeypatch.setitem(sys.modules, library, None)
    messages.api.cache_clear()
    node.manager_has(recorded())
    node.spec("u-1")
    with socket.socket(socket.AF_UNIX) as driver:
        driver.bind(str(node.registry / "x-reg.sock"))
        driver.listen()
        result = await looked(node)
    messages.api.cache_clear()
    assert [one["uid"] for one in result["claims"]] == ["u-1"]
    assert (result["drivers_checked"], codes(result)) == (False, ["claim_needs_prepare"])


# nodeops.dra.driver_info


@pytest.mark.report("F024", "F033")
@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha2"])
@pytest.mark.asyncio
async def test_slices_of_a_driver_that_is_gone(node: Node, version: str) -> None:
    async with cluster(version) as api, node.driver(NIC):
        api.slice(version=version)
        api.slice(node="node-2", version=version)
        options = {**NO_API, **api.options, "with_api": True, "node_name": "node-1"}
        result = await driver_report(str(node.registry), options)
        assert api.server.recorder.count("delete") == 0, "slices are never wiped"

    pool = "" if version == "v1alpha2" else "node-1"
    (one,) = result["slices"]
    assert (one["driver"], one["pool"], one["slices"], one["devices"]) == (GPU, pool, 1, 2)
    assert codes(result) == ["driver_without_slices", "stale_slices"]
    stale = next(finding for finding in result["findings"] if finding["code"] == "stale_slices")
    assert stale["facts"] == {**one, "age": pytest.approx(0, abs=60)}
    for part in (GPU, pool, "2 devices", "s old", "is not registered"):
        assert part in stale["text"], part
    lonely = next(finding for finding in result["findings"] if finding["code"] == "driver_without_slices")
    assert (lonely["facts"], lonely["severity"]) == ({"driver": NIC}, "warning")


@pytest.mark.report("F033")
@pytest.mark.asyncio
async def test_slices_of_a_driver_that_is_there(node: Node) -> None:
    async with cluster() as api, node.driver() as driver:
        api.slice()
        options = {**NO_API, **api.options, "with_api": True, "node_name": "node-1"}
        assert codes(await driver_report(str(node.registry), options)) == []
        await driver.stop_service()
        result = await driver_report(str(node.registry), options)
        assert codes(result) == ["endpoint_missing", "stale_slices"]
        assert "does not answer" in next(one["text"] for one in result["findings"] if one["code"] == "stale_slices")
        assert (await driver_report(str(node.registry), NO_API))["slices"] is None
