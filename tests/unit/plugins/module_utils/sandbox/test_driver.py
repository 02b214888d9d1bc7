# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The simulated driver over real sockets, seen by a bare gRPC client."""

from __future__ import annotations

import asyncio
import json
import pathlib
import stat
import typing as t

import grpc
import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver import DriverConfig, SimulatedDriver
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_calls import AskedClaim, read_calls
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_faults import KINDS, Fault, parse_fault
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_store import PreparedDevice
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.sandbox.raw_client import RawClient, connect
from google.protobuf.message import DecodeError

NAME = "gpu.example.com"
BATCHED = ["v1", "v1beta1", "v1alpha4", "v1alpha3"]


def config(root: pathlib.Path, **changes: t.Any) -> DriverConfig:
    return DriverConfig(**{"name": NAME, "kubelet_root": root, "cdi_dir": root / "cdi", **changes})


def claims(*uids: str) -> list[dict[str, str]]:
    return [{"namespace": "team-a", "uid": uid, "name": f"claim-of-{uid}"} for uid in uids]


async def prepare(client: RawClient, *uids: str, api: str = "v1", **more: t.Any) -> t.Any:
    return await client.call(f"dra/{api}", "NodePrepareResources", claims=claims(*uids), **more)


async def unprepare(client: RawClient, *uids: str, api: str = "v1") -> t.Any:
    return await client.call(f"dra/{api}", "NodeUnprepareResources", claims=claims(*uids))


def cdi_names(entry: t.Any) -> list[str]:
    if "cdi_devices" in entry.DESCRIPTOR.fields_by_name:
        return list(entry.cdi_devices)
    return [name for device in entry.devices for name in device.cdi_device_ids]


@pytest.mark.asyncio
@pytest.mark.parametrize("api", BATCHED)
async def test_each_generation_prepares_and_unprepares(root: pathlib.Path, api: str) -> None:
    async with SimulatedDriver(config(root, apis=(api,))) as driver, connect(driver.config.socket) as client:
        answer = await prepare(client, "u-1", "u-2", api=api)
        assert {uid: cdi_names(entry) for uid, entry in answer.claims.items()} == {
            "u-1": [f"k8s.{NAME}/claim=u-1-dev-0"],
            "u-2": [f"k8s.{NAME}/claim=u-2-dev-1"],
        }
        again = await prepare(client, "u-1", "u-2", api=api)
        assert again == answer
        undone = await unprepare(client, "u-1", "u-7", api=api)
        assert {uid: entry.error for uid, entry in undone.claims.items()} == {"u-1": "", "u-7": ""}
        assert list(driver.prepared()) == ["u-2"]
        assert [(call.method, call.uids, call.outcome) for call in driver.calls] == [
            ("prepare", ["u-1", "u-2"], "ok"),
            ("prepare", ["u-1", "u-2"], "ok"),
            ("unprepare", ["u-1", "u-7"], "ok"),
        ]


@pytest.mark.asyncio
async def test_v1alpha2_prepares_one_claim_a_call(root: pathlib.Path) -> None:
    fields = {"namespace": "team-a", "claim_uid": "u-1", "claim_name": "c1", "resource_handle": "opaque"}
    other = {**fields, "claim_uid": "u-2", "claim_name": "c2"}
    settings = config(root, apis=("v1alpha2",), devices=1)
    async with SimulatedDriver(settings) as driver, connect(settings.socket) as client:
        answer = await client.call("dra/v1alpha2", "NodePrepareResource", **fields)
        assert list(answer.cdi_devices) == [f"k8s.{NAME}/claim=u-1-dev-0"]
        assert driver.calls[0].claims == (AskedClaim("u-1", "team-a", "c1", "opaque"),)
        with pytest.raises(grpc.aio.AioRpcError, match="no free device for claim team-a/c2"):
            await client.call("dra/v1alpha2", "NodePrepareResource", **other)
        await client.call("dra/v1alpha2", "NodeUnprepareResource", **fields)
        assert driver.prepared() == {}


