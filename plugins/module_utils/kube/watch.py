# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One watch request: from an open connection to events, with a limit on how long it may be silent."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import typing as t

from . import errors
from .client import KubeClient, malformed_answer
from .exchange import Query
from .failures import Status, from_status
from .lines import LineSplitter
from .resources import Call, Resource, call_for
from .shapes import Buffer, RawJson, decoder
from .transport import ByteStream, Request

#: Set on the bookmark that ends the initial events of a watch-list.
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class SilentWatchError(errors.UnreachableError):
    """A watch gave neither an event nor a bookmark for too long. Nothing is lost: watch on from the last version."""


@dataclasses.dataclass(frozen=True)
class EventEnvelope:
    """A line of a watch: what happened, and the object as bytes."""

    object: RawJson
    type: str = ""


@dataclasses.dataclass(frozen=True)
class BookmarkMeta:
    """Metadata of a bookmark."""

    resource_version: str = ""
    annotations: dict[str, str] | None = None


@dataclasses.dataclass(frozen=True)
class Bookmark:
    """What a BOOKMARK event holds."""

    metadata: BookmarkMeta = dataclasses.field(default_factory=BookmarkMeta)

    @property
    def ends_initial_events(self) -> bool:
        """Whether everything that a list would have held has been sent."""
        return (self.metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true"


@dataclasses.dataclass(frozen=True)
class WatchLimits:
    """Times of one watch, in seconds.

    ``server`` is sent as timeoutSeconds: the server ends the watch then. ``grace`` later the client does it itself.
    ``idle`` is how long nothing at all may come; a server sends a bookmark about once a minute.
    """

    server: float = 300.0
    grace: float = 10.0
    idle: float = 90.0


@dataclasses.dataclass(frozen=True)
class WatchEvent:
    """``kind`` is ADDED, MODIFIED, DELETED or BOOKMARK. ``raw`` is the object as bytes."""

    kind: str
    raw: Buffer
    bookmark: Bookmark | None = None


class Watch:
    """An open watch. Made by ``open_watch``."""

    def __init__(self, client: KubeClient, call: Call, stream: ByteStream, limits: WatchLimits) -> None:
        self._client, self._call, self._stream, self._limits = client, call, stream, limits
        self._url = client.transport.url(call)
        self._splitter = LineSplitter()
        self._end = asyncio.get_running_loop().time() + limits.server + limits.grace

    async def batch(self) -> list[WatchEvent]:
        """The next events, at least one; empty when the server ended the watch.

        Raises ``GoneError`` when the version is too old, the error of any other Status in an ERROR event,
        ``SilentWatchError``, ``UnreachableError`` when the connection breaks, ``MalformedAnswerError``.
        """
        while True:
            wait = min(self._limits.idle, self._end - asyncio.get_running_loop().time())
            try:
                async with asyncio.timeout(wait):
                    chunk = await self._stream.read()
            except TimeoutError as error:
                raise _silent(self._call, self._url, wait) from error
            if not chunk:
                return []
            try:
                events = [self._event(line) for line in self._splitter.feed(chunk)]
            except ValueError as error:
                raise malformed_answer(self._call, self._url, error) from error
            if events:
                return events

    def _event(self, line: bytes) -> WatchEvent:
        envelope = decoder(EventEnvelope)(line)
        raw = t.cast("Buffer", envelope.object)
        if envelope.type == "BOOKMARK":
            return WatchEvent(envelope.type, raw, decoder(Bookmark)(raw))
        if envelope.type != "ERROR":
            return WatchEvent(envelope.type, raw)
        status = decoder(Status)(raw)
        secrets = self._client.transport.access.secrets
        raise from_status(self._call, self._url, status.code or 500, status, secrets=secrets)


@contextlib.asynccontextmanager
async def open_watch(
    client: KubeClient,
    resource: Resource,
    resource_version: str,
    *,
    namespace: str = "",
    query: Query = (),
    limits: WatchLimits | None = None,
) -> t.AsyncIterator[Watch]:
    """Open a watch from a version on (empty: synthetic ADDED events first). Closes the connection on the way out.

    Raises the error of the answer when it is refused: ``GoneError`` for a version that is too old.
    """
    limits = limits or WatchLimits()
    call = call_for(resource, "watch", namespace)
    asked = [
        ("watch", "1"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", str(max(1, round(limits.server)))),
        *query,
    ]
    if resource_version:
        asked.append(("resourceVersion", resource_version))
    loop = asyncio.get_running_loop()
    started = loop.time()
    request = Request(call, client.deadline_in(None), tuple(asked))
    await client.throttled(call, request.deadline)
    status = 0
    try:
        async with client.transport.stream(request) as stream:
            status = 200
            yield Watch(client, call, stream, limits)
    except errors.ApiStatusError as error:
        status = status or error.status
        raise
    finally:
        client.observe(call, status, loop.time() - started)


def _silent(call: Call, url: str, waited: float) -> SilentWatchError:
    return SilentWatchError(
        f"Could not {call.describe()}: {call.method} {url} was silent for {round(waited, 1):g} s.",
        "It is opened again from where it stopped. If it comes often, something between here and the API server drops "
        "idle connections.",
        **call.facts(),
        url=url,
    )
