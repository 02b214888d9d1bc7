# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The layer at work on the embedded API server: verbs, watches under every fault, discovery, lease, events."""

# Pylint takes the second context of one "async with" for evaluated before the first.
# pylint: disable=used-before-assignment

from __future__ import annotations

import asyncio
import contextlib
import random
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.kube import errors
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import (
    JSON_PATCH,
    KubeClient,
    Preconditions,
)
from ansible_collections.nodeops.dra.plugins.module_utils.kube.cluster import resolve
from ansible_collections.nodeops.dra.plugins.module_utils.kube.discovery import discover, server_release
from ansible_collections.nodeops.dra.plugins.module_utils.kube.event_series import ObjectReference
from ansible_collections.nodeops.dra.plugins.module_utils.kube.fence import Fence
from ansible_collections.nodeops.dra.plugins.module_utils.kube.lease import Lease
from ansible_collections.nodeops.dra.plugins.module_utils.kube.mutation_cache import MutationCache
from ansible_collections.nodeops.dra.plugins.module_utils.kube.object_index import codec_for
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import ConnectionOptions
from ansible_collections.nodeops.dra.plugins.module_utils.kube.recorder import WARNING, EventRecorder
from ansible_collections.nodeops.dra.plugins.module_utils.kube.reflector import Reflector, ReflectorSettings
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of
from ansible_collections.nodeops.dra.plugins.module_utils.kube.store import Handler, Store
from ansible_collections.nodeops.dra.plugins.module_utils.kube.watch import WatchLimits
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.server import ApiServer
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.settings import ServerSettings

pytestmark = pytest.mark.asyncio

Json = dict[str, t.Any]
CLAIMS = resource_of("ResourceClaim")
PODS = resource_of("Pod")
SPEC: Json = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.test.example"}}]}}


@contextlib.asynccontextmanager
async def cluster(**settings: t.Any) -> t.AsyncIterator[tuple[ApiServer, KubeClient]]:
    """An embedded server and an administrator's client of it."""
    async with ApiServer(ServerSettings(namespaces=("default", "team-a"), **settings)) as server:
        access = resolve(ConnectionOptions(kubeconfig=server.kubeconfig()), {})
        async with KubeClient.connect(access, rand=lambda: 0.0) as client:
            yield server, client


@contextlib.asynccontextmanager
async def reflected(client: KubeClient, **settings: t.Any) -> t.AsyncIterator[Reflector[Json]]:
    """A reflector of all claims, synced."""
    limits = WatchLimits(server=settings.pop("server", 30), idle=settings.pop("idle", 5))
    store: Store[Json] = Store(codec_for(t.cast("type[Json]", dict)))
    quick = ReflectorSettings(limits=limits, first_delay=0.01, longest_delay=0.1, **settings)
    reflector = Reflector(client, CLAIMS, store, settings=quick)
    task = asyncio.ensure_future(reflector.run())
    try:
        async with asyncio.timeout(20):
            await reflector.synced.wait()
        yield reflector
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def name_and_version(obj: Json) -> tuple[str, str]:
    """What tells one state of an object from another."""
    return obj["metadata"]["name"], obj["metadata"]["resourceVersion"]


async def equal(client: KubeClient, reflector: Reflector[Json]) -> None:
    """Wait until the store shows what the server has."""
    async with asyncio.timeout(30):
        while True:
            wanted = {
                (obj["metadata"]["name"], obj["metadata"]["resourceVersion"]) for obj in await client.list(CLAIMS)
            }
            found = {(obj["metadata"]["name"], obj["metadata"]["resourceVersion"]) for obj in reflector.store}
            if wanted == found:
                return
            await asyncio.sleep(0.05)


