# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A process that runs a scenario and kills itself at a given step. A step is a call that changes something on disk, or
a call to a driver.

Run as a program it imports everything once, then forks a child for each line of JSON on its standard input and answers
with a line once the child has ended. So a crash costs milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import signal
import sys
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.driver.registry import DriverRegistry
from ansible_collections.nodeops.dra.plugins.module_utils.manager import opening
from ansible_collections.nodeops.dra.plugins.module_utils.manager.manager import DraManager
from ansible_collections.nodeops.dra.plugins.module_utils.manager.state_file import StateFile
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.crash_scenarios import (
    DRIVERS,
    SCENARIOS,
    Scenario,
    claims_of,
    pod_with,
)

DISK_CALLS = ("write", "pwrite", "fsync", "fdatasync", "rename", "link", "unlink")


class Steps:
    """Counts steps into a file and ends the process, as `kill -9` does, right before number ``kill_at``."""

    def __init__(self, log: pathlib.Path, kill_at: int) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._write = os.write
        self._left = kill_at

    def step(self, name: str) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._write(self._log, f"{name}\n".encode())

    def watch_disk(self) -> None:
        for name in DISK_CALLS:
            setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name: str, call: t.Callable[..., t.Any]) -> t.Callable[..., t.Any]:
        def watched(*args: t.Any, **options: t.Any) -> t.Any:
            self.step(name)
            return call(*args, **options)

        return watched


class WatchedDrivers:
    """The drivers of a registry; each call is a step before it and a step after it."""

    def __init__(self, registry: DriverRegistry, steps: Steps) -> None:
        self._registry = registry
        self._steps = steps

    async def get(self, driver_name: str) -> t.Any:
        return _WatchedDriver(await self._registry.get(driver_name), self._steps)


class _WatchedDriver:
    def __init__(self, client: t.Any, steps: Steps) -> None:
        self._client = client
        self._steps = steps

    async def prepare(self, claims: t.Any, timeout: float) -> t.Any:
        return await self._call("prepare", claims, timeout)

    async def unprepare(self, claims: t.Any, timeout: float) -> t.Any:
        return await self._call("unprepare", claims, timeout)

    async def _call(self, method: str, claims: t.Any, timeout: float) -> t.Any:
        self._steps.step(f"call {method}")
        answer = await getattr(self._client, method)(claims, timeout)
        self._steps.step(f"answer of {method}")
        return answer


def manager_settings(root: pathlib.Path) -> opening.Settings:
    return opening.Settings(str(root), lock_timeout=0.0, cdi_policy="error", cdi_directories=(str(root / "cdi"),))


async def run(root: pathlib.Path, scenario: Scenario, kill_at: int) -> None:
    """Run the scenario; what was reported as done is in the file ``done``, what was passed in ``steps``."""
    steps = Steps(root / "steps", kill_at)
    done = os.open(root / "done", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    write = os.write
    async with DriverRegistry(root / "plugins_registry", notify=False) as registry:
        for name in DRIVERS:
            await registry.wait_for(name, 10)
        steps.watch_disk()
        manager = await DraManager.open(manager_settings(root), WatchedDrivers(registry, steps))
        for operation, pod_uid, names in scenario.operations:
            if operation == "prepare":
                await manager.prepare(pod_with(pod_uid, names), claims_of(names))
            else:
                await manager.unprepare(pod_uid)
            write(done, f"{operation} {pod_uid}\n".encode())
        await manager.close()


def child(request: dict[str, t.Any]) -> None:
    scenario = SCENARIOS[request["scenario"]]
    if scenario.large:
        StateFile.__init__.__kwdefaults__["grid_from"] = 0  # type: ignore[index]
    asyncio.run(run(pathlib.Path(request["root"]), scenario, int(request["kill_at"])))


def main() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                child(json.loads(line))
                code = 0
            finally:
                sys.stderr.flush()
                os._exit(code)
        _pid, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
