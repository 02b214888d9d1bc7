# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Registers the driver behind one registration socket and keeps it registered for as long as the socket exists.

A failure is never final: it is tried again after a pause that doubles up to about two minutes. (kubelet: reconciler of
the plugin manager, back-off of goroutinemap)
"""

from __future__ import annotations

import asyncio
import logging
import time
import typing as t

from ..checkpoint.errors import DraError
from .handshake import DRA_PLUGIN, Plugin, RegistrationCall, check_plugin, connect_problem
from .instances import Instance, Instances
from .status import RegistrationState, RegistrationStatus
from .timings import Backoff, Clock, Timings

log = logging.getLogger(__name__)


class Registrar:
    """One socket. Run it as a task; cancel the task and call `forget` when the socket is gone.

    With ``notify`` off the plugin is never told anything: for looking, and beside a kubelet that registers it.
    """

    def __init__(
        self, path: str, instances: Instances, timings: Timings, notify: bool = True, clock: Clock = time.time
    ) -> None:
        self.path = path
        self.settled = False  # whether the first attempt has ended
        self._instances = instances
        self._timings = timings
        self._notify = notify
        self._clock = clock
        self._instance: Instance | None = None
        self._status = RegistrationStatus(path, RegistrationState.TRYING, clock())

    @property
    def status(self) -> RegistrationStatus:
        return self._status

    async def run(self) -> None:
        """Try until registered; again when the registration is lost while the socket is still there."""
        backoff = Backoff(self._timings)
        while True:
            try:
                foreign = await self._attempt()
            except DraError as error:
                pause = backoff.next()
                self._set(RegistrationState.WAITING, error=str(error), next_try_at=self._clock() + pause)
                log.warning("registration failed socket=%s next_try_in=%.1f error=%s", self.path, pause, error)
                await asyncio.sleep(pause)
                continue
            if foreign:
                await asyncio.Event().wait()  # until the socket is made anew, which cancels this task
            backoff = Backoff(self._timings)
            await self._instances.signal.until(self._lost)

    def forget(self) -> None:
        """The socket is gone: so is the instance."""
        if self._instance is not None:
            self._instances.remove(self._instance)

    def _lost(self) -> bool:
        return self._instance is None or self._instance not in self._instances.of(self._instance.driver)

    def _set(self, state: RegistrationState, **changes: t.Any) -> None:
        old = self._status
        values = {"driver": old.driver, "attempts": old.attempts, "error": old.error, **changes}
        self._status = RegistrationStatus(self.path, state, self._clock(), **values)
        self.settled = self.settled or state is not RegistrationState.TRYING
        self._instances.signal.notify()

    async def _attempt(self) -> bool:
        """One handshake; True when the plugin is of another kind. DraError when it failed."""
        self._set(RegistrationState.TRYING, attempts=self._status.attempts + 1)
        async with RegistrationCall(self.path, self._timings) as call:
            info = await call.get_info()
            if info.type != DRA_PLUGIN:
                # Not told that nobody handles it, as a kubelet would: on most nodes a kubelet does handle it.
                self._set(RegistrationState.FOREIGN, error=f"a {info.type}, handled by the kubelet")
                return True
            self._set(RegistrationState.TRYING, driver=info.name)
            step = "validation"
            try:
                plugin = check_plugin(info, self.path)
                step = "registration"
                self._make_room(plugin)
                self._instance = self._instances.add(
                    plugin.name, plugin.endpoint, self.path, plugin.versions, plugin.choice
                )
            except DraError as error:
                await self._tell_failure(call, f"RegisterPlugin error -- plugin {step} failed with err: {error}")
                raise
            await self._tell_success(call)
        self._set(RegistrationState.REGISTERED, error="")
        return False

    def _make_room(self, plugin: Plugin) -> None:
        """Drop an older registration of the same socket if nobody is behind it any more.

        A driver that was killed and came back under another registration socket would else be locked out by its own
        left-over file.
        """
        for other in self._instances.of(plugin.name):
            if other.endpoint == plugin.endpoint and other.registration_socket != self.path:
                problem = connect_problem(other.registration_socket)
                if problem:
                    log.info("dead registration replaced socket=%s by=%s", other.registration_socket, self.path)
                    self._instances.remove(other)

    async def _tell_success(self, call: RegistrationCall) -> None:
        if not self._notify:
            return
        try:
            await call.notify(registered=True)
        except BaseException:
            self.forget()
            raise

    async def _tell_failure(self, call: RegistrationCall, text: str) -> None:
        if not self._notify:
            return
        try:
            await call.notify(registered=False, error=text)
        except DraError as error:
            log.warning("plugin not told of its failed registration socket=%s error=%s", self.path, error)
