# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Claims that the kubelet of the node has recorded, with a real process that looks like one."""

from __future__ import annotations

import contextlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Json, Node, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.checkpoint import vectors
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.checkpoint.child_process import named_child
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim, device

BY_NAME: Json = {"metadata": {"namespace": "team-a", "name": "c1"}}
BY_UID: Json = {"metadata": {"uid": "u-1"}}
CHECK = pytest.mark.parametrize("check", [True, False], ids=["check mode", "run"])


@contextlib.contextmanager
def kubelet(node: Node) -> t.Iterator[int]:
    """A kubelet that runs on the node's root directory; its process number."""
    with named_child("kubelet", f"--root-dir={node.root}") as child:
        yield child.pid


async def refused(node: Node, state: str, *claims: Json, **changes: t.Any) -> str:
    tree = node.tree()
    with pytest.raises(DraError) as failed:
        await node.claim(state, *claims, reason="a test", **changes)
    assert node.tree() == tree
    assert failed.value.hint
    return str(failed.value)


@pytest.mark.parametrize("given", [BY_NAME, BY_UID], ids=["by name", "by UID"])
@pytest.mark.parametrize("ours", [True, False], ids=["recorded here too", "recorded by the kubelet alone"])
@CHECK
@pytest.mark.asyncio
async def test_what_a_running_kubelet_holds_is_not_unprepared(node: Node, given: Json, ours: bool, check: bool) -> None:
    async with node.driver() as driver:
        if ours:
            await node.claim("prepared", claim())
        path = node.kubelet_has(recorded("u-1", "c1", "dev-0", pods=("p-1", "p-2")))
        with kubelet(node) as pid:
            message = await refused(node, "unprepared", given, check=check)
        assert driver.calls_of("unprepare") == []

    for part in ("team-a/c1 (u-1)", "p-1, p-2", f"kubelet pid {pid}", str(path), "Delete the pods"):
        assert part in message, part


@pytest.mark.asyncio
async def test_the_pod_of_a_running_kubelet_is_not_unprepared(node: Node) -> None:
    node.kubelet_has(recorded(), recorded("u-2", "c2", pods=("p-2",)))
    with kubelet(node):
        message = await refused(node, "unprepared", pod={"metadata": {"uid": "p-1"}})
        assert "u-1" in message
        assert "u-2" not in message
        assert not (await node.claim("unprepared", pod={"metadata": {"uid": "p-9"}}))["changed"]


@pytest.mark.asyncio
async def test_by_force_the_drivers_of_a_claim_of_the_kubelet_are_told(node: Node) -> None:
    path = node.kubelet_has(recorded())
    before = path.read_bytes()
    async with node.driver() as driver:
        with kubelet(node):
            planned = await node.claim("unprepared", BY_NAME, force=True, check=True)
            assert driver.calls_of("unprepare") == []
            done = await node.claim("unprepared", BY_NAME, force=True)
        assert [call.uids for call in driver.calls_of("unprepare")] == [["u-1"]]

    assert planned["changed"]
    assert done["changed"]
    assert planned["calls"] == done["calls"]
    assert done["calls"] == [{"driver": GPU, "method": "NodeUnprepareResources", "claims": ["u-1"]}]
    assert done["released"] == ["u-1"]
    assert [finding["code"] for finding in done["findings"]] == ["kubelet_still_records"]
    assert path.read_bytes() == before, "the kubelet's file is the kubelet's"
    assert not node.state_directory.exists()


@pytest.mark.asyncio
async def test_by_force_what_is_recorded_here_goes_too(node: Node) -> None:
    async with node.driver() as driver:
        await node.claim("prepared", claim())
        node.kubelet_has(recorded())
        with kubelet(node):
            done = await node.claim("unprepared", BY_NAME, force=True)
        assert [call.uids for call in driver.calls_of("unprepare")] == [["u-1"]]

    assert done["released"] == ["u-1"]
    assert [finding["code"] for finding in done["findings"]] == ["kubelet_still_records"]


@CHECK
@pytest.mark.asyncio
async def test_by_force_a_stranger_takes_nothing_from_another_holder(node: Node, check: bool) -> None:
    async with node.driver() as driver:
        await node.claim("prepared", claim(), holder="a")
        node.kubelet_has(recorded())
        done = await node.claim("unprepared", BY_NAME, holder="b", force=True, check=check)
        assert (done["changed"], done["calls"], driver.calls_of("unprepare")) == (False, [], [])


@pytest.mark.asyncio
async def test_by_force_a_driver_that_fails_is_named(node: Node) -> None:
    node.kubelet_has(recorded())
    async with node.driver(GPU, "claim_error:method=unprepare,text=boom-42"):
        with pytest.raises(DraError) as failed:
            await node.claim("unprepared", BY_NAME, force=True)
    for part in ("team-a/c1 (u-1)", GPU, "boom-42"):
        assert part in str(failed.value), part


