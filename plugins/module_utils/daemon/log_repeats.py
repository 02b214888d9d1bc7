# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Keeping one line that comes again and again from burying the others."""

from __future__ import annotations

import collections
import dataclasses
import logging
import threading
import time
import typing as t

#: Different lines that are counted at a time; the oldest go.
MAX_LINES = 1000

Key = tuple[t.Any, ...]


@dataclasses.dataclass
class _Seen:
    since: float
    count: int
    record: logging.LogRecord


class RepeatFilter(logging.Filter):
    """Lets a line through ``burst`` times within ``window`` seconds, then counts, and tells the count afterwards.

    Two records are the same line when they differ in numbers only: the seconds to the next try and the count of
    attempts change every time, and that is what makes a flood. What was held back is told by the next such line (field
    ``held_back``), or by a line of its own once any other is logged after the window, or by :meth:`flush`.
    """

    def __init__(self, burst: int, window: float, clock: t.Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.burst, self.window = burst, window
        self._clock = clock
        self._seen: collections.OrderedDict[Key, _Seen] = collections.OrderedDict()
        self._lock = threading.Lock()
        self._tell: t.Callable[[logging.LogRecord], object] = lambda _record: None

    def tell_with(self, tell: t.Callable[[logging.LogRecord], object]) -> None:
        """``tell`` writes the records that this filter makes by itself."""
        self._tell = tell

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written."""
        if self.window <= 0:
            return True
        now = self._clock()
        key = _key(record)
        with self._lock:
            seen = self._seen.get(key)
            if seen is not None and now - seen.since < self.window:
                seen.count += 1
                seen.record = record
                return seen.count <= self.burst
            if seen is not None:
                del self._seen[key]
                if seen.count > self.burst:
                    record.held_back = seen.count - self.burst
            self._seen[key] = _Seen(now, 1, record)
            over = self._expired(now)
        self._report(over)
        return True

    def flush(self) -> None:
        """Tell everything that was held back."""
        with self._lock:
            over = list(self._seen.values())
            self._seen.clear()
        self._report(over)

    def _expired(self, now: float) -> list[_Seen]:
        """Take out what is over, oldest first."""
        over = []
        for key, seen in list(self._seen.items()):
            if now - seen.since < self.window and len(self._seen) <= MAX_LINES:
                break
            over.append(self._seen.pop(key))
        return over

    def _report(self, over: t.Iterable[_Seen]) -> None:
        for seen in over:
            if seen.count > self.burst:
                seen.record.held_back = seen.count - self.burst
                self._tell(seen.record)


def _key(record: logging.LogRecord) -> Key:
    arguments = record.args if isinstance(record.args, tuple) else (record.args,)
    texts = tuple(None if isinstance(one, (int, float)) else str(one) for one in arguments)
    error = record.exc_info[1] if record.exc_info else None
    return (record.name, record.levelno, record.msg, texts, type(error).__name__ if error else "")
