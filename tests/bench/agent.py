# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The node agent as a process: from its start to ready with many claims recorded, and what it costs when idle.

Only the agent's process is counted; the drivers and the API server are in this one. Clock time depends on what else the
machine does, CPU seconds hardly.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import pathlib
import statistics
import tempfile
import time
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.claims import ClaimState
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.cluster import resolve
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import options_from
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.server import ApiServer
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.settings import ServerSettings
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.agent_process import (
    AgentProcess,
    agent_process,
)
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import Node, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import device

Json = dict[str, t.Any]

RECORDED, STARTS = 1000, 3
CLAIMS, DRIVERS = 100, 4
SETTLE, IDLE = 10.0, 60.0
START_LIMIT, IDLE_LIMIT, MEMORY_LIMIT = 2.0, 0.5, 80.0
"""Seconds to ready, percent of a core, and MB."""


def run() -> t.Iterator[str]:
    """Measure, and give one line for each figure."""
    yield asyncio.run(_starts())
    for mode in ("manage", "observe"):
        yield from asyncio.run(_idle(mode))


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Resident memory of a process in MB."""
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _node(folder: str) -> Node:
    return Node(pathlib.Path(folder))


async def _starts() -> str:
    seconds, cpu = [], []
    with tempfile.TemporaryDirectory(prefix="dra-") as folder:
        node = _node(folder)
        claims = [
            recorded(f"u-{number}", f"c-{number}", f"dev-{number}", pods=[f"p-{number}"]) for number in range(RECORDED)
        ]
        # The API is followed, but away: nothing may be given back between two starts.
        followed = {"enabled": True, "kubeconfig": f"{folder}/none"}
        for _number in range(STARTS):
            node.manager_has(*claims)
            start = time.monotonic()
            async with agent_process(node, kubernetes=followed) as agent:
                await agent.until("ready daemon=")
                seconds.append(time.monotonic() - start)
                cpu.append(cpu_seconds(agent.child.pid))
    return (
        f"start to ready, {RECORDED} claims recorded: {statistics.median(seconds):.2f} s (target < {START_LIMIT:g} s), "
        f"{statistics.median(cpu):.2f} CPU-s, median of {STARTS}"
    )


async def _idle(mode: str) -> list[str]:
    """In the mode ``observe`` a kubelet's file has the claims."""
    async with contextlib.AsyncExitStack() as stack:
        node = _node(stack.enter_context(tempfile.TemporaryDirectory(prefix="dra-")))
        server = await stack.enter_async_context(ApiServer(ServerSettings()))
        server.write_kubeconfig(node.root / "kubeconfig")
        client = await stack.enter_async_context(
            KubeClient.connect(resolve(options_from({"kubeconfig": server.kubeconfig()})))
        )
        names = [f"driver-{number}.test.example" for number in range(DRIVERS)]
        for name in names:
            await stack.enter_async_context(node.driver(name, devices=CLAIMS))
        made = [
            await _pod(server, client, f"p-{number}", names[number % DRIVERS], f"dev-{number}")
            for number in range(CLAIMS)
        ]
        kubernetes = {"enabled": True, "kubeconfig": str(node.root / "kubeconfig")}
        claims = {"reconcile_period": 60}
        if mode == "observe":
            node.kubelet_has(*made)
            for claim in made:
                for driver, devices in claim.drivers.items():
                    node.spec(claim.uid, *(device.device_name for device in devices or ()), driver=driver)
        agent = await stack.enter_async_context(
            agent_process(node, node={"mode": mode}, kubernetes=kubernetes, claims=claims)
        )
        await agent.until("ready daemon=")
        for _number in range(CLAIMS if mode == "manage" else 0):
            await agent.until("pod prepared pod=")
        return await _watched(agent, mode)


async def _watched(agent: AgentProcess, mode: str) -> list[str]:
    pid = agent.child.pid
    await asyncio.sleep(SETTLE)
    start, before = time.monotonic(), cpu_seconds(pid)
    await asyncio.sleep(IDLE)
    share = 100 * (cpu_seconds(pid) - before) / (time.monotonic() - start)
    what = f"mode {mode}, {CLAIMS} claims prepared, {DRIVERS} drivers, API followed"
    return [
        f"idle, {what}: {share:.2f} % of a core over {IDLE:g} s (target < {IDLE_LIMIT:g} %)",
        f"memory, {what}: {memory(pid):.0f} MB resident (target < {MEMORY_LIMIT:g} MB)",
    ]


async def _pod(server: ApiServer, client: KubeClient, name: str, driver: str, of_driver: str) -> ClaimState:
    """A pod on the node with a claim of its own, allocated and reserved; what a kubelet records of it."""
    uses = [{"name": "c", "resourceClaimName": name}]
    container = {"name": "main", "image": "i", "resources": {"claims": [{"name": "c"}]}}
    spec: Json = {"nodeName": "node-1", "containers": [container], "resourceClaims": uses}
    pod = server.seed("v1", "pods", {"metadata": {"name": name}, "spec": spec}, "default")
    requests = [{"name": "r0", "exactly": {"deviceClassName": "any"}}]
    claim: Json = {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}
    uid = server.seed("resource.k8s.io/v1", "resourceclaims", claim, "default")["metadata"]["uid"]
    status: Json = {
        "reservedFor": [{"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}],
        "allocation": {"devices": {"results": [device(of_driver, driver)]}},
    }
    await client.patch(resource_of("ResourceClaim"), {"status": status}, name, "default", subresource="status")
    state = recorded(uid, name, of_driver, pods=[pod["metadata"]["uid"]], driver=driver)
    return dataclasses.replace(state, namespace="default")
