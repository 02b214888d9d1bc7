# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the live checks of the controller's daemon take for stuck, and what they do not."""

from __future__ import annotations

import asyncio
import dataclasses
import types
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.controller.controller import (
    Controller,
    ReflectorState,
    Stats,
)
from ansible_collections.nodeops.dra.plugins.module_utils.controller.daemon_health import (
    SILENT,
    STUCK,
    Movement,
    StuckError,
    check_caches,
    check_watches,
)
from ansible_collections.nodeops.dra.plugins.module_utils.controller.metrics import Metrics
from ansible_collections.nodeops.dra.plugins.module_utils.kube.workqueue import WorkQueue

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]

CACHE = ReflectorState("pods", "", True, 1.0, 1, 5, "")


@dataclasses.dataclass
class AtWork:
    """As much of a controller as health looks at: a real queue, and states that a test sets."""

    queue: WorkQueue[str] = dataclasses.field(default_factory=lambda: WorkQueue("q"))
    metrics: Metrics = dataclasses.field(default_factory=Metrics)
    told: Stats = dataclasses.field(default_factory=lambda: Stats(ready=True, reflectors=(CACHE,)))

    @property
    def session(self) -> t.Any:
        """With the queue."""
        return types.SimpleNamespace(queue=self.queue)

    def stats(self) -> Stats:
        """What was set."""
        return self.told

    @property
    def controller(self) -> Controller:
        """As what it stands for."""
        return t.cast("Controller", self)


def caches(**changed: t.Any) -> Controller:
    """A controller with one cache in this state."""
    state = dataclasses.replace(CACHE, **changed)
    return AtWork(told=Stats(ready=state.synced, reflectors=(state,))).controller


async def test_a_worker_that_is_stuck_at_a_key() -> None:
    work, movement = AtWork(), Movement()
    work.queue.add("a")
    await work.queue.get()
    assert movement.moves(work.controller)
    await asyncio.sleep(STUCK - 1)
    assert movement.moves(work.controller)
    await asyncio.sleep(2)
    with pytest.raises(StuckError, match="at the same key for 301 s"):
        movement.check(work.controller)
    assert not movement.moves(work.controller), "nor is the lease renewed"
    work.queue.done("a")
    assert movement.moves(work.controller)


async def test_keys_that_wait_while_nothing_is_done() -> None:
    work, movement = AtWork(), Movement()
    work.queue.add("a")
    movement.check(work.controller)
    await asyncio.sleep(STUCK - 1)
    work.metrics.queue.finished(0.1)  # something was done: a long queue alone is no trouble
    movement.check(work.controller)
    await asyncio.sleep(STUCK - 1)
    movement.check(work.controller)
    await asyncio.sleep(2)
    with pytest.raises(StuckError, match="1 keys wait, and none was done for 301 s"):
        movement.check(work.controller)


async def test_no_work_is_no_trouble() -> None:
    movement = Movement()
    assert movement.check(None) == "no work"
    work = AtWork()
    movement.check(work.controller)
    await asyncio.sleep(10 * STUCK)
    assert movement.check(work.controller) == "0 waiting, 0 to be tried again"


async def test_a_cache_that_hears_nothing_and_cannot_say_why() -> None:
    assert check_watches(None) == "no caches"
    assert check_watches(caches(lag=SILENT)) == "1 watches"
    with pytest.raises(StuckError, match="pods 601 s"):
        check_watches(caches(lag=SILENT + 1))
    # It knows: the API server is away, and no restart brings it back.
    assert check_watches(caches(lag=SILENT + 1, last_error="refused")) == "1 watches"


async def test_caches_are_ready_when_they_are_full_and_follow() -> None:
    assert "version=" in check_caches(caches())
    with pytest.raises(DraError, match="still being read: pods"):
        check_caches(caches(synced=False))
    with pytest.raises(DraError, match="pods: refused"):
        check_caches(caches(last_error="refused"))
    with pytest.raises(DraError, match="has not begun"):
        check_caches(None)
