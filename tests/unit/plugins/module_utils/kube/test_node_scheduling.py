# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Cordon, drain, uncordon and waiting for a node, on the embedded API server."""

from __future__ import annotations

import asyncio
import contextlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.cluster import resolve
from ansible_collections.nodeops.dra.plugins.module_utils.kube.node_scheduling import LEASES, NODES, PODS, schedule
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import ConnectionOptions
from ansible_collections.nodeops.dra.plugins.module_utils.kube.pods_of_node import DrainRules, plan_drain
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.faults import Fault
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.server import ApiServer
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.settings import ServerSettings

Json = dict[str, t.Any]

OWNED = {
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}]
}
CLAIMED = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c1"}]}


def pod(name: str, *, meta: Json | None = None, **spec: t.Any) -> Json:
    """A pod on node-1 that ends at once when it is told to."""
    containers = [{"name": "c", "image": "x"}]
    return {
        "metadata": {"name": name, **(OWNED if meta is None else meta)},
        "spec": {"nodeName": "node-1", "containers": containers, "terminationGracePeriodSeconds": 0, **spec},
    }


class World:
    """An API server with node-1."""

    def __init__(self, server: ApiServer, client: KubeClient) -> None:
        self.server, self.client = server, client

    async def add(self, *pods: Json) -> None:
        for one in pods:
            await self.client.create(PODS, one, "team-a")

    async def bring(self, state: str, *, check: bool = False, **options: t.Any) -> Json:
        given = {
            "kubeconfig": self.server.kubeconfig(),
            "name": "node-1",
            "state": state,
            "timeout": 20.0,
            "heartbeat": None,
            "claims_only": False,
            "force": False,
            "delete_emptydir_data": False,
            "grace_period": None,
            **options,
        }
        return await schedule(given, check=check, pause=0.01)

    async def pods(self) -> list[str]:
        return sorted(one["metadata"]["name"] for one in await self.client.list(PODS))

    async def unschedulable(self) -> bool:
        node = await self.client.get(NODES, "node-1")
        return bool(node["spec"].get("unschedulable"))

    async def heartbeat(self, when: str, ready: str = "True") -> None:
        conditions = [{"type": "Ready", "status": ready, "lastHeartbeatTime": when, "message": "kubelet says so"}]
        await self.client.patch(NODES, {"status": {"conditions": conditions}}, "node-1", subresource="status")


@contextlib.asynccontextmanager
async def world() -> t.AsyncIterator[World]:
    async with ApiServer(ServerSettings(namespaces=("team-a", "kube-node-lease"))) as server:
        access = resolve(ConnectionOptions(kubeconfig=server.kubeconfig()), {})
        async with KubeClient.connect(access) as client:
            await client.create(NODES, {"metadata": {"name": "node-1"}})
            yield World(server, client)


@pytest.mark.asyncio
@pytest.mark.report("F080")
async def test_cordon_and_uncordon_say_the_same_in_check_mode_and_change_once() -> None:
    async with world() as it:
        for state, wanted in (("cordoned", True), ("uncordoned", False)):
            planned = await it.bring(state, check=True)
            assert await it.unschedulable() is not wanted
            done = await it.bring(state)
            assert await it.unschedulable() is wanted
            assert (planned["changed"], done["changed"]) == (True, True)
            assert planned["after"] == done["after"]
            assert (await it.bring(state))["changed"] is False
            assert (await it.bring(state, check=True))["changed"] is False


@pytest.mark.asyncio
@pytest.mark.report("F083")
async def test_a_drain_evicts_all_but_static_pods_and_daemons() -> None:
    daemon = {"ownerReferences": [{**OWNED["ownerReferences"][0], "kind": "DaemonSet"}]}
    static = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    async with world() as it:
        await it.add(pod("a"), pod("b"), pod("daemon", meta=daemon), pod("static", meta=static))
        planned = await it.bring("drained", check=True)
        assert await it.pods() == ["a", "b", "daemon", "static"]
        done = await it.bring("drained")
        assert planned == {**done, "unschedulable": True}
        assert [one["name"] for one in done["evicted"]] == ["a", "b"]
        assert {one["name"]: one["reason"] for one in done["left"]} == {
            "daemon": "pod of a DaemonSet",
            "static": "static pod",
        }
        assert await it.pods() == ["daemon", "static"]
        assert await it.unschedulable()
        assert it.server.recorder.count("create", "pods/eviction") == 2
        assert (await it.bring("drained"))["changed"] is False


