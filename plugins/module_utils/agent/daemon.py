# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The node agent as a daemon: the life of its mode, its local API, and the health of both."""

from __future__ import annotations

import asyncio
import contextlib
import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.lock import LockHeldError
from ..daemon.daemon_protocol import Context
from ..daemon.exit_codes import ExitCode
from ..daemon.health import Check
from ..daemon.schema import Schema
from ..daemon.settings import Change, Settings
from ..daemon.version import VERSION
from ..kube.errors import ConfigurationError
from .agent_metrics import AGENT_METRICS
from .local_api import LocalApi
from .local_client import connected
from .manage_mode import ManageMode, OfKubeletError
from .mode import Mode
from .observe_mode import InKubeletRootError, ObserveMode
from .settings import NAME, SCHEMA, NodeSettings

DRAIN = 10.0
"""Seconds that calls of the local API have to end."""

MODES: t.Mapping[str, t.Callable[[Context], Mode]] = {"manage": ManageMode, "observe": ObserveMode}
"""The setting ``node.mode`` to what it means."""


class AgentDaemon:
    """The `daemon_protocol.Daemon` of the node agent."""

    name = NAME
    version = VERSION
    schema: Schema = SCHEMA
    metrics = AGENT_METRICS
    exit_codes: t.Mapping[type[BaseException], ExitCode] = {
        OfKubeletError: ExitCode.REFUSED,
        InKubeletRootError: ExitCode.REFUSED,
        # Only of the settings themselves: while it runs, the agent waits for a way to the API.
        ConfigurationError: ExitCode.SETTINGS,
    }
    # A task works on the state file with the lock: it ends within a minute or so.
    passing: tuple[type[BaseException], ...] = (LockHeldError,)

    def __init__(self) -> None:
        self._stack = contextlib.AsyncExitStack()
        self._socket = ""
        self._mode: Mode | None = None
        self._api: LocalApi | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, context: Context) -> None:
        """Open the mode that is set, and serve the local API."""
        node = context.settings.section(NodeSettings, "node")
        mode = MODES[node.mode](context)
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(mode)
            api = LocalApi(node.socket, mode.service, mode.events)
            await stack.enter_async_context(api)
            self._stack = stack.pop_all()
        self._socket, self._mode, self._api = node.socket, mode, api
        context.metrics.read_values("nodeops_dra_local_api_refused_total", lambda: {(): float(api.refused)})

    async def work(self) -> None:
        """Work until `stop`, or until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._tasks = [group.create_task(job) for job in self._running.jobs()]

    async def stop(self) -> None:
        """Serve no more, finish what is under way, close the files."""
        try:
            if self._api is not None:
                await self._api.stop(DRAIN)
            if self._mode is not None:
                await self._mode.drain()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._stack.aclose()

    async def reload(self, settings: Settings, _change: Change) -> None:
        """What a mode can take over without a restart."""
        await self._running.reload(settings)

    def checks(self) -> t.Sequence[Check]:
        """The way that tasks go, and what the mode looks at."""
        local = Check("local_api", self._probe, "The agent answers a call through its own socket.", live=True)
        return [local, *self._running.checks()]

    async def _probe(self) -> str:
        async with connected(self._socket) as client:
            version = await client.version()
        return f"version {version['version']}"

    @property
    def _running(self) -> Mode:
        if self._mode is None:
            raise DraError("The agent is not started.", "Start it first.")
        return self._mode
