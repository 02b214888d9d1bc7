# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Events that a person sees with ``kubectl describe``: reported without waiting, written in the background."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import logging
import time
import typing as t

from . import errors
from .backoff import Backoff
from .client import KubeClient
from .event_series import COMBINED, EVENT_LIFE, Correlator, Note, ObjectReference, Recent
from .resources import resource_of
from .throttle import Throttle

log = logging.getLogger(__name__)

NORMAL, WARNING = "Normal", "Warning"
TRIES = 8


@dataclasses.dataclass
class _Pending:
    """Notes of one series that are not written yet."""

    note: Note
    first: float
    last: float
    name: str
    count: int = 1


@dataclasses.dataclass(frozen=True)
class _Written:
    """An Event object that we made."""

    name: str
    count: int
    last: float


@dataclasses.dataclass
class RecorderStats:
    """What became of the events so far, for metrics."""

    reported: int = 0
    written: int = 0
    held_back: int = 0
    lost: int = 0


class EventRecorder:
    """Writes core/v1 Events as ``component``. ``event`` never waits and never fails; ``run`` is the work behind it.

    Repetitions count up one Event object. When more than ``capacity`` series wait, new ones are dropped: events are
    help for people, and the work goes first. ``now`` is wall time, since events are read by people.
    """

    def __init__(
        self,
        client: KubeClient,
        component: str,
        *,
        host: str = "",
        capacity: int = 1000,
        qps: float = 10.0,
        burst: int = 50,
        now: t.Callable[[], float] = time.time,
    ) -> None:
        self._client, self._component, self._host, self._now = client, component, host, now
        self._capacity = capacity
        self._events = resource_of("Event")
        self._throttle = Throttle(qps, burst)
        self._correlator = Correlator()
        self._pending: dict[tuple[str, ...], _Pending] = {}
        self._written: Recent[_Written] = Recent()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._number = 0
        self.stats = RecorderStats()

    def event(self, reference: ObjectReference, kind: str, reason: str, message: str) -> None:
        """Report an event. ``kind`` is NORMAL or WARNING."""
        now = self._now()
        self.stats.reported += 1
        note = self._correlator.combine(Note(reference, kind, reason, message), now)
        series = self._series(note)
        waiting = self._pending.get(series)
        if waiting is not None:
            waiting.note, waiting.last, waiting.count = note, now, waiting.count + 1
            return
        if len(self._pending) >= self._capacity or not self._correlator.admits(note, now):
            self.stats.held_back += 1
            return
        # A name of our own, so that a create whose answer was lost is not made twice under another name.
        self._number += 1
        name = f"{reference.name[:200].rstrip('-.')}.{int(now * 1e6):x}{self._number:x}"
        self._pending[series] = _Pending(note, now, now, name)
        self._idle.clear()
        self._wake.set()

    async def run(self) -> None:
        """Write what is reported, until cancelled or until the fence of the client is shut."""
        while True:
            while self._pending:
                series = next(iter(self._pending))
                pending = self._pending.pop(series)
                try:
                    await self._write(series, pending)
                except errors.FenceLostError:
                    self._pending.clear()
                    self._idle.set()
                    return
            self._idle.set()
            self._wake.clear()
            await self._wake.wait()

    async def flushed(self, timeout: float) -> bool:
        """Wait until everything that was reported is written or given up; False when that takes longer."""
        try:
            async with asyncio.timeout(timeout):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def _series(self, note: Note) -> tuple[str, ...]:
        """Combined notes are one series whatever their message."""
        if note.message.startswith(COMBINED):
            return (*note.series[:-1], COMBINED)
        return note.series

    async def _write(self, series: tuple[str, ...], pending: _Pending) -> None:
        """Write one series, with patience; what cannot be written is given up."""
        backoff = Backoff(0.5, 10.0)
        while True:
            try:
                await self._throttle.take(float("inf"))
                await self._write_once(series, pending)
            except errors.FenceLostError:
                raise
            except errors.KubeError as error:
                passing = isinstance(
                    error, (errors.UnreachableError, errors.TooManyRequestsError, errors.ServerFailureError)
                )
                if not passing or backoff.failures + 1 >= TRIES:
                    self.stats.lost += 1
                    log.warning("event was not written reason=%s error=%s", pending.note.reason, error)
                    return
                await asyncio.sleep(backoff.next(getattr(error, "retry_after", None)))
            else:
                self.stats.written += 1
                return

    async def _write_once(self, series: tuple[str, ...], pending: _Pending) -> None:
        namespace = pending.note.reference.namespace or "default"
        written = self._written.get(series)
        if written is not None and pending.last - written.last < EVENT_LIFE:
            count = written.count + pending.count
            body = {"count": count, "lastTimestamp": _timestamp(pending.last), "message": pending.note.message}
            try:
                await self._client.patch(self._events, body, written.name, namespace)
            except errors.NotFoundError:
                self._written.drop(series)
            else:
                self._written.set(series, _Written(written.name, count, pending.last))
                return
        with contextlib.suppress(errors.AlreadyExistsError):
            await self._client.create(self._events, self._body(namespace, pending), namespace)
        self._written.set(series, _Written(pending.name, pending.count, pending.last))

    def _body(self, namespace: str, pending: _Pending) -> dict[str, t.Any]:
        source = {"component": self._component}
        if self._host:
            source["host"] = self._host
        return {
            "metadata": {"name": pending.name, "namespace": namespace},
            "involvedObject": pending.note.reference.as_json(),
            "reason": pending.note.reason,
            "message": pending.note.message,
            "type": pending.note.kind,
            "source": source,
            "firstTimestamp": _timestamp(pending.first),
            "lastTimestamp": _timestamp(pending.last),
            "count": pending.count,
            "reportingComponent": self._component,
            "reportingInstance": self._host,
        }


def _timestamp(seconds: float) -> str:
    """RFC 3339 in seconds, as metav1.Time is written."""
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
