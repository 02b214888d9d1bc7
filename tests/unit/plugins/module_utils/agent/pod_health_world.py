# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A node whose agent keeps the health of devices in the status of pods: API server, drivers, and the agent's parts."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.agent.pod_health_writer import Pace, PodHealthWriter
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import MERGE_PATCH, KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.cluster import resolve
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import options_from
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of
from ansible_collections.nodeops.dra.plugins.module_utils.kube.store import Handler
from ansible_collections.nodeops.dra.plugins.module_utils.manager.health_streams import follow_all
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.rights import ADMIN
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.server import ApiServer
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.settings import ServerSettings
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver import SimulatedDriver
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.managed import Managed, managed
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Json, Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.test_with_api import Cluster
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import device

QUICK = Pace(
    settle=0.02, doubt=0.02, overwritten=0.02, overwritten_limit=0.1, lasting=3600.0, denied=0.1, retry=0.02,
    retry_limit=0.1, requests_per_second=1000.0, burst=1000,
)  # fmt: skip
AGENT = "agent-token"
POD, CLAIM = resource_of("Pod"), resource_of("ResourceClaim")


class World:
    """Pods are made with container statuses, as a kubelet makes them.

    ``written`` are the pods that the agent wrote for, ``results`` counts what became of it.
    """

    def __init__(self, node: Node, cluster: Cluster) -> None:
        self.node, self.cluster = node, cluster
        self.written: list[str] = []
        self.results: collections.Counter[str] = collections.Counter()
        self._news = asyncio.Event()
        self._writing = 0

    def driver(self, name: str = GPU, **config: t.Any) -> SimulatedDriver:
        """A driver with a health stream."""
        return self.node.driver(name, health=("v1alpha1",), **config)

    async def pod(self, name: str, uses: t.Mapping[str, t.Sequence[str]], *, started: bool = True) -> str:
        """A pod of the node whose containers use claims of these names, ``claim/request`` for one request; its UID."""
        claims = sorted({use.partition("/")[0] for listed in uses.values() for use in listed})
        containers = [
            {
                "name": container,
                "image": "i",
                "resources": {
                    "claims": [
                        {"name": one, **({"request": request} if request else {})}
                        for one, _slash, request in (use.partition("/") for use in listed)
                    ]
                },
            }
            for container, listed in uses.items()
        ]
        refs = [{"name": one, "resourceClaimName": one} for one in claims]
        spec = {"nodeName": "node-1", "containers": containers, "resourceClaims": refs}
        made = self.cluster.server.seed("v1", "pods", {"metadata": {"name": name}, "spec": spec}, "default")
        if started:
            await self.start(name, *uses)
        return str(made["metadata"]["uid"])

    async def claim(self, name: str, *pods: str, driver: str = GPU, devices: t.Sequence[int] = (0,)) -> str:
        """A claim with devices, reserved for pods; its UID. Made by somebody else than the agent."""
        requests = [{"name": "r0", "exactly": {"deviceClassName": "any"}}]
        body = {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}
        made = self.cluster.server.seed("resource.k8s.io/v1", "resourceclaims", body, "default")
        results = [device(f"dev-{number}", driver) for number in devices]
        reserved = [{"resource": "pods", "name": f"p{uid}", "uid": uid} for uid in pods]
        status = {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}
        await self.cluster.client.patch(CLAIM, {"status": status}, name, "default", subresource="status")
        return str(made["metadata"]["uid"])

    async def start(self, name: str, *containers: str) -> None:
        """What a kubelet without DRA writes: all containers, and nothing of devices."""
        statuses = [{"name": one, "image": "i", "ready": True} for one in containers]
        await self.change(name, {"status": {"phase": "Running", "containerStatuses": statuses}})

    async def change(self, name: str, body: Json) -> None:
        subresource = "status" if "status" in body else ""
        await self.cluster.client.patch(POD, body, name, "default", kind=MERGE_PATCH, subresource=subresource)

    def count(self, result: str) -> None:
        self.results[result] += 1
        self._wake()

    def _wake(self, *_args: t.Any) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def counted(self, result: str, times: int = 1) -> None:
        """Wait until so many writes had this result."""
        while self.results[result] < times:
            await self._news.wait()

    async def shows(self, agent: Managed, pod: str, wanted: t.Mapping[str, t.Mapping[str, str]]) -> None:
        """Wait until a pod's status, as the agent sees it, has this: ``container entry`` to device to health.

        No write is under way then, and all that were are counted.
        """
        unsubscribe = agent.pods.store.subscribe(Handler(added=self._wake, updated=self._wake))
        try:
            while (found := shown(agent.pods.store.get(pod, "default"))) != wanted or self._writing:
                try:
                    async with asyncio.timeout(30):
                        await self._news.wait()
                except TimeoutError:
                    raise AssertionError(f"{pod} shows {found}, expected {wanted}") from None
        finally:
            unsubscribe()

    async def looked(self) -> None:
        """Wait until the agent has looked at every pod that changed before this: pods are looked at in their order."""
        uid = await self.pod("last", {"main": ["last"]})
        await self.claim("last", uid, devices=(7,))
        while "last" not in self.written or self._writing:
            await self._news.wait()

    async def heard(self, agent: Managed, *devices: int, driver: str = GPU) -> None:
        """Wait until the agent knows that these devices are healthy."""
        health = agent.place.manager.health
        end = health.listen(self._wake)
        while any(health.state_of(driver, "pool-0", f"dev-{one}").health.value != "Healthy" for one in devices):
            await self._news.wait()
        end()

    def _track(self, agent: Managed) -> None:
        """Know when a write is under way."""
        patch_status = agent.pods.patch_status

        async def tracked(pod: Json, operations: t.Sequence[Json]) -> Json:
            self._writing += 1
            self.written.append(pod["metadata"]["name"])
            try:
                return await patch_status(pod, operations)
            finally:
                self._writing -= 1
                self._wake()

        agent.pods.patch_status = tracked  # type: ignore[method-assign]

    @contextlib.asynccontextmanager
    async def agent(self, pace: Pace = QUICK) -> t.AsyncIterator[Managed]:
        """An agent that keeps health in the status of pods."""
        options = {"kubeconfig": self.cluster.server.kubeconfig(AGENT)}
        async with managed(self.node, self.cluster, options=options) as agent:
            agent.place.node_name = "node-1"
            self._track(agent)
            writer = PodHealthWriter(agent.place, agent.pods, self.count, pace=pace)
            agent.place.more_findings.append(writer.findings)
            tasks = [
                asyncio.create_task(writer.run()),
                asyncio.create_task(follow_all(agent.place.registry, agent.place.manager.health)),
            ]
            try:
                yield agent
            finally:
                for task in tasks:
                    task.cancel()
                results = await asyncio.gather(*tasks, return_exceptions=True)
                assert all(isinstance(one, asyncio.CancelledError) for one in results), results


