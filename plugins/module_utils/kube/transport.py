# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""HTTP to one API server: a pool of connections, raw bytes in and out.

Beside that: a deadline on everything, credentials renewed after a 401, certificate files that are replaced while we
run, and writes that look at their fence in the step in which they are sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import typing as t

from . import errors, failures
from .access import ClusterAccess
from .fence import Fence
from .guarded_body import abort, guarded_body
from .pool import Pool, open_pool
from .resources import Call
from .transport_errors import describe_failure

if t.TYPE_CHECKING:
    import aiohttp

#: Seconds for a connection to come up, below the deadline of the request.
CONNECT_TIMEOUT = 10.0
USER_AGENT = "nodeops.dra"


@dataclasses.dataclass(frozen=True)
class Answer:
    """An HTTP answer that was read to its end."""

    status: int
    body: bytes
    retry_after: str = ""

    @property
    def ok(self) -> bool:
        """2xx."""
        return 200 <= self.status < 300


@dataclasses.dataclass(frozen=True)
class Request:
    """What goes over the wire for a ``Call``. ``deadline`` is on the loop's clock."""

    call: Call
    deadline: float
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content_type: str = "application/json"
    fence: Fence | None = None


class ByteStream:
    """The body of an answer, as it comes in."""

    def __init__(self, response: aiohttp.ClientResponse, failure: t.Callable[[Exception], Exception]) -> None:
        self._response, self._failure = response, failure

    async def read(self) -> bytes:
        """What has come in, at least one byte; empty at the end. Raises ``UnreachableError`` when it breaks off."""
        try:
            return await self._response.content.readany()
        except Exception as error:
            raise self._failure(error) from error


class Transport:
    """Requests to one API server. An asynchronous context manager; belongs to the loop in which it is entered."""

    def __init__(self, access: ClusterAccess, *, max_connections: int = 100) -> None:
        self.access = access
        self._max_connections = max_connections
        self._pool: Pool | None = None
        self._retired: list[Pool] = []
        self._renewing, self._opening = asyncio.Lock(), asyncio.Lock()

    async def __aenter__(self) -> Transport:
        """Nothing is connected before the first request."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close all connections."""
        await self.close()

    async def close(self) -> None:
        """Close all connections; the transport opens new ones when it is used again."""
        pools = [*self._retired, *([self._pool] if self._pool else [])]
        self._pool, self._retired = None, []
        for pool in pools:
            await pool.close()

    def url(self, call: Call) -> str:
        """The URL of a request without its query, as texts name it."""
        return self.access.secrets.scrub(self.access.server + call.path)

    def error(self, call: Call, answer: Answer) -> errors.ApiStatusError:
        """The error for an answer that is no success."""
        return failures.from_answer(
            call, self.url(call), answer.status, answer.body, answer.retry_after, self.access.secrets
        )

    async def send(self, request: Request) -> Answer:
        """Send and read the answer. After a 401 once more with a renewed credential, if there is one.

        Raises ``UnreachableError`` or one of its kind, ``CredentialError``, ``FenceLostError``.
        """
        started = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(_end(request, started)):
                async with _Exchange(self, request) as response:
                    answer = await self._read(request, response)
                if answer.status == 401 and await self._renew(request):
                    async with _Exchange(self, request) as response:
                        answer = await self._read(request, response)
        except TimeoutError as error:
            raise self._too_late(request, started) from error
        return answer

    @contextlib.asynccontextmanager
    async def stream(self, request: Request) -> t.AsyncIterator[ByteStream]:
        """Open an answer without end. The deadline holds for the opening only.

        Raises the error of the answer when it is no success.
        """
        started = asyncio.get_running_loop().time()
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout_at(_end(request, started)):
                    response = await stack.enter_async_context(_Exchange(self, request))
                    if response.status == 401:
                        answer = await self._read(request, response)
                        await stack.aclose()
                        if not await self._renew(request):
                            raise self.error(request.call, answer)
                        response = await stack.enter_async_context(_Exchange(self, request))
                    if not 200 <= response.status < 300:
                        raise self.error(request.call, await self._read(request, response))
            except TimeoutError as error:
                raise self._too_late(request, started) from error
            yield ByteStream(response, lambda error: self.failure(request, error))

    def _too_late(self, request: Request, started: float) -> errors.DeadlineError:
        """The error when the deadline has passed; raises ``FenceLostError`` when it was that of the fence."""
        if request.fence is not None:
            request.fence.check()
        waited = asyncio.get_running_loop().time() - started
        error = errors.DeadlineError(
            f"Could not {request.call.describe()}: {request.call.method} {self.url(request.call)} was not answered "
            f"within {round(waited, 1):g} s.",
            "Check that the address is right and that the API server is not overloaded; raise the timeout if it is "
            "only slow.",
            **request.call.facts(),
            url=self.url(request.call),
            timeout=round(waited, 3),
        )
        error.maybe_applied = request.call.writes
        return error

    async def _read(self, request: Request, response: aiohttp.ClientResponse) -> Answer:
        try:
            body = await response.read()
        except Exception as error:
            raise self.failure(request, error) from error
        return Answer(response.status, body, response.headers.get("Retry-After", ""))

    def headers(self, authorization: str) -> list[tuple[str, str]]:
        """Headers of every request."""
        given = {name for name, _value in self.access.headers}
        headers = [("Accept", "application/json"), *self.access.headers]
        if "User-Agent" not in given:
            headers.append(("User-Agent", USER_AGENT))
        if authorization and "Authorization" not in given:
            headers.append(("Authorization", authorization))
        return headers

    async def pool(self) -> Pool:
        """The connections to use now; opened, or opened again, when the certificate is another one."""
        certificate = self.access.credential.certificate()
        pool = self._pool
        if pool is None or pool.certificate != certificate:
            async with self._opening:
                pool = self._pool
                if pool is None or pool.certificate != certificate:
                    pool = await self._replace_pool()
        return pool

    async def _replace_pool(self) -> Pool:
        """Open a pool with today's certificates; the old one is closed as soon as no request uses it."""
        pool = await open_pool(self.access, self._max_connections)
        if self._pool is not None:
            self._retired.append(self._pool)
        self._pool = pool
        for old in [old for old in self._retired if not old.users]:
            self._retired.remove(old)
            await old.close()
        return pool

    async def _renew(self, request: Request) -> bool:
        """After a 401: whether there is a new credential, from the same source or from changed files."""
        if request.fence is not None:
            request.fence.check()
        async with self._renewing:
            renewed = await self.access.credential.renew()
            if self._pool is not None and await asyncio.to_thread(self._pool.files_changed):
                await self._replace_pool()
                return True
            return renewed

    def failure(self, request: Request, error: Exception) -> Exception:
        """The error of this layer for what aiohttp raised."""
        return describe_failure(request.call, self.url(request.call), error, self.access)


