# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The agent beside a kubelet, as a process: what it tells, what it keeps, and that it changes nothing."""

from __future__ import annotations

import asyncio
import pathlib
import re

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.agent_metrics import AGENT_METRICS
from ansible_collections.nodeops.dra.plugins.module_utils.agent.claim_look import look
from ansible_collections.nodeops.dra.plugins.module_utils.agent.claim_task import perform
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import backups, statefile
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.backups import list_backups
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.metric_table import COMMON_METRICS
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.agent_process import (
    AgentProcess,
    agent_process,
)
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Node, codes, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.observing import (
    Watcher,
    golden,
    kubelet_writes,
    observing,
    of_kubelet,
)
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim, pod

MULTI = golden("1.35-1.36/multi_claim_order_a")
ONE = golden("1.35-1.36/one_claim_one_device")
EMPTY = golden("1.35-1.36/empty_synced")
DAMAGED = golden("damaged/1.35-1.36/bad_checksum_plus_one")
# Asking a driver who it is and how its devices are changes nothing.
READS = {"get_info", "health"}


def ring_of(node: Node) -> list[bytes]:
    """Contents of the copies, newest first."""
    found = list_backups(node.root / "dra_manager_state", ring=node.state_directory / "ring")
    return [pathlib.Path(one.path).read_bytes() for one in found]


async def says(agent: AgentProcess, text: str) -> str:
    """Ask /readyz until it says this: results of checks are kept for a second. Degraded is ready."""
    while text not in (answer := await agent.get_until("/readyz?verbose", 200)):  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    return answer


@pytest.mark.report("F107")
@pytest.mark.asyncio
async def test_a_life_beside_a_kubelet_changes_nothing(node: Node) -> None:
    async with node.driver() as driver:
        node.kubelet_has(recorded())
        node.spec("u-1")
        before = of_kubelet(node)
        async with observing(node, observe={"health_streams": True}) as agent:
            async with agent.client() as client:
                watcher = Watcher(client)
                await watcher.until("ring_copy")
                while not (drivers := await client.drivers())["drivers"] or not drivers["drivers"][0]["connected"]:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)  # the event may have come before anybody listened
                version = await client.version()
                claims = await client.claims()
                nothing = await client.claims("team-b")
                findings = await client.findings()
            ready = await agent.get_until("/readyz?verbose", 200)
            health = await agent.get_until("/healthz", 200)
            _status, metrics = await agent.get("/metrics")
            status = await agent.end()
        after = of_kubelet(node)
        asked = {call.method for call in driver.calls}

    assert (version["mode"], version["kubelet_root"], version["degraded"]) == ("observe", str(node.root), "")
    assert [(one["uid"], one["status"], one["prepared"], one["pods"]) for one in claims] == [
        ("u-1", "prepared", True, ["p-1"])
    ]
    assert claims[0]["cdi_devices"] == [f"k8s.{GPU}/claim=u-1-dev-0"]
    assert nothing == []
    assert [(one["name"], one["connected"], one["claims"]) for one in drivers["drivers"]] == [(GPU, True, "1")]
    assert findings == []
    assert "[+]kubelet_state ok: sound, 1 claims" in ready
    assert "[+]ring ok: 1 copies" in ready
    assert health == "ok\n"
    for line in (
        "nodeops_dra_kubelet_claims 1.0",
        'nodeops_dra_kubelet_state{status="sound"} 1.0',
        "nodeops_dra_ring_copies 1.0",
        'nodeops_dra_ring_writes_total{result="success"} 1.0',
        f'nodeops_dra_driver_connected{{driver_name="{GPU}"}} 1.0',
        "nodeops_dra_ring_newest_age_seconds ",
    ):
        assert line in metrics, line
    declared = {metric.name for metric in (*AGENT_METRICS, *COMMON_METRICS)}
    assert set(re.findall(r"^# TYPE (\S+)", metrics, re.MULTILINE)) <= declared
    assert after == before
    assert asked <= READS, asked
    assert status == 0, agent.lines


