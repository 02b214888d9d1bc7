# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The health of devices in the status of pods: real drivers with health streams, and a real API server."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.agent_findings import agent_findings
from ansible_collections.nodeops.dra.plugins.module_utils.kube.errors import InvalidObjectError
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.rights import ADMIN
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver import DriverConfig, SimulatedDriver
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_store import PreparedDevice
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.managed import Managed
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.pod_health_world import (
    AGENT,
    POD,
    QUICK,
    health_world,
    report,
    shown,
    writes,
)
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import NIC

HEALTHY = {"main claim:gpu": {"0": "Healthy"}}
SICK = {"main claim:gpu": {"0": "Unhealthy too hot"}}
UNKNOWN = {"main claim:gpu": {"0": "Unknown"}}
AT_ONCE = dataclasses.replace(QUICK, overwritten=0.0)
"""What somebody else puts into a status is replaced as soon as it is seen."""


def findings(agent: Managed) -> list[str]:
    return sorted(one.code for one in agent_findings(agent.place) if one.code.startswith("pod_health"))


@pytest.mark.asyncio
async def test_a_device_falls_ill_and_recovers(node: Node) -> None:
    async with health_world(node) as world, world.driver() as driver, world.agent() as agent:
        uid = await world.pod("p", {"main": ["gpu"]})
        claim_uid = await world.claim("gpu", uid)
        await world.shows(agent, "p", UNKNOWN)
        report(driver, "UNHEALTHY", "too hot")
        await world.shows(agent, "p", SICK)
        (status,) = (await world.cluster.client.get(POD, "p", "default"))["status"]["containerStatuses"]
        assert status["ready"] is True, "the rest of the status is not touched"
        row = {"resourceID": f"k8s.{GPU}/claim={claim_uid}-dev-0", "health": "Unhealthy", "message": "too hot"}
        assert status["allocatedResourcesStatus"] == [{"name": "claim:gpu", "resources": [row]}]
        report(driver, "HEALTHY")
        await world.shows(agent, "p", HEALTHY)
        await driver.stop_service()
        await world.shows(agent, "p", UNKNOWN)
        assert findings(agent) == []
    assert set(world.results) == {"success"}


@pytest.mark.asyncio
async def test_a_report_that_grew_old(node: Node) -> None:
    async with health_world(node) as world, world.driver() as driver, world.agent() as agent:
        driver.set_health("dev-0", "HEALTHY", timeout=1)
        uid = await world.pod("p", {"main": ["gpu"]})
        await world.claim("gpu", uid)
        await world.shows(agent, "p", UNKNOWN)


@pytest.mark.asyncio
async def test_two_containers_share_a_claim_and_a_third_has_none(node: Node) -> None:
    async with health_world(node) as world, world.driver() as driver, world.agent() as agent:
        report(driver, "HEALTHY")
        uid = await world.pod("p", {"one": ["gpu"], "none": [], "two": ["gpu"]})
        await world.claim("gpu", uid)
        await world.shows(agent, "p", {"one claim:gpu": {"0": "Healthy"}, "two claim:gpu": {"0": "Healthy"}})


@pytest.mark.asyncio
async def test_pods_share_a_claim_and_another_has_its_own(node: Node) -> None:
    async with health_world(node) as world, world.driver() as driver, world.agent() as agent:
        report(driver, "HEALTHY")
        report(driver, "HEALTHY", device=1)
        uids = [await world.pod(name, {"main": ["gpu"]}) for name in ("p", "q")]
        await world.claim("gpu", *uids)
        for name in ("p", "q"):
            await world.shows(agent, name, HEALTHY)
        other = await world.pod("other", {"main": ["own"]})
        await world.claim("own", other, devices=(1,))
        await world.shows(agent, "other", {"main claim:own": {"1": "Healthy"}})
        before = await world.cluster.client.get(POD, "other", "default")
        report(driver, "UNHEALTHY", "too hot")
        for name in ("p", "q"):
            await world.shows(agent, name, SICK)
        assert await world.cluster.client.get(POD, "other", "default") == before


