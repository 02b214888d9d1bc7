# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Back-off: how often a hopeless claim is tried, what is visible of it, and how it is stopped."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.manager.failures import (
    PREPARE,
    UNPREPARE,
    BackingOffError,
    Backoff,
    FailureLog,
)
from ansible_collections.nodeops.dra.plugins.module_utils.manager.manager import StoppedError
from ansible_collections.nodeops.dra.plugins.module_utils.manager.prepare import PrepareFailedError
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.node import Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import GPU, claim

pytestmark = pytest.mark.asyncio


@pytest.mark.report("F018")
@pytest.mark.looptime
async def test_a_hopeless_claim_is_tried_ever_less_often() -> None:
    loop = asyncio.get_running_loop()
    log = FailureLog(loop.time, now=loop.time)
    attempts = []
    while loop.time() < 3600:
        try:
            log.check_due(PREPARE, "u-1")
        except BackingOffError as error:
            await asyncio.sleep(float(error.facts["retry_after"]))
            continue
        attempts.append(loop.time())
        log.failed(PREPARE, "u-1", "team-a/c1", "broken")
    pauses = [later - earlier for earlier, later in zip(attempts, attempts[1:])]
    assert sum(1 for one in attempts if one < attempts[0] + 60) <= 8
    assert pauses == sorted(pauses)
    assert pauses[-1] == pytest.approx(120, abs=1)


async def test_pauses_grow_to_the_cap() -> None:
    backoff = Backoff(base=1, cap=10)
    assert [backoff.delay(count) for count in (1, 2, 3, 4, 5, 6, 5000)] == [1, 2, 4, 8, 10, 10, 10]


async def test_operations_and_claims_are_counted_apart() -> None:
    log = FailureLog(lambda: 0.0, now=lambda: 5.0)
    log.failed(PREPARE, "u-1", "team-a/c1", "a")
    log.failed(PREPARE, "u-1", "team-a/c1", "b")
    log.failed(UNPREPARE, "u-1", "team-a/c1", "c")
    assert [(one.operation, one.count, one.text) for one in log.all()] == [("prepare", 2, "b"), ("unprepare", 1, "c")]
    log.succeeded(PREPARE, "u-1")
    log.check_due(PREPARE, "u-1")
    with pytest.raises(BackingOffError, match="unprepare has failed 1 times"):
        log.check_due(UNPREPARE, "u-1")
    log.forget("u-1")
    assert log.all() == []


async def test_the_log_does_not_grow_for_ever() -> None:
    log = FailureLog(lambda: 0.0, now=lambda: 5.0)
    for number in range(5000):
        log.failed(PREPARE, f"u-{number}", "team-a/c1", "a")
    assert len(log.all()) == 4096
    assert log.of(PREPARE, "u-4999") is not None


@pytest.mark.report("F018")
async def test_the_daemon_waits_and_a_person_does_not(node: Node) -> None:
    await node.add_driver(GPU, "claim_error:times=2,text=broken")
    await node.start()
    with pytest.raises(PrepareFailedError):
        await node.prepare(claim(), obey_backoff=True)
    with pytest.raises(BackingOffError, match=r"failed 1 times.*broken") as caught:
        await node.prepare(claim(), obey_backoff=True)
    assert 0 < caught.value.facts["retry_after"] <= 1
    assert caught.value.facts["count"] == 1
    with pytest.raises(PrepareFailedError):
        await node.prepare(claim())
    (failure,) = node.manager.failures()
    assert (failure.count, failure.first < failure.last) == (2, True)
    assert len(node.asked()) == 2


@pytest.mark.report("F018")
@pytest.mark.parametrize(("code", "permanent"), [("INVALID_ARGUMENT", True), ("INTERNAL", False)])
async def test_what_repeating_does_not_help_is_told_and_tried_seldom(node: Node, code: str, permanent: bool) -> None:
    node.settings = dataclasses.replace(node.settings, backoff=Backoff(base=60.0, cap=600.0))
    await node.add_driver(GPU, f"error:method=prepare,times=1,code={code}")
    await node.start()
    with pytest.raises(PrepareFailedError) as failed:
        await node.prepare(claim(), obey_backoff=True)
    assert [one["permanent"] for one in failed.value.facts["failures"]] == [permanent]
    with pytest.raises(BackingOffError) as waiting:
        await node.prepare(claim(), obey_backoff=True)
    assert (waiting.value.facts["retry_after"] > 60) == permanent, "the longest pause at once, or the first"
    assert ("does not help" in waiting.value.hint) == permanent
    node.manager.driver_returned(GPU)
    await node.prepare(claim(), obey_backoff=True)


@pytest.mark.report("F018")
async def test_a_driver_that_comes_back_is_tried_at_once(node: Node) -> None:
    await node.add_driver(GPU, "claim_error:times=1")
    await node.start()
    with pytest.raises(PrepareFailedError):
        await node.prepare(claim(), obey_backoff=True)
    node.manager.driver_returned(GPU)
    await node.prepare(claim(), obey_backoff=True)
    assert node.manager.failures() == []


@pytest.mark.report("F018")
async def test_retries_of_a_claim_can_be_stopped_also_over_a_restart(node: Node) -> None:
    await node.add_driver(GPU, "claim_error:times=1")
    await node.start()
    with pytest.raises(PrepareFailedError):
        await node.prepare(claim(), obey_backoff=True)
    await node.manager.stop_retrying("u-1", "the device is dead")
    await node.start()
    with pytest.raises(StoppedError, match="the device is dead"):
        await node.prepare(claim(), obey_backoff=True)
    assert len(node.asked()) == 1
    await node.manager.resume_retrying("u-1")
    await node.prepare(claim(), obey_backoff=True)
    with pytest.raises(DraError, match="u-9"):
        await node.manager.stop_retrying("u-9", "no such claim")
