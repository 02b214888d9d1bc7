# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Registration as a kubelet does it, with real drivers on real sockets."""

from __future__ import annotations

import asyncio
import os
import pathlib
import socket
import time

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.driver import handshake
from ansible_collections.nodeops.dra.plugins.module_utils.driver.errors import DriverNotRegistered, RegistrationError
from ansible_collections.nodeops.dra.plugins.module_utils.driver.instances import EventKind, EventStream
from ansible_collections.nodeops.dra.plugins.module_utils.driver.registry import DriverRegistry, open_driver
from ansible_collections.nodeops.dra.plugins.module_utils.driver.status import RegistrationState
from ansible_collections.nodeops.dra.plugins.module_utils.driver.timings import Backoff, Timings
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver import Notification, SimulatedDriver
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.driver.world import (
    FAST,
    NAME,
    changed,
    claims,
    config,
    driver_process,
    registry,
    within,
)


async def until(drivers: DriverRegistry, condition: object, timeout: float = 20.0) -> None:
    """Wait for something that the registry knows."""
    assert await drivers._instances.signal.until(condition, timeout), (drivers.drivers(), drivers.registrations())


def endpoints(drivers: DriverRegistry, name: str = NAME) -> list[str]:
    """Sockets of a driver's instances, newest first, without the directory."""
    return [os.path.basename(i.endpoint) for d in drivers.drivers() if d.name == name for i in d.instances]


async def next_event(events: EventStream) -> tuple[str, str]:
    event = await asyncio.wait_for(events.__anext__(), 20)
    return event.kind.value, os.path.basename(event.endpoint)


@pytest.mark.report("F027")
@pytest.mark.asyncio
async def test_a_driver_that_was_there_first_is_registered(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root)) as driver, registry(root) as drivers:
        client = await drivers.get(NAME)
        assert (await client.prepare(claims("u-1")))["u-1"].error is None
        await driver.wait_for(lambda: driver.notifications == [Notification(True, "")])
        (status,) = drivers.drivers()
        assert (status.name, status.connected, status.gone) == (NAME, True, False)
        (instance,) = status.instances
        assert instance.socket_exists
        assert instance.registration_socket_exists
        assert instance.service == "v1.DRAPlugin"
        assert instance.advertised == ("v1.DRAPlugin", "v1beta1.DRAPlugin")
        await until(drivers, lambda: drivers.registrations()[0].state is RegistrationState.REGISTERED)
        assert drivers.registrations()[0].attempts == 1


@pytest.mark.asyncio
async def test_a_driver_that_comes_later_is_registered_and_its_end_is_seen(root: pathlib.Path) -> None:
    async with registry(root, changed(FAST, rescan=60.0)) as drivers:
        with drivers.subscribe() as events:
            async with SimulatedDriver(config(root)):
                assert await next_event(events) == ("registered", "dra.sock")
                assert await next_event(events) == ("connected", "dra.sock")
            assert await next_event(events) in [("deregistered", "dra.sock"), ("disconnected", "dra.sock")]
            await until(drivers, lambda: drivers.drivers() == ())
            assert drivers.registrations() == ()


@pytest.mark.asyncio
async def test_an_unknown_driver_is_told_with_what_there_is(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root)), registry(root) as drivers:
        with pytest.raises(DriverNotRegistered) as caught:
            await drivers.get("nic.example.com")
        for text in ("nic.example.com", str(root / "plugins_registry"), NAME):
            assert text in caught.value.message
        assert caught.value.facts == {
            "driver": "nic.example.com",
            "registry_dir": str(root / "plugins_registry"),
            "known": [NAME],
            "failing": [],
        }
        assert caught.value.hint


@pytest.mark.asyncio
async def test_an_unknown_driver_with_a_failing_socket_tells_why(root: pathlib.Path) -> None:
    settings = config(root)
    settings.registration_socket.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(settings.registration_socket))
    async with registry(root, changed(FAST, dial=0.1, backoff_first=60.0)) as drivers:
        with pytest.raises(DriverNotRegistered, match=r"no driver is.*nobody listens on it") as caught:
            await drivers.get(NAME)
        assert caught.value.facts["failing"] == [str(settings.registration_socket)]


