# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Pods come and go at a real API server, and their claims follow, with real drivers."""

from __future__ import annotations

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of
from ansible_collections.nodeops.dra.plugins.module_utils.manager.planning import Holder, plan_claim
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.managed import managed
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Node, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.test_with_api import cluster
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import NIC, claim, device


@pytest.mark.asyncio
async def test_a_pod_appears_and_goes(node: Node) -> None:
    async with cluster() as api, node.driver() as driver, managed(node, api) as agent:
        uid = await api.pod("p", "c")
        claim_uid = await api.claim("c", uid)
        assert (await agent.event("claim_prepared")).subject == f"default/c ({claim_uid})"
        assert agent.holders() == {"c": [uid]}
        pod = agent.pods.find(uid, "", "")
        assert pod is not None
        assert agent.place.manager.resources_for(pod, "main") == (f"k8s.{GPU}/claim={claim_uid}-dev-0",)
        await agent.delete("Pod", "p")
        assert (await agent.event("claim_unprepared")).subject == f"default/c ({claim_uid})"
        assert agent.holders() == {}
        await agent.until(lambda: agent.keeper.pods == {"prepared": 0, "waiting": 0})
    assert [call.method for call in driver.calls if call.method.endswith("prepare")] == ["prepare", "unprepare"]


@pytest.mark.report("F064")
@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@pytest.mark.asyncio
async def test_a_pod_that_has_ended_gives_its_claims_back(phase: str, node: Node) -> None:
    async with cluster() as api, node.driver(), managed(node, api) as agent:
        uid = await api.pod("p", "c")
        await api.claim("c", uid)
        await agent.event("claim_prepared")
        await api.client.patch(resource_of("Pod"), {"status": {"phase": phase}}, "p", "default", subresource="status")
        await agent.event("claim_unprepared")
        assert agent.holders() == {}


@pytest.mark.asyncio
async def test_a_driver_that_hangs_holds_up_no_other(node: Node) -> None:
    async with cluster() as api, node.driver(GPU, "hang"), node.driver(NIC), managed(node, api) as agent:
        for number in range(20):
            name = f"gpu-{number}"
            uid = await api.pod(name, name)
            await api.claim(name, uid)
        uid = await api.pod("nic", "nic")
        await api.claim("nic", uid, driver=NIC)
        assert (await agent.event("claim_prepared")).text == "for pod default/nic"


