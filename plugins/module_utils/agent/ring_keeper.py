# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""When a copy goes into the ring: once the file is still, not too often, and at once when the good content is lost.

A kubelet writes its file twice for every pod. What is not copied yet is held in memory, so a good content that is
replaced by a damaged one, or that is removed, is not lost.
"""

from __future__ import annotations

import asyncio
import logging
import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.findings import Finding
from .kubelet_state import KubeletState
from .ring import Ring, RingLimits

log = logging.getLogger(__name__)

TIDY = 3600.0
"""Seconds after which the ring is tidied although nothing is stored: copies get too old."""


class RingObserver(t.Protocol):
    """Hears of copies."""

    def copied(self, path: str, state: KubeletState) -> None:
        """A copy was made."""

    def failed(self, error: DraError) -> None:
        """A copy could not be made; it is tried again."""


class RingKeeper:
    """Copies what `take` is given into ``ring``. ``settle`` and ``interval`` are seconds by the loop's clock.

    A content is due when it has been there for ``settle``, or when it and its forerunners have been for ``interval``,
    and ``interval`` after the last copy.
    """

    def __init__(self, ring: Ring, observer: RingObserver, *, settle: float, interval: float) -> None:
        self.ring = ring
        self.problem: DraError | None = None
        self._observer = observer
        self._settle, self._interval = settle, interval
        self._waiting: KubeletState | None = None
        self._first = self._last = 0.0
        self._not_before = float("-inf")
        self._lost = False
        self._wake = asyncio.Event()
        self._writing = asyncio.Lock()

    def take(self, state: KubeletState) -> None:
        """The file has this content now. One that is not good, or none at all, makes the last good one due."""
        if not state.good:
            self._lost = True
        else:
            now = asyncio.get_running_loop().time()
            self._first = now if self._waiting is None else self._first
            self._waiting, self._last, self._lost = state, now, False
        self._wake.set()

    async def use(self, limits: RingLimits, *, settle: float, interval: float) -> None:
        """Go on with these. Copies beyond lower limits are gone when it returns."""
        self._settle, self._interval = settle, interval
        self._wake.set()
        self.ring.limits = limits
        await self._refresh()

    async def run(self) -> None:
        """Work until cancelled."""
        await self._refresh()
        while True:
            self._wake.clear()
            pause = self._pause()
            if pause <= 0:
                await self.flush()
                continue
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                if self._waiting is None:
                    await self._refresh()

    async def _refresh(self) -> None:
        async with self._writing:
            await self._attempt(self.ring.refresh)

    async def flush(self) -> None:
        """Copy what is waiting now."""
        async with self._writing:
            state = self._waiting
            if state is None or state.data is None:
                return
            made = await self._attempt(self.ring.store, state.data, state.key)
            if made is not None or self.problem is not None:
                self._not_before = asyncio.get_running_loop().time() + self._interval
            if self.problem is None and self._waiting is state:
                self._waiting = None
        if made is not None:
            log.info("copy made path=%s claims=%d", made, len(state.claims))
            self._observer.copied(made, state)

    def _pause(self) -> float:
        """Seconds until there is something to do."""
        if self._waiting is None:
            return TIDY if self.problem is None else self._interval
        if self._lost and self.problem is None:
            return 0.0
        due = max(self._not_before, min(self._last + self._settle, self._first + self._interval))
        return due - asyncio.get_running_loop().time()

    async def _attempt(self, work: t.Callable[..., str | None], *arguments: t.Any) -> str | None:
        try:
            made = await asyncio.to_thread(work, *arguments)
        except DraError as error:
            if self.problem is None or self.problem.message != error.message:
                log.error("ring cannot be kept, observing goes on retry_in=%.1f error=%s", self._interval, error)
            self.problem = error
            self._observer.failed(error)
            return None
        if self.problem is not None:
            log.info("ring is kept again directory=%s", self.ring.directory)
            self.problem = None
        return made

    # What is to be told

    def findings(self) -> list[Finding]:
        """Why no copies are made, and copies that have gone bad."""
        found = []
        if self.problem is not None:
            text = f"No copies of the kubelet's state file are made: {self.problem.message}"
            found.append(
                Finding("ring_not_written", "error", self.ring.directory, text, self.problem.hint, self.problem.facts)
            )
        for copy in self.ring.copies:
            if copy.problem:
                text = f"The copy {copy.name} is not used any more: {copy.problem}"
                remedy = (
                    "Nothing restores it, and it goes with its age. If it was whole once, look at the disk (dmesg)."
                )
                found.append(
                    Finding("ring_copy_damaged", "warning", f"{self.ring.directory}/{copy.name}", text, remedy)
                )
        return found
