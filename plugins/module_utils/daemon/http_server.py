# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A small HTTP server for probes and scrapes: a fixed set of paths, GET and HEAD, one request a connection."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.file_errors import from_os_error
from .common_settings import HttpSettings
from .renewed_files import BearerToken, ServerTls

if t.TYPE_CHECKING:
    from aiohttp import web

log = logging.getLogger(__name__)
_server_log = logging.getLogger(f"{__name__}.requests")

_TEXT = "text/plain; charset=utf-8"
_REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 21\r\nConnection: close\r\n\r\ntoo many connections\n"
_HANDSHAKE = 5.0
# "Server" too: otherwise it tells the versions of Python and of the library to everybody.
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Server": "nodeops-dra"}
_LOOPBACK = ("127.", "::1", "localhost")


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a path answers."""

    status: int
    body: bytes
    content_type: str = _TEXT


class Endpoint(t.Protocol):
    """What stands behind a path."""

    def needs_token(self, query: t.Mapping[str, str]) -> bool:
        """Whether this request is only for those who have the token, if there is one."""

    async def answer(self, query: t.Mapping[str, str]) -> Answer:
        """The answer."""


class HttpServer:
    """Serves ``endpoints`` from ``start`` to ``stop``. ``told`` hears path and status of each answer."""

    def __init__(
        self, settings: HttpSettings, endpoints: t.Mapping[str, Endpoint], told: t.Callable[[str, int], None]
    ) -> None:
        self._settings, self._endpoints, self._told = settings, endpoints, told
        self._token: BearerToken | None = None
        self._server: web.Server | None = None
        self._listener: asyncio.Server | None = None
        self.url = ""

    async def start(self) -> None:
        """Listen. DraError when the address cannot be had, or a file of TLS or token is of no use."""
        from aiohttp import web

        settings = self._settings
        tls = None
        if settings.tls.certificate_file and settings.tls.key_file:
            tls = ServerTls(settings.tls.certificate_file, settings.tls.key_file).context()
        if settings.token_file:
            self._token = BearerToken(settings.token_file)
        _server_log.addFilter(_is_our_fault)
        self._server = web.Server(self._handle, access_log=None, lingering_time=1.0, logger=_server_log)
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                self._protocol,
                settings.address,
                settings.port,
                ssl=tls,
                ssl_handshake_timeout=_HANDSHAKE if tls else None,
                backlog=settings.max_connections,
            )
        except OSError as error:
            place = f"{settings.address} port {settings.port}"
            failure = from_os_error(error, place, "could not be listened on for HTTP")
            raise DraError(
                failure.message,
                "See who has it (ss -ltnp), or set http.address and http.port to what is free here.",
                errno=failure.facts["errno"],
            ) from error
        host, port = self._listener.sockets[0].getsockname()[:2]
        self.url = f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
        log.info("listening url=%s", self.url)
        if self._token and not tls and not settings.address.startswith(_LOOPBACK):
            log.warning("the token can be read on its way, since http.tls is not set url=%s", self.url)

    async def stop(self) -> None:
        """Listen no more, and end what is open."""
        if self._listener is None or self._server is None:
            return
        self._listener.close()
        self._server.pre_shutdown()
        await self._server.shutdown(1.0)
        self._listener = self._server = None

    def _protocol(self) -> asyncio.Protocol:
        server = self._server
        if server is None or len(server.connections) >= self._settings.max_connections:
            return _Refusing()
        connection = server()
        # From the first byte to the last: a client that sends its request, or takes its answer, byte by byte would
        # otherwise keep its place for ever.
        asyncio.get_running_loop().call_later(self._settings.request_timeout, _cut, connection)
        return connection

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        from aiohttp import web

        answer, headers = await self._answer(request)
        self._told(request.path if request.path in self._endpoints else "other", answer.status)
        response = web.Response(status=answer.status, body=answer.body, headers={**_HEADERS, **headers})
        response.headers["Content-Type"] = answer.content_type
        response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest) -> tuple[Answer, dict[str, str]]:
        if request.method not in ("GET", "HEAD"):
            return Answer(405, b"only GET and HEAD\n"), {"Allow": "GET, HEAD"}
        endpoint = self._endpoints.get(request.path)
        if endpoint is None:
            return Answer(404, f"not found; there is {', '.join(self._endpoints)}\n".encode()), {}
        query = dict(request.query)
        if not self._may_see(endpoint, query, request.headers.get("Authorization", "")):
            return Answer(401, b"needs the bearer token\n"), {"WWW-Authenticate": "Bearer"}
        try:
            return await endpoint.answer(query), {}
        except Exception:
            log.exception("request ended by a bug path=%s", request.path)
            return Answer(500, b"ended by a bug, see the log\n"), {}

    def _may_see(self, endpoint: Endpoint, query: t.Mapping[str, str], authorization: str) -> bool:
        return self._token is None or not endpoint.needs_token(query) or self._token.matches(authorization)


class _Refusing(asyncio.Protocol):
    """One connection too many: says so and hangs up."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        wire = t.cast(asyncio.WriteTransport, transport)
        wire.write(_REFUSAL)
        wire.close()


def _is_our_fault(record: logging.LogRecord) -> bool:
    """A request that is no HTTP is its sender's fault: it gets status 400 and no stack trace in our log."""
    from aiohttp.http_exceptions import HttpProcessingError

    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


def _cut(connection: asyncio.BaseProtocol) -> None:
    transport: t.Any = getattr(connection, "transport", None)
    if transport is not None:
        transport.abort()
