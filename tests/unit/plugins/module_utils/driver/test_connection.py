# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One channel to one driver, against a real server: idle, gone, back, proxied, closed under a call."""

from __future__ import annotations

import asyncio
import pathlib
import subprocess
import sys
import time

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.driver import codec
from ansible_collections.nodeops.dra.plugins.module_utils.driver.connection import CallError, Connection, open_channel
from ansible_collections.nodeops.dra.plugins.module_utils.driver.timings import Timings
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver import DriverConfig, SimulatedDriver
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.driver.world import (
    ENVIRONMENT,
    FAST,
    changed,
    config,
    driver_process,
    within,
)


class Connected:
    """A connection as a context manager that notes every change."""

    def __init__(self, settings: DriverConfig, timings: Timings = FAST) -> None:
        self.changes: list[bool] = []
        self.connection = Connection(
            str(settings.socket), timings, lambda: self.changes.append(self.connection.connected), clock=time.time
        )

    async def __aenter__(self) -> Connected:
        self.connection.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.connection.close()

    async def until(self, connected: bool, timeout: float = 20.0) -> None:
        assert await self.connection.signal.until(lambda: self.connection.connected is connected, timeout)

    async def call(self, timeout: float = 20.0) -> bytes:
        """An empty prepare call."""
        return await self.connection.call(codec.batch_method("v1", True).path, b"", timeout)


@pytest.mark.report("F022")
@pytest.mark.asyncio
async def test_a_channel_that_went_idle_answers_at_once_20_times_in_a_row(root: pathlib.Path) -> None:
    """gRPC lets a channel go idle once, so each round has a new one."""
    settings = config(root)
    async with SimulatedDriver(settings) as driver:
        for _unused in range(20):
            async with Connected(settings, changed(FAST, idle=0.05)) as it:
                await it.until(True)
                await it.call()
                assert await it.connection.signal.until(lambda lost=it.connection: lost.lost > 0, 20), "never idle"
                await it.call(timeout=within(1.0))
        assert len(driver.calls) == 40


@pytest.mark.report("F022")
@pytest.mark.asyncio
async def test_an_idle_channel_is_not_closed_by_default(root: pathlib.Path) -> None:
    settings = config(root)
    async with SimulatedDriver(settings), Connected(settings) as it:
        await it.until(True)
        await it.call()
        assert not await it.connection.signal.until(lambda: it.connection.lost > 0, 0.3)


@pytest.mark.report("F023")
@pytest.mark.asyncio
async def test_a_killed_driver_is_noticed_and_its_return_too_without_any_call(root: pathlib.Path) -> None:
    settings = config(root)
    async with Connected(settings) as it:
        async with driver_process(root) as process:
            await it.until(True)
            process.kill()
            await it.until(False, timeout=within(2.0))
            await process.wait()
            assert settings.socket.exists()
        async with driver_process(root):
            await it.until(True, timeout=within(1.0))
        assert it.changes[:3] == [True, False, True]


@pytest.mark.report("F036")
@pytest.mark.asyncio
async def test_reconnects_within_a_second_after_many_failed_calls(root: pathlib.Path) -> None:
    """The default back-off of gRPC would have grown to many seconds by then."""
    settings = config(root)
    async with Connected(settings) as it:
        ends = time.monotonic() + 5.0
        while time.monotonic() < ends:  # down for five seconds, with calls all the time
            with pytest.raises(CallError, match="UNAVAILABLE"):
                await it.call()
            await it.connection.signal.until(lambda: it.connection.connected, 0.3)
        async with SimulatedDriver(settings):
            started = time.monotonic()
            await it.until(True)
            assert time.monotonic() - started < within(1.0)
            await it.call()


@pytest.mark.asyncio
async def test_a_driver_that_moved_to_a_new_socket_file_is_found(root: pathlib.Path) -> None:
    settings = config(root)
    async with Connected(settings) as it:
        for _unused in range(3):
            async with SimulatedDriver(settings):
                await it.until(True)
                await it.call()
            await it.until(False)


