# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Drivers that are about to be called, asked for before anything is changed: each must be there and be connected."""

from __future__ import annotations

import typing as t

from ..checkpoint.errors import DraError
from ..driver.client import DriverClient
from ..driver.handshake import connect_problem
from ..driver.registry import DriverRegistry


class ReachableDrivers:
    """The drivers of a registry that can be called now. ``wait`` seconds are given to one that is about to connect."""

    def __init__(self, registry: DriverRegistry, wait: float) -> None:
        self._registry = registry
        self._wait = wait

    async def get(self, driver_name: str) -> DriverClient:
        """The driver's client. Raises DraError when it is not registered, or registered and not connected."""
        await self._registry.get(driver_name)
        client = await self._registry.wait_for(driver_name, self._wait)
        if client.connected:
            return client
        sockets = [
            one.endpoint
            for status in self._registry.drivers()
            if status.name == driver_name
            for one in status.instances
        ]
        problems = "; ".join(
            f"{path}: {connect_problem(path) or f'no connection within {self._wait:g} s'}" for path in sockets
        )
        raise DraError(
            f"The driver {driver_name} is registered, but its service cannot be reached at {problems}.",
            "Restart the driver; its own log says more.",
            driver=driver_name,
            sockets=sockets,
        )

    async def need(self, calls: t.Iterable[t.Mapping[str, t.Any]], labels: t.Mapping[str, str]) -> None:
        """Raise DraError unless all drivers of these calls can be called; it names their claims by ``labels``."""
        for call in calls:
            try:
                await self.get(call["driver"])
            except DraError as error:
                claims = ", ".join(labels[uid] for uid in call["claims"])
                message = f"ResourceClaim {claims} would stay held: {error.message}"
                raise DraError(message, error.hint, **error.facts) from error