def report(driver: SimulatedDriver, health: str, message: str = "", *, device: int = 0) -> None:
    """A driver's report that is good for as long as a test may take."""
    driver.set_health(f"dev-{device}", health, message, timeout=3600)


def shown(pod: Json | None) -> dict[str, dict[str, str]]:
    """What a pod's status says: ``container entry`` to device to health, with the message behind it."""
    found = {}
    for status in ((pod or {}).get("status") or {}).get("containerStatuses") or ():
        for one in status.get("allocatedResourcesStatus") or ():
            devices = {
                each["resourceID"].rpartition("-dev-")[2]: f"{each['health']} {each.get('message', '')}".strip()
                for each in one["resources"]
            }
            found[f"{status['name']} {one['name']}"] = devices
    return found


def writes(world: World) -> int:
    """How often a pod's status was written by anybody."""
    return world.cluster.server.recorder.count("patch", "pods/status")


@contextlib.asynccontextmanager
async def health_world(node: Node, **settings: t.Any) -> t.AsyncIterator[World]:
    """A cluster in which the agent and others have tokens of their own."""
    settings["tokens"] = {"sandbox-admin": ADMIN, AGENT: ADMIN}
    async with ApiServer(ServerSettings(**settings)) as server:
        access = resolve(options_from({"kubeconfig": server.kubeconfig()}))
        async with KubeClient.connect(access) as client:
            yield World(node, Cluster(server, client))
