# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What prepare and unprepare share."""

from __future__ import annotations

import asyncio
import contextlib
import typing as t
from dataclasses import dataclass

from ..checkpoint.errors import DraError
from .claim_locks import KeyedLocks
from .claim_table import ClaimTable
from .driver_calls import DriverCalls, Drivers
from .failures import FailureLog
from .journal import Journal
from .observer import Observer

LockKey = tuple[int, str]


class BusyError(DraError):
    """Somebody else works on the same claims and did not finish in time. Facts: ``claims``, ``waited`` in seconds."""


@dataclass(frozen=True)
class Context:
    """The parts of one manager."""

    table: ClaimTable
    journal: Journal
    locks: KeyedLocks[LockKey]
    drivers: Drivers
    calls: DriverCalls
    failures: FailureLog
    observer: Observer

    @contextlib.asynccontextmanager
    async def holding(self, keys: t.Sequence[LockKey], deadline: float) -> t.AsyncIterator[None]:
        """Hold the locks of ``keys``; raises BusyError when that takes until ``deadline`` (loop's clock)."""
        if self.locks.is_free(keys):  # mostly: no need for a clock
            async with self.locks.hold(keys):
                yield
            return
        start = asyncio.get_running_loop().time()
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout_at(deadline):
                    await stack.enter_async_context(self.locks.hold(keys))
            except TimeoutError:
                waited = asyncio.get_running_loop().time() - start
                names = [uid for _kind, uid in keys]
                raise BusyError(
                    f"Another operation on {', '.join(names)} did not end within {waited:.1f} s.",
                    "It waits for a driver: see which one with claim_info, then repeat.",
                    claims=names,
                    waited=round(waited, 3),
                ) from None
            yield


def pod_key(pod_uid: str) -> LockKey:
    """The lock of a pod. It sorts before those of claims, so it is always taken first."""
    return (0, pod_uid)


def claim_key(claim_uid: str) -> LockKey:
    """The lock of a claim."""
    return (1, claim_uid)