@pytest.mark.asyncio
async def test_structured_handles_of_1_30_are_recorded(root: pathlib.Path) -> None:
    handle = {"nodeName": "n", "results": [{"allocationResultModel": {"namedResources": {"name": "gpu-7"}}}]}
    async with SimulatedDriver(config(root, apis=("v1alpha3",))) as driver, connect(driver.config.socket) as client:
        claim = {**claims("u-1")[0], "structured_resource_handle": [handle]}
        await client.call("dra/v1alpha3", "NodePrepareResources", claims=[claim])
        assert driver.calls[0].claims[0].structured == handle


@pytest.mark.asyncio
async def test_cdi_files_are_real_and_follow_the_claims(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root, devices_per_claim=2)) as driver, connect(driver.config.socket) as client:
        await prepare(client, "7a")
        path = driver.cdi.path("7a")
        assert path.name == f"k8s.{NAME}-claim_7a.json"
        assert json.loads(path.read_text()) == {
            "cdiVersion": "0.5.0",
            "kind": f"k8s.{NAME}/claim",
            "devices": [
                {"name": "7a-dev-0", "containerEdits": {"env": ["DRA_DEVICE_DEV_0=team-a/claim-of-7a"]}},
                {"name": "7a-dev-1", "containerEdits": {"env": ["DRA_DEVICE_DEV_1=team-a/claim-of-7a"]}},
            ],
        }
        path.unlink()
        await prepare(client, "7a")  # like after a reboot: the file is written again
        assert path.exists()
        await unprepare(client, "7a")
        assert list((root / "cdi").iterdir()) == []


@pytest.mark.asyncio
async def test_devices_run_out_and_may_be_shared(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root, devices=1)) as driver, connect(driver.config.socket) as client:
        answer = await prepare(client, "u-1", "u-2")
        assert answer.claims["u-2"].error == "no free device for claim team-a/claim-of-u-2"
        assert answer.claims["u-1"].error == ""
    settings = config(root, devices=1, share_devices=True)
    async with SimulatedDriver(settings), connect(settings.socket) as client:
        assert (await prepare(client, "u-2")).claims["u-2"].devices[0].device_name == "dev-0"


@pytest.mark.asyncio
async def test_allocation_can_come_from_outside(root: pathlib.Path) -> None:
    async def allocate(claim: AskedClaim) -> list[PreparedDevice]:
        return [PreparedDevice("p", f"of-{claim.uid}", requests=("gpu",), share_id="s")]

    async with SimulatedDriver(config(root), allocate=allocate) as driver, connect(driver.config.socket) as client:
        device = (await prepare(client, "u-1")).claims["u-1"].devices[0]
        assert (device.pool_name, device.device_name, list(device.request_names), device.share_id) == (
            "p", "of-u-1", ["gpu"], "s",
        )  # fmt: skip


@pytest.mark.asyncio
@pytest.mark.parametrize("uid", ["../u-1", "u/1", "", "u-1/../../x", "-u"])
async def test_uids_that_are_no_file_names_are_refused(root: pathlib.Path, uid: str) -> None:
    async with SimulatedDriver(config(root)) as driver, connect(driver.config.socket) as client:
        assert "cannot be used in a file name" in (await prepare(client, uid)).claims[uid].error
        assert "cannot be used in a file name" in (await unprepare(client, uid)).claims[uid].error
        assert driver.prepared() == {}


@pytest.mark.asyncio
async def test_prepared_claims_survive_a_kill(root: pathlib.Path) -> None:
    driver = SimulatedDriver(config(root))
    await driver.start()
    async with connect(driver.config.socket) as client:
        first = await prepare(client, "u-1")
    await driver.kill()
    for path in (driver.config.socket, driver.config.registration_socket):
        assert stat.S_ISSOCK(path.stat().st_mode)
    async with SimulatedDriver(config(root)) as again, connect(again.config.socket) as client:
        assert await prepare(client, "u-1") == first
        assert await prepare(client, "u-2") != first


@pytest.mark.asyncio
async def test_a_clean_stop_removes_both_sockets(root: pathlib.Path) -> None:
    driver = SimulatedDriver(config(root))
    await driver.start()
    await driver.stop()
    assert not driver.config.socket.exists()
    assert not driver.config.registration_socket.exists()


