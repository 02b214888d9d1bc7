# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A client without any comfort, and servers for it."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import typing as t

import aiohttp
import pytest
import pytest_asyncio
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.server import ApiServer
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.settings import ServerSettings

Json = dict[str, t.Any]


class Client:
    """Plain HTTP: status codes are looked at by the test, nothing is retried."""

    def __init__(self, server: ApiServer, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.session = session
        self.token = server.token
        self.headers: dict[str, str] = {}

    async def raw(
        self, method: str, path: str, body: t.Any = None, kind: str = "application/json", **headers: str
    ) -> tuple[int, bytes, t.Mapping[str, str]]:
        """Status, body and headers of one request."""
        sent = {**({"Authorization": f"Bearer {self.token}"} if self.token else {}), **self.headers, **headers}
        data = body if isinstance(body, (bytes, io.BytesIO, type(None))) else json.dumps(body).encode()
        if data is not None:
            sent["Content-Type"] = kind
        async with self.session.request(method, self.server.url + path, data=data, headers=sent) as response:
            return response.status, await response.read(), response.headers

    async def ask(self, method: str, path: str, body: t.Any = None, kind: str = "application/json") -> tuple[int, Json]:
        """Status and JSON of one request."""
        status, data, _headers = await self.raw(method, path, body, kind)
        return status, json.loads(data)

    async def must(self, method: str, path: str, body: t.Any = None, kind: str = "application/json") -> Json:
        """JSON of a request that has to succeed."""
        status, value = await self.ask(method, path, body, kind)
        assert status < 300, value
        return value

    async def watch(self, path: str, wanted: int = 10_000) -> list[Json]:
        """Events of a watch until it ends or there are as many as wanted."""
        events: list[Json] = []
        async with self.stream(path) as lines:
            async for line in lines:
                events.append(json.loads(line))
                if len(events) >= wanted:
                    break
        return events

    @contextlib.asynccontextmanager
    async def stream(self, path: str) -> t.AsyncIterator[aiohttp.StreamReader]:
        """Lines of a watch as they come."""
        sent = {"Authorization": f"Bearer {self.token}", **self.headers}
        async with self.session.get(self.server.url + path, headers=sent) as response:
            assert response.status == 200, await response.text()
            yield response.content


@contextlib.asynccontextmanager
async def serving(**settings: t.Any) -> t.AsyncIterator[Client]:
    """A running server and a client for it."""
    async with ApiServer(ServerSettings(**settings)) as server, aiohttp.ClientSession() as session:
        yield Client(server, session)
    await asyncio.sleep(0)


@pytest.fixture
def serve() -> t.Callable[..., t.AsyncContextManager[Client]]:
    """`serving` as a fixture, for tests that need settings of their own."""
    return serving


@pytest_asyncio.fixture
async def client() -> t.AsyncIterator[Client]:
    """A client of a server with default settings."""
    async with serving() as made:  # pylint: disable=contextmanager-generator-missing-cleanup
        yield made
