# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""An agent that cannot work at all says why in one line and has an exit status for it."""

from __future__ import annotations

import os
import shutil
import socket

import pytest
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.agent_process import (
    AgentProcess,
    agent_process,
    settings_of,
)
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import Node

pytestmark = [pytest.mark.asyncio, pytest.mark.report("F105")]


async def refusal(agent: AgentProcess) -> tuple[int, str]:
    """The exit status, and the one line that says why."""
    status = await agent.ended()
    assert not any("Traceback" in line for line in agent.lines), agent.lines
    critical = [line for line in agent.lines if " CRITICAL " in line]
    assert len(critical) == 2, critical
    assert f"exit_code={status}" in critical[1]
    return status, critical[0]


async def test_the_port_is_taken(node: Node) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with agent_process(node, http={"port": port}) as agent:
            status, why = await refusal(agent)
    assert status == 69
    assert f"127.0.0.1 port {port}" in why
    assert "http.port" in why


async def test_another_agent_has_the_socket(node: Node) -> None:
    other = {"state_directory": str(node.root / "other")}
    async with agent_process(node) as first:
        await first.until("ready daemon=")
        async with agent_process(node, node=other, life={"run_directory": str(node.root / "run2")}) as second:
            status, why = await refusal(second)
        async with first.client() as client:
            assert (await client.version())["state_directory"] == str(node.state_directory), "it was left alone"
    assert status == 69
    assert settings_of(node)["node"]["socket"] in why


async def test_another_agent_runs(node: Node) -> None:
    async with agent_process(node) as first:
        await first.until("ready daemon=")
        async with agent_process(node) as second:
            status, why = await refusal(second)
    assert status == 80
    assert str(first.child.pid) in why


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root needs setpriv to have no rights")
async def test_the_state_directory_may_not_be_made(node: Node) -> None:
    closed = node.root / "closed"
    closed.mkdir(mode=0o500)
    # For root modes count only without these two capabilities.
    without = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
    async with agent_process(node, prefix=without, node={"state_directory": str(closed / "state")}) as agent:
        status, why = await refusal(agent)
    assert status == 77
    assert str(closed / "state") in why
    assert "EACCES" in why
