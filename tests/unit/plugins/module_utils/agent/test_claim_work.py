# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What nodeops.dra.claim does, with a real driver on real sockets: planned, done, done again."""

from __future__ import annotations

import json
import time

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Json, Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import NIC, claim, device, pod

PREPARE, UNPREPARE = "NodePrepareResources", "NodeUnprepareResources"
BARE: Json = {"metadata": {"namespace": "team-a", "name": "c1"}}


def methods(driver: object) -> list[str]:
    """The calls for claims that a driver got, as ``prepare u-1,u-2``."""
    calls = driver.calls  # type: ignore[attr-defined]
    return [f"{call.method} {','.join(call.uids)}" for call in calls if call.method.endswith("prepare")]


# Prepare


@pytest.mark.report("F095")
@pytest.mark.asyncio
async def test_prepare_returns_devices_and_arguments_for_a_container(node: Node) -> None:
    async with node.driver() as driver:
        result = await node.claim("prepared", claim(), holder="training.service")

    name = f"k8s.{GPU}/claim=u-1-dev-0"
    assert result == {
        "changed": True,
        "before": {},
        "after": {"team-a/c1 (u-1)": {"pods": ["holder:training.service"], "prepared": True}},
        "via": "lock",
        "calls": [{"driver": GPU, "method": PREPARE, "claims": ["u-1"]}],
        "claims": [
            {
                "uid": "u-1",
                "name": "c1",
                "namespace": "team-a",
                "pods": ["holder:training.service"],
                "prepared": True,
                "drivers": [
                    {
                        "name": GPU,
                        "devices": [
                            {
                                "pool": "pool-0",
                                "device": "dev-0",
                                "share_id": None,
                                "requests": [],
                                "cdi_devices": [name],
                            }
                        ],
                    }
                ],
                "cdi_devices": [name],
                "device_arguments": [f"--device={name}"],
            }
        ],
        "released": [],
        "forgotten": [],
        "conformance": [],
        "findings": [],
    }
    assert methods(driver) == ["prepare u-1"]


@pytest.mark.report("F080", "F091")
@pytest.mark.asyncio
async def test_check_run_and_both_again(node: Node) -> None:
    async with node.driver():
        planned = await node.claim("prepared", claim(), check=True)
        done = await node.claim("prepared", claim())
        again = await node.claim("prepared", claim())
        planned_again = await node.claim("prepared", claim(), check=True)

    assert [one["changed"] for one in (planned, done, again, planned_again)] == [True, True, False, False]
    assert planned["calls"] == done["calls"] == again["calls"] == planned_again["calls"]
    assert done["claims"] == again["claims"] == planned_again["claims"]


@pytest.mark.report("F080", "F091")
@pytest.mark.asyncio
async def test_order_of_pods_and_claims_is_no_change(node: Node) -> None:
    two = [claim("c1", "u-1"), claim("c2", "u-2", device("dev-1"))]
    async with node.driver():
        await node.claim("prepared", *two, holder="a")
        await node.claim("prepared", *two, holder="b")
        before = (node.state_directory / "dra_manager_state").read_bytes()
        result = await node.claim("prepared", *reversed(two), holder="a")

    assert not result["changed"]
    assert [one["pods"] for one in result["claims"]] == [["holder:a", "holder:b"]] * 2
    assert (node.state_directory / "dra_manager_state").read_bytes() == before


@pytest.mark.report("F081")
@pytest.mark.parametrize("state", ["prepared", "unprepared", "forgotten", "checked"])
@pytest.mark.parametrize("known", [False, True], ids=["nothing recorded", "one claim recorded"])
@pytest.mark.asyncio
async def test_check_mode_calls_nobody_and_writes_nothing(node: Node, state: str, known: bool) -> None:
    async with node.driver() as driver:
        if known:
            await node.claim("prepared", claim())
        wanted = claim("c2", "u-2", device("dev-1")) if state in ("prepared", "checked") else BARE
        calls, tree = methods(driver), node.tree()
        result = await node.claim(state, wanted, check=True, reason="a test")

        assert result["changed"] is (state == "prepared" or (known and state != "checked"))
        assert methods(driver) == calls
        assert node.tree() == tree, "no file, no directory, no lock"