@pytest.mark.asyncio
async def test_two_instances_share_claims_and_leave_each_others_sockets(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root, instance="new")) as new:
        async with SimulatedDriver(config(root, instance="old")) as old, connect(old.config.socket) as client:
            await prepare(client, "u-1")
        async with connect(new.config.socket) as client:
            assert (await prepare(client, "u-1", "u-2")).claims["u-1"].devices[0].device_name == "dev-0"
        assert new.config.registration_socket.exists()


@pytest.mark.asyncio
async def test_a_socket_that_was_taken_over_is_not_removed(root: pathlib.Path) -> None:
    old = SimulatedDriver(config(root))
    await old.start()
    async with SimulatedDriver(config(root)) as new:
        await old.stop()
        assert new.config.registration_socket.exists()
        assert new.config.socket.exists()


@pytest.mark.asyncio
async def test_damaged_state_file_is_told_in_words(root: pathlib.Path) -> None:
    driver = SimulatedDriver(config(root))
    driver.config.plugin_dir.mkdir(parents=True)
    driver.config.state_file.write_text('{"claims": 3}')
    with pytest.raises(DraError, match="is damaged"):
        driver.prepared()


# Registration


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("changes", "versions"),
    [
        ({}, ["v1.DRAPlugin", "v1beta1.DRAPlugin"]),
        ({"apis": ("v1beta1", "v1alpha4")}, ["v1beta1.DRAPlugin", "v1alpha3.NodeService"]),
        ({"apis": ("v1alpha3", "v1alpha2")}, ["1.0.0"]),
        ({"health": ("v1alpha1",)}, ["v1.DRAPlugin", "v1beta1.DRAPlugin", "v1alpha1.DRAResourceHealth"]),
        ({"advertise": ()}, []),
        ({"advertise": ("v9.DRAPlugin",)}, ["v9.DRAPlugin"]),
    ],
)
async def test_get_info_tells_what_is_served(
    root: pathlib.Path, changes: dict[str, t.Any], versions: list[str]
) -> None:
    async with SimulatedDriver(config(root, **changes)) as driver:
        async with connect(driver.config.registration_socket) as client:
            info = await client.call("registration/v1", "GetInfo")
        assert (info.type, info.name, info.endpoint) == ("DRAPlugin", NAME, str(driver.config.socket))
        assert list(info.supported_versions) == versions


@pytest.mark.asyncio
async def test_notifications_are_recorded_and_bad_ones_answered_with_an_error(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root)) as driver, connect(driver.config.registration_socket) as client:
        await client.call("registration/v1", "NotifyRegistrationStatus", plugin_registered=True)
        with pytest.raises(grpc.aio.AioRpcError, match="no thanks"):
            await client.call("registration/v1", "NotifyRegistrationStatus", error="no thanks")
        assert [(n.registered, n.error) for n in driver.notifications] == [(True, ""), (False, "no thanks")]


@pytest.mark.asyncio
async def test_one_socket_can_serve_both(root: pathlib.Path) -> None:
    settings = config(root, one_socket=True)
    async with SimulatedDriver(settings), connect(settings.registration_socket) as client:
        assert (await client.call("registration/v1", "GetInfo")).endpoint == ""
        assert "u-1" in (await prepare(client, "u-1")).claims


@pytest.mark.asyncio
async def test_health_stream_sends_the_list_at_once_and_on_each_change(root: pathlib.Path) -> None:
    async with (
        SimulatedDriver(config(root, health=("v1", "v1alpha1"))) as driver,
        connect(driver.config.socket) as client,
    ):
        for name in ("v1", "v1alpha1"):
            driver.set_health("dev-0", "HEALTHY")
            stream = client.stream(f"health/{name}", "NodeWatchResources")
            assert [d.health for d in (await stream.__anext__()).devices] == [1]
            with pytest.raises(DraError, match="'SICK' is not known"):
                driver.set_health("dev-0", "SICK")
            driver.set_health("dev-0", "UNHEALTHY", "too hot", timeout=5)
            (device,) = (await stream.__anext__()).devices
            assert (device.device.device_name, device.health, device.message, device.health_check_timeout_seconds) == (
                "dev-0", 2, "too hot", 5,
            )  # fmt: skip
            driver.faults.add("end:method=health")
            driver.pulse()
            with pytest.raises(StopAsyncIteration):
                await stream.__anext__()
            driver.faults.clear()