@pytest.mark.asyncio
async def test_requests_and_alternatives_have_their_own_entries(node: Node) -> None:
    answers = [
        PreparedDevice("pool-0", "dev-0", ("small",)),
        PreparedDevice("pool-0", "dev-1", ("big/fast",), ("a.example/b=dev-1", "a.example/b=more")),
        PreparedDevice("pool-0", "dev-2", ("big",)),
    ]

    async def allocate(_claim: t.Any) -> list[PreparedDevice]:
        return answers

    config = DriverConfig(GPU, node.root, node.cdi, health=("v1alpha1",))
    async with (
        health_world(node) as world,
        SimulatedDriver(config, allocate=allocate) as driver,
        world.agent() as agent,
    ):
        for number in range(3):
            report(driver, "HEALTHY", device=number)
        uid = await world.pod("p", {"one": ["gpu/small", "gpu/big"], "all": ["gpu"]})
        await world.claim("gpu", uid)
        small, fast, slow = {"0": "Healthy"}, {"a.example/b=dev-1": "Healthy"}, {"2": "Healthy"}
        big = {**fast, **slow}
        entries = {"one claim:gpu/small": small, "one claim:gpu/big": big, "all claim:gpu": {**small, **big}}
        await world.shows(agent, "p", entries)


@pytest.mark.asyncio
async def test_containers_without_a_status_are_waited_for(node: Node) -> None:
    async with health_world(node) as world, world.driver() as driver, world.agent() as agent:
        report(driver, "UNHEALTHY", "too hot")
        uid = await world.pod("p", {"main": ["gpu"], "slow": ["gpu"]}, started=False)
        await world.claim("gpu", uid)
        await agent.event("claim_prepared")
        await world.start("p", "main")
        await world.shows(agent, "p", SICK)
        await world.start("p", "main", "slow")
        await world.shows(agent, "p", {**SICK, "slow claim:gpu": SICK["main claim:gpu"]})


@pytest.mark.asyncio
async def test_many_news_are_one_write(node: Node) -> None:
    async with (
        health_world(node) as world,
        world.driver(devices_per_claim=4) as driver,
        world.agent(dataclasses.replace(QUICK, settle=0.5)) as agent,
    ):
        for number in range(4):
            report(driver, "HEALTHY", device=number)
        await world.heard(agent, *range(4))
        uid = await world.pod("p", {"main": ["gpu"]})
        await world.claim("gpu", uid, devices=range(4))
        await world.shows(agent, "p", {"main claim:gpu": dict.fromkeys("0123", "Healthy")})
        before = world.results["success"]
        for number in range(4):
            report(driver, "UNHEALTHY", device=number)
        await world.shows(agent, "p", {"main claim:gpu": dict.fromkeys("0123", "Unhealthy")})
        assert world.results["success"] == before + 1


@pytest.mark.asyncio
async def test_what_a_pod_ended_with_stays(node: Node) -> None:
    async with health_world(node) as world, world.driver() as driver, world.agent() as agent:
        report(driver, "UNHEALTHY", "too hot")
        uid = await world.pod("p", {"main": ["gpu"]})
        await world.claim("gpu", uid)
        await world.shows(agent, "p", SICK)
        await world.change("p", {"status": {"phase": "Failed"}})
        await agent.event("claim_unprepared")
        assert shown(await world.cluster.client.get(POD, "p", "default")) == SICK


# What goes wrong


