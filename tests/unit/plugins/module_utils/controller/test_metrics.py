# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Numbers under the names and labels of each release, and what was told when."""

from __future__ import annotations

import asyncio
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.controller.keys import POD, Key
from ansible_collections.nodeops.dra.plugins.module_utils.controller.metrics import (
    QUEUE_BUCKETS,
    Histogram,
    Metrics,
    Sample,
)
from ansible_collections.nodeops.dra.plugins.module_utils.controller.plan import Problem
from ansible_collections.nodeops.dra.plugins.module_utils.controller.telling import Teller
from ansible_collections.nodeops.dra.plugins.module_utils.kube.event_series import ObjectReference
from ansible_collections.nodeops.dra.plugins.module_utils.kube.workqueue import WorkQueue
from ansible_collections.nodeops.dra.plugins.module_utils.resource.release import Release
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.resource import objects

ADMIN = {"devices": {"requests": [{"name": "g", "exactly": {"adminAccess": True}}]}}


def filled() -> Metrics:
    """Three creates, of which one failed, and three claims."""
    metrics = Metrics()
    metrics.created(objects.claim(), True)
    metrics.created(objects.claim(spec=ADMIN), True)
    metrics.created(objects.claim(), False)
    generated = {"annotations": {"resource.kubernetes.io/pod-claim-name": "gpu"}}
    metrics.claims.seen(objects.claim("a", "u-a", metadata=generated))
    metrics.claims.seen(objects.claim("b", "u-b", status={"allocation": {}}))
    metrics.claims.seen(objects.claim("c", "u-c", spec=ADMIN))
    return metrics


def flat(samples: t.Iterable[Sample]) -> dict[str, t.Any]:
    """Values by name and labels."""
    return {
        sample.name + "".join(f" {key}={value}" for key, value in sample.labels.items()): sample.value
        for sample in samples
        if sample.value
    }


@pytest.mark.parametrize(
    ("release", "wanted"),
    [
        (
            (1, 30),
            {
                "resourceclaim_controller_create_attempts_total": 3,
                "resourceclaim_controller_create_failures_total": 1,
            },
        ),
        (
            (1, 33),
            {
                "resourceclaim_controller_create_attempts_total": 3,
                "resourceclaim_controller_create_failures_total": 1,
                "resourceclaim_controller_resource_claims": 3,
                "resourceclaim_controller_allocated_resource_claims": 1,
            },
        ),
        (
            (1, 34),
            {
                "resourceclaim_controller_creates_total status=failure admin_access=false": 1,
                "resourceclaim_controller_creates_total status=success admin_access=false": 1,
                "resourceclaim_controller_creates_total status=success admin_access=true": 1,
                "resourceclaim_controller_resource_claims allocated=false admin_access=false": 1,
                "resourceclaim_controller_resource_claims allocated=true admin_access=false": 1,
                "resourceclaim_controller_resource_claims allocated=false admin_access=true": 1,
            },
        ),
        (
            (1, 37),
            {
                "dynamic_resource_allocation_resourceclaim_creates_total status=failure admin_access=false": 1,
                "dynamic_resource_allocation_resourceclaim_creates_total status=success admin_access=false": 1,
                "dynamic_resource_allocation_resourceclaim_creates_total status=success admin_access=true": 1,
                "dynamic_resource_allocation_resource_claims allocated=false admin_access=false "
                "source=resource_claim_template": 1,
                "dynamic_resource_allocation_resource_claims allocated=true admin_access=false source=": 1,
                "dynamic_resource_allocation_resource_claims allocated=false admin_access=true source=": 1,
            },
        ),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_names_and_labels_of_each_release(release: tuple[int, int], wanted: dict[str, int]) -> None:
    assert flat(filled().samples(Release(*release))) == wanted


def test_claims_are_counted_in_the_state_in_which_they_are() -> None:
    metrics = filled()
    metrics.claims.seen(objects.claim("b", "u-b"))
    metrics.claims.left(objects.claim("c", "u-c"))
    metrics.claims.left(objects.claim("never-seen", "u-x"))
    found = flat(metrics.samples(Release(1, 36)))
    assert {name: value for name, value in found.items() if "resource_claims" in name} == {
        "resourceclaim_controller_resource_claims allocated=false admin_access=false source=resource_claim_template": 1,
        "resourceclaim_controller_resource_claims allocated=false admin_access=false source=": 1,
    }
    metrics.claims.clear()
    assert sum(metrics.claims.counts.values()) == 0


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_the_queue_is_observed() -> None:
    metrics = Metrics()
    queue: WorkQueue[str] = WorkQueue("resource_claim", observer=metrics.queue)
    queue.add("a")
    queue.add("b")
    await asyncio.sleep(2)
    key = await queue.get()
    await asyncio.sleep(3)
    queue.add_rate_limited("c")
    found = {sample.name: sample.value for sample in metrics.samples(Release(1, 36), queue)}
    assert found["workqueue_depth"] == 1
    assert found["workqueue_adds_total"] == 2
    assert found["workqueue_retries_total"] == 1
    assert found["workqueue_queue_duration_seconds"].count == 1
    assert found["workqueue_queue_duration_seconds"].sum == pytest.approx(2)
    assert found["workqueue_unfinished_work_seconds"] == pytest.approx(3)
    assert found["workqueue_longest_running_processor_seconds"] == pytest.approx(3)
    queue.done(key)
    assert found["workqueue_work_duration_seconds"].sum == pytest.approx(3)
    assert {
        sample.labels["name"] for sample in metrics.samples(Release(1, 36), queue) if "workqueue" in sample.name
    } == {"resource_claim"}
    queue.shut_down()


def test_buckets() -> None:
    assert QUEUE_BUCKETS[0] == pytest.approx(1e-8)
    assert QUEUE_BUCKETS[-1] == pytest.approx(10)
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 7.0):
        histogram.observe(value)
    assert (histogram.counts, histogram.sum, histogram.count) == ([2, 1, 1], 10.0, 4)


class Recorder:
    """Takes events."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def event(self, _reference: ObjectReference, kind: str, reason: str, message: str) -> None:
        """One event."""
        self.said.append(f"{kind} {reason}: {message}")


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_a_trouble_is_told_once_a_passing_one_when_it_lasts_and_both_again_after_a_while() -> None:
    recorder = Recorder()
    teller = Teller(t.cast("t.Any", recorder), grace=5.0, again=1200.0)
    key, reference = Key(POD, "team-a", "p"), ObjectReference("v1", "Pod", "p", "team-a")
    sure, passing = Problem("R", "no template"), Problem("R", "not allocated", passing=True)
    assert teller.report(key, reference, [sure, passing]) == pytest.approx(5)
    assert recorder.said == ["Warning R: no template"]
    await asyncio.sleep(3)
    assert teller.report(key, reference, [sure, passing]) == pytest.approx(2)
    await asyncio.sleep(2)
    assert teller.report(key, reference, [sure, passing]) is None
    assert recorder.said == ["Warning R: no template", "Warning R: not allocated"]
    await asyncio.sleep(600)
    assert teller.report(key, reference, [sure]) is None
    assert len(recorder.said) == 2
    await asyncio.sleep(600)
    assert teller.report(key, reference, [sure, passing]) == pytest.approx(5)  # it was away meanwhile
    assert recorder.said[2:] == ["Warning R: no template"]
    assert len(teller) == 1
    assert teller.report(key, reference, []) is None
    assert len(teller) == 0
    teller.report(key, reference, [sure])
    teller.forget(key)
    assert len(teller) == 0
