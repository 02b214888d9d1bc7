# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The playbook repair_checkpoint, really run: with a kubelet that refuses bad files, systemctl and an API server."""

from __future__ import annotations

import asyncio
import json
import pathlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.statefile import inspect, locate
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.cluster import resolve
from ansible_collections.nodeops.dra.plugins.module_utils.kube.node_scheduling import NODES, PODS
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import ConnectionOptions
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.server import ApiServer
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.settings import ServerSettings

from .fake_node import FakeNode
from .runner import Played

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BAD = "damaged/1.35-1.36/bad_checksum_zero.json"
GOOD = "1.35-1.36/multi_driver.json"
QUICK = {"repair_settle": 2, "repair_start_timeout": 30, "repair_target_version": "1.36"}


@pytest.fixture
def node_of(tmp_path: pathlib.Path) -> t.Iterator[t.Callable[..., FakeNode]]:
    """Makes the node, and ends its kubelet."""
    made: list[FakeNode] = []

    def make(*arguments: str, **options: str) -> FakeNode:
        made.append(FakeNode(tmp_path, *arguments, **options))
        return made[-1]

    yield make
    for node in made:
        node.end()


def variables(node: FakeNode, **more: t.Any) -> dict[str, t.Any]:
    """What every run is given."""
    return {**QUICK, "repair_kubelet_root": str(node.root), **more}


def status_of(node: FakeNode) -> str:
    return str(inspect(locate(kubelet_root=str(node.root)), target="1.36")["status"])


@pytest.mark.report("F042")
@pytest.mark.report("F048")
def test_a_kubelet_in_a_crash_loop_is_got_back_and_then_left_alone(node_of: t.Callable[..., FakeNode]) -> None:
    node = node_of(BAD)
    node.crash_loop()
    planned = node.play("repair_checkpoint", "--check", "--diff", **variables(node))
    assert planned.status == 0, planned.text
    assert node.file.read_bytes() == node.before
    assert node.calls == []
    told = planned.lines("Tell what is to be done")
    assert any("REFUSED, the kubelet does not start with it (Kubernetes 1.36)" in line for line in told), told
    assert any(line.startswith("  kubelet") and "activating (auto-restart), restarted" in line for line in told), told
    assert any(line.startswith("repair  1 -> 1") and "recompute_checksum" in line for line in told), told

    done = node.play("repair_checkpoint", **variables(node))
    assert done.status == 0, done.text
    assert status_of(node) == "sound"
    assert node.calls == ["stop", "start"]
    assert node.backups() == [node.before]
    assert any("active (running)" in line for line in done.lines("Tell what was done"))
    pid = node.unit["pid"]

    again = node.play("repair_checkpoint", **variables(node))
    assert (again.status, again.count("node-1", "changed")) == (0, 0), again.text
    assert again.lines("Tell what is to be done")[-1] == "Nothing is to be done."
    assert node.calls == ["stop", "start"]
    assert node.unit["pid"] == pid


@pytest.mark.parametrize("crashing", [True, False], ids=["crash loop", "stopped"])
def test_a_kubelet_that_does_not_stay_up_leaves_the_node_as_it_was(
    crashing: bool, node_of: t.Callable[..., FakeNode]
) -> None:
    node = node_of(BAD, behaviour="refuses_all")
    if crashing:
        node.crash_loop()
    done = node.play("repair_checkpoint", **variables(node, repair_start_timeout=2))
    assert done.status == 2
    assert node.file.read_bytes() == node.before
    assert node.file.stat().st_mode & 0o777 == 0o600
    assert node.unit["wanted"] is crashing
    said = done.task("Tell what failed and how it is now")
    assert "node-1 was not repaired" in said
    assert "Wait until it is active" in said
    assert "the service is activating (auto-restart)" in said, said
    assert "The node is as it was found" in said
    assert "the old state file was put back" in said


def test_a_kubelet_that_does_not_stop_is_left_running_with_its_file(node_of: t.Callable[..., FakeNode]) -> None:
    node = node_of(GOOD)
    node.crash_loop()
    node.set(behaviour="ignores_stop")
    drop = [{"namespace": "default"}]
    done = node.play("repair_checkpoint", **variables(node, repair_drop_claims=drop))
    assert done.status == 2
    assert node.file.read_bytes() == node.before
    assert node.unit["wanted"]
    said = done.task("Tell what failed and how it is now")
    assert "Job for kubelet.service canceled" in said
    assert "the state file is as it was" in said


