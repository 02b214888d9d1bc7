# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The controller's daemon as a process of its own, beside an embedded API server that runs in the test."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import re
import signal
import sys
import typing as t

import aiohttp
import yaml

from .world import TOKEN, World, world

MODULE = "ansible_collections.nodeops.dra.plugins.module_utils.controller"
ROOT = next(path for path in sys.path if (pathlib.Path(path) / "ansible_collections" / "nodeops" / "dra").is_dir())
#: Above anything a loaded machine needs; only a failing test waits so long.
PATIENCE = 90.0
LEASE = "nodeops-dra-controller"


class Daemon:
    """A running daemon; its log is read as it comes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[dict[str, t.Any]] = []
        self._url = ""
        self._grown = asyncio.Condition()
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            found = json.loads(line) if line.startswith(b"{") else {"message": line.decode()}
            async with self._grown:
                self.lines.append(found)
                self._grown.notify_all()
        async with self._grown:
            self.lines.append({"message": "(the end of the log)"})
            self._grown.notify_all()

    async def until(self, text: str) -> str:
        """Wait for a line of the log with this text; gives the line."""

        def found() -> str:
            return next((str(line) for line in self.lines if text in str(line)), "")

        async with asyncio.timeout(PATIENCE), self._grown:
            await self._grown.wait_for(lambda: found() or "end of the log" in str(self.lines[-1:]))
        line = found()
        assert line, f"the daemon ended without saying {text!r}:\n" + "\n".join(map(str, self.lines))
        return line

    async def get(self, path: str) -> tuple[int, str]:
        """Ask its own server."""
        if not self._url:
            self._url = re.search(r"http://[\d.:]+", await self.until("listening"))[0]  # type: ignore[index]
        async with aiohttp.ClientSession() as session, session.get(self._url + path) as answer:
            return answer.status, await answer.text()

    async def until_answer(self, path: str, status: int, text: str = "") -> str:
        """Ask until it answers this."""
        answer: tuple[int, str] = (0, "")
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    answer = await self.get(path)
                    if answer[0] == status and text in answer[1]:
                        return answer[1]
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise AssertionError(f"no {status} with {text!r}, last: {answer}\n{self.log}") from None

    async def ready(self) -> str:
        """Wait until it is ready, as leader or on standby."""
        return await self.until_answer("/readyz?verbose", 200)

    async def metric(self, name: str) -> float:
        """The value of a metric, summed over its labels."""
        _status, text = await self.get("/metrics")
        return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.M))

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Wait for the end; the exit status."""
        async with asyncio.timeout(PATIENCE):
            status = await self.process.wait()
            await self._reader
        return status

    @property
    def log(self) -> str:
        """Everything so far."""
        return "\n".join(map(str, self.lines))

    async def close(self) -> None:
        """Kill it if it still runs."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await self._reader


class Place:
    """A folder for daemons beside a cluster."""

    def __init__(self, folder: pathlib.Path, stack: contextlib.AsyncExitStack) -> None:
        self.folder = folder
        self.token_file = folder / "token"
        self.kubeconfig = folder / "controller.conf"
        self._stack = stack

    async def account(self, made: World) -> None:
        """Exactly the rights that the daemon says it needs, and a kubeconfig with a token file."""
        await made.grant()
        self.write_kubeconfig(made.server.kubeconfig())

    def write_kubeconfig(self, document: dict[str, t.Any]) -> None:
        """The kubeconfig of the server, with the token in a file."""
        self.token_file.write_text(TOKEN)
        document["users"][0]["user"] = {"tokenFile": str(self.token_file)}
        self.kubeconfig.write_text(json.dumps(document))

    def write(self, name: str = "a", **sections: t.Any) -> pathlib.Path:
        """A settings file."""
        values: dict[str, t.Any] = {
            "cluster": {"kubeconfig": str(self.kubeconfig)},
            "http": {"port": 0},
            "log": {"format": "json", "repeat_window": 0},
            "lease": {"identity": name},
            "life": {"run_directory": str(self.folder / f"run-{name}")},
        }
        for section, changed in sections.items():
            values[section] = {**values.get(section, {}), **changed}
        path = self.folder / f"{name}.yml"
        path.write_text(yaml.safe_dump(values))
        return path

    async def start(self, name: str = "a", **sections: t.Any) -> Daemon:
        """A daemon with its own settings."""
        return await self.run("--config", str(self.write(name, **sections)))

    async def run(self, *arguments: str) -> Daemon:
        """A daemon with these arguments."""
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("NODEOPS_", "PYTHON"))}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", MODULE, *arguments),
            env={**environ, "PYTHONPATH": ROOT},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=2**20,
        )
        daemon = Daemon(process)
        self._stack.push_async_callback(daemon.close)
        return daemon


@contextlib.asynccontextmanager
async def place(folder: pathlib.Path, version: str = "v1", **server: t.Any) -> t.AsyncIterator[tuple[World, Place]]:
    """A cluster that makes namespaces on first use, and a folder for daemons that have an account there."""
    async with world(version, auto_namespaces=True, **server) as made, contextlib.AsyncExitStack() as stack:
        found = Place(folder, stack)
        await found.account(made)
        yield made, found