@pytest.mark.asyncio
async def test_claims_of_one_task_are_one_call_of_each_driver(node: Node) -> None:
    async with node.driver() as gpu, node.driver(NIC) as nic:
        both = claim("c2", "u-2", device("dev-1"), device("dev-0", NIC))
        result = await node.claim("prepared", claim(), both)

    assert (methods(gpu), methods(nic)) == (["prepare u-1,u-2"], ["prepare u-2"])
    assert result["calls"] == [
        {"driver": GPU, "method": PREPARE, "claims": ["u-1", "u-2"]},
        {"driver": NIC, "method": PREPARE, "claims": ["u-2"]},
    ]


@pytest.mark.asyncio
async def test_a_claim_that_is_given_twice_is_one(node: Node) -> None:
    async with node.driver() as driver:
        result = await node.claim("prepared", claim(), claim())

    assert methods(driver) == ["prepare u-1"]
    assert len(result["claims"]) == 1


@pytest.mark.asyncio
async def test_prepare_for_a_pod_that_is_given_whole(node: Node) -> None:
    async with node.driver() as driver:
        two = [claim(), claim("c2", "u-2", device("dev-1"))]
        result = await node.claim("prepared", *two, pod=pod("p-1", "c1", "c2"))

    assert methods(driver) == ["prepare u-1,u-2"]
    assert [one["pods"] for one in result["claims"]] == [["p-1"], ["p-1"]]


@pytest.mark.report("F109")
@pytest.mark.asyncio
async def test_a_cdi_name_that_does_not_resolve_is_a_finding(node: Node) -> None:
    async with node.driver(GPU, "no_cdi:times=1"):
        result = await node.claim("prepared", claim())
        assert [one["code"] for one in result["findings"]] == ["cdi_unresolved"]
        again = await node.claim("prepared", claim())
        assert again["findings"] == []
        assert not again["changed"]


@pytest.mark.report("F116")
@pytest.mark.parametrize("ending", ["", "/", "//."])
@pytest.mark.asyncio
async def test_a_slash_at_the_end_of_a_directory_makes_no_difference(node: Node, ending: str) -> None:
    directories = {
        "kubelet_root": f"{node.root}{ending}",
        "state_directory": f"{node.state_directory}{ending}",
        "cdi_directories": (f"{node.cdi}{ending}",),
    }
    async with node.driver():
        done = await node.claim("prepared", claim(), **directories)
        again = await node.claim("prepared", claim())

    assert done["findings"] == []
    assert not again["changed"]
    assert (node.state_directory / "dra_manager_state").exists()


# Unprepare


@pytest.mark.report("F080")
@pytest.mark.asyncio
async def test_unprepare_check_run_and_both_again(node: Node) -> None:
    async with node.driver() as driver:
        await node.claim("prepared", claim())
        planned = await node.claim("unprepared", BARE, check=True)
        done = await node.claim("unprepared", BARE)
        again = await node.claim("unprepared", BARE)
        planned_again = await node.claim("unprepared", BARE, check=True)

    assert [one["changed"] for one in (planned, done, again, planned_again)] == [True, True, False, False]
    assert planned["calls"] == done["calls"] == [{"driver": GPU, "method": UNPREPARE, "claims": ["u-1"]}]
    assert planned["released"] == done["released"] == ["u-1"]
    assert again == planned_again
    assert methods(driver) == ["prepare u-1", "unprepare u-1"]
    assert not list(node.cdi.iterdir())


@pytest.mark.report("F092")
@pytest.mark.asyncio
async def test_unprepare_of_a_claim_that_nobody_knows_is_fine(node: Node) -> None:
    tree = node.tree()
    result = await node.claim("unprepared", BARE)

    assert (result["changed"], result["calls"], result["released"]) == (False, [], [])
    assert node.tree() == tree


@pytest.mark.report("F092")
@pytest.mark.asyncio
async def test_unprepare_by_uid_leaves_a_claim_alone_that_was_made_anew(node: Node) -> None:
    async with node.driver():
        await node.claim("prepared", claim("c1", "u-2"))
        result = await node.claim("unprepared", {"metadata": {**BARE["metadata"], "uid": "u-1"}})
        assert not result["changed"]
        assert [one["uid"] for one in node.look()["claims"]] == ["u-2"]