# Faults


async def code_of(awaitable: t.Awaitable[t.Any]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await awaitable
    return caught.value.code(), caught.value.details() or ""


@pytest.mark.asyncio
async def test_error_faults_with_and_without_the_work(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root)) as driver, connect(driver.config.socket) as client:
        driver.faults.add("error:code=UNAVAILABLE,text=not now,times=1")
        assert await code_of(prepare(client, "u-1")) == (grpc.StatusCode.UNAVAILABLE, "not now")
        assert driver.prepared() == {}
        driver.faults.add("error_after:times=1")
        assert await code_of(prepare(client, "u-1")) == (grpc.StatusCode.INTERNAL, "simulated failure")
        assert list(driver.prepared()) == ["u-1"]
        await prepare(client, "u-1")
        assert [call.outcome for call in driver.calls] == ["UNAVAILABLE: not now", "INTERNAL: simulated failure", "ok"]


@pytest.mark.asyncio
async def test_partial_and_wrong_answers(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root)) as driver, connect(driver.config.socket) as client:
        driver.faults.add("claim_error:uids=u-1,text=broken")
        driver.faults.add("skip:uids=u-2")
        driver.faults.add("blank:uids=u-3")
        driver.faults.add("unknown_uid")
        answer = await prepare(client, "u-1", "u-2", "u-3", "u-4")
        assert answer.claims["u-1"].error == "broken"
        assert "u-2" not in answer.claims
        assert len(answer.claims["u-3"].devices) == 0
        assert len(answer.claims["u-4"].devices) == 1
        assert set(answer.claims) == {"u-1", "u-3", "u-4", "uid-nobody-asked-for"}
        assert set(driver.prepared()) == {"u-2", "u-4"}


@pytest.mark.asyncio
async def test_nonsense_is_no_message(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root), [Fault("nonsense")]) as driver, connect(driver.config.socket) as client:
        with pytest.raises(DecodeError):
            await prepare(client, "u-1")


@pytest.mark.asyncio
async def test_leaky_driver_gives_new_devices_each_time(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root), [Fault("new_devices")]) as driver, connect(driver.config.socket) as client:
        names = [(await prepare(client, "u-1")).claims["u-1"].devices[0].device_name for _unused in range(3)]
        assert len(set(names)) == 3


@pytest.mark.asyncio
async def test_no_cdi_prepares_without_a_file(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root), [Fault("no_cdi")]) as driver, connect(driver.config.socket) as client:
        assert cdi_names((await prepare(client, "u-1")).claims["u-1"])
        assert not driver.cdi.path("u-1").exists()


@pytest.mark.asyncio
async def test_the_work_of_a_slow_call_goes_on_when_the_caller_gave_up(root: pathlib.Path) -> None:
    slow = Fault("slow", seconds=0.3)
    async with SimulatedDriver(config(root), [slow]) as driver, connect(driver.config.socket) as client:
        assert (await code_of(prepare(client, "u-1", timeout=0.1)))[0] == grpc.StatusCode.DEADLINE_EXCEEDED
        assert driver.prepared() == {}
        await driver.wait_for(lambda: driver.calls[0].ended is not None)
        assert list(driver.prepared()) == ["u-1"]


@pytest.mark.asyncio
@pytest.mark.parametrize(("kind", "worked"), [("hang", []), ("hang_after", ["u-1"])])
async def test_a_hanging_call_never_answers(root: pathlib.Path, kind: str, worked: list[str]) -> None:
    async with SimulatedDriver(config(root), [Fault(kind)]) as driver, connect(driver.config.socket) as client:
        assert (await code_of(prepare(client, "u-1", timeout=0.2)))[0] == grpc.StatusCode.DEADLINE_EXCEEDED
        assert driver.calls[0].ended is None
        assert list(driver.prepared()) == worked


