# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Group commit: who waits for which write, and what a failure or a cancellation does to whom."""

from __future__ import annotations

import asyncio
import threading
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.claims import ClaimState
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import NotDurableError, StoreError
from ansible_collections.nodeops.dra.plugins.module_utils.manager.durable_claims import Changes, Record
from ansible_collections.nodeops.dra.plugins.module_utils.manager.journal import ClosingError, Journal, settled
from ansible_collections.nodeops.dra.plugins.module_utils.manager.observer import Observer

pytestmark = pytest.mark.asyncio


def record(uid: str, *pods: str) -> Record:
    return Record(ClaimState(uid, f"c-{uid}", "team-a", frozenset(pods)))


class Disk:
    """A disk that writes when it is let, and can fail."""

    def __init__(self) -> None:
        self.writes: list[list[str]] = []
        self.failure: Exception | None = None
        self.failures = 10**9
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    def write(self, changes: Changes) -> None:
        self.entered.set()
        self.gate.wait(10)
        failure = self.failure
        if failure is not None and self.failures:
            self.failures -= 1
            raise failure  # pylint: disable=raising-bad-type
        self.writes.append(sorted(changes))

    async def busy(self) -> None:
        """Wait until a write has begun."""
        await asyncio.to_thread(self.entered.wait, 10)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def journal(disk: Disk) -> Journal:
    return Journal(disk.write, {}, applied=lambda _changes: None, observer=Observer())


async def test_who_comes_at_the_same_time_shares_a_write(journal: Journal, disk: Disk) -> None:
    await asyncio.gather(*(journal.commit({f"u-{number}": record(f"u-{number}")}) for number in range(20)))
    assert [len(write) for write in disk.writes] == [20]


async def test_who_comes_during_a_write_shares_the_next(journal: Journal, disk: Disk) -> None:
    disk.gate.clear()
    first = asyncio.create_task(journal.commit({"u-1": record("u-1")}))
    await disk.busy()
    later = [asyncio.create_task(journal.commit({uid: record(uid)})) for uid in ("u-2", "u-3")]
    await asyncio.sleep(0)
    assert not first.done()
    disk.gate.set()
    await asyncio.gather(first, *later)
    assert disk.writes == [["u-1"], ["u-2", "u-3"]]


async def test_nobody_returns_before_the_own_change_is_written(journal: Journal, disk: Disk) -> None:
    disk.gate.clear()
    commit = asyncio.create_task(journal.commit({"u-1": record("u-1")}))
    await disk.busy()
    assert not commit.done()
    assert dict(journal.records) == {}
    disk.gate.set()
    await commit
    assert set(journal.records) == {"u-1"}


async def test_a_change_that_changes_nothing_is_not_written(journal: Journal, disk: Disk) -> None:
    await journal.commit({"u-1": record("u-1", "p-1")})
    await journal.commit({"u-1": record("u-1", "p-1"), "u-2": None})
    await journal.commit({})
    assert disk.writes == [["u-1"]]


async def test_a_change_that_is_under_way_is_waited_for(journal: Journal, disk: Disk) -> None:
    disk.gate.clear()
    first = asyncio.create_task(journal.commit({"u-1": record("u-1")}))
    await disk.busy()
    same = asyncio.create_task(journal.commit({"u-1": record("u-1")}))
    back = asyncio.create_task(journal.commit({"u-1": None}))
    await asyncio.sleep(0)
    assert not same.done()
    disk.gate.set()
    await asyncio.gather(first, same, back)
    assert dict(journal.records) == {}


async def test_a_failed_write_fails_those_in_it_and_no_others(journal: Journal, disk: Disk) -> None:
    disk.gate.clear()
    disk.failure, disk.failures = StoreError("disk full"), 1
    first = [asyncio.create_task(journal.commit({uid: record(uid)})) for uid in ("u-1", "u-2")]
    await disk.busy()
    later = asyncio.create_task(journal.commit({"u-3": record("u-3")}))
    await asyncio.sleep(0)
    disk.gate.set()
    results = await asyncio.gather(*first, later, return_exceptions=True)
    assert [type(one) for one in results] == [StoreError, StoreError, type(None)]
    assert disk.writes == [["u-3"]]
    assert set(journal.records) == {"u-3"}


async def test_each_of_them_gets_an_exception_of_its_own(journal: Journal, disk: Disk) -> None:
    disk.failure = StoreError("disk full", "free space", errno="ENOSPC")
    results = await asyncio.gather(
        *(journal.commit({uid: record(uid)}) for uid in ("u-1", "u-2")), return_exceptions=True
    )
    assert [(str(one), one.facts) for one in results if isinstance(one, DraError)] == [
        ("disk full free space", {"errno": "ENOSPC"})
    ] * 2
    assert results[0] is not results[1]
    assert journal.failure is not None
    disk.failure = None
    await journal.commit({"u-3": record("u-3")})
    assert journal.failure is None


async def test_after_a_doubtful_write_even_no_change_is_written(journal: Journal, disk: Disk) -> None:
    disk.failure = NotDurableError("in place, not confirmed")
    with pytest.raises(NotDurableError):
        await journal.commit({"u-1": record("u-1")})
    disk.failure = None
    await journal.commit({"u-1": None})
    assert disk.writes == [[]]


async def test_a_cancelled_caller_leaves_when_its_write_has_ended(journal: Journal, disk: Disk) -> None:
    disk.gate.clear()
    commit = asyncio.create_task(journal.commit({"u-1": record("u-1")}))
    await disk.busy()
    for _unused in range(3):
        commit.cancel()
        await asyncio.sleep(0)
        assert not commit.done()
    disk.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await commit
    assert set(journal.records) == {"u-1"}


async def test_closing_finishes_the_write_and_takes_no_more(journal: Journal, disk: Disk) -> None:
    disk.gate.clear()
    commit = asyncio.create_task(journal.commit({"u-1": record("u-1")}))
    await disk.busy()
    closing = asyncio.create_task(journal.close())
    await asyncio.sleep(0)
    with pytest.raises(ClosingError, match="nothing was recorded"):
        await journal.commit({"u-2": record("u-2")})
    disk.gate.set()
    await asyncio.gather(commit, closing)
    assert disk.writes == [["u-1"]]


async def test_the_end_of_the_loop_tears_no_write(disk: Disk) -> None:
    """What `asyncio.run` does when it is interrupted: every task is cancelled, in whatever order."""
    journal = Journal(disk.write, {}, applied=lambda _changes: None, observer=Observer())
    disk.gate.clear()
    first = asyncio.create_task(journal.commit({"u-1": record("u-1")}))
    await disk.busy()
    second = asyncio.create_task(journal.commit({"u-2": record("u-2")}))
    await asyncio.sleep(0)
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.sleep(0)
    disk.gate.set()
    results = await asyncio.gather(first, second, return_exceptions=True)
    await asyncio.wait(tasks)
    assert all(isinstance(one, (asyncio.CancelledError, ClosingError)) for one in results)
    assert set(journal.records) == {"u-1"}
    assert disk.writes == [["u-1"]]


async def test_settled_gives_the_result_or_the_error() -> None:
    loop = asyncio.get_running_loop()
    good: asyncio.Future[int] = loop.create_future()
    bad: asyncio.Future[t.Any] = loop.create_future()
    good.set_result(7)
    bad.set_exception(ValueError("no"))
    assert await settled(good) == 7
    with pytest.raises(ValueError, match="no"):
        await settled(bad)
