# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One node: its directory, simulated drivers on real sockets, the real registry, and a manager to be restarted."""

from __future__ import annotations

import itertools
import pathlib
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.claims import ClaimState, claim_states
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.document import Document
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.formats import NEWEST
from ansible_collections.nodeops.dra.plugins.module_utils.driver.registry import DriverRegistry
from ansible_collections.nodeops.dra.plugins.module_utils.driver.timings import Timings
from ansible_collections.nodeops.dra.plugins.module_utils.manager.driver_calls import Drivers
from ansible_collections.nodeops.dra.plugins.module_utils.manager.manager import DraManager
from ansible_collections.nodeops.dra.plugins.module_utils.manager.opening import Settings
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver import DriverConfig, SimulatedDriver
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_calls import AskedClaim
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_store import PreparedDevice
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import GPU, Json, pod

TIMINGS = Timings(connect_wait=0.5, settle=1.0, rescan=0.5)


class Node:
    """Use it as an async context manager. ``now`` and ``boot`` are the wall clock and the boot ID of its managers."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.settings = Settings(
            str(root), timeout=10.0, lock_timeout=0.0, cdi_policy="error", cdi_directories=(str(root / "cdi"),)
        )
        self.registry = DriverRegistry(root / "plugins_registry", timings=TIMINGS)
        self.claims: dict[str, Json] = {}
        self.simulated: dict[str, SimulatedDriver] = {}
        self.now = itertools.count(1_000_000_000).__next__
        self.boot = "b-0"
        self.manager: DraManager = t.cast("DraManager", None)

    async def __aenter__(self) -> Node:
        await self.registry.__aenter__()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.stop()
        await self.registry.__aexit__(None, None, None)
        for driver in self.simulated.values():
            await driver.stop()

    # Drivers

    async def add_driver(self, name: str = GPU, *faults: str, **config: t.Any) -> SimulatedDriver:
        """Start a driver, or start it again after `remove_driver`, and wait until it is registered."""
        fields = {"devices": 10_000, "apis": ("v1",), **config}
        made = DriverConfig(name, self.root, self.root / "cdi", **fields)
        driver = SimulatedDriver(made, allocate=lambda asked: self._allocate(name, asked))
        for fault in faults:
            driver.faults.add(fault)
        await driver.start()
        self.simulated[name] = driver
        await self.registry.wait_for(name, 10)
        return driver

    async def remove_driver(self, name: str = GPU) -> None:
        """End a driver and wait until the registry knows."""
        with self.registry.subscribe() as events:
            await self.simulated[name].stop()
            async for _event in events:
                if all(status.name != name for status in self.registry.drivers()):
                    return

    async def _allocate(self, driver: str, asked: AskedClaim) -> list[PreparedDevice]:
        results = self.claims[asked.uid]["status"]["allocation"]["devices"]["results"]
        return [
            PreparedDevice(one["pool"], one["device"], (one["request"].split("/")[0],), (), one.get("shareID"))
            for one in results
            if one["driver"] == driver
        ]

    def asked(self, driver: str = GPU) -> list[str]:
        """The calls for claims that a driver got, as ``prepare u-1,u-2``."""
        calls = self.simulated[driver].calls
        return [f"{call.method} {','.join(sorted(call.uids))}" for call in calls if call.method.endswith("prepare")]

    # The manager

    async def start(self, drivers: Drivers | None = None, **options: t.Any) -> DraManager:
        """Start the manager, or end it and start it again as a new process would."""
        await self.stop()
        self.manager = await DraManager.open(
            self.settings, drivers or self.registry, boot_id=lambda: self.boot, now=lambda: float(self.now()), **options
        )
        return self.manager

    async def stop(self) -> None:
        if self.manager is not None:
            await self.manager.close()

    async def prepare(self, *claims: Json, pod_uid: str = "p-1", **options: t.Any) -> list[str]:
        """Prepare claims for a pod that uses just these, and return the CDI names that its container gets."""
        self.claims.update({one["metadata"]["uid"]: one for one in claims})
        made = pod(pod_uid, *(one["metadata"]["name"] for one in claims))
        await self.manager.prepare(made, claims, **options)
        return list(self.manager.resources_for(made, "main"))

    # The files

    @property
    def state_path(self) -> pathlib.Path:
        return self.root / "dra_manager_state"

    def state(self) -> dict[str, ClaimState]:
        """The claims in the state file, as a kubelet reads it."""
        if not self.state_path.exists():
            return {}
        reading = Document(self.state_path.read_bytes()).read_as(NEWEST)
        assert reading.ok, reading.go_message
        return {one.uid: one for one in claim_states(reading.claims)}


class LosingDrivers:
    """The drivers of a node, of which one goes away after it was looked up ``times`` times."""

    def __init__(self, node: Node, driver: str, times: int) -> None:
        self._node = node
        self._driver = driver
        self._times = times

    async def get(self, driver_name: str) -> t.Any:
        if driver_name == self._driver:
            if not self._times:
                return await self._node.registry.get("nobody.test.example")
            self._times -= 1
        return await self._node.registry.get(driver_name)
