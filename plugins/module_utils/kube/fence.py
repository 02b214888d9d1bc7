# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The gate that every guarded write passes: open while the lease is surely ours, shut for good once it may not be.

A lease on its own does not keep an old holder from writing: a process that was frozen, starved or swapped out wakes up
in the middle of its work and does not know that time has passed. So the time is looked at again for every write, in the
same step in which its bytes go to the socket, and a request in flight never outlives the term.
"""

from __future__ import annotations

import asyncio
import time
import typing as t

from .errors import FenceLostError


def lease_clock() -> float:
    """Seconds that also pass while the machine sleeps, where the system has such a clock."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


class Fence:
    """One term of leadership. Once lost it never opens again: the next term has a fence of its own.

    ``until`` is on ``clock``, by default ``lease_clock``.
    """

    def __init__(self, until: float = float("-inf"), clock: t.Callable[[], float] = lease_clock) -> None:
        self._clock = clock
        self._until = until
        self._lost = ""
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def remaining(self) -> float:
        """Seconds until the term ends; 0 or less when it has ended."""
        if self._lost:
            return 0.0
        left = self._until - self._clock()
        if left <= 0:
            self._lost = "its time ran out"
        return left

    def extend(self, until: float) -> None:
        """Move the end of the term after a renewal; raises ``FenceLostError`` when the term has already ended."""
        self.check()
        self._until = max(self._until, until)

    def revoke(self, why: str) -> None:
        """End the term now. ``why`` goes into the error of every later write."""
        self._lost = self._lost or why

    @property
    def why(self) -> str:
        """Why the term has ended; empty while it runs."""
        return self._lost

    @property
    def is_open(self) -> bool:
        """Whether a write would pass now."""
        return self.remaining() > 0

    def check(self) -> None:
        """Raise ``FenceLostError`` unless the term is still running."""
        if self.remaining() <= 0:
            raise FenceLostError(
                f"The lease is not held any more: {self._lost}. Nothing was sent.",
                "This process stops; another holder goes on from what is in the cluster.",
                cause=self._lost,
            )

    def __enter__(self) -> Fence:
        """Count a write in; raises ``FenceLostError`` when the term has ended."""
        self.check()
        self._in_flight += 1
        self._idle.clear()
        return self

    def __exit__(self, *_error: object) -> None:
        """Count the write out."""
        self._in_flight -= 1
        if not self._in_flight:
            self._idle.set()

    async def drained(self, timeout: float) -> bool:
        """Wait until no write is in flight; False when that took longer than ``timeout`` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True
