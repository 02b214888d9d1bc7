# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The queue with the semantics that controllers expect (client-go: util/workqueue/queue_test.go and its neighbours)."""

from __future__ import annotations

import asyncio
import logging

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.kube.errors import FenceLostError, KubeError
from ansible_collections.nodeops.dra.plugins.module_utils.kube.workers import run_workers
from ansible_collections.nodeops.dra.plugins.module_utils.kube.workqueue import QueueShutDownError, WorkQueue


class Observer:
    """Keeps the notes of a queue."""

    def __init__(self) -> None:
        self.adds = self.retries = 0
        self.waits: list[float] = []
        self.works: list[float] = []

    def added(self) -> None:
        """A key came."""
        self.adds += 1

    def started(self, waited: float) -> None:
        """A key was taken."""
        self.waits.append(waited)

    def finished(self, worked: float) -> None:
        """A key is done."""
        self.works.append(worked)

    def retried(self) -> None:
        """A key was put off."""
        self.retries += 1


@pytest.mark.asyncio
async def test_a_key_waits_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in ("a", "b", "a"):
        queue.add(key)
    assert len(queue) == 2
    assert [await queue.get(), await queue.get()] == ["a", "b"]


@pytest.mark.asyncio
async def test_a_key_added_while_it_is_worked_on_comes_again_after_done() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0  # nobody else may take it now
    queue.done("a")
    assert await queue.get() == "a"
    queue.done("a")
    assert len(queue) == 0


@pytest.mark.looptime
@pytest.mark.asyncio
async def test_back_off_doubles_up_to_its_limit_and_is_forgotten() -> None:
    queue: WorkQueue[str] = WorkQueue()
    delays = [queue.add_rate_limited("a") for _unused in range(20)]
    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert delays[-1] == 1000
    assert queue.failures("a") == 20
    for _unused in range(2000):
        queue.add_rate_limited("a")
    queue.forget("a")
    assert queue.add_rate_limited("a") == 0.005
    queue.shut_down()


@pytest.mark.looptime
@pytest.mark.asyncio
async def test_put_off_keys_come_at_their_time_the_earlier_one_counts() -> None:
    queue: WorkQueue[str] = WorkQueue()
    loop = asyncio.get_running_loop()
    started = loop.time()
    queue.add_after("late", 10)
    queue.add_after("a", 5)
    queue.add_after("a", 2)
    queue.add_after("a", 7)
    assert queue.delayed == 2
    assert await queue.get() == "a"
    assert loop.time() - started == pytest.approx(2, abs=0.01)
    queue.done("a")
    assert await queue.get() == "late"
    assert loop.time() - started == pytest.approx(10, abs=0.01)
    queue.done("late")
    assert queue.delayed == 0
    assert len(queue) == 0


@pytest.mark.looptime
@pytest.mark.asyncio
async def test_add_now_goes_past_a_back_off_and_replaces_it() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for _unused in range(18):
        queue.add_rate_limited("a")
    queue.add_now("a")
    assert await queue.get() == "a"
    queue.done("a")
    await asyncio.sleep(2000)
    assert len(queue) == 0


@pytest.mark.looptime
@pytest.mark.asyncio
async def test_shut_down_hands_out_what_is_queued_and_then_ends_all_workers() -> None:
    queue: WorkQueue[str] = WorkQueue()
    done: list[str] = []

    async def work(key: str) -> None:
        await asyncio.sleep(1)
        done.append(key)

    for key in "abc":
        queue.add(key)
    queue.add_after("never", 100)
    async with asyncio.TaskGroup() as group:
        group.create_task(run_workers(queue, work, 2))
        await asyncio.sleep(0.5)
        queue.shut_down()
        queue.add("too late")
        await queue.drained()
    assert sorted(done) == ["a", "b", "c"]
    with pytest.raises(QueueShutDownError):
        await queue.get()


