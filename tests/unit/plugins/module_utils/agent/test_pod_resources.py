# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The PodResources API over its real socket, as a monitoring agent asks it."""

from __future__ import annotations

import contextlib
import os
import pathlib
import stat
import typing as t

import grpc
import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent import pod_resources_api
from ansible_collections.nodeops.dra.plugins.module_utils.agent.pod_resources import PodResources
from ansible_collections.nodeops.dra.plugins.module_utils.agent.pod_resources_api import PodResourcesApi
from ansible_collections.nodeops.dra.plugins.module_utils.agent.workplace import Workplace
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.claims import ClaimState, Device
from ansible_collections.nodeops.dra.plugins.module_utils.wire.messages import api
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.agent_process import agent_process
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.managed import managed
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Json, Node, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.running_agent import running
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.test_kubelet_claims import kubelet
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.test_with_api import cluster
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim, device, pod

pytestmark = pytest.mark.asyncio


class Monitor:
    """A client that knows nothing but the names and numbers of the API."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    async def ask(self, name: str, **fields: t.Any) -> t.Any:
        method = api("podresources/v1").service()[name]
        call = self._channel.unary_unary(
            f"/v1.PodResourcesLister/{name}",
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        return await call(method.request(**fields))

    async def status(self, name: str, **fields: t.Any) -> str:
        """How a call ends."""
        try:
            await self.ask(name, **fields)
        except grpc.aio.AioRpcError as error:
            return f"{error.code().name}: {error.details()}"
        return "OK"

    async def devices(self) -> Json:
        """Pod and container to what they hold, as ``claim driver/pool/device[share] names``."""
        found: Json = {}
        for one in (await self.ask("List")).pod_resources:
            for container in one.containers:
                found[f"{one.namespace}/{one.name}", container.name] = [
                    f"{claim.claim_namespace}/{claim.claim_name} {device.driver_name}/{device.pool_name}/"
                    f"{device.device_name}{f'[{device.share_id}]' if device.HasField('share_id') else ''} "
                    + ",".join(cdi.name for cdi in device.cdi_devices)
                    for claim in container.dynamic_resources
                    for device in claim.claim_resources
                ]
        return found


@contextlib.asynccontextmanager
async def connected(path: pathlib.Path) -> t.AsyncIterator[Monitor]:
    options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(f"unix:{path}", options=options) as channel:
        yield Monitor(channel)


@contextlib.asynccontextmanager
async def monitored(node: Node, place: Workplace, **options: t.Any) -> t.AsyncIterator[Monitor]:
    """The API of a place, and who asks it."""
    path = node.root / "pod-resources" / "kubelet.sock"
    async with PodResourcesApi(str(path), PodResources(place), **options), connected(path) as monitor:
        yield monitor


def uses(name: str, *claims: str, **more: t.Any) -> Json:
    """A container with claims by name, ``name/request`` for a part of one."""
    parts = [one.partition("/") for one in claims]
    entries = [{"name": f"ref-{one}", **({"request": part} if part else {})} for one, _slash, part in parts]
    return {"name": name, "resources": {"claims": entries}, **more}


def cdi(uid: str, name: str) -> str:
    return f"k8s.{GPU}/claim={uid}-{name}"


async def test_pods_of_the_api_are_listed(node: Node) -> None:
    async with (
        cluster() as cluster_api,
        node.driver(),
        managed(node, cluster_api) as agent,
        monitored(node, agent.place) as monitor,
    ):
        await agent.until(lambda: agent.pods.synced)
        assert await monitor.devices() == {}
        uid = await cluster_api.pod("p", "c")
        claim_uid = await cluster_api.claim("c", uid)
        await agent.event("claim_prepared")
        one = (await monitor.ask("Get", pod_name="p", pod_namespace="default")).pod_resources
        assert await monitor.devices() == {
            ("default/p", "main"): [f"default/c {GPU}/pool-0/dev-0 {cdi(claim_uid, 'dev-0')}"]
        }
        assert (one.name, one.namespace, len(one.containers[0].dynamic_resources)) == ("p", "default", 1)
        wanted = "NOT_FOUND: pod q in namespace default not found"
        assert await monitor.status("Get", pod_name="q", pod_namespace="default") == wanted
        await agent.delete("Pod", "p")
        await agent.event("claim_unprepared")
        assert await monitor.devices() == {}


async def test_each_device_has_its_own_cdi_names_and_counts_once(node: Node) -> None:
    """The kubelet of 1.36 repeats the names of earlier devices (trap 16)."""
    devices = tuple(
        Device("pool-0", f"dev-{number}", (f"r{number}",), (cdi("u-1", str(number)),), share)
        for number, share in ((0, None), (1, "share-1"), (2, None))
    )
    node.manager_has(ClaimState("u-1", "c1", "team-a", frozenset({"p-1"}), {GPU: devices}))
    some = uses("some", "c1/r0", "c1/r1")
    every = uses("every", "c1", "c1/r2")
    async with running(node) as agent, monitored(node, agent.place) as monitor:
        agent.place.given_pods.add(pod("p-1", "c1", containers=[some, every]))
        found = await monitor.devices()
        (container, _other) = (await monitor.ask("List")).pod_resources[0].containers
    lines = [
        f"team-a/c1 {GPU}/pool-0/dev-{number}{share} {cdi('u-1', str(number))}"
        for number, share in ((0, ""), (1, "[share-1]"), (2, ""))
    ]
    name = "team-a/name-of-p-1"
    assert found == {(name, "some"): lines[:2], (name, "every"): lines}
    assert [one.claim_name for one in container.dynamic_resources] == ["c1"]


async def test_only_init_containers_that_go_on_are_listed(node: Node) -> None:
    made = pod("p-1", "c1", containers=[uses("main", "c1")])
    made["spec"]["initContainers"] = [uses("first", "c1"), uses("sidecar", "c1", restartPolicy="Always")]
    node.manager_has(recorded())
    async with running(node) as agent, monitored(node, agent.place) as monitor:
        agent.place.given_pods.add(made)
        assert [name for _pod, name in await monitor.devices()] == ["sidecar", "main"]


async def test_a_pod_is_shown_only_with_what_it_holds(node: Node) -> None:
    node.manager_has(recorded("u-1", "c1", pods=["p-1"]), recorded("u-2", "c2", pods=["p-2"]))
    async with running(node) as agent, monitored(node, agent.place) as monitor:
        agent.place.given_pods.add(pod("p-2", "c1", "c2"))
        (lines,) = (await monitor.devices()).values()
    assert [line.split()[0] for line in lines] == ["team-a/c2"]


async def test_pods_of_the_local_api_are_known_while_they_hold_claims(node: Node) -> None:
    async with node.driver(), running(node) as agent, monitored(node, agent.place) as monitor:
        await agent.client.change(node.request("prepared", claim(), pod=pod()), check=True)
        assert await monitor.devices() == {}
        await agent.client.change(node.request("prepared", claim(), pod=pod()))
        await agent.client.change(node.request("prepared", claim("c2", "u-2", device("dev-1")), holder="a.service"))
        assert list(await monitor.devices()) == [("team-a/name-of-p-1", "main")]
        assert list(await agent.client.resources({"metadata": pod()["metadata"]})) == ["main"]
        await agent.client.change(node.request("unprepared", pod=pod()))
        assert await monitor.devices() == {}


async def test_an_odd_pod_hides_no_other(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    node.manager_has(recorded("u-1", "c1", pods=["p-1", "p-2"]))
    odd = pod("p-2", "c1", containers=[uses("main", "other")])
    async with running(node) as agent, monitored(node, agent.place) as monitor:
        agent.place.given_pods.add(odd)
        agent.place.given_pods.add(pod("p-1", "c1"))
        assert list(await monitor.devices()) == [("team-a/name-of-p-1", "main")]
    assert "pod is left out of the pod resources pod=team-a/name-of-p-2" in caplog.text


async def test_what_is_not_known_is_not_an_empty_list(node: Node) -> None:
    path = node.manager_has(recorded())
    nowhere = {"host": "http://127.0.0.1:9"}
    async with (
        cluster() as cluster_api,
        managed(node, cluster_api, options=nowhere) as agent,
        monitored(node, agent.place) as monitor,
    ):
        assert (await monitor.status("List")).startswith("UNAVAILABLE: The pods of this node are not known yet")
    path.write_bytes(path.read_bytes()[:-9])
    async with running(node) as damaged, monitored(node, damaged.place) as monitor:
        assert (await monitor.status("List")).startswith(f"FAILED_PRECONDITION: {path} is damaged")


async def test_nothing_of_dra_is_allocatable(node: Node) -> None:
    async with running(node) as agent, monitored(node, agent.place) as monitor:
        assert not (await monitor.ask("GetAllocatableResources")).SerializeToString()


async def test_too_many_calls_are_refused(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_resources_api, "QPS", 0.001)
    async with running(node) as agent, monitored(node, agent.place) as monitor:
        found = [await monitor.status("List") for _number in range(pod_resources_api.BURST + 1)]
    assert found == ["OK"] * pod_resources_api.BURST + ["RESOURCE_EXHAUSTED: more than 0 calls a second"]


async def test_other_users_are_refused(node: Node) -> None:
    async with running(node) as agent, monitored(node, agent.place, users=[os.getuid() + 1]) as monitor:
        assert (await monitor.status("List")).startswith("UNAVAILABLE")
        assert stat.S_IMODE((node.root / "pod-resources" / "kubelet.sock").stat().st_mode) == 0o600


# The setting


async def test_the_agent_serves_it_where_it_is_told(node: Node) -> None:
    path = node.root / "pod-resources" / "kubelet.sock"
    async with node.driver(), agent_process(node, node={"pod_resources_socket": str(path)}) as agent:
        await agent.until("ready daemon=")
        async with agent.client() as client, connected(path) as monitor:
            await client.change(node.request("prepared", claim(), pod=pod()))
            assert list(await monitor.devices()) == [("team-a/name-of-p-1", "main")]
        _status, metrics = await agent.get("/metrics")
        assert await agent.end() == 0
    assert 'nodeops_dra_pod_resources_requests_total{code="OK",method="List"} 1.0' in metrics
    assert not path.exists()


async def test_the_socket_of_a_running_kubelet_is_left_alone(node: Node) -> None:
    path = node.root / "pod-resources" / "kubelet.sock"
    with kubelet(node) as pid:
        async with agent_process(node, node={"pod_resources_socket": str(path)}) as agent:
            assert await agent.ended() == 69
    assert any(f"is the PodResources socket of kubelet pid {pid}" in line for line in agent.lines)
    assert not path.exists()
