# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One client for every generation of drivers, over real sockets."""

from __future__ import annotations

import asyncio
import pathlib
import time
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.driver.claims import (
    ClaimRef,
    Device,
    PrepareResult,
    ResourceHandle,
)
from ansible_collections.nodeops.dra.plugins.module_utils.driver.connection import CallError
from ansible_collections.nodeops.dra.plugins.module_utils.driver.errors import (
    PERMANENT_CODES,
    DriverCallFailed,
    call_failed,
)
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver import SimulatedDriver
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_calls import AskedClaim
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_faults import Fault
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_store import PreparedDevice
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.driver.world import (
    FAST,
    NAME,
    changed,
    claims,
    config,
    driver_and_client,
    driver_process,
    registry,
    within,
)

GENERATIONS = {
    "v1": {"apis": ("v1",)},
    "v1beta1": {"apis": ("v1beta1",)},
    "v1alpha4 of 1.32": {"apis": ("v1alpha4",)},
    "v1alpha4 of 1.31": {"apis": ("v1alpha4",), "advertise": ("1.0.0",)},
    "v1alpha3": {"apis": ("v1alpha3",)},
    "v1alpha3 and v1alpha2": {"apis": ("v1alpha3", "v1alpha2")},
    "v1alpha2": {"apis": ("v1alpha2",)},
}
OLD = ("v1alpha3", "v1alpha3 and v1alpha2", "v1alpha2")  # know no device names
every_generation = pytest.mark.parametrize("generation", list(GENERATIONS))
batched_generations = pytest.mark.parametrize("generation", [name for name in GENERATIONS if name != "v1alpha2"])


def device(generation: str, uid: str, number: int) -> Device:
    """What the simulated driver prepares for a claim, as the generation can tell it."""
    cdi = (f"k8s.{NAME}/claim={uid}-dev-{number}",)
    return Device("", "", (), cdi) if generation in OLD else Device("pool-0", f"dev-{number}", (), cdi)


@every_generation
@pytest.mark.asyncio
async def test_prepare_and_unprepare_in_every_generation(root: pathlib.Path, generation: str) -> None:
    async with driver_and_client(root, **GENERATIONS[generation]) as (driver, client):
        expected = {
            "u-1": PrepareResult((device(generation, "u-1", 0),)),
            "u-2": PrepareResult((device(generation, "u-2", 1),)),
        }
        assert await client.prepare(claims("u-1", "u-2")) == expected
        assert await client.prepare(claims("u-2", "u-1")) == expected
        results = await client.unprepare(claims("u-1", "u-2", "u-unknown"))
        assert {uid: result.error for uid, result in results.items()} == {"u-1": None, "u-2": None, "u-unknown": None}
        assert driver.prepared() == {}
        asked = [claim for call in driver.claim_calls for claim in call.claims]
        assert {(c.namespace, c.name) for c in asked} == {("team-a", f"claim-of-{c.uid}") for c in asked}


@every_generation
@pytest.mark.asyncio
async def test_the_error_of_one_claim_is_its_own(root: pathlib.Path, generation: str) -> None:
    async with driver_and_client(root, **GENERATIONS[generation]) as (driver, client):
        driver.faults.add("claim_error:uids=u-2,text=the device is é broken")
        for call in (client.prepare, client.unprepare):
            results = await call(claims("u-1", "u-2", "u-3"))
            assert results["u-1"].error is None
            assert results["u-3"].error is None
            error = results["u-2"].error
            assert isinstance(error, DriverCallFailed)
            assert "the device is é broken" in error.message
            assert (error.driver, error.text, error.permanent) == (NAME, "the device is é broken", False)
            if generation != "v1alpha2":  # there each claim has a call of its own
                assert error.code == "CLAIM"
                for text in (NAME, "team-a/claim-of-u-2", "u-2"):
                    assert text in error.message


@every_generation
@pytest.mark.asyncio
async def test_5000_claims_in_one_answer(root: pathlib.Path, generation: str) -> None:
    count = 50 if generation == "v1alpha2" else 5000  # one call each there
    settings = {**GENERATIONS[generation], "devices": count}
    async with driver_and_client(root, changed(FAST, call=45.0), **settings) as (driver, client):
        driver.faults.add("no_cdi")  # 5000 files are not the point here
        results = await client.prepare(claims(*(f"u-{number}" for number in range(count))))
        assert len(results) == count
        assert all(result.error is None for result in results.values())
        cdi = [name for result in results.values() for d in result.devices or () for name in d.cdi_device_ids]
        assert len(set(cdi)) == count
        undone = await client.unprepare(claims(*results))
        assert all(result.error is None for result in undone.values())
        assert driver.prepared() == {}


