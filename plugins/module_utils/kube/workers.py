# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Workers of a work queue: failures are put off with growing delays, successes forgotten."""

from __future__ import annotations

import asyncio
import logging
import typing as t

from ..checkpoint.errors import DraError
from .errors import FenceLostError
from .workqueue import K, QueueShutDownError, WorkQueue

log = logging.getLogger(__name__)


async def run_workers(queue: WorkQueue[K], work: t.Callable[[K], t.Awaitable[None]], count: int) -> None:
    """Call ``work`` for each key, at most ``count`` at a time, until the queue is shut down and empty.

    A failure puts the key off; one that is no ``DraError`` is a bug, and its traceback goes to the log. After a lost
    fence nothing can be written any more: all workers end with what they are at, and ``FenceLostError`` is raised.
    """

    lost: list[FenceLostError] = []

    async def worker() -> None:
        while not lost:
            try:
                key = await queue.get()
            except QueueShutDownError:
                return
            try:
                await work(key)
            except FenceLostError as error:
                lost.append(error)
                queue.shut_down()
            except DraError as error:
                delay = queue.add_rate_limited(key)
                said = (queue.name, key, queue.failures(key), delay, error)
                log.warning("work failed queue=%s key=%s attempt=%d retry_in=%.3g error=%s", *said)
            except Exception:
                # The edge of the daemon's work: a bug that one object brings out must not stop the work on all others.
                queue.add_rate_limited(key)
                log.exception("work failed by a bug queue=%s key=%s attempt=%d", queue.name, key, queue.failures(key))
            else:
                queue.forget(key)
            finally:
                queue.done(key)
            # Keys for which nothing is to be done need no waiting at all, and after a start there are thousands of
            # them: without a break nobody else, not even the renewal of a lease, would get a turn.
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _number in range(count):
            group.create_task(worker())
    if lost:
        raise lost[0]
