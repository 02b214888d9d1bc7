# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A condition that changes often and is waited for by many."""

from __future__ import annotations

import asyncio
import typing as t


class Signal:
    """Wakes everyone who waits. Check the condition, then wait, with no ``await`` between: no change is missed."""

    def __init__(self) -> None:
        self._event: asyncio.Event | None = None

    def notify(self) -> None:
        if self._event is not None:
            self._event.set()
            self._event = None

    async def wait(self) -> None:
        if self._event is None:
            self._event = asyncio.Event()
        await self._event.wait()

    async def until(self, condition: t.Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until the condition holds, at most ``timeout`` seconds (None: no limit); whether it holds in the end."""
        if condition():  # mostly: no need for a clock
            return True
        try:
            async with asyncio.timeout(timeout):
                while not condition():
                    await self.wait()
        except asyncio.TimeoutError:
            return condition()
        return True