@pytest.mark.asyncio
async def test_answers_above_the_4_mib_of_grpc_arrive(root: pathlib.Path) -> None:
    async def allocate(claim: AskedClaim) -> list[PreparedDevice]:
        return [PreparedDevice("p", "d", cdi_ids=("x.y/z=" + "n" * 2000,))]

    settings = config(root)
    async with SimulatedDriver(settings, [Fault("no_cdi")], allocate=allocate), registry(root) as drivers:
        client = await drivers.get(NAME)
        results = await client.prepare(claims(*(f"u-{number}" for number in range(5000))), timeout=30)
        assert all(result.devices for result in results.values())


@pytest.mark.asyncio
async def test_all_fields_of_a_device_arrive(root: pathlib.Path) -> None:
    async def allocate(claim: AskedClaim) -> list[PreparedDevice]:
        return [
            PreparedDevice("pool-a", "d0", ("gpu", "nic"), ("x.y/z=1", "x.y/z=2"), "share-1"),
            PreparedDevice("pool-b", "d1", (), ("x.y/z=3",)),
        ]

    async with SimulatedDriver(config(root), allocate=allocate), registry(root) as drivers:
        results = await (await drivers.get(NAME)).prepare(claims("u-1"))
        assert results["u-1"].devices == (
            Device("pool-a", "d0", ("gpu", "nic"), ("x.y/z=1", "x.y/z=2"), "share-1"),
            Device("pool-b", "d1", (), ("x.y/z=3",), None),
        )


# Answers that are not as they should be


@pytest.mark.report("F015")
@batched_generations
@pytest.mark.asyncio
async def test_a_claim_left_out_is_an_error_of_that_claim(root: pathlib.Path, generation: str) -> None:
    async with driver_and_client(root, **GENERATIONS[generation]) as (driver, client):
        driver.faults.add("skip:uids=u-1")
        for call in (client.prepare, client.unprepare):
            results = await call(claims("u-1", "u-2"))
            error = results["u-1"].error
            assert isinstance(error, DriverCallFailed)
            assert "left the claim team-a/claim-of-u-1 (UID u-1) out of its answer" in error.message
            assert (error.code, error.permanent) == ("ANSWER", False)
            assert results["u-2"].error is None
        driver.faults.add("skip")
        assert all(result.error for result in (await client.prepare(claims("u-1", "u-2"))).values())


@pytest.mark.report("F015")
@batched_generations
@pytest.mark.asyncio
async def test_an_answer_for_a_claim_nobody_asked_about_is_an_error(root: pathlib.Path, generation: str) -> None:
    async with driver_and_client(root, **GENERATIONS[generation]) as (driver, client):
        driver.faults.add("unknown_uid")
        for call in (client.prepare, client.unprepare):
            with pytest.raises(DriverCallFailed, match="claims nobody asked about: uid-nobody-asked-for") as caught:
                await call(claims("u-1"))
            assert caught.value.code == "ANSWER"


@pytest.mark.report("F015")
@every_generation
@pytest.mark.asyncio
async def test_an_empty_answer_for_a_claim_is_success_without_devices(root: pathlib.Path, generation: str) -> None:
    async with driver_and_client(root, **GENERATIONS[generation]) as (driver, client):
        driver.faults.add("blank")
        assert await client.prepare(claims("u-1")) == {"u-1": PrepareResult(())}
        assert (await client.unprepare(claims("u-1")))["u-1"].error is None


@every_generation
@pytest.mark.asyncio
async def test_nonsense_is_told_with_driver_and_socket_and_is_permanent(root: pathlib.Path, generation: str) -> None:
    async with driver_and_client(root, **GENERATIONS[generation]) as (driver, client):
        driver.faults.add("nonsense:method=prepare")
        if generation == "v1alpha2":
            error = (await client.prepare(claims("u-1")))["u-1"].error
        else:
            with pytest.raises(DriverCallFailed) as caught:
                await client.prepare(claims("u-1"))
            error = caught.value
        assert isinstance(error, DriverCallFailed)
        assert "answered nonsense" in error.message
        for text in (NAME, str(driver.config.socket)):
            assert text in error.message
        assert error.permanent