@pytest.mark.asyncio
async def test_a_cancelled_worker_loses_no_key() -> None:
    queue: WorkQueue[str] = WorkQueue()
    first, second = asyncio.ensure_future(queue.get()), asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add("a")  # wakes the first one
    first.cancel()
    async with asyncio.timeout(1):
        assert await second == "a"
    assert first.cancelled()


@pytest.mark.looptime
@pytest.mark.asyncio
async def test_one_key_is_never_worked_on_twice_at_a_time() -> None:
    queue: WorkQueue[int] = WorkQueue()
    busy: set[int] = set()
    turns = 0

    async def work(key: int) -> None:
        nonlocal turns
        assert key not in busy
        busy.add(key)
        await asyncio.sleep(0.01)
        busy.remove(key)
        turns += 1

    async with asyncio.TaskGroup() as group:
        group.create_task(run_workers(queue, work, 8))
        for number in range(500):
            queue.add(number % 7)
            if number % 5 == 0:
                await asyncio.sleep(0.003)
        await queue.drained()
        queue.shut_down()
    assert turns >= 7


@pytest.mark.looptime
@pytest.mark.asyncio
async def test_failures_are_tried_again_with_growing_delays(caplog: pytest.LogCaptureFixture) -> None:
    queue: WorkQueue[str] = WorkQueue("test")
    times: list[float] = []

    async def work(key: str) -> None:
        times.append(asyncio.get_running_loop().time())
        if len(times) < 4:
            raise KubeError("the server is busy.") if len(times) < 3 else RuntimeError("a bug")
        queue.shut_down()

    queue.add("a")
    with caplog.at_level(logging.WARNING):
        await run_workers(queue, work, 1)
    assert [round(b - a, 3) for a, b in zip(times, times[1:])] == [0.005, 0.01, 0.02]
    assert queue.failures("a") == 0
    assert "queue=test key=a attempt=1 retry_in=0.005 error=the server is busy." in caplog.text
    assert "RuntimeError: a bug" in caplog.text


@pytest.mark.asyncio
async def test_a_lost_fence_ends_all_workers() -> None:
    queue: WorkQueue[str] = WorkQueue()

    async def work(key: str) -> None:
        raise FenceLostError("The lease is not held any more.")

    for key in "abcde":
        queue.add(key)
    with pytest.raises(FenceLostError):
        await run_workers(queue, work, 1)
    assert len(queue) == 4


@pytest.mark.report("F066")
@pytest.mark.looptime
@pytest.mark.asyncio
async def test_what_metrics_need() -> None:
    observer = Observer()
    queue: WorkQueue[str] = WorkQueue("test", observer=observer)
    queue.add("a")
    queue.add("b")
    await asyncio.sleep(3)
    assert queue.oldest_waiting_seconds() == pytest.approx(3)
    async with queue.item() as key:
        assert key == "a"
        await asyncio.sleep(2)
        assert queue.unfinished_seconds() == pytest.approx(2)
        assert queue.longest_running_seconds() == pytest.approx(2)
    queue.add_rate_limited("c")
    assert (observer.adds, observer.retries, queue.retrying) == (2, 1, 1)
    assert observer.waits == [pytest.approx(3)]
    assert observer.works == [pytest.approx(2)]
    assert queue.unfinished_seconds() == queue.longest_running_seconds() == 0
    queue.shut_down()


@pytest.mark.report("F070")
@pytest.mark.asyncio
async def test_work_without_waiting_leaves_turns_to_others() -> None:
    queue: WorkQueue[int] = WorkQueue("test")
    order: list[str] = []

    async def work(key: int) -> None:
        order.append(str(key))

    async def renewal() -> None:
        while len(order) < 20:
            order.append("renewal")
            await asyncio.sleep(0)

    for key in range(20):
        queue.add(key)
    queue.shut_down()
    async with asyncio.TaskGroup() as group:
        group.create_task(run_workers(queue, work, 2))
        group.create_task(renewal())
    assert "renewal" in order[2:6]