@pytest.mark.asyncio
async def test_a_file_that_stands_where_a_socket_should_is_told(root: pathlib.Path) -> None:
    (root / "plugins_registry").mkdir()
    for name in (f"{NAME}-reg.sock", "other-reg.sock"):
        (root / "plugins_registry" / name).write_text("")
    async with registry(root) as drivers:
        with pytest.raises(DriverNotRegistered, match=f"{NAME}-reg.sock is no socket") as caught:
            await drivers.get(NAME)
        assert "other-reg.sock" not in caught.value.message


@pytest.mark.report("F027")
@pytest.mark.asyncio
async def test_failed_get_info_is_retried_without_any_file_event(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root)) as driver:
        driver.faults.add("error:method=get_info,times=2,text=not yet")
        async with registry(root, changed(FAST, backoff_first=0.2)) as drivers:
            await until(drivers, lambda: any(s.state is RegistrationState.WAITING for s in drivers.registrations()))
            (status,) = drivers.registrations()
            assert "not yet" in status.error
            assert status.next_try_at is not None
            assert 0.0 < status.next_try_at - status.since <= 0.2
            await until(drivers, lambda: endpoints(drivers) == ["dra.sock"])
            assert len(driver.calls_of("get_info")) == 3
            await until(drivers, lambda: drivers.registrations()[0].state is RegistrationState.REGISTERED)
            assert (drivers.registrations()[0].attempts, drivers.registrations()[0].error) == (3, "")


@pytest.mark.report("F027")
def test_pauses_double_from_half_a_second_to_about_two_minutes() -> None:
    backoff = Backoff(Timings())
    assert [backoff.next() for _unused in range(10)] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 122.0, 122.0]


@pytest.mark.report("F023")
@pytest.mark.asyncio
async def test_a_killed_driver_stays_registered_but_is_not_connected_and_comes_back(root: pathlib.Path) -> None:
    async with registry(root, changed(FAST, connect_wait=0.3)) as drivers:
        async with driver_process(root) as process:
            client = await drivers.wait_for(NAME, 20)
            assert (await client.prepare(claims("u-1")))["u-1"].error is None
            process.kill()
            await until(drivers, lambda: not drivers.drivers()[0].connected, timeout=within(2.0))
            (status,) = drivers.drivers()
            (instance,) = status.instances
            assert (instance.socket_exists, instance.registration_socket_exists, instance.connected) == (
                True,
                True,
                False,
            )
            assert abs(status.changed_at - time.time()) < within(5)
            assert not status.gone
            with pytest.raises(DraError, match=f"{NAME} failed prepare at .*dra.sock: UNAVAILABLE"):
                await (await drivers.get(NAME)).prepare(claims("u-2"), timeout=5)
        async with driver_process(root):
            await until(drivers, lambda: bool(drivers.drivers()) and drivers.drivers()[0].connected)
            assert not drivers.drivers()[0].gone
            client = await drivers.get(NAME)
            assert (await client.prepare(claims("u-1")))["u-1"].error is None


@pytest.mark.report("F025")
@pytest.mark.asyncio
async def test_the_newest_connected_instance_is_called_and_the_older_one_is_the_fall_back(root: pathlib.Path) -> None:
    async with registry(root) as drivers, SimulatedDriver(config(root, instance="old")) as old:
        await drivers.wait_for(NAME, 20)
        new = SimulatedDriver(config(root, instance="new"))
        await new.start()
        await until(drivers, lambda: drivers.drivers()[0].instances[0].connected and len(endpoints(drivers)) == 2)
        assert endpoints(drivers) == ["dra-new.sock", "dra-old.sock"]
        client = await drivers.get(NAME)
        await client.prepare(claims("u-1"))
        assert [len(d.calls_of("prepare")) for d in (old, new)] == [0, 1]
        await new.kill()  # both files stay
        await client.prepare(claims("u-2"))
        assert [len(d.calls_of("prepare")) for d in (old, new)] == [1, 1]
        await new.start()
        await until(drivers, lambda: drivers.drivers()[0].instances[0].connected and len(endpoints(drivers)) == 2)
        await old.stop()  # its file goes, the new one stays
        await until(drivers, lambda: endpoints(drivers) == ["dra-new.sock"])
        await client.prepare(claims("u-3"))
        assert [len(d.calls_of("prepare")) for d in (old, new)] == [1, 2]
        await new.stop()
        await until(drivers, lambda: drivers.drivers() == ())


