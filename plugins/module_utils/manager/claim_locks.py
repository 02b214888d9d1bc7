# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One lock for each pod and each claim, instead of one for the whole node.

Who needs several takes them in one fixed order, so nobody can wait in a circle.
"""

from __future__ import annotations

import asyncio
import contextlib
import typing as t

K = t.TypeVar("K", bound="tuple[int, str]")


class KeyedLocks(t.Generic[K]):
    """Locks by key. A lock exists only while somebody holds it or waits for it; waiters are served in order."""

    def __init__(self) -> None:
        self._locks: dict[K, asyncio.Lock] = {}
        self._users: dict[K, int] = {}

    @contextlib.asynccontextmanager
    async def hold(self, keys: t.Iterable[K]) -> t.AsyncIterator[None]:
        """Hold the locks of all ``keys`` for the length of the context; give back all of them when it is cancelled.

        Whoever holds some may ask for more only if all of them sort after those.
        """
        async with contextlib.AsyncExitStack() as stack:
            for key in sorted(set(keys)):
                await stack.enter_async_context(self._one(key))
            yield

    @contextlib.asynccontextmanager
    async def _one(self, key: K) -> t.AsyncIterator[None]:
        lock = self._locks.setdefault(key, asyncio.Lock())
        self._users[key] = self._users.get(key, 0) + 1
        try:
            async with lock:
                yield
        finally:
            self._users[key] -= 1
            if not self._users[key]:
                del self._users[key], self._locks[key]

    def is_free(self, keys: t.Iterable[K]) -> bool:
        """Whether `hold` would not have to wait now."""
        return self._locks.keys().isdisjoint(keys)

    def __len__(self) -> int:
        """How many keys are in use."""
        return len(self._locks)
