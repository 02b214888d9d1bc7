# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The agent as people run it: a process with a settings file."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import typing as t
import urllib.error
import urllib.request

from ansible_collections.nodeops.dra.plugins.module_utils.agent.local_client import LocalClient, connected
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import Json, Node

MODULE = "ansible_collections.nodeops.dra.plugins.module_utils.agent"


def settings_of(where: Node, /, **sections: Json) -> Json:
    """Settings for a node of a test: nothing outside its directory, any free port, no API server."""
    made: Json = {
        "node": {
            "name": "node-1",
            "state_directory": str(where.state_directory),
            "kubelet_root": str(where.root),
            "cdi_directories": [str(where.cdi)],
            "socket": str(where.root / "run" / "agent.sock"),
        },
        "claims": {"reconcile_period": 0.5, "retry_limit": 1},
        "kubernetes": {"enabled": False},
        "http": {"port": 0},
        "life": {"run_directory": str(where.root / "run")},
    }
    for name, values in sections.items():
        made[name] = {**made.get(name, {}), **values}
    return made


class AgentProcess:
    """A running agent. ``lines`` is its log so far."""

    def __init__(self, node: Node, child: asyncio.subprocess.Process) -> None:
        self.node, self.child = node, child
        self.lines: list[str] = []
        self.url = ""

    async def until(self, text: str) -> str:
        """Read the log up to a line with ``text``."""
        assert self.child.stderr is not None
        while line := (await self.child.stderr.readline()).decode().rstrip("\n"):
            self.lines.append(line)
            found = re.search(r"listening.* url=(\S+)", line)
            self.url = found[1] if found else self.url
            if text in line:
                return line
        raise AssertionError(f"the agent ended without saying {text}:\n" + "\n".join(self.lines))

    async def end(self, *, kill: bool = False) -> int:
        """Ask it to end, or kill it; the exit status."""
        with contextlib.suppress(ProcessLookupError):
            (self.child.kill if kill else self.child.terminate)()
        return await self.ended()

    async def ended(self) -> int:
        """Wait for its end; the exit status."""
        _out, told = await self.child.communicate()
        self.lines += told.decode().splitlines()
        assert self.child.returncode is not None
        return self.child.returncode

    async def get(self, path: str) -> tuple[int, str]:
        """What its HTTP server answers."""

        def ask() -> tuple[int, str]:
            try:
                opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
                with opener.open(self.url + path, timeout=30) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read().decode()

        return await asyncio.to_thread(ask)

    async def get_until(self, path: str, status: int, text: str = "") -> str:
        """Ask until it answers with this status and this in it; results of checks are kept for a second."""
        while True:
            found, answer = await self.get(path)
            if found == status and text in answer:
                return answer
            await asyncio.sleep(0.1)

    def client(self) -> contextlib.AbstractAsyncContextManager[LocalClient]:
        """A client of its local API."""
        return connected(str(self.node.root / "run" / "agent.sock"))


@contextlib.asynccontextmanager
async def agent_process(
    where: Node,
    /,
    *,
    prefix: t.Sequence[str] = (),
    python: t.Sequence[str] = (sys.executable, "-m"),
    more: t.Sequence[str] = (),
    path: str | None = None,
    **sections: Json,
) -> t.AsyncIterator[AgentProcess]:
    """An agent that has been started; killed at the end if it still runs.

    ``prefix`` is a command that starts others, ``python`` are the interpreter and the words before the module, ``more``
    those at the end, ``path`` is PYTHONPATH.
    """
    config = pathlib.Path(where.root, "agent.yml")
    config.write_text(json.dumps(settings_of(where, **sections)), encoding="utf-8")  # JSON is YAML too
    environment = {key: value for key, value in os.environ.items() if not key.startswith("NODEOPS_")}
    child = await asyncio.create_subprocess_exec(
        *(*prefix, *python, MODULE, "--config", str(config), *more),
        env={**environment, "PYTHONPATH": os.pathsep.join(sys.path) if path is None else path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process = AgentProcess(where, child)
    try:
        yield process
    finally:
        if child.returncode is None:
            await process.end(kill=True)