@pytest.mark.report("F025")
@pytest.mark.asyncio
async def test_the_same_endpoint_twice_is_refused_while_the_first_one_lives(root: pathlib.Path) -> None:
    first = config(root)
    second = config(root, instance="b", endpoint=str(first.socket))
    async with registry(root, changed(FAST, backoff_first=60.0)) as drivers, SimulatedDriver(first):
        await drivers.wait_for(NAME, 20)
        async with SimulatedDriver(second) as other:
            await other.wait_for(lambda: len(other.notifications) == 1)
            (notification,) = other.notifications
            assert not notification.registered
            assert notification.error.startswith("RegisterPlugin error -- plugin registration failed with err: ")
            assert "already registered" in notification.error
            assert endpoints(drivers) == ["dra.sock"]
        assert endpoints(drivers) == ["dra.sock"]


@pytest.mark.report("F025")
@pytest.mark.asyncio
async def test_a_left_over_registration_does_not_lock_out_the_next_one(root: pathlib.Path) -> None:
    first = SimulatedDriver(config(root))
    await first.start()
    async with registry(root) as drivers:
        await drivers.wait_for(NAME, 20)
        await first.kill()
        async with SimulatedDriver(config(root, instance="b", endpoint=str(first.config.socket))) as second:
            await second.wait_for(lambda: second.notifications == [Notification(True, "")])
            assert endpoints(drivers) == ["dra.sock"]
            assert drivers.drivers()[0].instances[0].registration_socket == str(second.config.registration_socket)


@pytest.mark.report("F040")
@pytest.mark.asyncio
async def test_success_reaches_a_driver_that_hangs_up_after_get_info(
    root: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = handshake.check_plugin
    async with SimulatedDriver(config(root)) as driver:
        tries = 0

        async def notify_over_dead_connection(self: handshake.RegistrationCall, *arguments: object) -> bytes:
            nonlocal tries
            if arguments[0] == "NotifyRegistrationStatus":
                tries += 1
                if tries == 1:  # the driver hung up meanwhile: its server connections break, the socket stays
                    await driver.kill()
                    os.unlink(driver.config.registration_socket)
                    os.unlink(driver.config.socket)
                    await driver.start()
            return await call(self, *arguments)

        call = handshake.RegistrationCall._call
        monkeypatch.setattr(handshake.RegistrationCall, "_call", notify_over_dead_connection)
        async with handshake.RegistrationCall(str(driver.config.registration_socket), FAST) as conversation:
            info = await conversation.get_info()
            check(info, driver.config.registration_socket)
            await conversation.notify(registered=True)
        assert driver.notifications == [Notification(True, "")]


@pytest.mark.report("F040")
@pytest.mark.asyncio
async def test_success_is_told_again_after_a_lost_delivery(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root)) as driver:
        driver.faults.add("hang:method=notify,times=2")  # the second one is the new connection
        async with registry(root, changed(FAST, notify=1.0)) as drivers:
            await driver.wait_for(lambda: driver.notifications == [Notification(True, "")])
            await until(drivers, lambda: drivers.registrations()[0].state is RegistrationState.REGISTERED)
            assert len(driver.calls_of("get_info")) == 2
            assert endpoints(drivers) == ["dra.sock"]