@pytest.mark.report("F019")
@pytest.mark.asyncio
async def test_a_pod_waits_until_its_claim_is_reserved(node: Node) -> None:
    async with cluster() as api, node.driver() as driver, managed(node, api) as agent:
        uid = await api.pod("p", "c")
        assert "c" in (await agent.event("claim_failed")).text  # there is no such claim
        await api.claim("c", "another")
        assert "another" in (await agent.event("claim_failed", "another")).text
        assert [call for call in driver.calls if call.method == "prepare"] == []
        reserved = {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": uid}]}}
        await api.client.patch(resource_of("ResourceClaim"), reserved, "c", "default", subresource="status")
        await agent.event("claim_prepared")


@pytest.mark.asyncio
async def test_a_driver_that_registers_is_used_at_once(node: Node) -> None:
    async with cluster() as api, managed(node, api) as agent:
        uid = await api.pod("p", "c")
        await api.claim("c", uid)
        assert GPU in (await agent.event("claim_failed", GPU)).text
        async with node.driver():
            await agent.event("driver_registered", GPU)
            await agent.event("claim_prepared")


@pytest.mark.report("F003")
@pytest.mark.asyncio
async def test_a_pod_made_anew_under_its_name_is_another_one(node: Node) -> None:
    async with cluster() as api, node.driver(), managed(node, api) as agent:
        old = await api.pod("p", "c1")
        await api.claim("c1", old)
        await agent.event("claim_prepared")
        await agent.delete("Pod", "p")
        new = await api.pod("p", "c2")
        await agent.event("claim_unprepared")
        await api.claim("c2", new)
        await agent.event("claim_prepared")
        assert agent.holders() == {"c2": [new]}


@pytest.mark.asyncio
async def test_unrelated_pods_are_neither_asked_for_nor_kept(node: Node) -> None:
    async with cluster() as api, node.driver(), managed(node, api) as agent:
        container = {"name": "main", "image": "i"}
        uses = [{"name": "x", "resourceClaimName": "x"}]
        spec = {"nodeName": "node-2", "containers": [container], "resourceClaims": uses}
        api.server.seed("v1", "pods", {"metadata": {"name": "elsewhere"}, "spec": spec}, "default")
        await api.pod("without-claims")
        uid = await api.pod("p", "c")
        await api.claim("c", uid)
        await agent.event("claim_prepared")
        assert [pod["metadata"]["name"] for pod in agent.pods.store] == ["p"]


# What nobody holds


@pytest.mark.report("F059")
@pytest.mark.asyncio
async def test_pods_that_went_while_nobody_looked_are_let_go(node: Node) -> None:
    node.manager_has(recorded("u-1", "gone", pods=["p-gone"]))
    async with cluster() as api, node.driver() as driver, managed(node, api) as agent:
        event = await agent.event("claim_unprepared")
        assert (event.subject, agent.holders()) == ("team-a/gone (u-1)", {})
    assert [call.uids for call in driver.calls if call.method == "unprepare"] == [["u-1"]]


@pytest.mark.asyncio
async def test_holders_that_are_no_pods_keep_their_claims(node: Node) -> None:
    async with cluster() as api, node.driver(), managed(node, api, period=0.1) as agent:
        other = claim("c2", "u-2", device("dev-1"))
        await agent.place.manager.prepare_claims(Holder.named("unit"), [plan_claim(claim())])
        await agent.place.manager.prepare_claims(Holder("p-gone", "team-a", "gone"), [plan_claim(other)])
        await agent.event("claim_unprepared", "u-2")
        assert agent.holders() == {"c1": ["holder:unit"]}


@pytest.mark.asyncio
async def test_without_the_api_nothing_is_taken_for_gone(node: Node) -> None:
    """No pod is known, and that is not the same as no pod being there."""
    node.manager_has(recorded(pods=["p-1"]))
    async with cluster() as api:
        options = {"host": "http://127.0.0.1:9"}
        async with node.driver() as driver, managed(node, api, options=options) as agent:
            await agent.until(lambda: "127.0.0.1:9" in agent.pods.problem())
            findings = [(one.code, one.severity) for one in agent.pods.findings()]
            assert (findings, agent.pods.synced) == ([("api_not_followed", "error")], False)
            assert agent.holders() == {"c1": ["p-1"]}
    assert [call for call in driver.calls if call.method == "unprepare"] == []


@pytest.mark.asyncio
async def test_the_api_comes_late(node: Node) -> None:
    async with cluster() as api, node.driver():
        uid = await api.pod("p", "c")
        await api.claim("c", uid)
        missing = {"kubeconfig": str(node.root / "kubeconfig")}
        async with managed(node, api, options=missing) as agent:
            await agent.until(lambda: "kubeconfig" in agent.pods.problem())
            api.server.write_kubeconfig(node.root / "kubeconfig")
            await agent.event("claim_prepared")
            assert agent.pods.findings() == []


@pytest.mark.asyncio
async def test_an_end_lets_what_is_under_way_finish(node: Node) -> None:
    async with cluster() as api, node.driver(GPU, "slow:seconds=0.5") as driver, managed(node, api) as agent:
        uid = await api.pod("p", "c")
        await api.claim("c", uid)
        await agent.until(lambda: any(call.method == "prepare" for call in driver.calls))
        await agent.keeper.drain()
        assert [report.status for report in agent.place.manager.claims()] == ["prepared"]