# Failures of a whole call


@every_generation
@pytest.mark.asyncio
async def test_a_failed_call_tells_driver_socket_status_and_text(root: pathlib.Path, generation: str) -> None:
    async with driver_and_client(root, **GENERATIONS[generation]) as (driver, client):
        driver.faults.add("error:code=INVALID_ARGUMENT,text=bad config")
        if generation == "v1alpha2":
            error = (await client.prepare(claims("u-1")))["u-1"].error
        else:
            with pytest.raises(DriverCallFailed) as caught:
                await client.prepare(claims("u-1"))
            error = caught.value
        assert isinstance(error, DriverCallFailed)
        socket = str(driver.config.socket)
        assert error.message == f"The driver {NAME} failed prepare at {socket}: INVALID_ARGUMENT, bad config."
        assert error.facts == {
            "driver": NAME,
            "method": "prepare",
            "socket": socket,
            "code": "INVALID_ARGUMENT",
            "text": "bad config",
            "permanent": True,
        }
        assert len(driver.claim_calls) == 1  # not repeated


@pytest.mark.parametrize(
    ("code", "text", "permanent"),
    [
        *((code, "", True) for code in sorted(PERMANENT_CODES)),
        *(
            (code, "", False)
            for code in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED", "UNKNOWN", "INTERNAL", "NOT_FOUND")
        ),
        ("RESOURCE_EXHAUSTED", "out of memory", False),
        ("RESOURCE_EXHAUSTED", "CLIENT: Received message larger than max (5 vs. 4)", True),
    ],
)
def test_permanent_and_passing_failures(code: str, text: str, permanent: bool) -> None:
    assert call_failed("d", "prepare", "/s", code, text).permanent is permanent


@every_generation
@pytest.mark.asyncio
async def test_a_deadline_is_kept_and_the_connection_stays_good(root: pathlib.Path, generation: str) -> None:
    async with driver_and_client(root, **GENERATIONS[generation]) as (driver, client):
        driver.faults.add("hang:method=prepare,times=1")
        started = time.monotonic()
        if generation == "v1alpha2":
            results = await client.prepare(claims("u-1", "u-2"), timeout=1.0)
            # The second claim is not tried: it would hang as long again.
            assert {t.cast("t.Any", result.error).code for result in results.values()} == {"DEADLINE_EXCEEDED"}
            assert len(driver.claim_calls) == 1
        else:
            with pytest.raises(DriverCallFailed, match=r"DEADLINE_EXCEEDED, .*\(after [0-9.]+ s\)") as caught:
                await client.prepare(claims("u-1"), timeout=1.0)
            assert not caught.value.permanent
            assert "may still be at work" in caught.value.hint
        assert time.monotonic() - started < within(3.0)
        assert (await client.unprepare(claims("u-1")))["u-1"].error is None
        assert [call.method for call in driver.claim_calls] == ["prepare", "unprepare"]


@pytest.mark.report("F036")
@every_generation
@pytest.mark.asyncio
async def test_unavailable_is_repeated_once(root: pathlib.Path, generation: str) -> None:
    async with driver_and_client(root, **GENERATIONS[generation]) as (driver, client):
        driver.faults.add("error:code=UNAVAILABLE,times=1")
        assert (await client.prepare(claims("u-1")))["u-1"].error is None
        assert len(driver.claim_calls) == 2
        driver.faults.add("error:code=UNAVAILABLE,times=2")
        if generation == "v1alpha2":
            assert (await client.prepare(claims("u-1")))["u-1"].error is not None
        else:
            with pytest.raises(DriverCallFailed, match="UNAVAILABLE"):
                await client.prepare(claims("u-1"))
        assert len(driver.claim_calls) == 4


