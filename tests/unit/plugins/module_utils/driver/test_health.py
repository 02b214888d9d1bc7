# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The health stream: only where advertised, over losses, and over a rolling update."""

# Pylint takes the second context of one "async with" for evaluated before the first.
# pylint: disable=used-before-assignment

from __future__ import annotations

import asyncio
import contextlib
import logging
import pathlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.driver.claims import DeviceHealth, Health
from ansible_collections.nodeops.dra.plugins.module_utils.driver.client import DriverClient
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver import SimulatedDriver
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.driver.world import (
    FAST,
    NAME,
    changed,
    config,
    driver_and_client,
    registry,
)


class Reports:
    """The health stream of a client, with a limit on each wait."""

    def __init__(self, client: DriverClient) -> None:
        self.stream = client.watch_health()

    async def __aenter__(self) -> Reports:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await t.cast("t.Any", self.stream).aclose()

    async def next(self, timeout: float = 20.0) -> list[tuple[str, Health]]:
        reports = await asyncio.wait_for(self.stream.__anext__(), timeout)
        return [(report.device_name, report.health) for report in reports]

    async def ended(self) -> None:
        with pytest.raises(StopAsyncIteration):
            await self.next()


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
@pytest.mark.asyncio
async def test_reports_arrive_as_they_change(root: pathlib.Path, version: str) -> None:
    async with driver_and_client(root, health=(version,)) as (driver, client), Reports(client) as reports:
        driver.set_health("dev-0", "HEALTHY")
        assert await reports.next() == [("dev-0", Health.HEALTHY)]
        driver.set_health("dev-1", "UNHEALTHY", "too hot", timeout=5)
        report = await asyncio.wait_for(reports.stream.__anext__(), 20)
        assert report[1] == DeviceHealth("pool-0", "dev-1", Health.UNHEALTHY, 5.0, "too hot")
        assert {call.service for call in driver.calls_of("health")} == {f"{version}.DRAResourceHealth"}


@pytest.mark.report("F038")
@pytest.mark.asyncio
async def test_a_driver_that_does_not_advertise_health_is_never_asked(root: pathlib.Path) -> None:
    """Not even if it served it."""
    async with driver_and_client(root, health=("v1alpha1",), advertise=("v1.DRAPlugin",)) as (driver, client):
        async with Reports(client) as reports:
            await reports.ended()
        assert driver.calls_of("health") == []


@pytest.mark.report("F038")
@pytest.mark.asyncio
async def test_unimplemented_ends_it_for_that_registration_with_one_line(
    root: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    advertise = ("v1.DRAPlugin", "v1alpha1.DRAResourceHealth")
    settings = config(root, advertise=advertise)
    async with SimulatedDriver(settings) as driver, registry(root) as drivers:
        client = await drivers.wait_for(NAME, 20)
        caplog.clear()
        with caplog.at_level(logging.INFO):
            for _unused in range(5):
                async with Reports(client) as reports:
                    await reports.ended()
        lines = [record for record in caplog.records if "health" in record.message]
        assert [record.levelno for record in lines] == [logging.INFO]
        assert drivers.drivers()[0].instances[0].health_service is None
        await driver.stop_registration()
        await drivers._instances.signal.until(lambda: drivers.drivers() == (), 20)
        await driver.start_registration()  # a new registration is asked anew
        client = await drivers.wait_for(NAME, 20)
        assert drivers.drivers()[0].instances[0].health_service == "v1alpha1"


@pytest.mark.asyncio
async def test_a_lost_stream_takes_back_its_report_and_is_opened_again(root: pathlib.Path) -> None:
    async with driver_and_client(root, health=("v1alpha1",)) as (driver, client), Reports(client) as reports:
        driver.set_health("dev-0", "HEALTHY")
        assert await reports.next() == [("dev-0", Health.HEALTHY)]
        driver.faults.add("end:method=health,times=1")
        driver.pulse()
        assert await reports.next() == []
        assert await reports.next() == [("dev-0", Health.HEALTHY)]
        await driver.stop_service()
        assert await reports.next() == []
        await driver.start_service()
        assert await reports.next() == [("dev-0", Health.HEALTHY)]


@pytest.mark.asyncio
async def test_a_stream_that_always_fails_is_tried_with_pauses(root: pathlib.Path) -> None:
    timings = changed(FAST, health_retry=0.2)
    async with driver_and_client(root, timings, health=("v1alpha1",)) as (driver, client), Reports(client) as reports:
        driver.faults.add("error:method=health,code=INTERNAL,times=3")
        driver.set_health("dev-0", "HEALTHY")
        assert await reports.next() == [("dev-0", Health.HEALTHY)]
        started = [call.started for call in driver.calls_of("health")]
        assert len(started) == 4
        assert all(later - earlier > 0.15 for earlier, later in zip(started, started[1:], strict=False))


@pytest.mark.asyncio
async def test_a_report_of_nonsense_is_a_lost_stream(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with driver_and_client(root, health=("v1alpha1",)) as (driver, client), Reports(client) as reports:
        driver.set_health("dev-0", "HEALTHY")
        await reports.next()
        driver.health["bad"] = {"device": {"pool_name": "p"}, "message": "x"}
        monkeypatch.setattr(
            "ansible_collections.nodeops.dra.plugins.module_utils.driver.health.codec.MAX_HEALTH_MESSAGE", 1024
        )
        driver.pulse()
        assert [name for name, _health in await reports.next()] == ["dev-0", ""]


@pytest.mark.report("F025")
@pytest.mark.asyncio
async def test_the_stream_follows_the_newest_instance(root: pathlib.Path) -> None:
    async with registry(root) as drivers, SimulatedDriver(config(root, instance="old", health=("v1",))) as old:
        old.set_health("of-old", "HEALTHY")
        async with Reports(await drivers.wait_for(NAME, 20)) as reports:
            assert await reports.next() == [("of-old", Health.HEALTHY)]
            new = SimulatedDriver(config(root, instance="new", health=("v1",)))
            new.set_health("of-new", "HEALTHY")
            await new.start()
            assert await reports.next() == []
            assert await reports.next() == [("of-new", Health.HEALTHY)]
            await new.stop()
            assert await reports.next() == []
            assert await reports.next() == [("of-old", Health.HEALTHY)]
            await old.stop()
            with contextlib.suppress(StopAsyncIteration):
                assert await reports.next() == []
                await reports.ended()


@pytest.mark.report("F038")
@pytest.mark.asyncio
async def test_an_instance_without_health_in_front_of_one_with_it(root: pathlib.Path) -> None:
    async with registry(root) as drivers, SimulatedDriver(config(root, instance="old", health=("v1",))) as old:
        old.set_health("of-old", "HEALTHY")
        async with Reports(await drivers.wait_for(NAME, 20)) as reports:
            assert await reports.next() == [("of-old", Health.HEALTHY)]
            async with SimulatedDriver(config(root, instance="new")) as new:
                assert await reports.next() == []
            assert await reports.next() == [("of-old", Health.HEALTHY)]
            assert new.calls_of("health") == []


@pytest.mark.asyncio
async def test_cancelling_the_consumer_closes_the_stream(root: pathlib.Path) -> None:
    async with driver_and_client(root, health=("v1",)) as (driver, client):

        async def consume() -> None:
            async with Reports(client) as reports:
                while True:
                    await reports.next(timeout=60)

        consumer = asyncio.create_task(consume())
        await driver.wait_for(lambda: len(driver.calls_of("health")) == 1)
        consumer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await consumer
        await driver.wait_for(lambda: driver.calls_of("health")[0].ended is not None)
