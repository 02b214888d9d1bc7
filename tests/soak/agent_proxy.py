# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A way to a server that can be cut, or fall silent."""

from __future__ import annotations

import asyncio
import contextlib


class Proxy:
    """Hands connections on to ``port`` of this machine. Use it as an async context manager; ``own_port`` is its own."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.own_port = 0
        self.connections = 0
        self._server: asyncio.Server | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Proxy:
        await self.mend()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.cut()

    async def mend(self) -> None:
        """Listen, at the same place as ever, and hand on whatever comes."""
        self._flowing.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.own_port)
            self.own_port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Break every connection and refuse new ones, as when the other end is gone."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def silence(self) -> None:
        """Break nothing, take new connections too, and hand nothing on until it is mended."""
        self._flowing.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            # Cancelled when it is cut, which the streams of asyncio would tell as an error of ours.
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._flowing.wait()
                there, back = await asyncio.open_connection("127.0.0.1", self._port)
                try:
                    async with asyncio.TaskGroup() as group:
                        group.create_task(self._hand_on(reader, back))
                        group.create_task(self._hand_on(there, writer))
                finally:
                    back.close()
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    async def _hand_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(65536):
                await self._flowing.wait()
                writer.write(chunk)
                await writer.drain()
            writer.close()