@pytest.mark.report("F048")
@pytest.mark.asyncio
async def test_replaced_damaged_removed_and_restored_from_the_ring(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backups, "DEFAULT_RING", str(node.state_directory / "ring"))
    path = node.root / "dra_manager_state"
    kubelet_writes(node, ONE)
    async with observing(node) as agent, agent.client() as client:
        watcher = Watcher(client)
        await watcher.until("ring_copy")
        kubelet_writes(node, MULTI)
        added = await watcher.until("claim_prepared")
        await watcher.until("ring_copy")

        kubelet_writes(node, DAMAGED)
        damaged = await watcher.until("checkpoint_damaged")
        version = await client.version()
        found = codes({"findings": await client.findings()})
        ready = await says(agent, "[!]kubelet_state degraded")
        _status, metrics = await agent.get("/metrics")

        path.unlink()
        await watcher.until("checkpoint_missing")
        made = statefile.change(statefile.locate(str(path)), statefile.Request("restored", "1.36"))
        sound = await watcher.until("checkpoint_sound")
        claims = await client.claims()
        status = await agent.end()

    assert added["subject"].startswith("default/")
    assert damaged["subject"] == str(path)
    assert "checksum" in damaged["text"]
    assert version["degraded"] == damaged["text"]
    assert {"kubelet_state_refused", "checksum_mismatch"} <= set(found)
    assert "[-]" not in ready
    assert 'nodeops_dra_kubelet_state{status="refused"} 1.0' in metrics
    assert path.read_bytes() == MULTI
    assert pathlib.Path(made["restored_from"]).parent == node.state_directory / "ring"
    assert sound["subject"] == str(path)
    assert len(claims) > 1
    assert "claim_unprepared" not in watcher.kinds()
    assert ring_of(node)[0] == MULTI
    assert DAMAGED not in ring_of(node)
    assert status == 0, agent.lines


@pytest.mark.asyncio
async def test_a_good_content_is_kept_although_it_was_damaged_before_it_was_due(node: Node) -> None:
    kubelet_writes(node, EMPTY)
    async with observing(node, ring={"settle": 3600, "interval": 3600}) as agent, agent.client() as client:
        watcher = Watcher(client)
        kubelet_writes(node, MULTI)
        await watcher.until("claim_prepared")
        kubelet_writes(node, DAMAGED)
        await watcher.until("ring_copy")
    assert ring_of(node) == [MULTI]


@pytest.mark.asyncio
async def test_what_is_not_copied_yet_is_copied_at_the_end(node: Node) -> None:
    kubelet_writes(node, ONE)
    async with observing(node, ring={"settle": 3600, "interval": 3600}) as agent:
        assert await agent.end() == 0, agent.lines
    assert ring_of(node) == [ONE]


@pytest.mark.asyncio
async def test_after_a_kill_the_ring_and_the_kubelets_files_are_whole(node: Node) -> None:
    kubelet_writes(node, ONE)
    async with observing(node) as agent:
        async with agent.client() as client:
            await Watcher(client).until("ring_copy")
        kubelet_writes(node, MULTI)
        await agent.end(kill=True)
    assert ring_of(node)[-1] == ONE
    async with observing(node) as agent, agent.client() as client:
        while MULTI not in ring_of(node):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        assert len(await client.claims()) > 1
    assert ring_of(node) == [MULTI, ONE]


@pytest.mark.asyncio
async def test_a_burst_of_writes_is_few_copies(node: Node) -> None:
    kubelet_writes(node, EMPTY)
    ring = {"settle": 0.2, "interval": 3600}
    async with observing(node, ring=ring) as agent, agent.client() as client:
        await Watcher(client).until("ring_copy")
        for _again in range(150):
            kubelet_writes(node, ONE)
            kubelet_writes(node, EMPTY)
        kubelet_writes(node, MULTI)
        await Watcher(client).until("claim_prepared")
        while len(await client.claims()) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        _status, metrics = await agent.get("/metrics")
        assert await agent.end() == 0
    assert 'nodeops_dra_ring_writes_total{result="success"} 1.0' in metrics, "the next one is due in an hour"
    assert ring_of(node) == [MULTI, EMPTY]


@pytest.mark.asyncio
async def test_neither_a_file_nor_a_root_is_needed(node: Node) -> None:
    root = node.root / "later"
    async with observing(node, node={"kubelet_root": str(root)}, observe={"poll_period": 0.2}) as agent:
        async with agent.client() as client:
            claims, version = await client.claims(), await client.version()
            found = codes({"findings": await client.findings()})
            ready = await agent.get_until("/readyz?verbose", 200)
            assert not root.exists()
            root.mkdir()
            (root / "dra_manager_state").write_bytes(MULTI)
            await Watcher(client).until("claim_prepared")
        status = await agent.end()
    assert (claims, version["degraded"], found) == ([], "", ["cdi_directory_missing", "registry_missing"])
    assert "no kubelet has written" in ready
    assert status == 0, agent.lines


@pytest.mark.asyncio
async def test_a_ring_that_cannot_be_kept_is_told_and_the_rest_goes_on(node: Node) -> None:
    node.state_directory.mkdir()
    (node.state_directory / "ring").write_text("in the way", encoding="utf-8")
    kubelet_writes(node, ONE)
    async with observing(node) as agent, agent.client() as client:
        await agent.until("ring cannot be kept, observing goes on")
        found = codes({"findings": await client.findings()})
        ready = await says(agent, "[!]ring degraded")
        kubelet_writes(node, MULTI)
        await Watcher(client).until("claim_prepared")
        (node.state_directory / "ring").unlink()
        await Watcher(client).until("ring_copy")
        healed = codes({"findings": await client.findings()})
    assert "ring_not_written" in found
    assert "[-]" not in ready
    assert "ring_not_written" not in healed
    assert ring_of(node) == [MULTI]