@pytest.mark.asyncio
async def test_a_drain_of_pods_with_claims_leaves_the_others() -> None:
    async with world() as it:
        await it.add(pod("plain"), pod("gpu", **CLAIMED))
        done = await it.bring("drained", claims_only=True)
        assert [one["name"] for one in done["evicted"]] == ["gpu"]
        assert await it.pods() == ["plain"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("one", "option"),
    [
        pytest.param(pod("bare", meta={}), "force", id="no controller"),
        pytest.param(pod("bare", volumes=[{"name": "v", "emptyDir": {}}]), "delete_emptydir_data", id="emptyDir"),
    ],
)
async def test_what_would_be_lost_is_refused_before_anything_is_changed(one: Json, option: str) -> None:
    async with world() as it:
        await it.add(pod("a"), one)
        with pytest.raises(DraError, match=rf"nothing was changed: team-a/bare: .*\({option}\)"):
            await it.bring("drained")
        assert await it.pods() == ["a", "bare"]
        assert not await it.unschedulable()
        await it.bring("drained", **{option: True})
        assert await it.pods() == []


@pytest.mark.asyncio
async def test_a_budget_is_respected_until_it_allows_the_eviction() -> None:
    async with world() as it:
        await it.add(pod("a"))
        it.server.faults.add(Fault("throttle", verb="create", resource="pods/eviction", seconds=0, times=3))
        await it.bring("drained")
        assert await it.pods() == []
        assert it.server.recorder.count("create", "pods/eviction") == 4


@pytest.mark.asyncio
@pytest.mark.report("F083")
async def test_a_drain_that_a_budget_holds_up_ends_in_time_and_names_the_pods() -> None:
    async with world() as it:
        await it.add(pod("a"))
        it.server.faults.add(Fault("throttle", verb="create", resource="pods/eviction", seconds=0))
        with pytest.raises(DraError, match=r"after 0.2 seconds, 1 of 1 pods are still there: team-a/a \(") as caught:
            await it.bring("drained", timeout=0.2)
        assert "stays cordoned" in caught.value.hint
        assert await it.unschedulable()


@pytest.mark.asyncio
@pytest.mark.report("F092")
async def test_a_pod_that_was_made_anew_under_its_name_is_gone() -> None:
    async with world() as it:
        await it.add(pod("a", terminationGracePeriodSeconds=30))

        async def replace() -> None:
            terminating = False
            while not terminating:
                found = await it.client.get(PODS, "a", "team-a")
                terminating = "deletionTimestamp" in found["metadata"]
            await it.client.delete(PODS, "a", "team-a", grace_period_seconds=0)
            await it.add(pod("a"))

        async with asyncio.TaskGroup() as group:
            group.create_task(replace())
            group.create_task(it.bring("drained"))
        assert await it.pods() == ["a"]


@pytest.mark.asyncio
async def test_ready_waits_for_a_kubelet_that_has_spoken_since() -> None:
    async with world() as it:
        await it.heartbeat("2026-01-01T00:00:00Z")
        before = await it.bring("cordoned")
        assert (before["ready"], before["heartbeat"]) == (True, "2026-01-01T00:00:00Z")
        with pytest.raises(DraError, match="it has not said anything since"):
            await it.bring("ready", heartbeat=before["heartbeat"], timeout=0.1)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(it.bring("ready", heartbeat=before["heartbeat"]))
            await it.heartbeat("2026-01-01T00:01:00Z")
        assert waiting.result()["ready"]
        assert not waiting.result()["changed"]
        lease = {"metadata": {"name": "node-1"}, "spec": {"renewTime": "2026-01-01T00:02:00.000000Z"}}
        await it.client.create(LEASES, lease, "kube-node-lease")
        assert (await it.bring("ready"))["heartbeat"] == "2026-01-01T00:02:00.000000Z"


@pytest.mark.asyncio
async def test_a_node_that_does_not_get_ready_is_told_with_the_words_of_its_kubelet() -> None:
    async with world() as it:
        await it.heartbeat("2026-01-01T00:00:00Z", "False")
        with pytest.raises(DraError, match=r"was not ready after 0\.1 seconds: Ready is False: kubelet says so"):
            await it.bring("ready", timeout=0.1)
        assert (await it.bring("ready", check=True))["ready"] is False


@pytest.mark.asyncio
async def test_an_unknown_node_is_told() -> None:
    async with world() as it:
        with pytest.raises(DraError, match="knows no node 'node-9'"):
            await it.bring("cordoned", name="node-9")


def test_finished_pods_need_no_option() -> None:
    done = {**pod("bare", meta={"name": "bare"}), "status": {"phase": "Succeeded"}}
    assert [one.name for one in plan_drain([done], DrainRules()).evict] == ["bare"]
