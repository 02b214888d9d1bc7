# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Claims of pods that live are not taken from them, and come back where somebody insisted."""

from __future__ import annotations

import contextlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.local_api import LocalApi
from ansible_collections.nodeops.dra.plugins.module_utils.agent.local_client import LocalClient, connected
from ansible_collections.nodeops.dra.plugins.module_utils.agent.local_service import LocalService
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.managed import Managed, managed
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Json, Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.test_with_api import Cluster, cluster
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim, device

pytestmark = pytest.mark.asyncio
CLAIM: Json = {"metadata": {"namespace": "default", "name": "c"}}


@contextlib.asynccontextmanager
async def served(node: Node, api: Cluster, period: float = 3600.0) -> t.AsyncIterator[tuple[Managed, LocalClient, str]]:
    """An agent that has prepared a pod, a client of its local API, and the UID of the pod."""
    async with managed(node, api, period=period) as agent:
        uid = await api.pod("p", "c")
        await api.claim("c", uid)
        await agent.event("claim_prepared")
        path = str(node.root / "run" / "agent.sock")
        async with LocalApi(path, LocalService(agent.place), agent.place.events), connected(path) as client:
            yield agent, client, uid


@pytest.mark.parametrize("check", [True, False], ids=["check", "run"])
@pytest.mark.parametrize("by", ["claim", "pod"])
async def test_it_is_refused(by: str, check: bool, node: Node) -> None:
    async with cluster() as api, node.driver() as driver, served(node, api) as (agent, client, uid):
        given: t.Any = {"pod": {"metadata": {"uid": uid}}} if by == "pod" else {}
        claims = () if given else (CLAIM,)
        with pytest.raises(DraError, match=r"held by pod default/p .* which may still run") as refused:
            await client.change(node.request("unprepared", *claims, **given), check=check)
        assert "delete the pod" in refused.value.hint
        assert agent.holders() == {"c": [uid]}
    assert [call.method for call in driver.calls if call.method == "unprepare"] == []


async def test_whoever_insists_gets_it_prepared_anew(node: Node) -> None:
    async with cluster() as api, node.driver() as driver, served(node, api) as (agent, client, uid):
        done = await client.change(node.request("unprepared", CLAIM, force=True))
        await agent.event("claim_prepared", "for pod default/p")
        assert (done["changed"], agent.holders()) == (True, {"c": [uid]})
    calls = [call.method for call in driver.calls if call.method.endswith("prepare")]
    assert calls == ["prepare", "unprepare", "prepare"]


async def test_a_forgotten_claim_comes_back(node: Node) -> None:
    async with cluster() as api, node.driver(), served(node, api) as (agent, client, uid):
        await client.change(node.request("forgotten", CLAIM, reason="a test"))
        await agent.event("claim_prepared", "for pod default/p")
        assert agent.holders() == {"c": [uid]}


async def test_what_was_begun_is_brought_to_its_end_first(node: Node) -> None:
    async with cluster() as api, node.driver() as driver, served(node, api) as (agent, client, uid):
        driver.faults.add("claim_error:method=unprepare,times=2")
        with pytest.raises(DraError):
            await client.change(node.request("unprepared", CLAIM, force=True))
        await agent.event("claim_prepared", "for pod default/p")
        assert agent.holders() == {"c": [uid]}
        assert [report.status for report in agent.place.manager.claims()] == ["prepared"]


async def test_a_claim_that_went_by_another_way_is_noticed(node: Node) -> None:
    async with cluster() as api, node.driver(), served(node, api, period=0.1) as (agent, _client, uid):
        await agent.place.manager.unprepare(uid)
        await agent.event("claim_prepared", "for pod default/p")
        assert agent.holders() == {"c": [uid]}


async def test_other_holders_let_go_as_before(node: Node) -> None:
    async with cluster() as api, node.driver(GPU), served(node, api) as (agent, client, _uid):
        other = claim("c2", "u-2", device("dev-1"))
        await client.change(node.request("prepared", other, holder="a.service"))
        await client.change(node.request("unprepared", other, holder="a.service"))
        await agent.delete("Pod", "p")
        await agent.event("claim_unprepared", "default/c")
        assert agent.holders() == {}
