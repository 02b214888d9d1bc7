# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The modules' work beside a running agent: through it where it works on the same files, else with the lock."""

from __future__ import annotations

import os
import socket
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.claim_look import look
from ansible_collections.nodeops.dra.plugins.module_utils.agent.claim_task import perform
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.lock import LockHeldError
from ansible_collections.nodeops.dra.plugins.module_utils.manager.manager import DraManager
from ansible_collections.nodeops.dra.plugins.module_utils.manager.opening import Settings
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import Json, Node, codes
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.running_agent import RunningAgent, running
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim


async def task(node: Node, agent: RunningAgent, state: str, *claims: Json, **changes: t.Any) -> Json:
    """What a task of nodeops.dra.claim returns that knows the agent's socket."""
    options = {"agent_socket": str(agent.socket), **changes.pop("options", {})}
    check = changes.pop("check", False)
    return await perform(node.request(state, *claims, **changes), options, check=check)


async def look_at(node: Node, agent: RunningAgent) -> Json:
    """What a task of nodeops.dra.claim_info returns."""
    options: Json = {
        "state_directory": str(node.state_directory),
        "cdi_directories": [str(node.cdi)],
        "registry_directory": None,
        "with_api": False,
        "agent_socket": str(agent.socket),
    }
    return await look(str(node.root), options)


@pytest.mark.report("F080", "F091")
@pytest.mark.asyncio
async def test_the_agent_does_it_and_both_report_the_same(node: Node) -> None:
    async with node.driver(), running(node) as agent:
        planned = await task(node, agent, "prepared", claim(), check=True)
        done = await task(node, agent, "prepared", claim())
        again = await task(node, agent, "prepared", claim())
        gone = await task(node, agent, "unprepared", claim())
        gone_again = await task(node, agent, "unprepared", claim())
    results = (planned, done, again, gone, gone_again)
    assert [one["via"] for one in results] == ["agent"] * 5
    assert [one["changed"] for one in results] == [True, True, False, True, False]
    assert (planned["calls"], planned["before"], planned["after"]) == (done["calls"], done["before"], done["after"])


@pytest.mark.asyncio
async def test_without_an_agent_the_lock_is_taken(node: Node) -> None:
    async with running(node) as agent:
        pass
    with socket.socket(socket.AF_UNIX) as left:  # as a killed agent leaves it
        left.bind(str(agent.socket))
    async with node.driver():
        assert (await task(node, agent, "prepared", claim()))["via"] == "lock"
        assert (await look_at(node, agent))["via"] == "files"


@pytest.mark.asyncio
async def test_an_agent_for_other_files_is_left_alone(node: Node) -> None:
    elsewhere = str(node.root / "elsewhere")
    async with node.driver(), running(node) as agent:
        assert (await task(node, agent, "prepared", claim(), state_directory=elsewhere))["via"] == "lock"
        assert await agent.client.claims() == []


@pytest.mark.asyncio
async def test_nobody_writes_beside_an_agent(node: Node) -> None:
    async with running(node) as agent:
        with pytest.raises(LockHeldError, match=f"pid {os.getpid()}"):
            await DraManager.open(Settings(str(node.state_directory), lock_timeout=0.0), agent.place.registry)


@pytest.mark.parametrize("option", ["kubelet_root", "registry_directory", "cdi_directories"])
@pytest.mark.asyncio
async def test_directories_that_contradict_the_agent_are_refused(option: str, node: Node) -> None:
    other: t.Any = ["/other"] if option == "cdi_directories" else "/other"
    async with node.driver(), running(node) as agent:
        with pytest.raises(DraError, match=f"with {option} .* and the task has /other") as caught:
            await task(node, agent, "prepared", claim(), options={option: other})
        assert caught.value.facts["expected"] == other
        same = {"kubelet_root": f"{node.root}/", "cdi_directories": [str(node.cdi)]}
        assert (await task(node, agent, "prepared", claim(), options=same))["via"] == "agent"


@pytest.mark.asyncio
async def test_conformance_is_checked_beside_the_agent(node: Node) -> None:
    async with node.driver(), running(node) as agent:
        found = await task(node, agent, "checked", claim())
    assert (found["via"], [one["ok"] for one in found["conformance"]]) == ("lock", [True])


@pytest.mark.report("F014")
@pytest.mark.asyncio
async def test_claim_info_tells_what_keeps_failing(node: Node) -> None:
    async with node.driver() as driver, running(node) as agent:
        await task(node, agent, "prepared", claim())
        driver.faults.add("claim_error:method=unprepare,text=busy")
        with pytest.raises(DraError, match="busy"):
            await task(node, agent, "unprepared", claim())
        found = await look_at(node, agent)
    assert found["via"] == "agent"
    assert "operation_failing" in codes(found)
    assert codes(found, "u-1") == ["operation_failing"]


@pytest.mark.asyncio
async def test_claim_info_of_an_agent_that_cannot_read_its_file(node: Node) -> None:
    node.state_directory.mkdir()
    (node.state_directory / "dra_manager_state").write_bytes(b"{")
    async with running(node) as agent:
        found = await look_at(node, agent)
    assert {"manager_state_unusable", "state_damaged"} <= set(codes(found))
