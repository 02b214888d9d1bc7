# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""WATCH: the history of a collection as a stream of events.

A watcher keeps its place in the history and reads on from there, so a slow one costs nothing but time, and one that
falls behind what is remembered gets the ERROR event with code 410.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import typing as t

from .cluster import Cluster
from .failures import ApiError, bad_request, too_old
from .json_text import Json, from_bytes, to_bytes
from .kind_table import Served
from .reading import Selection, asked_version, selection_of
from .request import ApiRequest
from .store import ADDED, DELETED, MODIFIED, Change, Record

_END_OF_INITIAL = "k8s.io/initial-events-end"
Render = t.Callable[[str, bytes], bytes]


@dataclasses.dataclass
class WatchPlan:
    """A watch that was checked and may start. ``version`` None: from whatever is there, with synthetic ADDED events."""

    selection: Selection
    version: int | None
    initial_events: bool
    end_bookmark: bool
    bookmarks: bool
    seconds: float


def plan_watch(cluster: Cluster, request: ApiRequest) -> WatchPlan:
    """Read the parameters of a watch. ApiError 400 or 422 before anything is sent."""
    version = asked_version(request)
    bookmarks = request.flag("allowWatchBookmarks")
    match = request.query.get("resourceVersionMatch", "")
    initial = request.query.get("sendInitialEvents")
    if initial is None and match:
        raise bad_request("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
    if initial is not None and match != "NotOlderThan":
        raise bad_request("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
    wants_initial = request.flag("sendInitialEvents") if initial is not None else not version
    seconds = request.number("timeoutSeconds")
    limit = cluster.settings.watch_seconds
    return WatchPlan(
        selection=selection_of(cluster, request),
        version=version or None,
        initial_events=wants_initial,
        end_bookmark=initial is not None and wants_initial and bookmarks,
        bookmarks=bookmarks,
        seconds=min(seconds, limit) if seconds else limit,
    )


def event(kind: str, body: bytes) -> bytes:
    """One line of the stream."""
    return b'{"type":"' + kind.encode() + b'","object":' + body + b"}\n"


def error_event(error: ApiError) -> bytes:
    return event("ERROR", to_bytes(error.status()))


class Watch:
    """One running watch: ``lines`` yields what to send, at most one batch at a time."""

    def __init__(
        self, cluster: Cluster, served: Served, namespace: str, plan: WatchPlan, render: Render = event
    ) -> None:
        self._cluster = cluster
        self._served = served
        self._collection = cluster.collection(served.kind)
        self._namespace = namespace
        self._plan = plan
        self._render = render
        self._waker = asyncio.Event()
        self._at = cluster.store.version if plan.version is None else plan.version

    async def lines(self) -> t.AsyncGenerator[bytes, None]:
        """Batches of events until the time is over, or an error has been told."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._plan.seconds
        self._collection.wakers.add(self._waker)
        try:
            if self._plan.initial_events:
                yield b"".join(self._initial())
            next_bookmark = self._after(loop.time(), deadline)
            while True:
                self._waker.clear()
                if self._at < self._collection.floor:
                    yield error_event(too_old(self._at, self._collection.floor))
                    return
                batch = self._new_lines()
                if batch:
                    yield batch
                    continue
                now = loop.time()
                if now >= deadline:
                    return
                if now >= next_bookmark:
                    next_bookmark = self._after(now, deadline, next_bookmark)
                    if self._at <= self._cluster.store.version:
                        self._at = self._cluster.store.version
                        yield self._bookmark()
                        continue
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(min(deadline, next_bookmark) - now, 0)):
                        await self._waker.wait()
        finally:
            self._collection.wakers.discard(self._waker)

    def _after(self, now: float, deadline: float, last: float | None = None) -> float:
        """When the next bookmark is due: every minute or so, two seconds before the end, and once more after that."""
        if not self._plan.bookmarks:
            return float("inf")
        closing = deadline - 2.0
        if now < closing:
            return min(now + self._cluster.settings.bookmark_seconds, closing)
        return closing + 1.0 if last is not None and last <= closing else float("inf")

    def _initial(self) -> t.Iterator[bytes]:
        if self._plan.version is not None and self._plan.version > self._cluster.store.version:
            return  # Not there yet: the history will tell when it is.
        self._at = self._cluster.store.version
        for record in self._collection.in_namespace(self._namespace):
            if self._plan.selection(record):
                yield self._line(ADDED, record)
        if self._plan.end_bookmark:
            yield self._bookmark({_END_OF_INITIAL: "true"})

    def _new_lines(self) -> bytes:
        lines = []
        for change in self._collection.after(self._at):
            self._at = change.version
            if self._namespace and change.record.namespace != self._namespace:
                continue
            line = self._line_of(change)
            if line:
                lines.append(line)
        return b"".join(lines)

    def _line_of(self, change: Change) -> bytes:
        """A change as this watcher sees it: what leaves its selection is deleted for it."""
        chosen = self._plan.selection
        before = change.old is not None and chosen(change.old)
        if change.kind == DELETED:
            return self._line(DELETED, change.record) if before else b""
        if chosen(change.record):
            return self._line(MODIFIED if before else ADDED, change.record)
        return self._line_of_left(t.cast(Record, change.old), change.version) if before else b""

    def _line_of_left(self, old: Record, version: int) -> bytes:
        body = self._cluster.view(old, self._served)
        body["metadata"]["resourceVersion"] = str(version)
        return self._render(DELETED, self._served.head + to_bytes(body)[1:])

    def _line(self, kind: str, record: Record) -> bytes:
        return self._render(kind, self._served.head + self._cluster.tail(record, self._served))

    def _bookmark(self, annotations: Json | None = None) -> bytes:
        body: Json = from_bytes(to_bytes(self._cluster.zero(self._served)))
        body["metadata"] = {"resourceVersion": str(self._at)}
        if annotations:
            body["metadata"]["annotations"] = annotations
        return self._render("BOOKMARK", self._served.head + to_bytes(body)[1:])