@pytest.mark.asyncio
async def test_only_the_last_pod_gives_the_claim_back(node: Node) -> None:
    shared = claim(pods=("p-1", "p-2"))
    async with node.driver() as driver:
        await node.claim("prepared", shared, pod=pod("p-1"))
        await node.claim("prepared", shared, pod=pod("p-2"))
        planned = await node.claim("unprepared", pod={"metadata": {"uid": "p-1"}}, check=True)
        first = await node.claim("unprepared", pod={"metadata": {"uid": "p-1"}})
        assert methods(driver) == ["prepare u-1"] * 2
        last = await node.claim("unprepared", pod={"metadata": {"uid": "p-2"}})

    assert (planned["changed"], planned["calls"], planned["released"]) == (True, [], [])
    assert (first["changed"], first["calls"], first["released"]) == (True, [], [])
    assert [one["pods"] for one in first["claims"]] == [["p-2"]]
    assert (last["changed"], last["released"]) == (True, ["u-1"])
    assert methods(driver)[-1] == "unprepare u-1"


@pytest.mark.asyncio
async def test_only_the_last_holder_gives_the_claim_back_and_nobody_s_name_means_everybody(node: Node) -> None:
    async with node.driver() as driver:
        for holder in ("a", "b"):
            await node.claim("prepared", claim(), holder=holder)
        for check in (True, False):
            stranger = await node.claim("unprepared", BARE, holder="c", check=check)
            assert (stranger["changed"], stranger["calls"]) == (False, [])
        for check in (True, False):
            first = await node.claim("unprepared", BARE, holder="a", check=check)
            assert (first["changed"], first["calls"], first["released"]) == (True, [], [])
        assert [one["pods"] for one in first["claims"]] == [["holder:b"]]
        await node.claim("prepared", claim(), holder="a")
        assert driver.calls_of("unprepare") == []
        assert (await node.claim("unprepared", BARE))["released"] == ["u-1"]


@pytest.mark.asyncio
async def test_a_driver_that_wants_no_unprepare_is_neither_called_nor_announced(node: Node) -> None:
    skipping = claim("c1", "u-1", device("dev-0", skipNodeOperations=[UNPREPARE]), device("dev-0", NIC))
    async with node.driver() as gpu, node.driver(NIC) as nic:
        await node.claim("prepared", skipping)
        planned = await node.claim("unprepared", BARE, check=True)
        done = await node.claim("unprepared", BARE)

    assert planned["calls"] == done["calls"] == [{"driver": NIC, "method": UNPREPARE, "claims": ["u-1"]}]
    assert methods(gpu) == ["prepare u-1"]
    assert methods(nic) == ["prepare u-1", "unprepare u-1"]


@pytest.mark.report("F001")
@pytest.mark.asyncio
async def test_a_driver_that_is_gone_keeps_the_claim_until_it_is_back(node: Node) -> None:
    async with node.driver():
        await node.claim("prepared", claim(), pod=pod("p-1"))
    tree = node.tree()
    for check in (True, False):
        with pytest.raises(DraError) as failed:
            await node.claim("unprepared", pod={"metadata": {"uid": "p-1"}}, check=check)
        for part in ("team-a/c1 (u-1)", GPU, str(node.registry), "Check that the driver runs"):
            assert part in str(failed.value), part
    assert "p-1" in str(failed.value)
    assert "state=forgotten" in str(failed.value)
    assert node.tree() == tree

    async with node.driver() as driver:
        result = await node.claim("unprepared", pod={"metadata": {"uid": "p-1"}})
        assert result["released"] == ["u-1"]
        assert methods(driver) == ["unprepare u-1"]


