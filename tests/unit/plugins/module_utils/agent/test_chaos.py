# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What is around the agent fails for a long time: it stays up, tells, and goes on by itself."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import sys
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.node_pods import NodePods
from ansible_collections.nodeops.dra.plugins.module_utils.agent.state_recovery import keep_state_usable
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.lock import take_lock
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import options_from
from ansible_collections.nodeops.dra.tests.soak.agent_proxy import Proxy
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.agent_process import MODULE, agent_process
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.managed import managed
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import Node, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.test_with_api import Cluster, cluster
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim

# The API server


@contextlib.asynccontextmanager
async def followed(api: Cluster) -> t.AsyncIterator[tuple[NodePods, Proxy]]:
    """The pods of a node, through a proxy."""
    async with Proxy(int(api.server.url.rpartition(":")[2])) as proxy:
        config = api.server.kubeconfig()
        config["clusters"][0]["cluster"]["server"] = f"http://127.0.0.1:{proxy.own_port}"
        pods = NodePods("node-1", options_from({"kubeconfig": config}))
        work = asyncio.create_task(pods.run())
        while not pods.synced:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        try:
            yield pods, proxy
        finally:
            work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work


@pytest.mark.report("F068", "F069")
@pytest.mark.looptime
@pytest.mark.asyncio
async def test_the_api_server_is_gone_for_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    async with cluster() as api, followed(api) as (pods, proxy):
        uid = await api.pod("p", "c")
        while pods.store.by_uid(uid) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        await proxy.cut()
        await asyncio.sleep(30)
        assert "no news of the pods of node node-1" in pods.problem()
        caplog.set_level(logging.INFO)
        await asyncio.sleep(3600)
        assert pods.lag >= 3600
        assert [one.code for one in pods.findings()] == ["api_not_followed"]
        assert (pods.active(), pods.synced) == ({uid}, True), "nothing is taken for gone"
        assert len(caplog.records) < 40
        await proxy.mend()
        before = proxy.connections
        late = await api.pod("late", "c2")
        await asyncio.sleep(60)  # twice the longest pause between two tries
        assert pods.store.by_uid(late) is not None
        assert (pods.problem(), pods.findings()) == ("", [])
        assert proxy.connections - before < 10


@pytest.mark.report("F068")
@pytest.mark.looptime
@pytest.mark.asyncio
async def test_connections_to_the_api_server_fall_silent() -> None:
    async with cluster() as api, followed(api) as (pods, proxy):
        proxy.silence()
        late = await api.pod("late", "c")
        await asyncio.sleep(180)
        assert "no news of the pods of node node-1" in pods.problem()
        assert pods.store.by_uid(late) is None
        await proxy.mend()
        await asyncio.sleep(120)
        assert pods.store.by_uid(late) is not None
        assert pods.problem() == ""


# The state


async def console(node: Node, *words: str) -> str:
    """What the command line client writes to the standard error."""
    command = (sys.executable, "-m", MODULE, "ctl", *words, "--socket", str(node.root / "run" / "agent.sock"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    return (await child.communicate())[1].decode()


@pytest.mark.report("F046")
@pytest.mark.asyncio
async def test_a_disk_that_has_room_again(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a pod that needs it: the one that found the disk full has gone meanwhile."""

    def full(_fd: int) -> t.NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with cluster() as api, node.driver(), managed(node, api) as agent:
        recovered = asyncio.Event()
        work = asyncio.create_task(keep_state_usable(agent.place, recovered.set, period=0.05))
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            await api.claim("c", await api.pod("p", "c"))
            assert "ENOSPC" in (await agent.event("claim_failed", "ENOSPC")).text
            await agent.event("state_unusable")
            await agent.delete("Pod", "p")
            await agent.until(lambda: not agent.keeper.pods["waiting"])
            assert agent.place.manager.degraded is not None
        await agent.event("state_usable")
        await recovered.wait()
        assert (agent.place.manager.degraded, agent.place.manager.findings()) == (None, [])
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


@pytest.mark.report("F048")
@pytest.mark.asyncio
async def test_a_damaged_state_file_is_mended_while_the_agent_runs(node: Node) -> None:
    path = node.manager_has(recorded(pods=["holder:unit"]))
    sound = path.read_bytes()
    path.write_bytes(sound[:-9])
    async with node.driver(), agent_process(node) as agent:
        await agent.until("ready daemon=")
        assert "nodeops.dra.checkpoint" in await agent.get_until("/readyz?verbose", 503)
        assert "nodeops.dra.checkpoint" in (await agent.get("/metrics"))[1]
        told = await console(node, "claims")
        assert "nodeops.dra.checkpoint" in told, "an empty list alone would mislead"
        with take_lock(path, timeout=10):  # as nodeops.dra.checkpoint does
            assert path.read_bytes() == sound[:-9]
            path.write_bytes(sound)
        await agent.until("the state can be read and written again claims=1")
        await agent.get_until("/readyz?verbose", 200)
        async with agent.client() as client:
            assert [one["name"] for one in await client.claims()] == ["c1"]
            assert await client.findings() == []
        assert await agent.end() == 0


# Drivers


@pytest.mark.report("F018")
@pytest.mark.asyncio
async def test_health_tells_of_a_driver_that_hangs(node: Node) -> None:
    driver = node.driver()
    driver.faults.add("hang")
    async with driver, agent_process(node, claims={"timeout": 1}) as agent:
        await agent.until("ready daemon=")
        async with agent.client() as client:
            with contextlib.suppress(Exception):
                await client.change(node.request("prepared", claim(), holder="unit", timeout=1.0))
            assert [one["code"] for one in await client.findings()] == ["operation_failing"]
            ready = await agent.get_until("/readyz?verbose", 200, "[!]claims degraded")
            assert "prepare of team-a/c1" in ready
            driver.faults.clear()
            await client.change(node.request("prepared", claim(), holder="unit"))
        await agent.get_until("/readyz?verbose", 200, "[+]claims ok")
        assert await agent.end() == 0