@pytest.mark.report("F040")
@pytest.mark.asyncio
async def test_a_driver_that_refuses_good_news_is_not_registered_until_it_takes_them(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root)) as driver:
        driver.faults.add("error:method=notify,times=1,text=not ready")
        async with registry(root, changed(FAST, backoff_first=0.3)) as drivers:
            await until(drivers, lambda: any(s.state is RegistrationState.WAITING for s in drivers.registrations()))
            assert drivers.drivers() == ()
            assert "not ready" in drivers.registrations()[0].error
            await until(drivers, lambda: endpoints(drivers) == ["dra.sock"])


@pytest.mark.report("F040")
@pytest.mark.asyncio
async def test_bad_news_that_the_driver_answers_with_an_error_are_delivered(root: pathlib.Path) -> None:
    settings = config(root)
    path = str(settings.registration_socket)
    async with SimulatedDriver(settings) as driver, handshake.RegistrationCall(path, FAST) as conversation:
        await conversation.get_info()
        await conversation.notify(registered=False, error="no thanks")
        assert driver.notifications == [Notification(False, "no thanks")]
        driver.faults.add("hang:method=notify")
        conversation._timings = changed(FAST, notify=0.1)
        with pytest.raises(RegistrationError, match="could not be told of the failure of its registration"):
            await conversation.notify(registered=False, error="no thanks")


@pytest.mark.report("F028")
@pytest.mark.report("F040")
@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"advertise": ("v9.DRAPlugin",)}, "v9.DRAPlugin, and none of these is known here: known are v1.DRAPlugin"),
        ({"advertise": ()}, "advertises no API version"),
        ({"endpoint": "dra.sock"}, "not an absolute path"),
        ({"endpoint": "@dra"}, "abstract socket"),
        ({"endpoint": "/" + "d" * 120}, "121 bytes, and a unix socket path can have 107 at most"),
    ],
    ids=["unknown version", "no version", "relative", "abstract", "too long"],
)
async def test_a_bad_driver_is_told_why(root: pathlib.Path, changes: dict[str, object], text: str) -> None:
    timings = changed(FAST, backoff_first=60.0)
    async with SimulatedDriver(config(root, **changes)) as driver, registry(root, timings) as drivers:
        await until(drivers, lambda: any(s.state is RegistrationState.WAITING for s in drivers.registrations()))
        (notification,) = driver.notifications
        assert not notification.registered
        assert notification.error.startswith("RegisterPlugin error -- plugin validation failed with err: ")
        assert text in notification.error
        (status,) = drivers.registrations()
        assert (status.driver, text in status.error) == (NAME, True)
        assert drivers.drivers() == ()


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["", "../x", "a/b", "a b", "-a"])
async def test_names_that_are_none_are_refused(name: str) -> None:
    info = handshake.PluginInfo("DRAPlugin", name, "/x.sock", ("v1.DRAPlugin",))
    with pytest.raises(RegistrationError, match="cannot be the name of a driver"):
        handshake.check_plugin(info, "/reg.sock")


@pytest.mark.asyncio
async def test_another_kind_of_plugin_is_left_alone(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root, plugin_type="CSIPlugin")) as plugin, registry(root) as drivers:
        await until(drivers, lambda: any(s.state is RegistrationState.FOREIGN for s in drivers.registrations()))
        assert drivers.drivers() == ()
        assert plugin.notifications == []
        with pytest.raises(DriverNotRegistered):
            await drivers.get(NAME)


@pytest.mark.asyncio
async def test_without_notify_drivers_are_used_but_never_told(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root)) as driver, SimulatedDriver(config(root, name="bad", advertise=())) as bad:
        async with registry(root, notify=False) as drivers:
            client = await drivers.get(NAME)
            await client.prepare(claims("u-1"))
            await until(drivers, lambda: any(s.state is RegistrationState.WAITING for s in drivers.registrations()))
        assert driver.notifications == []
        assert bad.notifications == []


@pytest.mark.asyncio
async def test_a_driver_with_one_socket_for_everything(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root, one_socket=True)), registry(root) as drivers:
        client = await drivers.get(NAME)
        assert (await client.prepare(claims("u-1")))["u-1"].error is None


