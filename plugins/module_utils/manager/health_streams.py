# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Following the health streams of all drivers that have one, for as long as they are registered."""

from __future__ import annotations

import asyncio
import contextlib

from ..driver.client import DriverClient
from ..driver.errors import DriverNotRegistered
from ..driver.instances import EventKind
from ..driver.registry import DriverRegistry
from .device_health import HealthTable


async def follow_health(client: DriverClient, table: HealthTable) -> None:
    """Put a driver's reports into the table until it offers health no more; nothing of it is known then.

    A driver without a health service is not asked at all.
    """
    try:
        async for report in client.watch_health():
            if report:
                table.update(client.name, report)
            else:
                table.drop(client.name)
    finally:
        table.drop(client.name)


async def follow_all(registry: DriverRegistry, table: HealthTable) -> None:
    """Do `follow_health` for every driver, those that come later too. Ends when the registry does, or is cancelled."""
    registered: dict[str, asyncio.Event] = {}

    async def follow(name: str) -> None:
        while True:
            registered[name].clear()
            with contextlib.suppress(DriverNotRegistered):  # gone again
                await follow_health(await registry.get(name), table)
            # A driver that gave up health, or went, may offer it with its next registration.
            await registered[name].wait()

    async with asyncio.TaskGroup() as group:
        tasks: list[asyncio.Task[None]] = []

        def wake(name: str) -> None:
            if name not in registered:
                registered[name] = asyncio.Event()
                tasks.append(group.create_task(follow(name), name=f"dra-health-{name}"))
            registered[name].set()

        with registry.subscribe() as events:
            for status in registry.drivers():
                wake(status.name)
            async for event in events:
                if event.kind is EventKind.REGISTERED:
                    wake(event.driver)
        for task in tasks:
            task.cancel()