async def test_the_verbs() -> None:
    async with cluster() as (_server, client):
        made = await client.create(CLAIMS, {"metadata": {"generateName": "c-"}, "spec": SPEC}, "team-a")
        name, version = made["metadata"]["name"], made["metadata"]["resourceVersion"]
        assert await client.get(CLAIMS, name, "team-a") == made
        patch = {"metadata": {"resourceVersion": version, "labels": {"a": "b"}}}
        changed = await client.patch(CLAIMS, patch, name, "team-a")
        assert changed["metadata"]["labels"] == {"a": "b"}
        with pytest.raises(errors.ConflictError, match="the object has been modified"):
            await client.patch(CLAIMS, patch, name, "team-a")
        await client.patch(CLAIMS, [{"op": "remove", "path": "/metadata/labels/a"}], name, "team-a", kind=JSON_PATCH)
        current = await client.get(CLAIMS, name, "team-a")
        current["metadata"]["annotations"] = {"x": "y"}
        await client.replace(CLAIMS, current, name, "team-a")
        assert [obj["metadata"]["name"] for obj in await client.list(CLAIMS, limit=1)] == [name]
        with pytest.raises(errors.AlreadyExistsError):
            await client.create(CLAIMS, {"metadata": {"name": name}, "spec": SPEC}, "team-a")
        with pytest.raises(errors.InvalidObjectError, match="immutable"):
            await client.patch(CLAIMS, {"spec": {"devices": {"requests": []}}}, name, "team-a")
        with pytest.raises(errors.ConflictError, match="precondition"):
            await client.delete(CLAIMS, name, "team-a", preconditions=Preconditions(uid="other"))
        await client.delete(CLAIMS, name, "team-a", preconditions=Preconditions(uid=made["metadata"]["uid"]))
        with pytest.raises(errors.NotFoundError):
            await client.get(CLAIMS, name, "team-a")


async def test_apply_of_a_pods_claim_statuses() -> None:
    async with cluster() as (_server, client):
        claims = [{"name": name, "resourceClaimTemplateName": "t"} for name in ("a", "b")]
        containers = [{"name": "c", "image": "x"}]
        await client.create(
            PODS, {"metadata": {"name": "p1"}, "spec": {"resourceClaims": claims, "containers": containers}}, "team-a"
        )
        for names in (("a", "b"), ("a", "b"), ("b",)):
            statuses = [{"name": name, "resourceClaimName": f"p1-{name}"} for name in names]
            pod = await client.apply(
                PODS,
                {"metadata": {"name": "p1"}, "status": {"resourceClaimStatuses": statuses}},
                "p1",
                "team-a",
                field_manager="ResourceClaimController",
                subresource="status",
            )
            assert pod["status"]["resourceClaimStatuses"] == statuses


@pytest.mark.parametrize(
    "versions", [("v1",), ("v1beta2", "v1beta1"), ("v1alpha3",), ("v1alpha2",)], ids=lambda v: v[0]
)
async def test_discovery(versions: tuple[str, ...]) -> None:
    async with cluster(versions=versions) as (_server, client):
        found = await discover(client)
        assert found.claims.name == versions[0]
        assert await server_release(client) is not None
        assert await client.list(found.resource("ResourceClaim")) == []


async def test_a_wrong_token() -> None:
    async with cluster() as (server, _client):
        access = resolve(ConnectionOptions(host=server.url, api_key="tok-wrong"), {})
        async with KubeClient.connect(access) as stranger:
            with pytest.raises(errors.UnauthorizedError):
                await stranger.list(PODS)


async def test_tls() -> None:
    async with cluster(tls=True) as (_server, client):
        assert await client.list(PODS) == []


async def test_own_writes_are_seen_before_the_watch_tells_them() -> None:
    async with cluster() as (server, client):
        server.add_fault("silent_watch:verb=watch,times=1")
        async with reflected(client, idle=0.5) as reflector:
            cache = MutationCache(reflector.store)
            made = await client.create(CLAIMS, {"metadata": {"name": "c1"}, "spec": SPEC}, "team-a")
            cache.mutated(made)
            assert reflector.store.get("c1", "team-a") is None
            assert cache.get("c1", "team-a") == made
            await equal(client, reflector)
            assert cache.get("c1", "team-a") == made
            assert len(cache) == 0


@pytest.mark.parametrize(
    "fault",
    [
        "split:verb=watch,size=5",
        "silent_watch:verb=watch,after=1,times=2",
        "drop_watch:verb=watch,after=2,cut=true,times=3",
        "gone:verb=watch,times=1",
        "expired:verb=watch,times=1",
        "throttle:resource=resourceclaims,seconds=0.2,times=2",
        "error:verb=watch,code=500,times=3",
        "close:verb=watch,times=2",
        "no_bookmarks",
    ],
)
@pytest.mark.report("F068")
async def test_no_change_is_lost_under_a_fault(fault: str) -> None:
    async with cluster(bookmark_seconds=0.2) as (server, client):
        server.add_fault(fault)
        async with reflected(client, idle=0.4, server=2) as reflector:
            for number in range(6):
                await client.create(CLAIMS, {"metadata": {"name": f"grün-{number}"[5:]}, "spec": SPEC}, "team-a")
            await client.delete(CLAIMS, "2", "team-a")
            await client.patch(CLAIMS, {"metadata": {"annotations": {"n": "ä€🚀"}}}, "3", "team-a")
            await equal(client, reflector)
            assert reflector.stats.malformed == 0