@pytest.mark.asyncio
async def test_without_a_ring_nothing_is_written(node: Node) -> None:
    kubelet_writes(node, ONE)
    async with observing(node, ring={"enabled": False}) as agent:
        ready = await agent.get_until("/readyz?verbose", 200)
        assert await agent.end() == 0
    assert "ring" not in ready
    assert list(node.state_directory.iterdir()) == []


# The local API and the modules


@pytest.mark.asyncio
async def test_changes_are_refused_with_what_to_do(node: Node) -> None:
    node.kubelet_has(recorded())
    async with node.driver() as driver, observing(node) as agent, agent.client() as client:
        for state, words in (
            ("prepared", "Create a pod that uses the claim"),
            ("unprepared", "Delete the pods that use the claim"),
            ("forgotten", r"nodeops\.dra\.checkpoint \(drop_claims\)"),
        ):
            with pytest.raises(DraError, match="this agent only observes") as caught:
                await client.change(node.request(state, claim(), reason="r"))
            assert re.search(words, caught.value.hint), caught.value.hint
            assert caught.value.facts["mode"] == "observe"
        assert {call.method for call in driver.calls} <= READS


@pytest.mark.asyncio
async def test_resources_are_those_that_the_kubelet_recorded(node: Node) -> None:
    mine = pod()
    uid = mine["metadata"]["uid"]
    node.kubelet_has(recorded(pods=(uid,)))
    async with observing(node) as agent, agent.client() as client:
        found = await client.resources(mine)
        with pytest.raises(DraError, match="has recorded it for other pods"):
            await client.resources({**mine, "metadata": {**mine["metadata"], "uid": "another"}})
        with pytest.raises(DraError, match="is not known on this node"):
            await client.resources({"metadata": {"namespace": "team-a", "name": "p"}})
        with pytest.raises(DraError, match="has no container 'x'"):
            await client.resources(mine, "x")
    assert found == {"main": [f"k8s.{GPU}/claim=u-1-dev-0"]}


@pytest.mark.asyncio
async def test_the_module_claim_does_its_work_without_the_agent(node: Node) -> None:
    async with node.driver(), observing(node) as agent:
        options = {"agent_socket": str(node.root / "run" / "agent.sock")}
        done = await perform(node.request("prepared", claim(), holder="unit"), options, check=False)
        gone = await perform(node.request("unprepared", claim()), options, check=False)
        assert agent.child.returncode is None
    assert (done["via"], done["changed"], gone["via"], gone["released"]) == ("lock", True, "lock", ["u-1"])


@pytest.mark.asyncio
async def test_claim_info_has_what_the_agent_finds(node: Node) -> None:
    node.state_directory.mkdir()
    (node.state_directory / "ring").write_text("in the way", encoding="utf-8")
    node.kubelet_has(recorded())
    options = {
        "state_directory": str(node.state_directory),
        "cdi_directories": [str(node.cdi)],
        "registry_directory": None,
        "with_api": False,
        "agent_socket": str(node.root / "run" / "agent.sock"),
    }
    async with observing(node) as agent:
        await agent.until("ring cannot be kept")
        found = await look(str(node.root), options)
    assert found["via"] == "agent"
    assert {"ring_not_written", "driver_missing", "cdi_unresolved"} <= set(codes(found))
    places = [(one["code"], one["place"]) for one in found["findings"]]
    assert len(places) == len(set(places)), "nothing is told twice"


@pytest.mark.asyncio
async def test_the_findings_are_those_of_claim_info(node: Node) -> None:
    node.kubelet_has(recorded(), recorded("u-2", "c2"))
    node.driver_has("u-1", "u-3")
    async with observing(node) as agent, agent.client() as client:
        told = codes({"findings": await client.findings()})
        node.spec("u-9")
        while "orphan_cdi" not in told:
            told = codes({"findings": await client.findings()})
    without_drivers = codes(node.look(registered={}))
    assert set(told) == set(without_drivers)
    assert {"device_held_twice", "claim_unknown_to_driver", "claim_only_in_driver"} <= set(told)


# Settings


@pytest.mark.asyncio
async def test_the_kubelets_own_directory_is_refused(node: Node) -> None:
    async with agent_process(node, node={"mode": "observe", "state_directory": str(node.root)}) as agent:
        status = await agent.ended()
    assert status == 83
    assert any("the root directory of the kubelet" in line for line in agent.lines)