@pytest.mark.asyncio
async def test_rights_that_are_missing_are_told_once_and_asked_for_again(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with health_world(node) as world, world.driver() as driver, world.agent() as agent:
        tokens = world.cluster.server.settings.tokens
        tokens[AGENT] = ADMIN.without("patch", "pods/status")
        report(driver, "UNHEALTHY", "too hot")
        uids = [await world.pod(name, {"main": ["gpu"]}) for name in ("p", "q")]
        await world.claim("gpu", *uids)
        await world.counted("denied", 3)
        assert findings(agent) == ["pod_health_denied"]
        assert agent.holders() == {"gpu": sorted(uids)}, "claims are prepared all the same"
        tokens[AGENT] = ADMIN
        for name in ("p", "q"):
            await world.shows(agent, name, SICK)
        assert findings(agent) == []
    told = [one.getMessage() for one in caplog.records if "rights are" in one.getMessage()]
    assert len(told) == 2
    assert "rights are missing" in told[0]
    assert "patch" in told[0]
    assert told[1] == "the health of devices is written, rights are there"


@pytest.mark.asyncio
async def test_a_patch_for_an_old_version_is_a_conflict(node: Node) -> None:
    async with health_world(node) as world, world.driver() as driver, world.agent() as agent:
        report(driver, "UNHEALTHY", "too hot")
        patch_status = agent.pods.patch_status
        faster = ["p"]

        async def raced(pod: t.Any, operations: t.Any) -> t.Any:
            if faster:
                await world.change(faster.pop(), {"status": {"message": "somebody was faster"}})
            return await patch_status(pod, operations)

        agent.pods.patch_status = raced  # type: ignore[method-assign]
        uid = await world.pod("p", {"main": ["gpu"]})
        await world.claim("gpu", uid)
        await world.shows(agent, "p", SICK)
        pod = await world.cluster.client.get(POD, "p", "default")
        assert pod["status"]["message"] == "somebody was faster", "no update is lost"
        assert world.results["conflict"] >= 1
        stale = {"op": "test", "path": "/metadata/resourceVersion", "value": "1"}
        with pytest.raises(InvalidObjectError) as refused:
            await patch_status(pod, [stale])
    assert " is invalid: " not in refused.value.facts["server_message"], "which tells it from content that is refused"


@pytest.mark.parametrize(
    ("fault", "result"),
    [
        pytest.param("conflict:verb=patch,resource=pods/status,skip=1,times=3", "conflict", id="conflict"),
        pytest.param("error:verb=patch,resource=pods/status,skip=1,times=3", "failure", id="failure"),
    ],
)
@pytest.mark.asyncio
async def test_what_fails_is_tried_again(node: Node, fault: str, result: str) -> None:
    async with health_world(node) as world, world.driver() as driver, world.agent() as agent:
        report(driver, "UNHEALTHY", "too hot")
        world.cluster.server.add_fault(fault)
        uid = await world.pod("p", {"main": ["gpu"]})  # this is the patch that is skipped
        await world.claim("gpu", uid)
        await world.shows(agent, "p", SICK)
    assert world.results[result] == 3


@pytest.mark.asyncio
async def test_a_pod_that_is_gone_is_forgotten(node: Node) -> None:
    async with health_world(node) as world, world.driver() as driver, world.agent() as agent:
        report(driver, "UNHEALTHY", "too hot")
        patch_status = agent.pods.patch_status

        async def late(pod: t.Any, operations: t.Any) -> t.Any:
            await agent.delete("Pod", "p")
            return await patch_status(pod, operations)

        agent.pods.patch_status = late  # type: ignore[method-assign]
        uid = await world.pod("p", {"main": ["gpu"]})
        await world.claim("gpu", uid)
        await world.counted("gone")
        await agent.event("claim_unprepared")
    assert set(world.results) == {"gone"}


@pytest.mark.asyncio
async def test_a_server_that_does_not_answer_holds_up_no_claim(node: Node) -> None:
    async with health_world(node) as world, world.driver(), world.agent() as agent:
        uid = await world.pod("p", {"main": ["gpu"]})
        second = await world.pod("q", {"main": ["other"]})
        patch_status = agent.pods.patch_status
        writing = asyncio.Event()

        async def noted(pod: t.Any, operations: t.Any) -> t.Any:
            writing.set()
            return await patch_status(pod, operations)

        agent.pods.patch_status = noted  # type: ignore[method-assign]
        world.cluster.server.add_fault("hang:verb=patch,resource=pods/status")
        await world.claim("gpu", uid)
        await agent.event("claim_prepared", "default/gpu")
        await writing.wait()
        await world.claim("other", second, devices=(1,))
        await agent.event("claim_prepared", "default/other")
        await agent.delete("Pod", "p")
        await agent.event("claim_unprepared", "default/gpu")


@pytest.mark.parametrize("settings", [{"resource_health": False}, {"release": (1, 35, 0)}], ids=["gate off", "1.35"])
@pytest.mark.asyncio
async def test_a_server_that_does_not_keep_health_is_not_pressed(node: Node, settings: t.Any) -> None:
    async with health_world(node, **settings) as world, world.driver() as driver, world.agent(AT_ONCE) as agent:
        report(driver, "HEALTHY")
        report(driver, "HEALTHY", device=7)
        await world.heard(agent, 0, 7)
        uid = await world.pod("p", {"main": ["gpu"]})
        await world.claim("gpu", uid)
        await world.counted("not_kept")
        assert findings(agent) == ["pod_health_not_kept"]
        await world.change("p", {"metadata": {"labels": {"a": "b"}}})
        await world.looked()
    assert world.written == ["p", "last"]
    assert world.results == {"not_kept": 2}


@pytest.mark.asyncio
async def test_a_server_without_messages(node: Node) -> None:
    async with (
        health_world(node, release=(1, 35, 0), resource_health=True) as world,
        world.driver() as driver,
        world.agent(AT_ONCE) as agent,
    ):
        report(driver, "UNHEALTHY", "too hot")
        uid = await world.pod("p", {"main": ["gpu"]})
        await world.claim("gpu", uid)
        await world.shows(agent, "p", {"main claim:gpu": {"0": "Unhealthy"}})
        before = len(world.written)
        await world.change("p", {"metadata": {"labels": {"a": "b"}}})
        await world.looked()
        assert world.written[before:] == ["last"]
        assert set(world.results) == {"success"}
        assert findings(agent) == []


@pytest.mark.asyncio
async def test_somebody_who_takes_it_out_again(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    async with health_world(node) as world, world.driver() as driver, world.agent() as agent:
        report(driver, "UNHEALTHY", "too hot")
        uid = await world.pod("p", {"main": ["gpu"]})
        await world.claim("gpu", uid)
        await world.shows(agent, "p", SICK)
        for _time in range(3):
            before = world.results["success"]
            await world.start("p", "main")  # as a kubelet does that does not know of these devices
            await world.counted("success", before + 1)
            await world.shows(agent, "p", SICK)
        assert findings(agent) == ["pod_health_overwritten"]
    assert len([one for one in caplog.records if "again and again" in one.getMessage()]) == 1


@pytest.mark.asyncio
async def test_what_lasted_is_no_fight(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    """Every write of this agent counts as one that has lasted."""
    pace = dataclasses.replace(QUICK, lasting=0.0)
    async with health_world(node) as world, world.driver() as driver, world.agent(pace) as agent:
        report(driver, "UNHEALTHY", "too hot")
        uid = await world.pod("p", {"main": ["gpu"]})
        await world.claim("gpu", uid)
        await world.shows(agent, "p", SICK)
        for _time in range(3):
            before = world.results["success"]
            await world.start("p", "main")
            await world.counted("success", before + 1)
            await world.shows(agent, "p", SICK)
        assert findings(agent) == []
    assert "again and again" not in caplog.text


@pytest.mark.asyncio
async def test_a_watch_that_is_late_is_no_other_writer(node: Node) -> None:
    async with health_world(node) as world, world.driver() as driver, world.agent(AT_ONCE) as agent:
        report(driver, "HEALTHY")
        report(driver, "HEALTHY", device=7)
        await world.heard(agent, 0, 7)
        uid = await world.pod("p", {"main": ["gpu"]})
        await agent.until(lambda: (agent.pods.find(uid, "", "") or {}).get("status", {}).get("containerStatuses"))
        put, late = agent.pods.store.put, []
        agent.pods.store.put = lambda pod, **more: (  # type: ignore[method-assign]
            put(pod, **more) if pod["metadata"]["name"] != "p" else bool(late.append(pod))
        )
        await world.claim("gpu", uid)
        await world.counted("success")
        agent.place.events.add("claim_prepared", "look at all pods again")
        await world.looked()
        for pod in late:
            put(pod)
        await world.shows(agent, "p", HEALTHY)
    assert world.written == ["p", "last"]
    assert world.results == {"success": 2}


# Restarts


@pytest.mark.asyncio
async def test_after_a_restart_a_status_keeps_what_it_knows_until_that_is_too_old(node: Node) -> None:
    async with health_world(node) as world:
        async with world.driver() as driver, world.agent() as agent:
            report(driver, "UNHEALTHY", "too hot")
            uid = await world.pod("p", {"main": ["gpu"]})
            await world.claim("gpu", uid)
            await world.shows(agent, "p", SICK)
        async with world.driver(NIC) as other, world.agent(dataclasses.replace(QUICK, doubt=3600.0)) as agent:
            report(other, "HEALTHY")
            second = await world.pod("q", {"main": ["nic"]})
            await world.claim("nic", second, driver=NIC)
            await world.shows(agent, "q", {"main claim:nic": {"0": "Healthy"}})
            assert shown(agent.pods.store.get("p", "default")) == SICK, "the driver may come back yet"
        async with world.agent() as agent:
            await world.shows(agent, "p", UNKNOWN)
        async with world.driver() as driver, world.agent() as agent:
            report(driver, "HEALTHY")
            await world.shows(agent, "p", HEALTHY)
            before = writes(world)
            assert world.results["success"] > 0
        async with world.driver() as driver, world.agent(dataclasses.replace(QUICK, doubt=3600.0)) as agent:
            report(driver, "HEALTHY")
            report(driver, "HEALTHY", device=1)
            third = await world.pod("r", {"main": ["last"]})
            await world.claim("last", third, devices=(1,))
            await world.shows(agent, "r", {"main claim:last": {"1": "Healthy"}})
            assert shown(agent.pods.store.get("p", "default")) == HEALTHY
        assert writes(world) >= before