@pytest.mark.report("F036")
@pytest.mark.parametrize("lost_when_repeated", [True, False])
@pytest.mark.asyncio
async def test_a_repeat_on_a_connection_that_was_already_broken_does_not_count(
    root: pathlib.Path, monkeypatch: pytest.MonkeyPatch, lost_when_repeated: bool
) -> None:
    """On a busy machine gRPC tells of the loss only after the call was repeated."""
    async with driver_and_client(root) as (driver, client):
        connection = client._instances.of(NAME)[0].connection
        real, tries = connection.call, 0

        async def broken_twice(path: str, request: bytes, timeout: float) -> bytes:
            nonlocal tries
            tries += 1
            if tries == 2:
                connection.lost += lost_when_repeated
            if tries <= 2:
                raise CallError("UNAVAILABLE", "Broken pipe")
            return await real(path, request, timeout)

        monkeypatch.setattr(connection, "call", broken_twice)
        if lost_when_repeated:
            assert (await client.prepare(claims("u-1")))["u-1"].error is None
        else:
            with pytest.raises(DriverCallFailed, match="Broken pipe"):
                await client.prepare(claims("u-1"))
        assert tries == (3 if lost_when_repeated else 2)
        assert len(driver.claim_calls) == (1 if lost_when_repeated else 0)


@pytest.mark.report("F036")
@pytest.mark.asyncio
async def test_a_call_waits_for_a_driver_that_is_just_coming_back(root: pathlib.Path) -> None:
    settings = config(root)
    async with SimulatedDriver(settings) as driver, registry(root, changed(FAST, connect_wait=3.0)) as drivers:
        client = await drivers.wait_for(NAME, 20)
        await driver.stop_service()
        call = asyncio.create_task(client.prepare(claims("u-1")))
        await drivers._instances.signal.until(lambda: not client.connected, 20)
        await driver.start_service()
        assert (await call)["u-1"].error is None


@pytest.mark.report("F023")
@pytest.mark.asyncio
async def test_a_driver_that_is_down_fails_soon_and_by_name(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root)) as driver, registry(root, changed(FAST, connect_wait=0.2)) as drivers:
        client = await drivers.wait_for(NAME, 20)
        await driver.stop_service()
        started = time.monotonic()
        with pytest.raises(DriverCallFailed, match=f"{NAME} failed prepare at {driver.config.socket}: UNAVAILABLE"):
            await client.prepare(claims("u-1"))
        assert time.monotonic() - started < within(2.0)


@pytest.mark.asyncio
async def test_many_claims_of_a_v1alpha2_driver_that_is_down_wait_only_once(root: pathlib.Path) -> None:
    timings = changed(FAST, connect_wait=0.2)
    async with driver_and_client(root, timings, apis=("v1alpha2",)) as (driver, client):
        await client.prepare(claims("u-0"))
        await driver.stop_service()
        started = time.monotonic()
        results = await client.prepare(claims(*(f"u-{number}" for number in range(50))))
        assert time.monotonic() - started < within(5.0)
        assert {t.cast("t.Any", result.error).code for result in results.values()} == {"UNAVAILABLE"}


@pytest.mark.report("F036")
@pytest.mark.asyncio
async def test_a_driver_killed_after_the_work_is_asked_again_when_it_is_back(root: pathlib.Path) -> None:
    async with registry(root, changed(FAST, connect_wait=40.0)) as drivers:
        async with driver_process(root, "--fault", "crash_after:method=prepare") as process:
            client = await drivers.wait_for(NAME, 20)
            call = asyncio.create_task(client.prepare(claims("u-1"), timeout=50))
            await process.wait()
        async with driver_process(root):
            assert (await call)["u-1"].devices == (device("v1", "u-1", 0),)


