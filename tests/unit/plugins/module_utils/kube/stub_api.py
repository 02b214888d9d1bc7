# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""An HTTP server that behaves as badly as a test wants: real sockets, answers written by the test."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import typing as t

from aiohttp import web
from ansible_collections.nodeops.dra.plugins.module_utils.kube.access import ClusterAccess
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.transport import Transport

Json = dict[str, t.Any]
Route = t.Callable[[web.Request], t.Awaitable[web.StreamResponse]]


def status(code: int, reason: str = "", message: str = "", **details: t.Any) -> Json:
    """A metav1.Status as the API server writes it."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message or reason,
        "reason": reason,
        "details": details,
        "code": code,
    }


def failure(code: int, reason: str = "", message: str = "", retry_after: str = "", **details: t.Any) -> web.Response:
    """An error answer."""
    headers = {"Retry-After": retry_after} if retry_after else {}
    return web.json_response(status(code, reason, message, **details), status=code, headers=headers)


def claim(name: str, version: int | str, namespace: str = "team-a", uid: str = "", **more: t.Any) -> Json:
    """A ResourceClaim with just enough metadata."""
    metadata = {"name": name, "namespace": namespace, "uid": uid or f"u-{name}", "resourceVersion": str(version)}
    return {"metadata": {**metadata, **more.pop("metadata", {})}, **more}


def page(items: t.Sequence[Json], version: int | str, token: str = "", remaining: int | None = None) -> web.Response:
    """A list answer."""
    metadata: Json = {"resourceVersion": str(version)}
    if token:
        metadata["continue"] = token
    if remaining is not None:
        metadata["remainingItemCount"] = remaining
    return web.json_response({"kind": "ResourceClaimList", "metadata": metadata, "items": list(items)})


def line(kind: str, obj: Json) -> bytes:
    """A watch event as it goes over the wire."""
    return json.dumps({"type": kind, "object": obj}, ensure_ascii=False).encode() + b"\n"


def bookmark(version: int | str, **annotations: str) -> bytes:
    """A BOOKMARK event."""
    metadata: Json = {"resourceVersion": str(version)}
    if annotations:
        metadata["annotations"] = annotations
    return line("BOOKMARK", {"kind": "ResourceClaim", "metadata": metadata})


class StubApi:
    """Answers each request with the next step of ``script``, or with ``otherwise`` when it has run out.

    ``requests`` holds ``METHOD path?query`` of everything that came, ``bodies`` and ``headers`` what came with it.
    """

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.bodies: list[t.Any] = []
        self.headers: list[t.Mapping[str, str]] = []
        self.script: list[Route] = []
        self.otherwise: Route = self.nothing
        self.open_connections = 0
        self.url = ""
        self._arrived = asyncio.Condition()
        self._runner: web.AppRunner | None = None
        self.over = asyncio.Event()

    async def nothing(self, request: web.Request) -> web.StreamResponse:
        """What a server says about a path it does not have."""
        return web.Response(status=404, text="404 page not found\n")

    async def start(self, context: ssl.SSLContext | None = None) -> None:
        """Listen on a free port."""
        application = web.Application(client_max_size=1 << 26)
        application.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{port}"

    async def stop(self) -> None:
        """Close everything."""
        self.over.set()
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def connections(self) -> int:
        """Open connections now."""
        assert self._runner is not None
        assert self._runner.server is not None
        return len(self._runner.server.connections)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        async with self._arrived:
            self.requests.append(f"{request.method} {request.path_qs}")
            self.bodies.append(json.loads(raw) if raw else None)
            self.headers.append(dict(request.headers))
            self._arrived.notify_all()
        route = self.script.pop(0) if self.script else self.otherwise
        return await route(request)

    async def arrived(self, count: int, part: str = "") -> None:
        """Wait until so many requests whose text holds ``part`` have come."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len([text for text in self.requests if part in text]) >= count)

    def seen(self, part: str) -> list[str]:
        """Requests whose text holds ``part``."""
        return [text for text in self.requests if part in text]


def answers(*responses: web.Response) -> list[Route]:
    """Steps that answer with these."""

    def step(response: web.Response) -> Route:
        async def route(request: web.Request) -> web.StreamResponse:
            return response

        return route

    return [step(response) for response in responses]


def stream(*chunks: bytes, stay: bool = True, api: StubApi | None = None) -> Route:
    """A watch that sends these chunks; it stays open until the server stops, or ends."""

    async def route(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0.001)  # lets the chunk go out by itself
        if stay:
            assert api is not None
            await api.over.wait()
        return response

    return route


@contextlib.asynccontextmanager
async def running(context: ssl.SSLContext | None = None) -> t.AsyncIterator[StubApi]:
    """A stub for the length of a block."""
    api = StubApi()
    await api.start(context)
    try:
        yield api
    finally:
        await api.stop()


@contextlib.asynccontextmanager
async def connected(**settings: t.Any) -> t.AsyncIterator[tuple[StubApi, KubeClient]]:
    """A stub and a client of it."""
    async with running() as api, Transport(ClusterAccess(api.url, "a test")) as transport:
        yield api, KubeClient(transport, **settings)
        api.over.set()