@pytest.mark.asyncio
async def test_by_force_a_classic_driver_gets_its_handle_again(node: Node) -> None:
    data = vectors.read("1.30/handles_data.json")
    (node.root / "dra_manager_state").write_bytes(data)
    uid = "c0de0007-1111-4222-8333-000000000007"
    async with (
        node.driver("gpu.example.com", apis=("v1alpha3",)) as gpu,
        node.driver("other", apis=("v1alpha3",)) as nic,
    ):
        done = await node.claim("unprepared", {"metadata": {"uid": uid}}, force=True)

    assert done["released"] == [uid]
    assert [call.claims[0].handle[:12] for call in gpu.calls_of("unprepare")] == ['{"kind":"X",']
    assert [call.claims[0].handle for call in nic.calls_of("unprepare")] == ["plain text, not JSON: a: b\n"]


@pytest.mark.parametrize("ours", [True, False], ids=["recorded here too", "recorded by the kubelet alone"])
@CHECK
@pytest.mark.asyncio
async def test_what_a_kubelet_that_is_down_has_is_not_unprepared_unseen(node: Node, ours: bool, check: bool) -> None:
    """Its containers run on."""
    path = node.kubelet_has(recorded())
    async with node.driver() as driver:
        if ours:
            await node.claim("prepared", claim())
        message = await refused(node, "unprepared", BY_NAME, check=check)
        for part in ("does not run now", "team-a/c1 (u-1)", str(path), f"state_directory={node.root}"):
            assert part in message, part
        assert driver.calls_of("unprepare") == []


@pytest.mark.asyncio
async def test_the_file_of_a_kubelet_that_is_down_can_be_worked_on(node: Node) -> None:
    """The way out that the message names."""
    path = node.kubelet_has(recorded(), recorded("u-2", "c2", "dev-1"))
    async with node.driver() as driver:
        done = await node.claim("unprepared", BY_NAME, state_directory=str(node.root))
        assert [call.uids for call in driver.calls_of("unprepare")] == [["u-1"]]

    assert (done["changed"], done["released"]) == (True, ["u-1"])
    assert b"u-1" not in path.read_bytes()
    assert [one["uid"] for one in node.look()["claims"] if one["in_kubelet"]] == ["u-2"]


@pytest.mark.parametrize("state", ["prepared", "unprepared", "forgotten"])
@pytest.mark.parametrize("force", [False, True])
@CHECK
@pytest.mark.asyncio
async def test_the_file_of_a_running_kubelet_is_never_worked_on(
    node: Node, state: str, force: bool, check: bool
) -> None:
    node.kubelet_has(recorded())
    async with node.driver():
        with kubelet(node) as pid:
            message = await refused(node, state, claim(), state_directory=f"{node.root}/", force=force, check=check)
    assert f"kubelet pid {pid}" in message


@CHECK
@pytest.mark.asyncio
async def test_what_only_the_kubelet_has_cannot_be_forgotten_here(node: Node, check: bool) -> None:
    node.kubelet_has(recorded())
    for force in (False, True):
        message = await refused(node, "forgotten", BY_NAME, check=check, force=force)
        assert "team-a/c1 (u-1)" in message
        assert "nodeops.dra.checkpoint (drop_claims)" in message


@pytest.mark.report("F003")
@CHECK
@pytest.mark.asyncio
async def test_a_device_that_the_kubelet_holds_for_another_claim(node: Node, check: bool) -> None:
    node.kubelet_has(recorded())
    other = claim("c2", "u-2", device("dev-0"))
    async with node.driver() as driver:
        message = await refused(node, "prepared", other, check=check)
        for part in ("team-a/c2 (u-2)", f"{GPU}/pool-0/dev-0", "team-a/c1 (u-1)"):
            assert part in message, part
        assert driver.calls_of("prepare") == []
        assert (await node.claim("prepared", claim(), check=True))["changed"], "it may be asked for again"
        admin = claim("c3", "u-3", device("dev-0", adminAccess=True))
        assert (await node.claim("prepared", admin, check=True))["changed"]
        assert (await node.claim("prepared", other, check=check, force=True))["changed"]


@pytest.mark.asyncio
async def test_a_damaged_file_of_the_kubelet_keeps_what_it_shows(node: Node) -> None:
    path = node.kubelet_has(recorded(), recorded("u-2", "c2", "dev-1"))
    path.write_bytes(path.read_bytes()[:-40])
    with kubelet(node):
        assert "team-a/c1 (u-1)" in await refused(node, "unprepared", BY_NAME)