@pytest.mark.asyncio
@pytest.mark.parametrize(("kind", "worked"), [("crash", []), ("crash_after", ["u-1"])])
async def test_a_crash_breaks_the_call_and_leaves_the_sockets(root: pathlib.Path, kind: str, worked: list[str]) -> None:
    async with SimulatedDriver(config(root), [Fault(kind)]) as driver, connect(driver.config.socket) as client:
        with pytest.raises(grpc.aio.AioRpcError):
            await prepare(client, "u-1")
        assert list(driver.prepared()) == worked
        await driver.wait_for(lambda: driver.calls[0].ended is not None)
        assert driver.config.socket.exists()
        assert (await code_of(prepare(client, "u-1")))[0] == grpc.StatusCode.UNAVAILABLE


@pytest.mark.asyncio
async def test_only_the_service_socket_can_be_closed(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root)) as driver:
        await driver.stop_service()
        async with connect(driver.config.registration_socket) as client:
            assert (await client.call("registration/v1", "GetInfo")).name == NAME
        async with connect(driver.config.socket) as client:
            assert (await code_of(prepare(client, "u-1")))[0] == grpc.StatusCode.UNAVAILABLE
        await driver.start_service()
        async with connect(driver.config.socket) as client:
            assert "u-1" in (await prepare(client, "u-1")).claims


@pytest.mark.asyncio
async def test_5000_claims_in_one_call(root: pathlib.Path) -> None:
    settings = config(root, devices=5000)
    async with SimulatedDriver(settings, [Fault("no_cdi")]) as driver, connect(settings.socket) as client:
        uids = [f"u-{number}" for number in range(5000)]
        answer = await prepare(client, *uids, timeout=30)
        assert len(answer.claims) == 5000
        assert not any(entry.error for entry in answer.claims.values())
        assert len({entry.devices[0].device_name for entry in answer.claims.values()}) == 5000
        assert len(driver.prepared()) == 5000


@pytest.mark.asyncio
async def test_calls_file_outlives_the_driver(root: pathlib.Path) -> None:
    file = root / "calls"
    async with SimulatedDriver(config(root, calls_file=file)) as driver, connect(driver.config.socket) as client:
        await prepare(client, "u-1")
    with open(file, "a") as half:
        half.write('{"event": "sta')
    assert [(line["event"], line["method"], line["uids"]) for line in read_calls(file)] == [
        ("start", "prepare", ["u-1"]),
        ("end", "prepare", ["u-1"]),
    ]


def test_faults_as_text() -> None:
    assert parse_fault("slow:method=prepare,seconds=3,times=2") == Fault("slow", "prepare", (), 2, 3.0)
    assert parse_fault("claim_error:uids=u-1;u-2,text=a=b") == Fault("claim_error", "", ("u-1", "u-2"), text="a=b")


@pytest.mark.parametrize(
    "text", ["nope", "slow:seconds=x", "slow:second=1", "slow:method=watch", "slow:times", "slow:times=x"]
)
def test_bad_faults_are_refused_in_words(text: str) -> None:
    with pytest.raises(DraError, match="cannot be read") as caught:
        parse_fault(text)
    assert caught.value.facts["fault"] == text
    if text == "nope":
        assert all(kind in caught.value.message for kind in KINDS)


@pytest.mark.asyncio
async def test_registration_faults(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root)) as driver, connect(driver.config.registration_socket) as client:
        driver.faults.add("error:method=get_info,times=1")
        assert (await code_of(client.call("registration/v1", "GetInfo")))[0].name == "INTERNAL"
        driver.faults.add("nonsense:method=get_info,times=1")
        with pytest.raises(DecodeError):
            await client.call("registration/v1", "GetInfo")
        driver.faults.add("hang:method=get_info,times=1")
        assert (await code_of(client.call("registration/v1", "GetInfo", timeout=0.1)))[0].name == "DEADLINE_EXCEEDED"
        assert (await client.call("registration/v1", "GetInfo")).name == NAME


@pytest.mark.asyncio
async def test_wait_for_has_a_limit(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root)) as driver:
        with pytest.raises(asyncio.TimeoutError):
            await driver.wait_for(lambda: False, timeout=0.01)
