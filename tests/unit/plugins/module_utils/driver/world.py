# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Builders for the tests of this layer: simulated drivers below one kubelet root, and registries with short times."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import pathlib
import sys
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.driver.claims import ClaimRef
from ansible_collections.nodeops.dra.plugins.module_utils.driver.client import DriverClient
from ansible_collections.nodeops.dra.plugins.module_utils.driver.registry import DriverRegistry, open_driver
from ansible_collections.nodeops.dra.plugins.module_utils.driver.timings import Timings
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver import DriverConfig, SimulatedDriver

NAME = "gpu.example.com"
SANDBOX = "ansible_collections.nodeops.dra.plugins.module_utils.sandbox"
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

# Pauses are short; limits are those for people, because a test machine can be slow. A test that waits for a limit to
# pass sets that one.
FAST = Timings(
    call=30.0, connect_wait=5.0, get_info=10.0, notify=10.0, settle=20.0, backoff_first=0.05, health_retry=0.1
)


def within(seconds: float) -> float:
    """A limit that holds on a machine with nothing else to do, stretched by what this one has to do."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def config(root: pathlib.Path, **changes: t.Any) -> DriverConfig:
    return DriverConfig(**{"name": NAME, "kubelet_root": root, "cdi_dir": root / "cdi", **changes})


def registry(root: pathlib.Path, timings: Timings = FAST, **options: t.Any) -> DriverRegistry:
    return DriverRegistry(root / "plugins_registry", timings=timings, **options)


def claims(*uids: str, **fields: t.Any) -> list[ClaimRef]:
    return [ClaimRef(uid, "team-a", f"claim-of-{uid}", **fields) for uid in uids]


@contextlib.asynccontextmanager
async def driver_and_client(
    root: pathlib.Path, timings: Timings = FAST, **changes: t.Any
) -> t.AsyncIterator[tuple[SimulatedDriver, DriverClient]]:
    """One simulated driver and a client of it, without a registry."""
    settings = config(root, **changes)
    async with SimulatedDriver(settings) as driver, open_driver(str(settings.registration_socket), timings) as client:
        await client._instances.signal.until(lambda: client.connected, 20)
        yield driver, client


def changed(timings: Timings, **changes: t.Any) -> Timings:
    return dataclasses.replace(timings, **changes)


@contextlib.asynccontextmanager
async def driver_process(root: pathlib.Path, *arguments: str) -> t.AsyncIterator[asyncio.subprocess.Process]:
    """The simulated driver as a process that can be killed; ready to serve."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", SANDBOX, "driver", "--kubelet-root", str(root), "--cdi-dir", str(root / "cdi")),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        env=ENVIRONMENT,
    )
    try:
        assert process.stdout is not None
        assert (await asyncio.wait_for(process.stdout.readline(), 20)).startswith(b"ready ")
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
