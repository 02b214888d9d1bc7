# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Group commit: many transactions, one write.

While a write is on its way to the disk, the changes of everybody who comes meanwhile gather and share the next one.
Nobody returns before a write that contains the own change is durable; when a write fails, exactly those whose changes
were in it are told, and the state in memory is still the one on disk.
"""

from __future__ import annotations

import asyncio
import copy
import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.file_errors import NotDurableError
from .durable_claims import Changes, Record
from .observer import Observer

T = t.TypeVar("T")


class ClosingError(DraError):
    """The manager is being closed and takes no more changes."""


class _Commit(t.NamedTuple):
    changes: Changes
    done: asyncio.Future[None]


class Journal:
    """Takes changes and gives them to ``write``, a blocking function that makes them durable or raises DraError.

    ``records`` is what is on disk. ``applied`` is called with the changes of each write that succeeded, before those
    who wait for it go on.
    """

    def __init__(
        self,
        write: t.Callable[[Changes], None],
        records: t.Mapping[str, Record],
        *,
        applied: t.Callable[[Changes], None],
        observer: Observer,
    ) -> None:
        self._write = write
        self._records = dict(records)
        self._applied = applied
        self._observer = observer
        self._waiting: list[_Commit] = []
        self._writer: asyncio.Task[None] | None = None
        self._closed = False
        self._uncertain = False
        self.failure: DraError | None = None
        """Why the last write failed, None when it did not."""

    @property
    def records(self) -> t.Mapping[str, Record]:
        """What is on disk, by claim UID."""
        return self._records

    async def commit(self, changes: Changes) -> None:
        """Return when ``changes`` are on disk; all of them in one write. Raises DraError when that failed.

        Changes that change nothing cost no write. When the caller is cancelled, the cancellation waits until the
        write has ended one way or the other, so that locks are not given back in between.
        """
        if not self._uncertain and self._writer is None and not self._differing(changes):
            return
        if self._closed:
            raise ClosingError(
                "The manager is closing, nothing was recorded.", "Start it again, then repeat the operation."
            )
        commit = _Commit(changes, asyncio.get_running_loop().create_future())
        self._waiting.append(commit)
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_all(), name="dra-state-writer")
        await settled(commit.done)

    async def prove(self) -> None:
        """When the last write failed, write everything once more to see whether that works. Raises as `commit` does."""
        if self.failure is not None:
            self._uncertain = True
            await self.commit({})

    async def close(self) -> None:
        """Finish what is under way and take nothing more."""
        self._closed = True
        if self._writer is not None:
            await settled(self._writer)

    def _differing(self, changes: Changes) -> dict[str, Record | None]:
        return {uid: record for uid, record in changes.items() if record != self._records.get(uid)}

    async def _write_all(self) -> None:
        batch: list[_Commit] = []
        try:
            while self._waiting:
                # Whoever became ready in this turn of the loop still gets into this write.
                await asyncio.sleep(0)
                batch, self._waiting = self._waiting, []
                await self._write_batch(batch)
        finally:
            self._writer = None
            left, self._waiting = [*batch, *self._waiting], []
            for commit in left:
                if not commit.done.done():
                    commit.done.set_exception(ClosingError("The manager was stopped, nothing was recorded."))
                    commit.done.exception()  # looked at: whoever waits for it may be cancelled

    async def _write_batch(self, batch: list[_Commit]) -> None:
        merged: dict[str, Record | None] = {}
        for commit in batch:
            merged.update(commit.changes)
        merged = self._differing(merged)
        failure: BaseException | None = None
        loop = asyncio.get_running_loop()
        start = loop.time()
        if merged or self._uncertain:
            # Not a task: a loop that ends cancels all tasks, but nothing can cancel the thread.
            writing = loop.run_in_executor(None, self._write, merged)
            try:
                await settled(writing)
            except DraError:
                pass  # told to those who wait, below
            finally:
                failure = writing.exception()
                self._conclude(batch, merged, failure)
                self._observer.write(loop.time() - start, len(merged), len(batch), failure is not None)
        else:
            self._conclude(batch, merged, None)

    def _conclude(self, batch: list[_Commit], merged: Changes, failure: BaseException | None) -> None:
        self.failure = failure if isinstance(failure, DraError) else None
        self._uncertain = isinstance(failure, NotDurableError)
        if failure is None:
            for uid, record in merged.items():
                if record is None:
                    self._records.pop(uid, None)
                else:
                    self._records[uid] = record
            self._applied(merged)
        for commit in batch:
            if failure is None:
                commit.done.set_result(None)
            else:
                # One exception for many waiters would collect the tracebacks of all.
                commit.done.set_exception(copy.copy(failure))
                commit.done.exception()


async def settled(future: asyncio.Future[T]) -> T:
    """The result of ``future``. A caller that is cancelled waits for it all the same, and is cancelled then."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return future.result()
