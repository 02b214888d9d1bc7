# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Where claims are worked on: with a manager that is opened for one task, or with the one of the running agent."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.file_errors import MissingFileError
from ..checkpoint.store import StateDirectory
from ..driver.registry import DriverRegistry
from ..driver.scan import SCAN_TIMINGS
from ..manager.boot import current_boot_id
from ..manager.durable_claims import Record
from ..manager.loading import load
from ..manager.manager import DegradedError, DraManager
from ..manager.opening import Settings
from ..resource.view import JsonObject
from .claim_request import ClaimRequest
from .workplace import PodKeeper

Records = t.Mapping[str, Record]


class Place(t.Protocol):
    """A manager with its drivers, for the length of one task. ``via`` is what the task's result says of it."""

    @property
    def via(self) -> str: ...

    def living_pod(self, uid: str) -> JsonObject | None:
        """A pod that is known to be there and whose containers may still run, None for any other."""

    def records(self) -> Records:
        """What is recorded now, by UID. Raises DraError when that is not known."""

    def registry(self) -> contextlib.AbstractAsyncContextManager[DriverRegistry]:
        """The drivers of the node."""

    def manager(self, drivers: DriverRegistry) -> contextlib.AbstractAsyncContextManager[DraManager]:
        """The manager; its directory is made if it is missing."""


@dataclasses.dataclass(frozen=True)
class OwnManager:
    """A manager in this process, which holds the lock of the state file while it works."""

    request: ClaimRequest
    via: str = "lock"

    def living_pod(self, uid: str) -> JsonObject | None:
        """Without the API no pod is known."""
        return None

    def records(self) -> Records:
        """From the file, without the lock: it is replaced whole. Nothing where there is no directory yet."""
        settings = Settings(self.request.state_directory)
        with contextlib.suppress(MissingFileError), StateDirectory(self.request.state_directory) as directory:
            return load(directory, settings.state_name, settings.notes_name, current_boot_id()).records
        return {}

    def registry(self) -> contextlib.AbstractAsyncContextManager[DriverRegistry]:
        """Drivers as driver_info sees them: never told anything, and given the time that a busy node takes."""
        return DriverRegistry(self.request.registry, notify=False, timings=SCAN_TIMINGS)

    @contextlib.asynccontextmanager
    async def manager(self, drivers: DriverRegistry) -> t.AsyncIterator[DraManager]:
        """A manager from the files."""
        request = self.request
        _make_directory(request.state_directory)
        settings = Settings(
            request.state_directory, timeout=request.timeout, cdi_directories=request.cdi_directories, cdi_policy="warn"
        )
        async with await DraManager.open(settings, drivers) as manager:
            yield manager


@dataclasses.dataclass(frozen=True)
class AgentManager:
    """The manager and the drivers of the running agent, which stay open."""

    agent_manager: DraManager
    agent_registry: DriverRegistry
    keeper: PodKeeper | None = None
    via: str = "agent"

    def living_pod(self, uid: str) -> JsonObject | None:
        """One of those that the agent prepares claims for by itself."""
        return None if self.keeper is None else self.keeper.living(uid)

    def records(self) -> Records:
        """From the manager's table. Raises DegradedError when it could not read its file: nothing is known then."""
        check_known(self.agent_manager)
        return {report.record.state.uid: report.record for report in self.agent_manager.claims()}

    def registry(self) -> contextlib.AbstractAsyncContextManager[DriverRegistry]:
        """The agent's own."""
        return contextlib.nullcontext(self.agent_registry)

    def manager(self, drivers: DriverRegistry) -> contextlib.AbstractAsyncContextManager[DraManager]:
        """The agent's own."""
        return contextlib.nullcontext(self.agent_manager)


def check_known(manager: DraManager) -> None:
    """Raise DegradedError when a manager could not read its file: nothing of what it has prepared is known then."""
    for finding in manager.findings():
        if finding.code == "state_damaged":
            raise DegradedError(finding.text, finding.remedy, **finding.facts)


def _make_directory(path: str) -> None:
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError as error:
        raise DraError(
            f"The state directory {path} cannot be made: {error.strerror}.",
            "Give a state_directory that can be written, and run this as root.",
            file=path,
        ) from error