def test_the_newest_good_copy_comes_back(node_of: t.Callable[..., FakeNode]) -> None:
    node = node_of("damaged/1.35-1.36/truncated_half.json")
    good = (pathlib.Path(__file__).parents[1] / "fixtures" / "checkpoint" / GOOD).read_bytes()
    ring = node.folder / "ring"
    ring.mkdir()
    (ring / "dra_manager_state.20260101T000000Z").write_bytes(good)
    given = variables(node, repair_state="restored", repair_ring_directory=str(ring))
    done = node.play("repair_checkpoint", **given)
    assert done.status == 0, done.text
    assert node.file.read_bytes() == good
    assert node.calls == ["start"], "it did not run"
    again = node.play("repair_checkpoint", **given)
    assert (again.status, again.count("node-1", "changed")) == (0, 0), again.text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"repair_drain": "some"}, "repair_drain=some (expected none, claims or all)", id="choice"),
        pytest.param({"repair_rebuild": True}, "repair_kubeconfig=nothing", id="no API"),
        pytest.param({"repair_kubelet_unit": "kublet"}, "has no unit kublet (found not-found", id="unit"),
    ],
)
def test_wrong_variables_fail_early(given: dict[str, t.Any], said: str, node_of: t.Callable[..., FakeNode]) -> None:
    node = node_of(BAD)
    done = node.play("repair_checkpoint", **variables(node, **given))
    assert done.status == 2
    assert said in done.text
    assert "Nothing was changed." in done.text
    assert node.file.read_bytes() == node.before
    assert node.calls == []


async def seed(client: KubeClient) -> None:
    """node-1 with a pod that runs and has a claim, which the API knows."""
    claims = resource_of("ResourceClaim")
    results = [{"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-7"}]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r-1", "controller": True}
    await client.create(NODES, {"metadata": {"name": "node-1"}})
    pod = {
        "metadata": {"name": "training-0", "ownerReferences": [owner]},
        "spec": {
            "nodeName": "node-1",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "x"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "training"}],
        },
    }
    uid = (await client.create(PODS, pod, "team-a"))["metadata"]["uid"]
    await client.patch(PODS, {"status": {"phase": "Running"}}, "training-0", "team-a", subresource="status")
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    await client.create(claims, {"metadata": {"name": "training"}, "spec": spec}, "team-a")
    status = {
        "allocation": {"devices": {"results": results}},
        "reservedFor": [{"resource": "pods", "name": "training-0", "uid": uid}],
    }
    await client.patch(claims, {"status": status}, "training", "team-a", subresource="status")


async def with_api(node: FakeNode, **given: t.Any) -> tuple[Played, list[str], bool]:
    """Run the playbook beside an API server: how it ended, what was written to the API, whether node-1 is cordoned."""
    async with ApiServer(ServerSettings(namespaces=("team-a",))) as server:
        server.write_kubeconfig(node.folder / "admin.conf")
        config = json.loads((node.folder / "admin.conf").read_text())
        url, token = config["clusters"][0]["cluster"]["server"], config["users"][0]["user"]["token"]
        node.set(api={"url": url, "token": token, "node": "node-1"})
        async with KubeClient.connect(resolve(ConnectionOptions(kubeconfig=server.kubeconfig()), {})) as client:
            await seed(client)
            server.recorder.reset()
            given = variables(node, repair_kubeconfig=str(node.folder / "admin.conf"), **given)
            done = await asyncio.to_thread(lambda: node.play("repair_checkpoint", **given))
            writes = [f"{one.verb} {one.resource}" for one in server.recorder.last if one.verb in ("patch", "create")]
            spec = (await client.get(NODES, "node-1"))["spec"]
        return done, writes, bool(spec.get("unschedulable"))


@pytest.mark.asyncio
@pytest.mark.report("F052")
@pytest.mark.report("F099")
async def test_with_the_api_the_node_is_cordoned_drained_rebuilt_and_uncordoned(
    node_of: t.Callable[..., FakeNode],
) -> None:
    node = node_of(BAD)
    node.crash_loop()
    done, writes, cordoned = await with_api(node, repair_rebuild=True)
    assert done.status == 0, done.text
    names = [claim["name"] for claim in inspect(locate(kubelet_root=str(node.root)))["claims"]]
    assert names == ["claim-1", "training"], done.text
    assert writes == ["patch nodes", "patch nodes/status", "patch nodes"]
    assert not cordoned


@pytest.mark.asyncio
async def test_what_was_cordoned_takes_pods_again_when_the_repair_fails(node_of: t.Callable[..., FakeNode]) -> None:
    node = node_of(BAD, behaviour="refuses_all")
    done, writes, cordoned = await with_api(node, repair_start_timeout=1, repair_drain="claims")
    assert done.status == 2
    assert "the node takes pods again" in done.task("Tell what failed and how it is now"), done.text
    assert writes == ["patch nodes", "create pods/eviction", "patch nodes"]
    assert not cordoned
