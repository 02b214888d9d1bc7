# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What happened on a node lately, for whoever watches."""

from __future__ import annotations

import asyncio
import collections
import time
import typing as t


class Event(t.NamedTuple):
    """One event. ``number`` grows by one with each; ``at`` is wall time in seconds; ``subject`` a claim or a driver."""

    number: int
    at: float
    kind: str
    subject: str
    text: str


class EventLog:
    """The last ``keep`` events. Watchers read them from here, so a slow one costs nothing and sees a gap."""

    def __init__(self, *, keep: int = 1000, now: t.Callable[[], float] = time.time) -> None:
        self.last = 0
        self._now = now
        self._events: collections.deque[Event] = collections.deque(maxlen=keep)
        self._news = asyncio.Event()
        self._closed = False

    def add(self, kind: str, subject: str, text: str = "") -> None:
        """Something happened."""
        self.last += 1
        self._events.append(Event(self.last, self._now(), kind, subject, text))
        self._wake()

    def close(self) -> None:
        """Nothing happens any more: watchers come to their end."""
        self._closed = True
        self._wake()

    async def follow(self, after: int = 0) -> t.AsyncIterator[Event]:
        """Every event with a number above ``after`` that is still remembered, then those that come."""
        while True:
            news = self._news
            for event in [event for event in self._events if event.number > after]:
                after = event.number
                yield event
            if self._closed:
                return
            if self.last <= after:
                await news.wait()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
