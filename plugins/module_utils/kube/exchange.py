# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The way of every request: rate limit, fence, deadline, and another try only where that is safe."""

from __future__ import annotations

import asyncio
import copy
import random
import typing as t

from . import errors
from .backoff import Backoff
from .fence import Fence
from .resources import Call
from .shapes import encode
from .throttle import Throttle
from .transport import Answer, Request, Transport

Self = t.TypeVar("Self", bound="Requester")
Query = t.Sequence[tuple[str, str]]


class RequestObserver(t.Protocol):
    """Gets a note for each HTTP exchange, for metrics."""

    def requested(self, call: Call, status: int, seconds: float) -> None:
        """An exchange ended; ``status`` is 0 when no answer came."""

    def throttled(self, call: Call, seconds: float) -> None:
        """A request waited for our own rate limit."""


class NoObserver:
    """Takes no notes."""

    def requested(self, call: Call, status: int, seconds: float) -> None:
        """Nothing."""

    def throttled(self, call: Call, seconds: float) -> None:
        """Nothing."""


class Requester:
    """Requests through one transport. ``with_...`` methods give cheap copies that share it.

    ``timeout`` is in seconds and counts for a whole call: waiting for the rate limit, the credential, connecting, and
    every further try.

    Tried again, until the deadline: reads after anything that may pass; writes after 429 and after 503 with
    Retry-After (the server did not take them), after a connection that never came up, and, where a repetition changes
    nothing (``repeatable``), like reads. Other writes that got no answer raise with ``maybe_applied`` set.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        timeout: float = 30.0,
        tries: int = 5,
        throttle: Throttle | None = None,
        observer: RequestObserver | None = None,
        rand: t.Callable[[], float] = random.random,
    ) -> None:
        self.transport = transport
        self.timeout = timeout
        self.throttle = throttle
        self._tries, self._rand = max(1, tries), rand
        self._observer: RequestObserver = observer or NoObserver()
        self._fence: Fence | None = None

    def with_fence(self: Self, fence: Fence) -> Self:
        """A client whose writes all pass ``fence``."""
        twin = copy.copy(self)
        twin._fence = fence
        return twin

    def with_timeout(self: Self, timeout: float) -> Self:
        """A client with another default deadline."""
        twin = copy.copy(self)
        twin.timeout = timeout
        return twin

    def without_limits(self: Self) -> Self:
        """A client that ignores the rate limit and tries once: for lease renewals, which have a rhythm of their own."""
        twin = copy.copy(self)
        twin.throttle, twin._tries = None, 1
        return twin

    async def request(
        self,
        call: Call,
        *,
        query: Query = (),
        body: t.Any = None,
        content_type: str = "application/json",
        timeout: float | None = None,
        repeatable: bool = False,
    ) -> bytes:
        """Send a request, again where that is safe, and give the body of the answer; raises a ``KubeError``."""
        request = Request(
            call,
            self.deadline_in(timeout),
            tuple(query),
            None if body is None else encode(body),
            content_type,
            self._fence if call.writes else None,
        )
        backoff = Backoff(0.1, 5.0, rand=self._rand)
        while True:
            try:
                return await self._attempt(request)
            except (errors.UnreachableError, errors.ApiStatusError) as error:
                if backoff.failures + 1 >= self._tries or not may_repeat(call, error, repeatable):
                    raise
                delay = backoff.next(getattr(error, "retry_after", None))
                if asyncio.get_running_loop().time() + delay >= request.deadline:
                    raise
                await asyncio.sleep(delay)

    async def _attempt(self, request: Request) -> bytes:
        await self.throttled(request.call, request.deadline)
        started = asyncio.get_running_loop().time()
        status = 0
        try:
            answer: Answer = await self.transport.send(request)
            status = answer.status
        finally:
            self._observer.requested(request.call, status, asyncio.get_running_loop().time() - started)
        if not answer.ok:
            raise self.transport.error(request.call, answer)
        return answer.body

    async def throttled(self, call: Call, deadline: float) -> None:
        """Wait for our own rate limit; raises ``DeadlineError`` when the turn would come after the deadline."""
        if self.throttle is None:
            return
        try:
            waited = await self.throttle.take(deadline)
        except TimeoutError:
            raise errors.DeadlineError(
                f"Could not {call.describe()}: our own limit of {self.throttle.qps:g} requests a second left no room "
                "before the deadline. Nothing was sent.",
                "Raise qps and burst, or the timeout.",
                **call.facts(),
                url=self.transport.url(call),
            ) from None
        if waited:
            self._observer.throttled(call, waited)

    def observe(self, call: Call, status: int, seconds: float) -> None:
        """Count an exchange that did not go through ``request``: a watch."""
        self._observer.requested(call, status, seconds)

    def deadline_in(self, timeout: float | None) -> float:
        """The moment ``timeout`` seconds from now on the loop's clock; the default one when it is None."""
        return asyncio.get_running_loop().time() + (self.timeout if timeout is None else timeout)


def may_repeat(call: Call, error: errors.KubeError, repeatable: bool) -> bool:
    """Whether the same request may be sent again after this error."""
    if isinstance(error, (errors.TlsError, errors.DeadlineError)):
        return False  # the one does not pass by itself, after the other there is no time
    if isinstance(error, errors.UnreachableError):
        return repeatable or not call.writes or not error.maybe_applied
    if isinstance(error, errors.TooManyRequestsError):
        return True
    if isinstance(error, errors.ServerFailureError):
        if error.status == 503 and error.retry_after is not None:
            return True  # shutting down or overloaded: refused before it was looked at
        return repeatable or not call.writes
    return False
