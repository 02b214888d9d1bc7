# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The DRA drivers of this node, found through the kubelet's ``plugins_registry`` directory."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
import typing as t

from ..checkpoint.errors import DraError
from .client import DriverClient
from .endpoint import socket_path
from .errors import DriverNotRegistered, RegistrationError
from .handshake import DRA_PLUGIN, RegistrationCall, check_plugin
from .instances import EventStream, Instances
from .registrar import Registrar
from .status import DriverStatus, RegistrationState, RegistrationStatus
from .timings import Clock, Timings
from .watch import Changes, watch_sockets

log = logging.getLogger(__name__)


class DriverRegistry:
    """Registers every driver that has a socket in the directory, for as long as the context lasts.

    ``notify`` off: drivers are found and called, but never told that they are registered. That is for modules, and for
    nodes whose kubelet registers them.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        timings: Timings | None = None,
        notify: bool = True,
        clock: Clock = time.time,
    ) -> None:
        self.directory = os.fspath(directory)
        self._timings = timings or Timings()
        self._notify = notify
        self._clock = clock
        self._instances = Instances(self._timings, clock)
        self._registrars: dict[str, tuple[Registrar, asyncio.Task[None]]] = {}
        self._unreadable: dict[str, str] = {}
        self._no_sockets: list[str] = []
        self._scanned = False
        self._watcher: asyncio.Task[None] | None = None

    async def __aenter__(self) -> DriverRegistry:
        if self._notify:
            self._make_directory()
        self._watcher = asyncio.get_running_loop().create_task(self._watch(), name=f"watch {self.directory}")
        return self

    async def __aexit__(self, *_exc: object) -> None:
        tasks = [task for _registrar, task in self._registrars.values()]
        if self._watcher is not None:
            tasks.append(self._watcher)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._registrars.clear()
        await self._instances.close()

    def _make_directory(self) -> None:
        try:
            os.makedirs(self.directory, mode=0o750, exist_ok=True)
        except OSError as error:
            raise DraError(
                f"The driver registry directory {self.directory} cannot be made: {error.strerror}.",
                "Check the kubelet root directory in the settings.",
                path=self.directory,
            ) from error

    # Look-up

    async def get(self, driver_name: str) -> DriverClient:
        """The client of a registered driver. DriverNotRegistered tells which drivers there are, and which sockets fail.

        Right after the start this waits, for a few seconds at most, until every socket was tried once.
        """
        if not self._instances.of(driver_name):
            await self._instances.signal.until(
                lambda: bool(self._instances.of(driver_name)) or self._settled(), self._timings.settle
            )
        return self._client(driver_name)

    async def wait_for(self, driver_name: str, timeout: float) -> DriverClient:
        """Like `get`, but wait up to ``timeout`` seconds for the driver to register and connect."""

        def ready() -> bool:
            instance = self._instances.pick(driver_name)
            return instance is not None and instance.connection.connected

        await self._instances.signal.until(ready, timeout)
        return self._client(driver_name)

    def _client(self, driver_name: str) -> DriverClient:
        if self._instances.of(driver_name):
            return DriverClient(driver_name, self._instances)
        known = self._instances.names()
        failing = [s for s in self.registrations() if s.state in (RegistrationState.WAITING, RegistrationState.TRYING)]
        message = f"No DRA driver {driver_name} is registered in {self.directory}"
        message += f"; registered: {', '.join(known)}." if known else "; no driver is."
        for status in failing:
            message += (
                f" Not registered yet: {status.error or f'{status.socket} is being tried and has not answered yet.'}"
            )
        for path, why in self._unreadable.items():
            message += f" {path} cannot be read: {why}."
        for path in sorted(self._no_sockets):
            if driver_name in os.path.basename(path):
                message += f" {path} is no socket."
        # What failed to register has told its own next step.
        hint = "driver_info shows what is behind each socket."
        if not failing:
            hint = "Check that the driver runs on this node and that its registration socket is in this directory."
        raise DriverNotRegistered(
            message,
            hint,
            driver=driver_name,
            registry_dir=self.directory,
            known=known,
            failing=[status.socket for status in failing],
        )

    def _settled(self) -> bool:
        return self._scanned and all(registrar.settled for registrar, _task in self._registrars.values())

    # What is known

    def drivers(self) -> tuple[DriverStatus, ...]:
        """Every registered driver with its instances."""
        return self._instances.status()

    def registrations(self) -> tuple[RegistrationStatus, ...]:
        """Every registration socket with how far it has come, sorted by path."""
        return tuple(registrar.status for _path, (registrar, _task) in sorted(self._registrars.items()))

    def unreadable(self) -> dict[str, str]:
        """Directories that could not be read, with the reason."""
        return dict(self._unreadable)

    def subscribe(self) -> EventStream:
        """Events from now on: ``with registry.subscribe() as events: async for event in events: ...``."""
        return self._instances.subscribe()

    # Work

    async def _watch(self) -> None:
        async with contextlib.aclosing(watch_sockets(self.directory, self._timings)) as looks:
            async for changes in looks:
                await self._apply(changes)

    async def _apply(self, changes: Changes) -> None:
        self._unreadable = changes.found.unreadable
        self._no_sockets = changes.found.other
        for path in changes.removed:
            registrar, task = self._registrars.pop(path)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            registrar.forget()
        for path in changes.appeared:
            registrar = Registrar(path, self._instances, self._timings, self._notify, self._clock)
            task = asyncio.get_running_loop().create_task(self._run(registrar), name=f"register {path}")
            self._registrars[path] = registrar, task
        self._scanned = True
        self._instances.signal.notify()

    async def _run(self, registrar: Registrar) -> None:
        try:
            await registrar.run()
        except Exception:
            # The outermost edge: one socket must not take the others with it.
            log.exception("registration ended by a defect socket=%s", registrar.path)
            raise


@contextlib.asynccontextmanager
async def open_driver(registration_socket: str, timings: Timings | None = None) -> t.AsyncIterator[DriverClient]:
    """A client of the one driver behind a registration socket, which is only asked who it is, never told anything.

    RegistrationError or EndpointError when there is no usable driver.
    """
    timings = timings or Timings()
    path = socket_path(registration_socket)
    async with RegistrationCall(path, timings) as call:
        info = await call.get_info()
    if info.type != DRA_PLUGIN:
        raise RegistrationError(
            f"The plugin at {path} is a {info.type}, not a DRA driver.",
            "Give the registration socket of a DRA driver.",
            registration_socket=path,
        )
    plugin = check_plugin(info, path)
    instances = Instances(timings)
    try:
        instances.add(plugin.name, plugin.endpoint, path, plugin.versions, plugin.choice)
        yield DriverClient(plugin.name, instances)
    finally:
        await instances.close()
