# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""An agent that observes and follows the API, as a process."""

from __future__ import annotations

import asyncio

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.observe_settings import ObserveSettings, RingSettings
from ansible_collections.nodeops.dra.plugins.module_utils.agent.settings import SCHEMA
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.settings import default_settings
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import Node, codes, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.observing import observing
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.test_with_api import cluster


def test_the_settings_fit_their_types() -> None:
    settings = default_settings(SCHEMA)
    settings.section(ObserveSettings, "observe")
    settings.section(RingSettings, "ring")


@pytest.mark.asyncio
async def test_findings_say_what_the_api_knows(node: Node) -> None:
    async with cluster() as api:
        path = node.root / "kubeconfig"
        api.server.write_kubeconfig(path)
        node.kubelet_has(recorded())
        kubernetes = {"enabled": True, "kubeconfig": str(path)}
        async with observing(node, kubernetes=kubernetes) as agent, agent.client() as client:
            while "claim_orphaned" not in codes({"findings": await client.findings()}):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            version = await client.version()
    assert version["node_name"] == "node-1"


@pytest.mark.asyncio
async def test_an_api_that_is_away_is_a_finding_and_the_agent_is_ready(node: Node) -> None:
    kubernetes = {"enabled": True, "kubeconfig": str(node.root / "nowhere")}
    async with observing(node, kubernetes=kubernetes) as agent, agent.client() as client:
        assert "api_not_followed" in codes({"findings": await client.findings()})
        ready = await agent.get_until("/readyz?verbose", 200)
    assert "[!]kubernetes degraded" in ready
