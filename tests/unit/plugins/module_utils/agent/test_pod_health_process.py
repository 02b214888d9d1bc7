# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The agent as a process that keeps the health of devices in the status of pods."""

from __future__ import annotations

import asyncio
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.rights import ADMIN
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.agent_process import (
    AgentProcess,
    agent_process,
)
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.pod_health_world import (
    AGENT,
    POD,
    World,
    health_world,
    report,
    shown,
)

DENIED = "the health of devices is not written, rights are missing"
HEALTHY = {"main claim:gpu": {"0": "Healthy"}}
SICK = {"main claim:gpu": {"0": "Unhealthy too hot"}}


def kubernetes(world: World, **more: t.Any) -> dict[str, t.Any]:
    """Settings of an agent with its own account."""
    path = world.node.root / "kubeconfig"
    world.cluster.server.write_kubeconfig(path, AGENT)
    return {"enabled": True, "kubeconfig": str(path), **more}


async def until(world: World, wanted: dict[str, dict[str, str]]) -> None:
    """Wait until the pod's status has this in the API."""
    while shown(await world.cluster.client.get(POD, "p", "default")) != wanted:  # noqa: ASYNC110
        await asyncio.sleep(0.05)


async def told(agent: AgentProcess, *texts: str) -> dict[str, str]:
    """Read the log until it has a line for each of the texts, in any order; those lines."""
    found: dict[str, str] = {}
    while len(found) < len(texts):
        line = await agent.until("")
        found.update({text: line for text in texts if text in line})
    return found


@pytest.mark.asyncio
async def test_health_goes_into_the_status_also_after_a_restart(node: Node) -> None:
    async with health_world(node) as world, world.driver() as driver:
        settings = kubernetes(world, publish_health=True)
        report(driver, "UNHEALTHY", "too hot")
        uid = await world.pod("p", {"main": ["gpu"]})
        await world.claim("gpu", uid)
        async with agent_process(node, kubernetes=settings) as agent:
            await agent.until("ready daemon=")
            await until(world, SICK)
            metrics = await agent.get_until("/metrics", 200, 'nodeops_dra_pod_health_updates_total{result="success"}')
            assert 'result="failure"' not in metrics
            assert await agent.end() == 0
        report(driver, "HEALTHY")
        async with agent_process(node, kubernetes=settings) as agent:
            await agent.until("ready daemon=")
            await until(world, HEALTHY)
            assert await agent.end() == 0
        managers = (await world.cluster.client.get(POD, "p", "default"))["metadata"]["managedFields"]
        assert "nodeops-dra-agent" in [one["manager"] for one in managers]


@pytest.mark.asyncio
async def test_without_the_right_it_is_a_finding_and_the_agent_works(node: Node) -> None:
    async with health_world(node) as world, world.driver() as driver:
        world.cluster.server.settings.tokens[AGENT] = ADMIN.without("patch", "pods/status")
        report(driver, "UNHEALTHY", "too hot")
        uid = await world.pod("p", {"main": ["gpu"]})
        await world.claim("gpu", uid)
        async with agent_process(node, kubernetes=kubernetes(world, publish_health=True)) as agent:
            lines = await told(agent, DENIED, "pod prepared")
            async with agent.client() as client:
                found = {one["code"]: one for one in await client.findings()}
                claims = await client.claims()
            await agent.get_until("/metrics", 200, 'nodeops_dra_pod_health_updates_total{result="denied"} 1.0')
            await agent.get_until("/readyz", 200)
            assert await agent.end() == 0
    assert "pods/status" in lines[DENIED]
    assert found["pod_health_denied"]["severity"] == "warning"
    assert [one["status"] for one in claims] == ["prepared"]
    assert "Traceback" not in "\n".join(agent.lines)


@pytest.mark.asyncio
async def test_nothing_is_written_unless_it_is_asked_for(node: Node) -> None:
    async with health_world(node) as world, world.driver() as driver:
        report(driver, "UNHEALTHY", "too hot")
        uid = await world.pod("p", {"main": ["gpu"]})
        await world.claim("gpu", uid)
        async with agent_process(node, kubernetes=kubernetes(world)) as agent:
            told = dict.fromkeys(("pod prepared", "health=Unhealthy"), False)
            while not all(told.values()):
                line = await agent.until("")
                told = {text: seen or text in line for text, seen in told.items()}
            assert await agent.end() == 0
        assert shown(await world.cluster.client.get(POD, "p", "default")) == {}
        assert world.cluster.server.recorder.count("patch", "pods/status") == 1, "that of the test"
