# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Bad input and bad drivers: the error names claim, driver, socket and the next step, and nothing has changed.

Each is asked with and without check mode, which must refuse the same.
"""

from __future__ import annotations

import socket
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Json, Node, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import NIC, claim, device, pod

CHECK = pytest.mark.parametrize("check", [True, False], ids=["check mode", "run"])


async def refused(node: Node, *claims: Json, check: bool = False, state: str = "prepared", **changes: t.Any) -> str:
    """The message of a task that has to fail and to leave everything as it was."""
    tree = node.tree()
    with pytest.raises(DraError) as failed:
        await node.claim(state, *claims, check=check, **changes)
    assert node.tree() == tree, "nothing has changed"
    assert failed.value.hint, "there is a next step"
    return str(failed.value)


def says(message: str, *parts: str) -> None:
    missing = [part for part in parts if part not in message]
    assert not missing, f"{missing} not in: {message}"


# Drivers that are not there, or are not what they should be


@pytest.mark.report("F010")
@CHECK
@pytest.mark.asyncio
async def test_an_unknown_driver(node: Node, check: bool) -> None:
    async with node.driver(NIC):
        message = await refused(node, claim(), check=check)
        says(message, "team-a/c1 (u-1)", f"No DRA driver {GPU} is registered in {node.registry}", f"registered: {NIC}")
        says(message, "Check that the driver runs on this node")
    assert not (await node.claim("unprepared", claim()))["changed"], "nothing was left behind"


@CHECK
@pytest.mark.asyncio
async def test_one_unknown_driver_keeps_the_other_claims_from_being_touched(node: Node, check: bool) -> None:
    async with node.driver(NIC) as driver:
        other = claim("c0", "u-0", device("dev-0", NIC))
        says(await refused(node, other, claim(), check=check), "team-a/c1 (u-1)", GPU)
        assert [call for call in driver.calls if call.method == "prepare"] == []


@CHECK
@pytest.mark.asyncio
async def test_a_registration_socket_that_is_none(node: Node, check: bool) -> None:
    path = node.registry / f"{GPU}-reg.sock"
    path.write_text("not a socket")
    says(await refused(node, claim(), check=check), "team-a/c1 (u-1)", GPU, f"{path} is no socket")


@CHECK
@pytest.mark.asyncio
async def test_a_service_socket_that_is_none(node: Node, check: bool) -> None:
    path = node.root / "dra.sock"
    path.write_text("not a socket")
    async with node.driver(GPU, endpoint=str(path)):
        says(await refused(node, claim(), check=check), "team-a/c1 (u-1)", GPU, str(path), "socket")


@pytest.mark.report("F023")
@CHECK
@pytest.mark.asyncio
async def test_a_socket_that_a_killed_driver_left(node: Node, check: bool) -> None:
    path = node.registry / f"{GPU}-reg.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    says(await refused(node, claim(), check=check), "team-a/c1 (u-1)", GPU, str(path))


@CHECK
@pytest.mark.asyncio
async def test_a_driver_that_answers_the_registration_with_nonsense(node: Node, check: bool) -> None:
    async with node.driver(GPU, "nonsense:method=get_info") as driver:
        message = await refused(node, claim(), check=check)
        says(message, "team-a/c1 (u-1)", GPU, str(driver.config.registration_socket))


@pytest.mark.report("F028")
@CHECK
@pytest.mark.asyncio
async def test_a_driver_that_speaks_nothing_we_know(node: Node, check: bool) -> None:
    async with node.driver(GPU, advertise=("v9.DRAPlugin",)):
        says(await refused(node, claim(), check=check), "team-a/c1 (u-1)", GPU, "v9.DRAPlugin", "v1.DRAPlugin")


# Drivers that fail: the attempt is recorded, since the driver may hold something


async def failed(node: Node, *claims: Json, **changes: t.Any) -> str:
    """The message of a prepare whose driver was called. What may be held is recorded, and can be unprepared."""
    with pytest.raises(DraError) as error:
        await node.claim("prepared", *claims, **changes)
    assert "unprepare it" in error.value.hint, "the claim is recorded, and there is a way out"
    (known,) = node.look()["claims"]
    assert (known["uid"], known["prepared"], known["waits_for"]) == ("u-1", False, "the driver's answer to prepare")
    return str(error.value)


@pytest.mark.report("F014", "F093")
@pytest.mark.asyncio
async def test_the_text_of_a_driver_is_told_as_it_is(node: Node) -> None:
    text = "boom-42 {{ lookup('env' 'HOME') }}"
    async with node.driver(GPU, f"claim_error:text={text}"):
        says(await failed(node, claim(), holder="training.service"), text, GPU, "team-a/c1 (u-1)", "training.service")


@pytest.mark.report("F015")
@pytest.mark.parametrize("fault", ["nonsense", "skip", "unknown_uid,skip", "error:text=boom-42"])
@pytest.mark.asyncio
async def test_a_driver_that_answers_nonsense(node: Node, fault: str) -> None:
    async with node.driver(GPU, *(f"{kind}:method=prepare" if ":" not in kind else kind for kind in fault.split(","))):
        says(await failed(node, claim(), pod=pod("p-1")), GPU, "team-a/c1 (u-1)", "Pod team-a/name-of-p-1 (p-1)")


@pytest.mark.report("F023")
@pytest.mark.asyncio
async def test_a_driver_whose_service_socket_is_dead(node: Node) -> None:
    async with node.driver() as driver:
        await driver.stop_service()
        with pytest.raises(DraError) as error:
            await node.claim("prepared", claim(), timeout=0.5)
        says(str(error.value), GPU, "team-a/c1 (u-1)", str(driver.config.socket))


# Claims that may not be prepared


@pytest.mark.report("F003")
@CHECK
@pytest.mark.asyncio
async def test_a_device_that_another_claim_holds(node: Node, check: bool) -> None:
    async with node.driver():
        await node.claim("prepared", claim())
        other = claim("c2", "u-2", device("dev-0"))
        says(await refused(node, other, check=check), "team-a/c2 (u-2)", f"{GPU}/pool-0/dev-0", "team-a/c1 (u-1)")
        admin = claim("c3", "u-3", device("dev-0", adminAccess=True))
        assert (await node.claim("prepared", admin, check=check))["changed"]


@CHECK
@pytest.mark.asyncio
async def test_a_device_that_two_claims_of_one_task_were_given(node: Node, check: bool) -> None:
    async with node.driver() as driver:
        message = await refused(node, claim(), claim("c2", "u-2"), check=check)
        says(message, "team-a/c2 (u-2)", f"{GPU}/pool-0/dev-0", "team-a/c1 (u-1)")
        assert [call for call in driver.calls if call.method == "prepare"] == []


@pytest.mark.report("F004")
@CHECK
@pytest.mark.asyncio
async def test_a_claim_that_was_made_anew_under_its_name(node: Node, check: bool) -> None:
    new = claim("c1", "u-2", device("dev-1"))
    async with node.driver() as driver:
        await node.claim("prepared", claim())
        says(await refused(node, new, check=check), "team-a/c1", "u-2", "u-1 still exists here")
        await node.claim("unprepared", {"metadata": {"uid": "u-1"}})
        await node.claim("prepared", new)
        assert driver.calls[-1].uids == ["u-2"]


@pytest.mark.report("F019")
@CHECK
@pytest.mark.asyncio
async def test_a_claim_that_is_not_reserved_for_the_pod(node: Node, check: bool) -> None:
    async with node.driver():
        message = await refused(node, claim(pods=("p-old",)), pod=pod("p-new"), check=check)
        says(message, "p-new", "c1", "u-1", "p-old", "DynamicResourceAllocation")


@pytest.mark.parametrize(
    ("made", "parts"),
    [
        pytest.param(claim(allocation=None), ("team-a/c1 (u-1)", "not allocated"), id="not allocated"),
        pytest.param(
            claim(allocation={"devices": {"results": []}}), ("team-a/c1 (u-1)", "no results"), id="without results"
        ),
        pytest.param(claim(allocation={}), ("team-a/c1 (u-1)", "no results"), id="empty allocation"),
        pytest.param(claim("a/b"), ("a/b", "metadata.name"), id="name with a slash"),
        pytest.param(claim(uid="../../etc"), ("../../etc", "metadata.uid"), id="UID with a slash"),
        pytest.param(claim("c1", "u-1", device(driver="../gpu")), ("team-a/c1", "../gpu"), id="driver with a slash"),
        pytest.param(claim("c1", "u-1", device("a/b")), ("team-a/c1", "a/b"), id="device with a slash"),
        pytest.param({**claim(), "metadata": {"name": "c1"}}, ("c1", "namespace"), id="no namespace"),
        pytest.param({**claim(), "kind": "Pod"}, ("Pod", "ResourceClaim"), id="another kind"),
        pytest.param({**claim(), "status": "allocated"}, ("team-a/c1", "status"), id="status is a text"),
    ],
)
@CHECK
@pytest.mark.asyncio
async def test_a_claim_that_cannot_be_used(node: Node, made: Json, parts: tuple[str, ...], check: bool) -> None:
    async with node.driver() as driver:
        says(await refused(node, made, check=check), *parts)
        assert [call for call in driver.calls if call.method == "prepare"] == []


@pytest.mark.parametrize("holder", ["", "  ", "a\nb"])
@pytest.mark.asyncio
async def test_a_holder_without_a_name(node: Node, holder: str) -> None:
    says(await refused(node, claim(), holder=holder), "expected a name")


@pytest.mark.parametrize("holder", ["", "  ", "a\nb"])
@pytest.mark.asyncio
async def test_nobody_without_a_name_gives_a_claim_back(node: Node, holder: str) -> None:
    node.manager_has(recorded())
    says(await refused(node, claim(), state="unprepared", holder=holder), "expected a name")


@pytest.mark.parametrize("timeout", [0.0, -1.0])
@pytest.mark.asyncio
async def test_a_time_that_is_none(node: Node, timeout: float) -> None:
    says(await refused(node, claim(), timeout=timeout), f"{timeout:g} s", "expected more than 0")


@CHECK
@pytest.mark.asyncio
async def test_a_claim_of_the_pod_that_was_not_given(node: Node, check: bool) -> None:
    message = await refused(node, claim(), pod=pod("p-1", "c1", "c2"), check=check)
    says(message, "ResourceClaim team-a/c2 was not given", "Give its manifest too")


# What is to be unprepared or forgotten


@pytest.mark.parametrize("state", ["unprepared", "forgotten"])
@pytest.mark.parametrize(
    ("given", "part"),
    [
        pytest.param({"claims": ({"name": "c1", "namespace": "team-a"},)}, "metadata.uid", id="no metadata"),
        pytest.param({"claims": ({"metadata": {"name": "c1"}},)}, "name 'c1'", id="no namespace"),
        pytest.param({"claims": ({"metadata": "c1"},)}, "metadata.uid", id="metadata is a text"),
        pytest.param({"pod": {"metadata": {"namespace": "team-a", "name": "p"}}}, "metadata.uid", id="pod by name"),
        pytest.param({}, "Give claims or pod", id="nothing"),
    ],
)
@pytest.mark.asyncio
async def test_it_must_be_clear_what_is_meant(node: Node, state: str, given: Json, part: str) -> None:
    says(await refused(node, *given.get("claims", ()), state=state, reason="a test", pod=given.get("pod")), part)


@pytest.mark.parametrize("state", ["prepared", "unprepared", "forgotten"])
@CHECK
@pytest.mark.asyncio
async def test_a_damaged_state_file_stops_everything(node: Node, state: str, check: bool) -> None:
    async with node.driver():
        await node.claim("prepared", claim())
        path = node.state_directory / "dra_manager_state"
        path.write_bytes(path.read_bytes().replace(b"u-1", b"u-7"))
        message = await refused(node, claim(), state=state, reason="a test", check=check)
        says(message, str(path), "checksum", "nodeops.dra.checkpoint")


@CHECK
@pytest.mark.asyncio
async def test_a_state_directory_that_cannot_be_made(node: Node, check: bool) -> None:
    (node.root / "file").touch()
    async with node.driver():
        message = await refused(node, claim(), state_directory=str(node.root / "file" / "below"), check=check)
        says(message, str(node.root / "file"))


# Drivers that are to be checked


@pytest.mark.report("F021")
@CHECK
@pytest.mark.asyncio
async def test_drivers_are_not_checked_with_claims_that_are_in_use(node: Node, check: bool) -> None:
    async with node.driver() as driver:
        await node.claim("prepared", claim())
        says(await refused(node, claim(), state="checked", check=check), "team-a/c1 (u-1)", "lose its devices")
        node.kubelet_has(recorded("u-2", "c2", "dev-1"))
        other = claim("c2", "u-2", device("dev-1"))
        says(await refused(node, other, state="checked", check=check), "team-a/c2 (u-2)", "lose its devices")
        spare = claim("c3", "u-3", device("dev-3"))
        says(await refused(node, spare, state="checked", check=check, pod=pod("p-1", "c3")), "without a pod")
        taken = claim("c4", "u-4", device("dev-0"))
        says(await refused(node, taken, state="checked", check=check), "team-a/c4 (u-4)", "team-a/c1 (u-1)")
        assert [call.uids for call in driver.calls if call.method.endswith("prepare")] == [["u-1"]]
