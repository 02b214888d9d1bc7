# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Counts, under the names and labels that the original of each release gives them. No exporter is needed here."""

from __future__ import annotations

import bisect
import collections
import dataclasses
import typing as t

from ..kube.workqueue import WorkQueue
from ..resource.classification import metric_labels
from ..resource.release import Release
from ..resource.requests import uses_admin_access
from .shapes import Json

QUEUE_NAME = "resource_claim"
#: Upper bounds of the queue's histograms, in seconds.
QUEUE_BUCKETS = tuple(1e-8 * 10.0**power for power in range(10))


@dataclasses.dataclass(frozen=True)
class Sample:
    """One value. ``kind`` is counter, gauge or histogram; that of a histogram is a ``Histogram``."""

    name: str
    kind: str
    help: str
    labels: t.Mapping[str, str]
    value: t.Any


class Histogram:
    """How many observations lie at or below each bound; not cumulated."""

    def __init__(self, bounds: t.Sequence[float] = QUEUE_BUCKETS) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one."""
        self.counts[bisect.bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """All observations."""
        return sum(self.counts)


class QueueNumbers:
    """Notes of the work queue (a ``QueueObserver``)."""

    def __init__(self) -> None:
        self.adds = self.retries = 0
        self.waited, self.worked = Histogram(), Histogram()

    def added(self) -> None:
        """A key went into the queue."""
        self.adds += 1

    def started(self, waited: float) -> None:
        """A worker took a key."""
        self.waited.observe(waited)

    def finished(self, worked: float) -> None:
        """A worker is done with a key."""
        self.worked.observe(worked)

    def retried(self) -> None:
        """A key was put off."""
        self.retries += 1


class ClaimNumbers:
    """How many claims there are of each sort. Follows the stores, so that nobody has to count them all."""

    def __init__(self) -> None:
        self._sorts: dict[str, tuple[str, str, str]] = {}
        self.counts: collections.Counter[tuple[str, str, str]] = collections.Counter()

    def seen(self, claim: Json) -> None:
        """A claim is there, in this state."""
        uid, sort = claim["metadata"]["uid"], metric_labels(claim)
        before = self._sorts.get(uid)
        if before != sort:
            if before is not None:
                self.counts[before] -= 1
            # The key of the count itself: one tuple for all claims of a sort.
            self._sorts[uid] = sort = next((known for known in self.counts if known == sort), sort)
            self.counts[sort] += 1

    def clear(self) -> None:
        """Start over with empty caches."""
        self._sorts.clear()
        self.counts.clear()

    def left(self, claim: Json) -> None:
        """A claim is there no more."""
        before = self._sorts.pop(claim["metadata"]["uid"], None)
        if before is not None:
            self.counts[before] -= 1


class Metrics:
    """All numbers of a controller; they outlive a change of the API version."""

    def __init__(self) -> None:
        self.creates: collections.Counter[tuple[str, str]] = collections.Counter()
        self.questions = 0
        self.queue = QueueNumbers()
        self.claims = ClaimNumbers()

    def created(self, body: Json, succeeded: bool) -> None:
        """A claim was made, or could not be."""
        self.creates["success" if succeeded else "failure", "true" if uses_admin_access(body) else "false"] += 1

    def samples(self, release: Release, queue: WorkQueue[t.Any] | None = None) -> list[Sample]:
        """Everything as the original of this release would show it."""
        found = list(_creates(self.creates, release)) + list(_claims(self.claims.counts, release))
        if queue is not None:
            found += _queue(self.queue, queue)
        return found


def _creates(counts: t.Mapping[tuple[str, str], int], release: Release) -> t.Iterator[Sample]:
    if release < (1, 34):
        help_text = "Number of ResourceClaims creation requests"
        yield Sample("resourceclaim_controller_create_attempts_total", "counter", help_text, {}, sum(counts.values()))
        failed = sum(number for (status, _admin), number in counts.items() if status == "failure")
        help_text = "Number of ResourceClaims creation request failures"
        yield Sample("resourceclaim_controller_create_failures_total", "counter", help_text, {}, failed)
        return
    is_shared = release >= (1, 37)
    prefix = "dynamic_resource_allocation_resourceclaim" if is_shared else "resourceclaim_controller"
    help_text = "Number of ResourceClaims creation requests by outcome and admin access"
    for (status, admin), number in sorted(counts.items()):
        labels = {"status": status, "admin_access": admin}
        yield Sample(f"{prefix}_creates_total", "counter", help_text, labels, number)


def _claims(counts: t.Mapping[tuple[str, str, str], int], release: Release) -> t.Iterator[Sample]:
    name = "dynamic_resource_allocation_resource_claims" if release >= (1, 37) else (
        "resourceclaim_controller_resource_claims"
    )  # fmt: skip
    help_text = "Number of ResourceClaims"
    if release < (1, 32):
        return
    if release < (1, 34):
        yield Sample(name, "gauge", help_text, {}, sum(counts.values()))
        allocated = sum(number for sort, number in counts.items() if sort[0] == "true")
        help_text = "Number of allocated ResourceClaims"
        yield Sample("resourceclaim_controller_allocated_resource_claims", "gauge", help_text, {}, allocated)
        return
    keys = ("allocated", "admin_access", "source") if release >= (1, 36) else ("allocated", "admin_access")
    merged: collections.Counter[tuple[str, ...]] = collections.Counter()
    for sort, number in counts.items():
        merged[sort[: len(keys)]] += number
    for values, number in sorted(merged.items()):
        yield Sample(name, "gauge", help_text, dict(zip(keys, values)), number)


def _queue(numbers: QueueNumbers, queue: WorkQueue[t.Any]) -> t.Iterator[Sample]:
    labels = {"name": QUEUE_NAME}
    values: tuple[tuple[str, str, str, t.Any], ...] = (
        ("depth", "gauge", "Keys that wait for a worker", len(queue)),
        ("adds_total", "counter", "Keys that were added", numbers.adds),
        ("queue_duration_seconds", "histogram", "How long keys waited", numbers.waited),
        ("work_duration_seconds", "histogram", "How long keys were worked on", numbers.worked),
        ("unfinished_work_seconds", "gauge", "Seconds of work in progress", queue.unfinished_seconds()),
        ("longest_running_processor_seconds", "gauge", "Age of the oldest work", queue.longest_running_seconds()),
        ("retries_total", "counter", "Keys that were put off", numbers.retries),
    )
    for name, kind, help_text, value in values:
        yield Sample(f"workqueue_{name}", kind, help_text, labels, value)
