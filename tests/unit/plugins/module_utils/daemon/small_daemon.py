# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A small daemon that can be told to behave well or badly, as a process of its own."""

from __future__ import annotations

import asyncio
import errno
import logging
import pathlib
import sys
import threading
import time
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.command import run_daemon
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.common_settings import daemon_schema
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.daemon_protocol import Context
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.exit_codes import ExitCode
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.health import Check, Degraded
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.settings import Change, Settings

log = logging.getLogger("ansible_collections.nodeops.dra.plugins.module_utils.small")

SCHEMA = daemon_schema(
    "Settings of the small daemon",
    {
        "small": {
            "type": "object",
            "description": "What the small daemon does.",
            "additionalProperties": False,
            "properties": {
                "start": {"type": "string", "default": "well", "description": "How it starts."},
                "work": {"type": "string", "default": "well", "description": "How it works."},
                "stop": {"type": "string", "default": "well", "description": "How it stops."},
                "folder": {"type": ["string", "null"], "default": None, "examples": ["/x"], "description": "Orders."},
                "greeting": {"type": "string", "default": "hello", "x-reloadable": True, "description": "A text."},
                "password": {"type": "string", "default": "x", "x-secret": True, "maxLength": 8, "description": "One."},
            },
        }
    },
    http_port=0,
)


class LostError(DraError):
    """Stands for a lost lease."""


class PassingError(DraError):
    """Stands for an API server that is away."""


class Small:
    """The daemon. A file in ``folder`` is an order: the tests put them there and take them away."""

    name = "nodeops-dra-small"
    version = "1.2.3"
    schema = SCHEMA
    metrics = ()
    exit_codes: t.Mapping[type[BaseException], ExitCode] = {LostError: ExitCode.LEASE_LOST}
    passing = (PassingError,)

    def __init__(self) -> None:
        self.folder = pathlib.Path()
        self.settings: dict[str, t.Any] = {}

    def ordered(self, what: str) -> bool:
        """Whether there is an order."""
        return (self.folder / what).exists()

    async def until_ordered(self, what: str) -> None:
        """Wait for an order: somebody else's file, so there is no event to wait for."""
        while not self.ordered(what):  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    def checks(self) -> t.Sequence[Check]:
        """The loop of work, and the drivers."""
        is_live = self.settings["work"] != "unwatched"
        return (Check("loop", self.probe_loop, "The work.", live=is_live), Check("drivers", self.probe_drivers, "All."))

    async def probe_loop(self) -> None:
        """Hangs on order."""
        if self.ordered("hang"):
            log.info("probe hangs")
            await asyncio.Event().wait()

    async def probe_drivers(self) -> str | Degraded:
        """One driver is dead, or all are, on order."""
        if self.ordered("all-dead"):
            raise DraError("No driver answers.", "Look at them.")
        return Degraded("driver b does not answer") if self.ordered("one-dead") else "2 of 2"

    async def start(self, context: Context) -> None:
        """Start as told."""
        self.settings = dict(context.settings.values["small"])
        self.folder = pathlib.Path(self.settings["folder"] or "/nonexistent")
        if self.settings["start"] == "waits":
            context.progress("looking for devices")
            try:
                await self.until_ordered("go")
            except asyncio.CancelledError:
                log.info("start given up")
                raise
        if self.settings["start"] == "passing" and not self.ordered("go"):
            raise PassingError("API server does not answer.", "Wait.")
        if self.settings["start"] in FAILURES:
            raise FAILURES[self.settings["start"]]

    async def work(self) -> None:
        """Work as told."""
        log.info("working greeting=%s", self.settings["greeting"])
        if self.settings["work"] in FAILURES:
            raise FAILURES[self.settings["work"]]
        if self.settings["work"] == "returns":
            return
        if self.settings["work"] == "group":
            async with asyncio.TaskGroup() as group:
                group.create_task(self._raise("lost"))
        await asyncio.Event().wait()

    async def _raise(self, kind: str) -> None:
        raise FAILURES[kind]

    async def stop(self) -> None:
        """Stop as told."""
        log.info("draining")
        if self.settings.get("stop") == "hangs":
            await asyncio.Event().wait()
        if self.settings.get("stop") == "thread":
            threading.Thread(target=time.sleep, args=(3600,), name="dead disk").start()
        if self.settings.get("stop") == "stubborn":
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    log.info("not listening")

    async def reload(self, settings: Settings, change: Change) -> None:
        """Take new settings."""
        self.settings = dict(settings.values["small"])
        if self.settings["greeting"] == "unusable":
            raise DraError("This greeting cannot be used.", "Take another one.")
        log.info("reloaded greeting=%s", self.settings["greeting"])


FAILURES: dict[str, BaseException] = {
    "bug": KeyError("a bug"),
    "lost": LostError("The lease is lost.", "Another instance leads."),
    "failure": DraError("It does not work.", "Do something."),
    "rights": PermissionError(errno.EACCES, "Permission denied", "/x"),
    "refused": DraError("No file.", errno="ENOSPC"),
    "library": ModuleNotFoundError("No module named 'grpc'", name="grpc"),
}

if __name__ == "__main__":
    raise SystemExit(run_daemon(Small(), sys.argv[1:]))
