# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A look at drivers that changes nothing."""

from __future__ import annotations

import asyncio
import os
import pathlib
import socket
import time

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.driver.scan import SCAN_TIMINGS, scan
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver import SimulatedDriver
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.driver.world import (
    NAME,
    changed,
    config,
    driver_process,
    within,
)

QUICK = changed(SCAN_TIMINGS, get_info=10.0)


@pytest.mark.report("F028")
@pytest.mark.asyncio
async def test_a_good_driver(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root, health=("v1alpha1",))) as driver:
        report = await scan(root / "plugins_registry", QUICK)
        (found,) = report.sockets
        assert (found.driver, found.plugin_type, found.reachable, found.endpoint_reachable) == (
            NAME,
            "DRAPlugin",
            True,
            True,
        )
        assert found.advertised == ("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1alpha1.DRAResourceHealth")
        assert (found.service, found.generation, found.health_service) == ("v1.DRAPlugin", "v1", "v1alpha1")
        assert found.endpoint == str(driver.config.socket)
        assert found.problems == ()
        assert report.problems == ()
        assert report.drivers == {NAME: [found]}


@pytest.mark.asyncio
async def test_looking_tells_the_driver_nothing_and_calls_no_service(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root)) as driver, SimulatedDriver(config(root, name="bad", advertise=())) as bad:
        await scan(root / "plugins_registry", QUICK)
        for one in (driver, bad):
            assert [call.method for call in one.calls] == ["get_info"]
            assert one.notifications == []


@pytest.mark.report("F023")
@pytest.mark.asyncio
async def test_a_killed_driver_leaves_a_stale_socket(root: pathlib.Path) -> None:
    async with driver_process(root) as process:
        process.kill()
        await process.wait()
        (found,) = (await scan(root / "plugins_registry", QUICK)).sockets
        assert not found.reachable
        (problem,) = found.problems
        assert problem.code == "stale_socket"
        assert "a driver that was killed leaves its socket behind" in problem.message
        assert problem.hint


@pytest.mark.report("F107")
@pytest.mark.asyncio
async def test_a_driver_whose_service_socket_is_dead_is_told_beside_a_good_one(root: pathlib.Path) -> None:
    async with SimulatedDriver(config(root)), SimulatedDriver(config(root, name="half")) as half:
        await half.stop_service()
        report = await scan(root / "plugins_registry", QUICK)
        problems = {found.driver: [p.code for p in found.problems] for found in report.sockets}
        assert problems == {NAME: [], "half": ["endpoint_missing"]}
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(half.config.socket))
        report = await scan(root / "plugins_registry", QUICK)
        (found,) = report.drivers["half"]
        assert [p.code for p in found.problems] == ["endpoint_unreachable"]
        assert (found.reachable, found.endpoint_reachable) == (True, False)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"advertise": ("v9.DRAPlugin",)}, "no_common_service"),
        ({"advertise": ()}, "no_common_service"),
        ({"endpoint": "dra.sock"}, "bad_endpoint"),
        ({"endpoint": "/" + "d" * 120}, "path_too_long"),
    ],
)
@pytest.mark.asyncio
async def test_drivers_that_cannot_be_used(root: pathlib.Path, changes: dict[str, object], code: str) -> None:
    async with SimulatedDriver(config(root, **changes)):
        (found,) = (await scan(root / "plugins_registry", QUICK)).sockets
        assert [p.code for p in found.problems] == [code]
        assert (found.driver, found.reachable, found.service) == (NAME, True, "")


@pytest.mark.asyncio
async def test_bad_names_other_plugins_and_other_files(root: pathlib.Path) -> None:
    bad = config(root, name="x")
    async with SimulatedDriver(bad) as driver, SimulatedDriver(config(root, name="csi", plugin_type="CSIPlugin")):
        driver.config.name = "../x"
        (root / "plugins_registry" / "note.txt").write_text("")
        report = await scan(root / "plugins_registry", QUICK)
        assert {f.driver: [p.code for p in f.problems] for f in report.sockets} == {"csi": [], "../x": ["bad_name"]}
        assert report.other_files == (str(root / "plugins_registry" / "note.txt"),)
        assert list(report.drivers) == ["../x"]


@pytest.mark.report("F026")
@pytest.mark.asyncio
async def test_a_socket_with_too_long_a_path_is_told(root: pathlib.Path) -> None:
    folder = root / ("d" * 60)
    folder.mkdir()
    directory = os.open(folder, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"/proc/self/fd/{directory}/" + "s" * 60)  # how such a socket can come to be
    finally:
        os.close(directory)
    (found,) = (await scan(folder, QUICK)).sockets
    assert [p.code for p in found.problems] == ["path_too_long"]


@pytest.mark.report("F025")
@pytest.mark.asyncio
async def test_two_instances_and_one_endpoint_named_twice(root: pathlib.Path) -> None:
    old = config(root, instance="a")
    twice = config(root, instance="c", endpoint=str(old.socket))
    async with SimulatedDriver(old), SimulatedDriver(config(root, instance="b")), SimulatedDriver(twice):
        report = await scan(root / "plugins_registry", QUICK)
        assert [[p.code for p in f.problems] for f in report.drivers[NAME]] == [[], [], ["duplicate_endpoint"]]


@pytest.mark.asyncio
async def test_hanging_drivers_are_looked_at_side_by_side(root: pathlib.Path) -> None:
    drivers = [SimulatedDriver(config(root, name=f"d{number}")) for number in range(6)]
    for driver in drivers:
        driver.faults.add("hang:method=get_info")
        await driver.start()
    started = time.monotonic()
    report = await scan(root / "plugins_registry", changed(QUICK, get_info=0.7))
    assert time.monotonic() - started < within(2.0)
    assert [[p.code for p in f.problems] for f in report.sockets] == [["get_info_failed"]] * 6
    await asyncio.gather(*(driver.stop() for driver in drivers))


@pytest.mark.asyncio
async def test_a_missing_directory_is_told(root: pathlib.Path) -> None:
    report = await scan(root / "nowhere", QUICK)
    assert [p.code for p in report.problems] == ["registry_missing"]
    assert report.sockets == ()