@pytest.mark.asyncio
async def test_a_cancelled_prepare_is_cancelled(root: pathlib.Path) -> None:
    async with driver_and_client(root) as (driver, client):
        driver.faults.add("hang")
        call = asyncio.create_task(client.prepare(claims("u-1")))
        await driver.wait_for(lambda: len(driver.claim_calls) == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


@pytest.mark.asyncio
async def test_no_claims_is_no_call_and_one_claim_twice_is_one(root: pathlib.Path) -> None:
    async with driver_and_client(root) as (driver, client):
        assert await client.prepare([]) == {}
        assert await client.unprepare([]) == {}
        assert driver.claim_calls == []
        assert list(await client.prepare(claims("u-1", "u-1"))) == ["u-1"]
        assert driver.claim_calls[0].uids == ["u-1"]


@every_generation
@pytest.mark.asyncio
async def test_a_probe_shows_that_the_service_answers(root: pathlib.Path, generation: str) -> None:
    async with driver_and_client(root, changed(FAST, connect_wait=0.2), **GENERATIONS[generation]) as (driver, client):
        await client.prepare(claims("u-1"))
        await client.probe()
        assert client.connected
        assert list(driver.prepared()) == ["u-1"]
        await driver.stop_service()
        with pytest.raises(DriverCallFailed, match="UNAVAILABLE"):
            await client.probe()
        assert not client.connected


# Classic DRA


def handled(uid: str, *handles: ResourceHandle) -> ClaimRef:
    return ClaimRef(uid, "team-a", "c", handles)


@pytest.mark.report("F028")
@pytest.mark.asyncio
async def test_v1alpha3_gets_the_handles_of_this_driver_only(root: pathlib.Path) -> None:
    structured = {"nodeName": "n", "results": [{"namedResources": {"name": "gpu-7"}}]}
    own, nameless = ResourceHandle(NAME, "own"), ResourceHandle("", "nameless")
    both = [
        handled("u-1", own, ResourceHandle("other.example.com", "foreign")),
        handled("u-2", nameless),
        handled("u-3", ResourceHandle(NAME, "ignored", structured)),
        handled("u-4", ResourceHandle("other.example.com", "foreign")),
    ]
    async with driver_and_client(root, apis=("v1alpha3",)) as (driver, client):
        assert all(result.error is None for result in (await client.prepare(both)).values())
        await client.unprepare(both)
        for call in driver.claim_calls:
            assert [claim.handle for claim in call.claims] == ["own", "nameless", "", ""]
            assert call.claims[2].structured == {
                "nodeName": "n",
                "results": [{"allocationResultModel": {"namedResources": {"name": "gpu-7"}}}],
            }


@pytest.mark.parametrize("api", ["v1alpha3", "v1alpha2"])
@pytest.mark.asyncio
async def test_several_handles_of_one_claim_are_called_one_by_one_and_merged(root: pathlib.Path, api: str) -> None:
    async def allocate(claim: AskedClaim) -> list[PreparedDevice]:
        return [PreparedDevice("", "", cdi_ids=(f"x.y/z={claim.uid}-{claim.handle}",))]

    asked = [handled("u-1", *(ResourceHandle(NAME, text) for text in "abc")), handled("u-2", ResourceHandle(NAME, "d"))]
    async with SimulatedDriver(config(root, apis=(api,)), allocate=allocate) as driver, registry(root) as drivers:
        client = await drivers.get(NAME)
        results = await client.prepare(asked)
        assert {uid: [d.cdi_device_ids for d in result.devices or ()] for uid, result in results.items()} == {
            "u-1": [("x.y/z=u-1-a",), ("x.y/z=u-1-b",), ("x.y/z=u-1-c",)],
            "u-2": [("x.y/z=u-2-d",)],
        }
        for call in driver.calls_of("prepare"):
            assert len(set(call.uids)) == len(call.uids)  # never a claim twice in one call: answers are keyed by claim
        driver.faults.add("claim_error:uids=u-1,text=no,times=1")
        error = (await client.prepare(asked))["u-1"].error
        assert isinstance(error, DriverCallFailed)
        assert error.text == "no"


@pytest.mark.report("F028")
@pytest.mark.asyncio
async def test_unimplemented_falls_back_to_v1alpha2_for_the_rest_of_the_registration(root: pathlib.Path) -> None:
    async with driver_and_client(root, apis=("v1alpha2",)) as (driver, client):
        await client.prepare([handled("u-1", ResourceHandle(NAME, "opaque"))])
        instance = client._instances.of(NAME)[0]
        assert instance.only_v1alpha2
        await client.unprepare([handled("u-1", ResourceHandle(NAME, "opaque"))])
        assert {call.service for call in driver.claim_calls} == {"v1alpha2.Node"}
        assert [claim.handle for call in driver.claim_calls for claim in call.claims] == ["opaque", "opaque"]


@pytest.mark.report("F028")
@pytest.mark.asyncio
async def test_a_service_that_is_advertised_but_not_served_is_told_as_permanent(root: pathlib.Path) -> None:
    async with driver_and_client(root, apis=("v1beta1",), advertise=("v1.DRAPlugin",)) as (_driver, client):
        with pytest.raises(DriverCallFailed, match="UNIMPLEMENTED") as caught:
            await client.prepare(claims("u-1"))
        assert caught.value.permanent
        assert "does not serve the API version it advertises" in caught.value.hint
