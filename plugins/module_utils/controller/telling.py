# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which troubles were told already: an event for each, not one for each try."""

from __future__ import annotations

import asyncio
import dataclasses
import typing as t

from ..kube.event_series import ObjectReference
from ..kube.recorder import WARNING, EventRecorder
from .keys import Key
from .plan import Problem


@dataclasses.dataclass
class _Memory:
    since: float
    told: float | None = None


class Teller:
    """Turns the problems of a pod or PodGroup into events.

    A passing problem is told after ``grace`` seconds, any is told again after ``again`` seconds while it lasts.
    """

    def __init__(self, recorder: EventRecorder, grace: float, again: float) -> None:
        self._recorder, self._grace, self._again = recorder, grace, again
        self._known: dict[Key, dict[tuple[str, str], _Memory]] = {}

    def __len__(self) -> int:
        """How many objects are in trouble."""
        return len(self._known)

    def report(self, key: Key, reference: ObjectReference, problems: t.Sequence[Problem]) -> float | None:
        """Tell what is new. Gives the seconds after which to look again, for a problem that may pass."""
        if not problems:
            self._known.pop(key, None)
            return None
        now = asyncio.get_running_loop().time()
        before = self._known.get(key, {})
        after: dict[tuple[str, str], _Memory] = {}
        waits: list[float] = []
        for problem in problems:
            series = (problem.reason, problem.message)
            memory = after[series] = before.get(series) or _Memory(now)
            left = memory.since + self._grace - now if problem.passing else 0.0
            if memory.told is None and left > 0:
                waits.append(left)
            elif memory.told is None or now - memory.told >= self._again:
                self._recorder.event(reference, WARNING, problem.reason, problem.message)
                memory.told = now
        self._known[key] = after
        return min(waits, default=None)

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._known.pop(key, None)
