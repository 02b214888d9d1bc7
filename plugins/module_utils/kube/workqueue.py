# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Keys that wait to be worked on, as controllers expect it (client-go: util/workqueue).

A key is worked on by one worker at a time. Added while it waits it is there once; added while it is worked on it comes
again right after.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import heapq
import typing as t

K = t.TypeVar("K", bound=t.Hashable)

#: Seconds of the first back-off of a key, and its limit.
FIRST_DELAY, LONGEST_DELAY = 0.005, 1000.0


class QueueShutDownError(Exception):
    """No key will come any more. Ends a worker; no failure."""


class QueueObserver(t.Protocol):
    """Gets a note for each step, for metrics. Calls are plain and quick."""

    def added(self) -> None:
        """A key went into the queue."""

    def started(self, waited: float) -> None:
        """A worker took a key that had waited so many seconds."""

    def finished(self, worked: float) -> None:
        """A worker is done with a key after so many seconds."""

    def retried(self) -> None:
        """A key was put off after a failure."""


class NoQueueObserver:
    """Takes no notes."""

    def added(self) -> None:
        """Nothing."""

    def started(self, waited: float) -> None:
        """Nothing."""

    def finished(self, worked: float) -> None:
        """Nothing."""

    def retried(self) -> None:
        """Nothing."""


class WorkQueue(t.Generic[K]):
    """The queue. ``name`` is for metrics. All methods belong to the loop's thread; times are on the loop's clock."""

    def __init__(
        self,
        name: str = "",
        *,
        first_delay: float = FIRST_DELAY,
        longest_delay: float = LONGEST_DELAY,
        observer: QueueObserver | None = None,
    ) -> None:
        self.name = name
        self._first, self._longest = first_delay, longest_delay
        self._observer: QueueObserver = observer or NoQueueObserver()
        self._order: collections.deque[K] = collections.deque()
        self._waiting: dict[K, float] = {}  # in the queue, or to be put there by `done`: since when
        self._processing: dict[K, float] = {}  # since when
        self._failures: dict[K, int] = {}
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None
        self._getters: collections.deque[asyncio.Future[None]] = collections.deque()
        self._idle = asyncio.Event()
        self._idle.set()
        self._shut_down = False

    # Adding

    def add(self, key: K) -> None:
        """Work on the key as soon as a worker is free. Ignored after ``shut_down``."""
        if self._shut_down or key in self._waiting:
            return
        self._waiting[key] = self._now()
        self._idle.clear()
        self._observer.added()
        if key not in self._processing:
            self._push(key)

    def add_now(self, key: K) -> None:
        """The same, past any back-off: the put-off turn of the key is dropped, since this one replaces it."""
        self._due.pop(key, None)
        self.add(key)

    def add_after(self, key: K, delay: float) -> None:
        """Add the key in ``delay`` seconds. When it is put off already, the earlier time counts."""
        if self._shut_down:
            return
        if delay <= 0:
            self.add(key)
            return
        due = self._now() + delay
        if self._due.get(key, float("inf")) <= due:
            return
        self._due[key] = due
        self._number += 1
        heapq.heappush(self._heap, (due, self._number, key))
        self._set_timer()

    def add_rate_limited(self, key: K) -> float:
        """Add the key after its back-off, which doubles with each failure; gives the seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = min(self._longest, self._first * 2.0 ** min(failures, 64))
        self._observer.retried()
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """The key works again: its next back-off is the first one."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """How often in a row the key was put off."""
        return self._failures.get(key, 0)

    # Working

    async def get(self) -> K:
        """The next key, which then belongs to the caller until ``done``. Raises ``QueueShutDownError`` at the end."""
        while not self._order:
            if self._shut_down:
                raise QueueShutDownError
            getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                with contextlib.suppress(ValueError):
                    self._getters.remove(getter)
                if getter.done() and not getter.cancelled() and self._order:
                    self._wake()  # the turn that this one had been given goes to the next
                raise
        key = self._order.popleft()
        now = self._now()
        self._observer.started(now - self._waiting.pop(key))
        self._processing[key] = now
        return key

    def done(self, key: K) -> None:
        """The caller is done with the key. If it was added meanwhile it goes to the end of the queue."""
        started = self._processing.pop(key, None)
        if started is None:
            return
        self._observer.finished(self._now() - started)
        if key in self._waiting:
            self._push(key)
        elif not self._waiting and not self._processing:
            self._idle.set()

    @contextlib.asynccontextmanager
    async def item(self) -> t.AsyncIterator[K]:
        """The next key for the length of a block, ``done`` at its end whatever happens there."""
        key = await self.get()
        try:
            yield key
        finally:
            self.done(key)

    # Ending

    def shut_down(self) -> None:
        """Take nothing more. Workers get what is queued, then ``QueueShutDownError``; put-off keys are dropped."""
        self._shut_down = True
        self._heap.clear()
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._wake(everybody=True)

    async def drained(self) -> None:
        """Wait until nothing is queued or worked on. Put-off keys do not count."""
        await self._idle.wait()

    # Metrics

    def __len__(self) -> int:
        """Keys that wait for a worker."""
        return len(self._order)

    @property
    def delayed(self) -> int:
        """Keys that are put off."""
        return len(self._due)

    @property
    def retrying(self) -> int:
        """Keys whose last turn failed."""
        return len(self._failures)

    def unfinished_seconds(self) -> float:
        """Seconds of work in progress, summed over all workers: grows when some are stuck."""
        now = self._now()
        return sum(now - started for started in self._processing.values())

    def longest_running_seconds(self) -> float:
        """Seconds of the oldest work in progress."""
        return self._now() - min(self._processing.values()) if self._processing else 0.0

    def oldest_waiting_seconds(self) -> float:
        """Seconds that the next key has waited."""
        return self._now() - self._waiting[self._order[0]] if self._order else 0.0

    # Inside

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _push(self, key: K) -> None:
        self._order.append(key)
        self._wake()

    def _wake(self, everybody: bool = False) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                if not everybody:
                    return

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._heap:
            self._timer = asyncio.get_running_loop().call_at(self._heap[0][0], self._release)

    def _release(self) -> None:
        """Move what is due into the queue. Heap entries that ``_due`` does not know are leftovers."""
        self._timer = None
        now = self._now()
        while self._heap and (self._heap[0][0] <= now or self._due.get(self._heap[0][2]) != self._heap[0][0]):
            due, _number, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)
        self._set_timer()