@pytest.mark.report("F030")
@pytest.mark.asyncio
async def test_proxy_variables_do_not_matter(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    settings = config(root)
    async with SimulatedDriver(settings), Connected(settings) as it:
        await it.until(True)
        assert await it.call() == b""


@pytest.mark.report("F030")
def test_proxying_is_switched_off_whatever_this_version_of_grpc_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some versions ask the proxy variables for unix sockets too, others do not."""
    seen: list[tuple[str, object]] = []
    monkeypatch.setattr("grpc.aio.insecure_channel", lambda _target, options: seen.extend(options))
    open_channel("/run/x.sock", FAST)
    assert ("grpc.enable_http_proxy", 0) in seen


@pytest.mark.report("F031")
@pytest.mark.asyncio
async def test_a_deadline_is_kept_even_if_grpc_does_not_keep_it(
    root: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(root)
    async with SimulatedDriver(settings) as driver, Connected(settings, changed(FAST, grace=0.1)) as it:
        await it.until(True)
        driver.faults.add("hang")
        channel = it.connection._channel

        class Deaf:
            """A channel that forgets the deadline, as one does after a fork."""

            def unary_unary(self, path: str) -> object:
                return lambda request, timeout: channel.unary_unary(path)(request)

        monkeypatch.setattr(it.connection, "_channel", Deaf())
        with pytest.raises(CallError, match="did not end the call") as caught:
            await it.call(timeout=0.1)
        monkeypatch.undo()
        assert caught.value.code == "DEADLINE_EXCEEDED"


FORKS = """
import asyncio, subprocess, sys, threading
from ansible_collections.nodeops.dra.plugins.module_utils.driver.registry import open_driver

async def main():
    async with open_driver(sys.argv[1]) as client:
        await client.probe()
        todo = iter(range(200))
        lock = threading.Lock()
        def run():
            while True:
                with lock:
                    if next(todo, None) is None:
                        return
                subprocess.run(["true"], check=True)
        threads = [threading.Thread(target=run) for _ in range(8)]
        for thread in threads:
            thread.start()
        calls = 0
        while any(thread.is_alive() for thread in threads):
            await client.probe(timeout=5)
            calls += 1
        await client.probe()
        print(calls > 0)

asyncio.run(main())
"""


@pytest.mark.report("F031")
@pytest.mark.asyncio
async def test_200_subprocesses_from_8_threads_while_calls_go_on(root: pathlib.Path) -> None:
    async with driver_process(root):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", FORKS, str(config(root).registration_socket)),
            stdout=subprocess.PIPE,
            env=ENVIRONMENT,
        )
        try:
            output, _none = await asyncio.wait_for(process.communicate(), 40)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert (process.returncode, output.strip()) == (0, b"True")


@pytest.mark.asyncio
async def test_a_connection_closed_under_a_call_is_unavailable_not_cancelled(root: pathlib.Path) -> None:
    settings = config(root)
    async with SimulatedDriver(settings) as driver, Connected(settings) as it:
        await it.until(True)
        driver.faults.add("hang")
        call = asyncio.create_task(it.call())
        await driver.wait_for(lambda: len(driver.calls) == 1)
        await it.connection.close()
        with pytest.raises(CallError, match="closed during the call") as caught:
            await call
        assert caught.value.code == "UNAVAILABLE"
        with pytest.raises(CallError, match="is closed"):
            await it.call()


@pytest.mark.asyncio
async def test_a_cancelled_call_is_cancelled(root: pathlib.Path) -> None:
    settings = config(root)
    async with SimulatedDriver(settings) as driver, Connected(settings) as it:
        await it.until(True)
        driver.faults.add("hang")
        call = asyncio.create_task(it.call())
        await driver.wait_for(lambda: len(driver.calls) == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        driver.faults.clear()
        await it.call()


@pytest.mark.asyncio
async def test_a_running_call_may_end_while_the_connection_is_closed_with_grace(root: pathlib.Path) -> None:
    settings = config(root)
    async with SimulatedDriver(settings) as driver, Connected(settings) as it:
        await it.until(True)
        driver.faults.add("slow:seconds=0.2")
        call = asyncio.create_task(it.call())
        await driver.wait_for(lambda: len(driver.calls) == 1)
        await it.connection.close(grace=5.0)
        assert await call == b""


@pytest.mark.asyncio
async def test_paths_with_special_characters_work(root: pathlib.Path) -> None:
    settings = config(root / "a b%20é?#")
    async with SimulatedDriver(settings), Connected(settings) as it:
        await it.until(True)
        assert await it.call() == b""


@pytest.mark.asyncio
async def test_missing_grpc_library_is_told_with_a_next_step(
    monkeypatch: pytest.MonkeyPatch, root: pathlib.Path
) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(DraError, match="grpcio") as caught:
        Connection(str(root), FAST, lambda: None).start()
    assert "Install grpcio" in caught.value.hint
