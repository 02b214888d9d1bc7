# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""How long to wait before trying again."""

from __future__ import annotations

import random
import typing as t


class Backoff:
    """Delays that grow from ``first`` to ``limit`` seconds by ``factor``, spread so that clients do not march in step.

    Each delay lies between half of and the whole of its step. ``rand`` gives numbers from 0 to 1.
    """

    def __init__(
        self, first: float, limit: float, factor: float = 2.0, rand: t.Callable[[], float] = random.random
    ) -> None:
        self._first, self._limit, self._factor, self._rand = first, limit, factor, rand
        self.failures = 0

    def next(self, at_least: float | None = None) -> float:
        """The next delay; not below what a server asked for with Retry-After."""
        # The exponent is bounded: 2.0 ** 1100 is an OverflowError, and daemons do fail that often in a row.
        step = min(self._limit, self._first * self._factor ** min(self.failures, 64))
        self.failures += 1
        delay = step * (0.5 + self._rand() / 2)
        if at_least is None or at_least <= 0:
            return delay
        # All clients were told the same number: some spread on top of it.
        return at_least + min(delay, at_least * 0.25 + 0.1)

    def reset(self) -> None:
        """Things work again: the next failure starts from ``first``."""
        self.failures = 0
