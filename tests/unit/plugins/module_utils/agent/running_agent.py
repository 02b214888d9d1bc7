# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The local API of a node in this process: a real manager, real drivers, a real socket."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.agent.events import EventLog
from ansible_collections.nodeops.dra.plugins.module_utils.agent.local_api import LocalApi
from ansible_collections.nodeops.dra.plugins.module_utils.agent.local_client import LocalClient, connected
from ansible_collections.nodeops.dra.plugins.module_utils.agent.local_service import LocalService
from ansible_collections.nodeops.dra.plugins.module_utils.agent.workplace import Directories, Workplace
from ansible_collections.nodeops.dra.plugins.module_utils.driver.registry import DriverRegistry
from ansible_collections.nodeops.dra.plugins.module_utils.manager.manager import DraManager
from ansible_collections.nodeops.dra.plugins.module_utils.manager.opening import Settings
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import Node


@dataclasses.dataclass
class RunningAgent:
    """What a test can reach: the parts, the socket, and a client of it."""

    place: Workplace
    socket: pathlib.Path
    api: LocalApi
    client: LocalClient


@contextlib.asynccontextmanager
async def running(node: Node, *, users: t.Collection[int] | None = None) -> t.AsyncIterator[RunningAgent]:
    """An agent without the API of a cluster."""
    node.state_directory.mkdir(exist_ok=True)
    cdi = (str(node.cdi),)
    directories = Directories(str(node.state_directory), str(node.root), str(node.registry), cdi)
    socket = node.root / "run" / "agent.sock"
    async with contextlib.AsyncExitStack() as stack:
        registry = await stack.enter_async_context(DriverRegistry(node.registry, notify=True))
        settings = Settings(str(node.state_directory), cdi_directories=cdi, timeout=10.0)
        manager = await stack.enter_async_context(await DraManager.open(settings, registry))
        place = Workplace(directories, manager, registry, EventLog())
        api = LocalApi(str(socket), LocalService(place), place.events, users=users)
        await stack.enter_async_context(api)
        client = await stack.enter_async_context(connected(str(socket)))
        yield RunningAgent(place, socket, api, client)
