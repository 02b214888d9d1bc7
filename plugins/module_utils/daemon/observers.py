# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Observers that the layers below and above report to, each turning what it hears into metrics.

None of them imports the layer that it listens to: they have the methods of its observer class, and that is all.
"""

from __future__ import annotations

import typing as t

from .metrics import Metrics

#: What Go does not spell as the words of the name let expect.
_GO_STATUS = {"OK": "OK", "CANCELLED": "Canceled"}


class QueueState(t.Protocol):
    """What a work queue tells when it is asked (``kube.workqueue.WorkQueue``)."""

    def __len__(self) -> int: ...
    def unfinished_seconds(self) -> float: ...
    def longest_running_seconds(self) -> float: ...


class QueueMetrics:
    """A ``kube.workqueue.QueueObserver``. Give it to the queue, then the queue to :meth:`watch`."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._metrics, self._name = metrics, name
        self._adds = metrics.counter("workqueue_adds_total").labels(name)
        self._retries = metrics.counter("workqueue_retries_total").labels(name)
        self._waited = metrics.histogram("workqueue_queue_duration_seconds").labels(name)
        self._worked = metrics.histogram("workqueue_work_duration_seconds").labels(name)

    def watch(self, queue: QueueState) -> None:
        """Ask ``queue`` for its depth and the age of its work at each scrape."""
        asked: t.Mapping[str, t.Callable[[], float]] = {
            "workqueue_depth": lambda: len(queue),
            "workqueue_unfinished_work_seconds": queue.unfinished_seconds,
            "workqueue_longest_running_processor_seconds": queue.longest_running_seconds,
        }
        for name, ask in asked.items():
            self._metrics.gauge(name).labels(self._name).set_function(ask)

    def added(self) -> None:
        """A key went into the queue."""
        self._adds.inc()

    def started(self, waited: float) -> None:
        """A worker took a key that had waited so many seconds."""
        self._waited.observe(waited)

    def finished(self, worked: float) -> None:
        """A worker is done with a key after so many seconds."""
        self._worked.observe(worked)

    def retried(self) -> None:
        """A key was put off after a failure."""
        self._retries.inc()


def _go_status(name: str) -> str:
    """The name of a gRPC status as Go spells it: ``DeadlineExceeded``."""
    return _GO_STATUS.get(name) or "".join(word.title() for word in name.split("_"))


class ManagerMetrics:
    """Has the methods of ``manager.observer.Observer``; the agent derives a class from both."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._operations = metrics.histogram("dra_operations_duration_seconds")
        self._calls = metrics.histogram("dra_grpc_operations_duration_seconds")
        self._writes = metrics.histogram("nodeops_dra_state_write_duration_seconds")
        self._claims = metrics.counter("nodeops_dra_state_write_claims_total")
        self._commits = metrics.counter("nodeops_dra_state_write_commits_total")
        self._health = metrics.counter("nodeops_dra_device_health_changes_total")

    def claims_in_use(self, read: t.Callable[[], t.Mapping[str, int]]) -> None:
        """Ask ``read`` for prepared claims by driver at each scrape, ``<any>`` among the drivers."""
        self._metrics.read_values(
            "dra_resource_claims_in_use", lambda: {(driver,): count for driver, count in read().items()}
        )

    def operation(self, name: str, seconds: float, failed: bool) -> None:
        """A ``PrepareResources`` or ``UnprepareResources`` of a pod has ended."""
        self._operations.labels(name, "true" if failed else "false").observe(seconds)

    def driver_call(self, driver: str, method: str, seconds: float, code: str) -> None:
        """A call to a driver has ended with this status, such as ``DEADLINE_EXCEEDED``."""
        self._calls.labels(driver, method, _go_status(code)).observe(seconds)

    def write(self, seconds: float, claims: int, commits: int, failed: bool) -> None:
        """One write of the state has ended."""
        self._writes.labels("failure" if failed else "success").observe(seconds)
        self._claims.inc(claims)
        self._commits.inc(commits)

    def health_changed(self, driver: str, pool: str, device: str, health: str) -> None:
        """A device's health is another one than before. Devices are too many to be labels."""
        self._health.labels(driver, health).inc()