@pytest.mark.asyncio
async def test_drivers_in_subdirectories_and_several_drivers(root: pathlib.Path) -> None:
    below, beside = SimulatedDriver(config(root, subdirectory="sub")), SimulatedDriver(config(root, name="nic"))
    async with below, beside, registry(root) as drivers:
        await drivers.get("nic")
        await drivers.get(NAME)
        assert [status.name for status in drivers.drivers()] == [NAME, "nic"]


@pytest.mark.asyncio
async def test_a_restarted_driver_is_registered_anew(root: pathlib.Path) -> None:
    async with registry(root, changed(FAST, rescan=60.0)) as drivers:
        with drivers.subscribe() as events:
            for _unused in range(3):
                async with SimulatedDriver(config(root)) as driver:
                    while await next_event(events) != ("registered", "dra.sock"):
                        pass
                    await driver.wait_for(lambda it=driver: it.notifications == [Notification(True, "")])


@pytest.mark.asyncio
async def test_a_running_call_survives_the_deregistration(root: pathlib.Path) -> None:
    timings = changed(FAST, connect_wait=0.2)
    async with SimulatedDriver(config(root)) as driver, registry(root, timings) as drivers:
        client = await drivers.wait_for(NAME, 20)
        driver.faults.add("slow:seconds=0.5")
        call = asyncio.create_task(client.prepare(claims("u-1")))
        await driver.wait_for(lambda: len(driver.calls_of("prepare")) == 1)
        await driver.stop_registration()
        await until(drivers, lambda: drivers.drivers() == ())
        assert (await call)["u-1"].error is None
        with pytest.raises(DriverNotRegistered, match="not registered any more"):
            await client.prepare(claims("u-1"))


@pytest.mark.asyncio
async def test_the_end_of_the_registry_ends_everything(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root)) as driver:
        async with registry(root) as drivers:
            client = await drivers.wait_for(NAME, 20)
            # A driver that has not heard of its registration yet would be deregistered at the end.
            await until(drivers, lambda: drivers.registrations()[0].state is RegistrationState.REGISTERED)
            driver.faults.add("hang")
            call = asyncio.create_task(client.prepare(claims("u-1")))
            await driver.wait_for(lambda: len(driver.calls_of("prepare")) == 1)
            events = drivers.subscribe()
        with pytest.raises(DraError):
            await call
        assert [event async for event in events] == []


@pytest.mark.asyncio
async def test_the_directory_is_made_for_a_node_without_kubelet(root: pathlib.Path) -> None:
    async with registry(root):
        assert (root / "plugins_registry").stat().st_mode & 0o777 == 0o750
    (root / "file").write_text("")
    with pytest.raises(DraError, match="cannot be made"):
        async with DriverRegistry(root / "file" / "plugins_registry"):
            pass


@pytest.mark.asyncio
async def test_open_driver_refuses_other_plugins(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root, plugin_type="CSIPlugin")) as plugin:
        with pytest.raises(RegistrationError, match="is a CSIPlugin, not a DRA driver"):
            async with open_driver(str(plugin.config.registration_socket), FAST):
                pass
    with pytest.raises(RegistrationError, match="no such file or directory"):
        async with open_driver(str(root / "gone.sock"), changed(FAST, dial=0.1)):
            pass


@pytest.mark.asyncio
async def test_a_socket_that_speaks_no_grpc_is_told(root: pathlib.Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "mute.sock"))
        listener.listen()
        with pytest.raises(RegistrationError, match=r"does not speak gRPC within 0.2 s"):
            async with open_driver(str(root / "mute.sock"), changed(FAST, dial=0.2)):
                pass


@pytest.mark.asyncio
async def test_get_info_of_nonsense_is_told(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root)) as driver:
        driver.faults.add("nonsense:method=get_info")
        with pytest.raises(RegistrationError, match="bytes that are no PluginInfo"):
            async with open_driver(str(driver.config.registration_socket), FAST):
                pass


def test_events_have_plain_names() -> None:
    assert {kind.value for kind in EventKind} == {"registered", "deregistered", "connected", "disconnected"}