@pytest.mark.report("F069")
async def test_compaction_leads_to_a_list_and_synthetic_deletes() -> None:
    async with cluster(history_limit=5) as (server, client):
        for number in range(10):
            await client.create(CLAIMS, {"metadata": {"name": f"c{number}"}, "spec": SPEC}, "team-a")
        server.add_fault("silent_watch:verb=watch,times=1")
        async with reflected(client, idle=1.0) as reflector:
            for number in range(8):
                await client.delete(CLAIMS, f"c{number}", "team-a")
            await equal(client, reflector)
    assert reflector.stats.relist_reasons.get("expired", 0) >= 1
    assert reflector.stats.vanished == 8


FAULTS = (
    "split:verb=watch,size=3,times=1",
    "silent_watch:verb=watch,after=1,times=1",
    "drop_watch:verb=watch,after=1,cut=true,times=1",
    "drop_watch:verb=watch,after=3,times=1",
    "gone:verb=watch,times=1",
    "expired:verb=watch,times=1",
    "error:verb=list,resource=resourceclaims,code=503,times=1",
    "error:verb=watch,code=504,times=1",
    "close:verb=list,resource=resourceclaims,times=1",
    "stale_list:verb=list,resource=resourceclaims,times=1",
)


class Witness:
    """Hears everything and checks that it makes sense: no double add, no update of what is not there."""

    def __init__(self, store: Store[Json]) -> None:
        self.known: dict[str, str] = {}
        store.subscribe(Handler(self.added, self.updated, self.deleted))

    def added(self, obj: Json) -> None:
        """A new object."""
        assert obj["metadata"]["uid"] not in self.known
        self.known[obj["metadata"]["uid"]] = obj["metadata"]["resourceVersion"]

    def updated(self, old: Json, new: Json) -> None:
        """A new state."""
        assert self.known[new["metadata"]["uid"]] == old["metadata"]["resourceVersion"]
        self.known[new["metadata"]["uid"]] = new["metadata"]["resourceVersion"]

    def deleted(self, old: Json) -> None:
        """Gone."""
        del self.known[old["metadata"]["uid"]]


async def change(client: KubeClient, chance: random.Random, step: int) -> None:
    """One random write, which may fail."""
    name = f"c{chance.randrange(12)}"
    what = chance.randrange(4)
    with contextlib.suppress(errors.ApiStatusError):
        if what == 0:
            await client.create(CLAIMS, {"metadata": {"name": name}, "spec": SPEC}, "team-a")
        elif what == 1:
            await client.delete(CLAIMS, name, "team-a")
        else:
            await client.patch(CLAIMS, {"metadata": {"labels": {"n": str(step)}}}, name, "team-a")


@pytest.mark.slow
@pytest.mark.report("F068", "F069")
@pytest.mark.parametrize("seed", range(3))
async def test_random_changes_under_random_faults(seed: int) -> None:
    chance = random.Random(seed)
    async with (
        cluster(bookmark_seconds=0.1, history_limit=40) as (server, client),
        reflected(client, idle=0.3, server=1, page_size=7) as reflector,
    ):
        witness = Witness(reflector.store)
        for step in range(120):
            await change(client, chance, step)
            if chance.random() < 0.15:
                server.add_fault(chance.choice(FAULTS))
            await asyncio.sleep(0.01 if chance.random() < 0.3 else 0)
        server.faults.clear()
        await equal(client, reflector)
        assert witness.known == {obj["metadata"]["uid"]: obj["metadata"]["resourceVersion"] for obj in reflector.store}


async def test_election_and_events() -> None:
    async with cluster() as (_server, client):

        async def work(fence: Fence) -> None:
            recorder = EventRecorder(client.with_fence(fence), "resource_claim")
            async with asyncio.TaskGroup() as group:
                writing = group.create_task(recorder.run())
                pod = ObjectReference("v1", "Pod", "p1", "team-a", "u-1")
                for _unused in range(2):
                    recorder.event(pod, WARNING, "Failed", "no template")
                assert await recorder.flushed(10)
                writing.cancel()

        await Lease(client, "team-a", "ctl", identity="a").run(work)
        record = await client.get(resource_of("Lease"), "ctl", "team-a")
        assert record["spec"]["holderIdentity"] == ""
        events = await client.list(resource_of("Event"), "team-a")
        assert [(event["reason"], event["count"]) for event in events] == [("Failed", 2)]
