# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A cluster with a controller in it: the embedded API server over real HTTP, in any version, and builders."""

from __future__ import annotations

import asyncio
import contextlib
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.controller.controller import Controller
from ansible_collections.nodeops.dra.plugins.module_utils.controller.references import name_of, namespace_of, uid_of
from ansible_collections.nodeops.dra.plugins.module_utils.controller.settings import ControllerSettings
from ansible_collections.nodeops.dra.plugins.module_utils.controller.shapes import keeps_pod
from ansible_collections.nodeops.dra.plugins.module_utils.controller.target import Target, find_target
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.cluster import resolve
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import ConnectionOptions
from ansible_collections.nodeops.dra.plugins.module_utils.kube.reflector import ReflectorSettings
from ansible_collections.nodeops.dra.plugins.module_utils.kube.watch import WatchLimits
from ansible_collections.nodeops.dra.plugins.module_utils.resource.release import Release
from ansible_collections.nodeops.dra.plugins.module_utils.resource.versions import api_version
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.rights import user_from
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.server import ApiServer
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.settings import ServerSettings
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.controller_account import account_rules

Json = dict[str, t.Any]
NS = "team-a"
TOKEN = "controller-token"
#: Version of the API and release of the cluster, one of each generation.
GENERATIONS = {
    "v1": (1, 36, 2),
    "v1beta2": (1, 33, 1),
    "v1beta1": (1, 32, 1),
    "v1alpha3": (1, 31, 0),
    "v1alpha2": (1, 30, 0),
}
QUICK = ReflectorSettings(limits=WatchLimits(server=120, idle=100), first_delay=0.01, longest_delay=0.1)


def settings(**changed: t.Any) -> ControllerSettings:
    """Settings for tests: quick to try again, no events about what passes by itself."""
    return ControllerSettings(**{"workers": 8, "reflector": QUICK, "drain": 1.0, "grace": 0.2, **changed})


