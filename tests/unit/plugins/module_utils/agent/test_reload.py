# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""SIGHUP: what an agent takes over while it works, and what it says needs a restart."""

from __future__ import annotations

import json
import re
import signal

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.agent_process import (
    AgentProcess,
    agent_process,
    settings_of,
)
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Json, Node, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.observing import (
    Watcher,
    kubelet_writes,
    observing,
)
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.test_with_api import cluster
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim


async def reload(agent: AgentProcess, until: str, /, **sections: Json) -> str:
    """Write other settings and say so; the line of the log that has ``until``."""
    config = agent.node.root / "agent.yml"
    config.write_text(json.dumps(settings_of(agent.node, **sections)), encoding="utf-8")
    agent.child.send_signal(signal.SIGHUP)
    return await agent.until(until)


@pytest.mark.asyncio
async def test_claims_are_prepared_as_the_new_settings_say(node: Node) -> None:
    async with node.driver() as driver, agent_process(node, claims={"cdi_policy": "off"}) as agent:
        await agent.until("ready daemon=")
        driver.faults.add("no_cdi")
        async with agent.client() as client:
            first = await client.change(node.request("prepared", claim("one"), holder="unit"))
            told = await reload(agent, "settings reloaded", claims={"cdi_policy": "error", "retry_limit": 0.5})
            with pytest.raises(DraError) as refused:
                await client.change(node.request("prepared", claim("two"), holder="unit"))
            codes = [one["code"] for one in await client.findings()]
            await reload(agent, "settings reloaded", claims={"cdi_policy": "off"})
            after = [one["code"] for one in await client.findings()]
    assert first["changed"]
    assert "claims.cdi_policy" in told
    assert "claims.retry_limit" in told
    assert "CDI" in refused.value.message
    assert "cdi_unresolved" in codes
    assert "cdi_unresolved" not in after


@pytest.mark.asyncio
async def test_pods_are_tried_again_as_the_new_settings_say(node: Node) -> None:
    async with cluster() as api, node.driver() as driver:
        path = node.root / "kubeconfig"
        api.server.write_kubeconfig(path)
        kubernetes: Json = {"enabled": True, "kubeconfig": str(path)}
        async with agent_process(node, kubernetes=kubernetes, claims={"retry_limit": 100}) as agent:
            await agent.until("ready daemon=")
            await api.pod("one", "no-such-claim")
            before = await agent.until("pod cannot go on pod=default/one")
            await reload(agent, "settings reloaded", kubernetes=kubernetes, claims={"retry_limit": 0.25})
            await api.pod("two", "no-such-claim")
            after = await agent.until("pod cannot go on pod=default/two")
            driver.faults.add("hang")
            await reload(agent, "settings reloaded", kubernetes=kubernetes, claims={"timeout": 0.5})
            await api.claim("c", await api.pod("three", "c"))
            late = await agent.until("DEADLINE_EXCEEDED")
    assert "retry_in=1.0 " in before
    assert "retry_in=0.2 " in after
    assert GPU in late
    assert float(re.findall(r"after (\d+\.\d) s", late)[0]) < 30  # the default is 45


@pytest.mark.asyncio
async def test_what_needs_a_restart_is_named_and_stays(node: Node) -> None:
    async with agent_process(node) as agent:
        await agent.until("ready daemon=")
        await reload(agent, "settings reloaded changed=none", node={"name": "node-2"})
        told = await agent.until("takes effect only by a restart")
        await reload(agent, "reload failed, the former settings stay in use", claims={"timeout": -1})
        await agent.get_until("/readyz", 200)
        async with agent.client() as client:
            assert (await client.version())["mode"] == "manage"
    assert "node.name" in told


@pytest.mark.asyncio
async def test_the_ring_shrinks_at_once(node: Node) -> None:
    ring = node.state_directory / "ring"
    async with observing(node) as agent, agent.client() as client:
        watcher = Watcher(client)
        for number in range(3):
            kubelet_writes(node, node.manager_has(recorded(f"u-{number}")).read_bytes())
            await watcher.until("ring_copy")
        assert len(list(ring.glob("dra_manager_state*"))) == 3
        limits = {"copies": 1, "settle": 0.05, "interval": 0.1}
        told = await reload(agent, "settings reloaded", node={"mode": "observe"}, ring=limits)
        left = list(ring.glob("dra_manager_state*"))
    assert "ring.copies" in told
    assert [b"u-2" in path.read_bytes() for path in left] == [True]
