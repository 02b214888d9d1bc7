# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A node for soak tests: an API server, drivers and the agent, each a process of its own that can be killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.agent.local_client import LocalClient, connected
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.cluster import resolve
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import options_from
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_control import ask

Json = dict[str, t.Any]

MODULES = "ansible_collections.nodeops.dra.plugins.module_utils"
DRIVER = "ansible_collections.nodeops.dra.tests.soak.agent_driver"
NODE = "node-1"
DRIVERS = ("gpu.test.example", "nic.test.example", "fpga.test.example")
PATIENCE = 90.0
"""Seconds that anything may take on a busy machine."""


class Process:
    """A child whose output is kept in ``log`` and heard line by line."""

    def __init__(self, child: asyncio.subprocess.Process, log: pathlib.Path, heard: t.Callable[[str], None]) -> None:
        self.child = child
        self._heard = heard
        self._reading = asyncio.create_task(self._read(log))

    async def _read(self, log: pathlib.Path) -> None:
        assert self.child.stdout is not None
        with log.open("ab") as file:
            while line := await self.child.stdout.readline():
                file.write(line)
                file.flush()
                self._heard(line.decode(errors="replace").rstrip("\n"))

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.child.returncode is None

    async def end(self, *, kill: bool = False) -> int:
        """End it and hear all that it said; the exit status."""
        with contextlib.suppress(ProcessLookupError):
            (self.child.kill if kill else self.child.terminate)()
        async with asyncio.timeout(PATIENCE):
            status = await self.child.wait()
            await self._reading
        return status


async def start(log: pathlib.Path, *argv: str, heard: t.Callable[[str], None], **environment: str) -> Process:
    """Start ``python argv...``; both outputs go to the same log."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("NODEOPS_", "KUBE", "PYTHON"))}
    paths = [environment.pop("FIRST", ""), *sys.path]
    environ.update(environment, PYTHONPATH=os.pathsep.join(filter(None, paths)))
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *argv,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        limit=2**24,
    )
    return Process(child, log, heard)


class _Heard:
    """Waits for a line that begins with a word."""

    def __init__(self, word: str) -> None:
        self._word = word
        self._event = asyncio.Event()

    def __call__(self, line: str) -> None:
        if line.startswith(self._word):
            self._event.set()

    async def wait(self) -> None:
        """Raises TimeoutError when it does not come."""
        await asyncio.wait_for(self._event.wait(), PATIENCE)


class SoakNode:
    """Everything of one node lies in ``root``, whose path is short: sockets are in it. Logs go to ``root/log``.

    ``heard`` gets every line of the agent's log.
    """

    def __init__(self, root: pathlib.Path, drivers: t.Sequence[str] = DRIVERS) -> None:
        self.root = root
        self.names = tuple(drivers)
        self.state, self.cdi, self.run = root / "state", root / "cdi", root / "run"
        self.logs, self.allocations = root / "log", root / "alloc"
        for folder in (root / "plugins_registry", self.cdi, self.logs, self.allocations):
            folder.mkdir(parents=True)
        self.drivers: dict[str, Process] = {}
        self.api: Process | None = None
        self.agent: Process | None = None
        self.url = ""
        self.ready = asyncio.Event()
        self.settings: Json = {}
        self.environment: dict[str, str] = {}
        self.heard: t.Callable[[str], None] = lambda _line: None

    @property
    def kubeconfig(self) -> pathlib.Path:
        """What the API server wrote."""
        return self.root / "kubeconfig"

    def agent_settings(self) -> Json:
        """The settings file of the agent."""
        made: Json = {
            "node": {
                "name": NODE,
                "state_directory": str(self.state),
                "kubelet_root": str(self.root),
                "cdi_directories": [str(self.cdi)],
                "socket": str(self.run / "agent.sock"),
            },
            "claims": {"timeout": 3, "retry_limit": 1, "reconcile_period": 0.5},
            "kubernetes": {"kubeconfig": str(self.kubeconfig)},
            "log": {"repeat_window": 0},
            "http": {"port": 0},
            "life": {"run_directory": str(self.run)},
        }
        for name, values in self.settings.items():
            made[name] = {**made[name], **values}
        return made

    # Processes

    async def start_api(self) -> None:
        """Start the API server."""
        argv = ["-m", f"{MODULES}.sandbox", "apiserver", "--no-garbage-collection"]
        argv += ["--write-kubeconfig", str(self.kubeconfig)]
        listening = _Heard("ready")
        self.api = await start(self.logs / "api", *argv, heard=listening)
        await listening.wait()

    async def start_driver(self, name: str) -> None:
        """Start a driver, again too."""
        argv = ["-m", DRIVER, name, *map(str, (self.root, self.cdi, self.allocations))]
        listening = _Heard("ready")
        self.drivers[name] = await start(self.logs / name, *argv, heard=listening)
        await listening.wait()

    async def start_agent(self) -> None:
        """Start the agent; ``ready`` is set when it is."""
        config = self.root / "agent.yml"
        config.write_text(json.dumps(self.agent_settings()), encoding="utf-8")  # JSON is YAML too
        self.ready.clear()
        argv = ["-m", f"{MODULES}.agent", "--config", str(config)]
        self.agent = await start(self.logs / "agent", *argv, heard=self._hear, **self.environment)

    def _hear(self, line: str) -> None:
        found = re.search(r" listening url=(\S+)", line)
        self.url = found[1] if found else self.url
        if " ready daemon=" in line:
            self.ready.set()
        self.heard(line)

    async def start_all(self) -> None:
        """Start everything, the agent last."""
        await asyncio.gather(self.start_api(), *map(self.start_driver, self.names))
        await self.start_agent()
        await self.until_ready()

    async def until_ready(self) -> None:
        """Wait until the agent is ready; raises AssertionError when it ends instead."""
        assert self.agent is not None
        ended = asyncio.create_task(self.agent.child.wait())
        ready = asyncio.create_task(self.ready.wait())
        await asyncio.wait({ended, ready}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        for task in (ended, ready):
            task.cancel()
        if not self.ready.is_set():
            raise AssertionError(f"the agent is not ready after {PATIENCE:.0f} s, status {self.agent.child.returncode}")

    async def end_all(self) -> None:
        """Kill whatever runs."""
        processes = [process for process in (self.agent, *self.drivers.values(), self.api) if process is not None]
        await asyncio.gather(*(process.end(kill=True) for process in processes))

    # Talking to them

    @contextlib.asynccontextmanager
    async def cluster(self) -> t.AsyncIterator[KubeClient]:
        """A client of the API server."""
        access = await asyncio.to_thread(resolve, options_from({"kubeconfig": str(self.kubeconfig)}))
        async with KubeClient.connect(access) as client:
            yield client

    def local(self) -> contextlib.AbstractAsyncContextManager[LocalClient]:
        """A client of the agent."""
        return connected(str(self.run / "agent.sock"))

    async def tell_driver(self, name: str, operation: str, **values: t.Any) -> Json:
        """One operation of a driver's control socket."""
        return await ask(str(self.root / "plugins" / name / "control.sock"), operation, **values)


async def until(condition: t.Callable[[], t.Awaitable[t.Any]], what: str, patience: float = PATIENCE) -> t.Any:
    """Ask until the answer is true, and return it. Raises AssertionError that names ``what``."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        found = await condition()
        if found:
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(f"not within {patience:.0f} s: {what}")