class World:
    """An embedded server, an administrator's client of it, and objects in the form of its version."""

    def __init__(self, server: ApiServer, client: KubeClient) -> None:
        self.server, self.client = server, client
        name = server.settings.versions[0]
        self.version = api_version(name)
        self.release = Release(*server.settings.played_release)
        groups = "v1alpha2" if self.release >= (1, 36) else None
        self.target = Target(self.version, self.release, groups, contexts=bool(self.version.scheduling_kind))
        self.classic = not self.version.structured

    # Connecting

    async def grant(self) -> None:
        """Make the controller's account."""
        rules = account_rules(await find_target(self.client))
        self.server.settings.tokens[TOKEN] = user_from({"name": "controller", "rules": rules})

    @contextlib.asynccontextmanager
    async def connection(self, token: str = "", **more: t.Any) -> t.AsyncIterator[KubeClient]:
        """A client of its own."""
        access = resolve(ConnectionOptions(kubeconfig=self.server.kubeconfig(token)), {})
        async with KubeClient.connect(access, rand=lambda: 0.0, **more) as client:
            yield client

    @contextlib.asynccontextmanager
    async def controller(self, **changed: t.Any) -> t.AsyncIterator[Controller]:
        """A controller that is ready, on a connection of its own, with exactly the rights that it says it needs."""
        if TOKEN not in self.server.settings.tokens:
            await self.grant()
        async with self.connection(TOKEN) as client, Controller(client, settings(**changed)) as controller:
            async with asyncio.timeout(20):
                await controller.wait_ready()
            yield controller

    # Objects

    def spec(self, **request: t.Any) -> Json:
        """Spec of a claim for one device."""
        if self.classic:
            return {"resourceClassName": "gpu.test.example", **request}
        body = {"deviceClassName": "gpu.test.example", **request}
        shaped = {"exactly": body} if self.version.exact_requests else body
        return {"devices": {"requests": [{"name": "gpu", **shaped}]}}

    async def create(self, kind: str, body: Json) -> Json:
        """Any object in the namespace."""
        return t.cast(Json, await self.client.create(self.target.resource(kind), body, NS))

    async def template(self, name: str = "t1", *, metadata: Json | None = None, **request: t.Any) -> Json:
        """A claim template."""
        spec = {"spec": self.spec(**request), **({"metadata": metadata} if metadata else {})}
        return await self.create("ResourceClaimTemplate", {"metadata": {"name": name}, "spec": spec})

    async def claim(self, name: str, **metadata: t.Any) -> Json:
        """A claim of a user."""
        return await self.create("ResourceClaim", {"metadata": {"name": name, **metadata}, "spec": self.spec()})

    def pod_body(
        self,
        name: str,
        *,
        templates: t.Mapping[str, str] | None = None,
        claims: t.Mapping[str, str] | None = None,
        node: str = "",
        **spec: t.Any,
    ) -> Json:
        """A pod with entries for templates and named claims."""
        entries = [(entry, {"resourceClaimTemplateName": of}) for entry, of in (templates or {}).items()]
        entries += [(entry, {"resourceClaimName": of}) for entry, of in (claims or {}).items()]
        listed = [
            {"name": entry, **({"source": source} if self.server.settings.classic_pods else source)}
            for entry, source in entries
        ]
        body: Json = {"containers": [{"name": "c", "image": "x"}], "resourceClaims": listed, **spec}
        if node:
            body["nodeName"] = node
        return {"metadata": {"name": name, "namespace": NS}, "spec": body}

    async def pod(self, name: str = "p-1", **parts: t.Any) -> Json:
        """Create a pod; by default with one claim from template t1."""
        if not {"templates", "claims"} & parts.keys():
            parts["templates"] = {"gpu": "t1"}
        return await self.create("Pod", self.pod_body(name, **parts))

    async def patch(self, kind: str, name: str, patch: Json, subresource: str = "") -> Json:
        """A merge patch."""
        return t.cast(
            Json, await self.client.patch(self.target.resource(kind), patch, name, NS, subresource=subresource)
        )

    async def delete(self, kind: str, name: str) -> None:
        """Delete at once."""
        await self.client.delete(self.target.resource(kind), name, NS, grace_period_seconds=0)

    async def finish(self, name: str) -> None:
        """The pod's containers have ended."""
        await self.patch("Pod", name, {"status": {"phase": "Succeeded"}}, "status")

    async def bind(self, name: str, node: str = "node-1") -> None:
        """Bind a pod, as some scheduler that knows nothing of claims would."""
        store = self.server.cluster.store
        collection = store.collection("pods.")
        body = collection.records[f"{NS}/{name}"].object()
        body["spec"]["nodeName"] = node
        store.put(collection, f"{NS}/{name}", body)

    @property
    def allocation(self) -> Json:
        """An allocation in the form of the version."""
        if self.classic:
            return {"resourceHandles": [{"driverName": "gpu.test.example", "data": "x"}], "shareable": True}
        result = {"request": "gpu", "driver": "gpu.test.example", "pool": "pool-0", "device": "dev-0"}
        return {"devices": {"results": [result]}}

    async def allocate(self, name: str, *pods: Json, consumers: t.Sequence[Json] = ()) -> Json:
        """What the scheduler does: finalizer, then allocation and reservation for pods."""
        await self.patch("ResourceClaim", name, {"metadata": {"finalizers": [self.release.protection_finalizer]}})
        entries = [{"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]} for pod in pods]
        status: Json = {"allocation": self.allocation, "reservedFor": [*entries, *consumers]}
        if self.classic:
            status["driverName"] = "gpu.test.example"
        return await self.patch("ResourceClaim", name, {"status": status}, "status")

    # Looking

    async def get(self, kind: str, name: str) -> Json:
        """One object."""
        return t.cast(Json, await self.client.get(self.target.resource(kind), name, NS))

    async def all(self, kind: str) -> list[Json]:
        """All objects of a kind in the namespace."""
        return await self.client.list(self.target.resource(kind), NS)

    def stored(self, kind: str) -> list[Json]:
        """The same without a request, in the stored form."""
        resource = self.target.resource(kind)
        served = self.server.served(resource.api_version, resource.kind.plural)
        return [record.object() for record in self.server.cluster.collection(served.kind).in_namespace(NS)]

    def names(self, pod: str) -> dict[str, str | None]:
        """Claim names in a pod's status."""
        found = next(obj for obj in self.stored("Pod") if name_of(obj) == pod)
        entries = found.get("status", {}).get("resourceClaimStatuses") or ()
        return {entry["name"]: entry.get("resourceClaimName") for entry in entries}

    def writes(self) -> dict[str, int]:
        """Requests so far that change something, as ``create resourceclaims``."""
        counts = self.server.recorder.counts
        verbs = ("create", "update", "patch", "delete")
        return {
            f"{verb} {resource}": number
            for (verb, resource), number in counts.items()
            if verb in verbs and resource != "selfsubjectaccessreviews"
        }

    async def events(self) -> list[tuple[str, str, int]]:
        """Reason, message and count of each event."""
        return [(event["reason"], event["message"], event["count"]) for event in await self.all("Event")]


@contextlib.asynccontextmanager
async def world(
    version: str = "v1", release: tuple[int, int, int] | None = None, **server: t.Any
) -> t.AsyncIterator[World]:
    """An embedded server that plays a release."""
    made = ServerSettings(
        versions=(version,), release=release or GENERATIONS[version], namespaces=("default", NS), **server
    )
    async with ApiServer(made) as running:
        access = resolve(ConnectionOptions(kubeconfig=running.kubeconfig()), {})
        async with KubeClient.connect(access, rand=lambda: 0.0) as client:
            yield World(running, client)


async def eventually(condition: t.Callable[[], t.Any], what: str = "") -> None:
    """Wait until something holds; it may be a function or give an awaitable."""
    try:
        async with asyncio.timeout(30):
            while True:
                held = condition()
                if asyncio.iscoroutine(held):
                    held = await held
                if held:
                    return
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"this did not come true: {what or condition}") from None


def caught_up(world: World, controller: Controller) -> bool:
    """Whether the caches hold what the server holds."""
    session = controller.session
    assert session is not None
    for caches in session.caches.values():
        for kind, store in caches.stores.items():
            resource = world.target.resource(kind)
            served = world.server.served(resource.api_version, resource.kind.plural)
            records = world.server.cluster.collection(served.kind).in_namespace(caches.namespace)
            known = {(namespace_of(obj), name_of(obj)): obj["metadata"]["resourceVersion"] for obj in store}
            there = {
                (record.namespace, record.name): str(record.version)
                for record in records
                if kind != "Pod" or record.uid in {uid_of(obj) for obj in store} or keeps_pod(record.object())
            }
            if there != known:
                return False
    return True


async def quiet(world: World, *controllers: Controller) -> None:
    """Wait until everybody has seen everything and nobody has anything to do, twice in a row."""
    still = 0
    async with asyncio.timeout(60):
        while still < 2:
            version = world.server.cluster.store.version
            await world.server.settled()
            for controller in controllers:
                await controller.drained()
            calm = all(
                caught_up(world, controller) and not controller.stats().delayed and not controller.stats().waiting
                for controller in controllers
            )
            still = still + 1 if calm and version == world.server.cluster.store.version else 0
            await asyncio.sleep(0.02)