class _Exchange:
    """One exchange up to the answer's headers; the connection goes back to the pool at the end, or is closed.

    A class and no generator: this is on the way of every request.
    """

    def __init__(self, transport: Transport, request: Request) -> None:
        self._transport, self._request = transport, request
        self._pool: Pool | None = None
        self._response: aiohttp.ClientResponse | None = None

    async def __aenter__(self) -> aiohttp.ClientResponse:
        transport, request = self._transport, self._request
        authorization = await transport.access.credential.header()
        pool = await transport.pool()
        if request.fence is not None:
            request.fence.__enter__()
        pool.users += 1
        self._pool = pool
        body = guarded_body(request.body, request.content_type, request.fence)
        try:
            self._response = await pool.request(request, transport.headers(authorization), _query(request), body)
        except BaseException as error:
            self._leave()
            if isinstance(error, Exception):
                raise transport.failure(request, error) from error
            if request.fence is not None:
                abort(body)
            raise
        return self._response

    async def __aexit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        response = self._response
        if response is not None:
            if kind is None and response.content.at_eof():
                response.release()
            else:
                response.close()
        self._leave()

    def _leave(self) -> None:
        if self._pool is not None:
            self._pool.users -= 1
            self._pool = None
            if self._request.fence is not None:
                self._request.fence.__exit__()


def _end(request: Request, now: float) -> float:
    """The request's deadline, or the end of its fence if that comes first."""
    if request.fence is None:
        return request.deadline
    return min(request.deadline, now + max(0.0, request.fence.remaining()))


def _query(request: Request) -> tuple[tuple[str, str], ...]:
    """The query; a fenced write also asks the server to give up when the term ends (it may queue requests)."""
    if request.fence is None:
        return request.query
    left = max(1, int(request.fence.remaining() * 1000))
    return (*request.query, ("timeout", f"{left}ms"))