@pytest.mark.report("F083")
@pytest.mark.asyncio
async def test_a_slow_unprepare_is_waited_for_and_one_that_never_ends_is_not(node: Node) -> None:
    async with node.driver() as driver:
        await node.claim("prepared", claim())
        driver.faults.add("hang:method=unprepare")
        started = time.monotonic()
        with pytest.raises(DraError, match=r"team-a/c1 \(u-1\) is still held.*no answer|DEADLINE"):
            await node.claim("unprepared", BARE, timeout=0.5)
        assert 0.5 <= time.monotonic() - started < 5
        driver.faults.clear()
        driver.faults.add("slow:method=unprepare,seconds=0.5")
        started = time.monotonic()
        assert (await node.claim("unprepared", BARE))["released"] == ["u-1"]
        assert 0.5 <= time.monotonic() - started < 5


# Forget


@pytest.mark.asyncio
async def test_forget_drops_the_claim_and_says_what_may_leak(node: Node) -> None:
    async with node.driver() as driver:
        await node.claim("prepared", claim())
        planned = await node.claim("forgotten", BARE, reason="it was taken out", check=True)
        done = await node.claim("forgotten", BARE, reason="it was taken out")
        again = await node.claim("forgotten", BARE, reason="it was taken out")
        assert methods(driver) == ["prepare u-1"], "drivers are not told"

    assert [one["changed"] for one in (planned, done, again)] == [True, True, False]
    assert (planned["released"], planned["forgotten"]) == (["u-1"], [])
    (gone,) = done["forgotten"]
    assert (gone["claim_uid"], gone["drivers"], gone["devices"]) == ("u-1", [GPU], [f"{GPU}/pool-0/dev-0"])
    assert "may keep devices" in gone["may_leak"][0]
    audit = [json.loads(line) for line in (node.state_directory / "dra_manager_audit.log").read_text().splitlines()]
    assert [(line["claim_uid"], line["reason"], line["by"]) for line in audit] == [
        ("u-1", "it was taken out", "a test")
    ]


@pytest.mark.parametrize("reason", ["", "  "])
@pytest.mark.asyncio
async def test_forget_without_a_reason_is_refused(node: Node, reason: str) -> None:
    async with node.driver():
        await node.claim("prepared", claim())
    tree = node.tree()
    for check in (True, False):
        with pytest.raises(DraError, match="without a reason"):
            await node.claim("forgotten", BARE, reason=reason, check=check)
    assert node.tree() == tree


# Check


STEPS = ["first prepare", "second prepare", "both prepares answer alike", "first unprepare", "second unprepare"]


@pytest.mark.report("F021")
@pytest.mark.asyncio
async def test_a_driver_that_keeps_the_contract(node: Node) -> None:
    async with node.driver() as driver:
        tree = node.tree()
        planned = await node.claim("checked", claim(), check=True)
        result = await node.claim("checked", claim())
        assert not node.state_directory.exists()
        assert set(node.tree()) - set(tree) <= {"cdi", *(path for path in node.tree() if path.startswith("plugins/"))}

    calls = [{"driver": GPU, "method": method, "claims": ["u-1"]} for method in [PREPARE] * 2 + [UNPREPARE] * 2]
    assert planned["calls"] == result["calls"] == calls
    assert methods(driver) == ["prepare u-1"] * 2 + ["unprepare u-1"] * 2
    assert driver.prepared() == {}
    assert not result["changed"]
    assert planned["conformance"] == []
    steps = [{"name": name, "ok": True, "problems": []} for name in STEPS]
    assert result["conformance"] == [{"driver": GPU, "ok": True, "steps": steps}]
    assert result["findings"] == []


@pytest.mark.report("F021")
@pytest.mark.asyncio
async def test_a_driver_that_takes_new_devices_each_time_is_told(node: Node) -> None:
    async with node.driver(GPU, "new_devices"), node.driver(NIC):
        result = await node.claim("checked", claim("c1", "u-1", device(), device(driver=NIC)))
    assert [(one["driver"], one["ok"]) for one in result["conformance"]] == [(GPU, False), (NIC, True)]
    (found,) = result["findings"]
    assert (found["code"], found["facts"]) == (
        "driver_not_conformant",
        {"driver": GPU, "step": "both prepares answer alike"},
    )
    assert "pool-0/dev-8" in found["text"]
    assert "pool-0/dev-9" in found["text"]
