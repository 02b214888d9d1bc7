# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Metrics: names, labels and buckets of the original, and that nothing is exported that is not documented."""

from __future__ import annotations

import asyncio
import inspect
import re
import types
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.metric_table import (
    COMMON_METRICS,
    DRA_BUCKETS,
    MANAGER_METRICS,
    QUEUE_BUCKETS,
    QUEUE_METRICS,
    Metric,
    metrics_rst,
)
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.metrics import Metrics, Value
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.observers import ManagerMetrics, QueueMetrics
from ansible_collections.nodeops.dra.plugins.module_utils.kube.workqueue import QueueObserver, WorkQueue
from ansible_collections.nodeops.dra.plugins.module_utils.manager.observer import Observer

ALL = (*COMMON_METRICS, *QUEUE_METRICS, *MANAGER_METRICS)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(ALL)


def lines(metrics: Metrics, start: str) -> list[str]:
    """What is exported under a name."""
    body = metrics.text()[0].decode()
    return [line for line in body.splitlines() if line.startswith(start)]


def test_buckets_are_those_of_the_original() -> None:
    assert DRA_BUCKETS == (
        0.1, 0.153413, 0.235355, 0.361064, 0.553918, 0.849781, 1.303673, 2.0, 3.068255, 4.707094, 7.221282,
        11.078366, 16.995625, 26.073454, 40.0,
    )  # fmt: skip
    assert QUEUE_BUCKETS == (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_a_work_queue_is_counted_as_in_kubernetes(metrics: Metrics) -> None:
    notes = QueueMetrics(metrics, "resource_claim")
    observer: QueueObserver = notes
    queue: WorkQueue[str] = WorkQueue("resource_claim", observer=observer)
    notes.watch(queue)
    queue.add("a")
    queue.add("b")
    await asyncio.sleep(0.5)
    key = await queue.get()
    await asyncio.sleep(2.0)
    label = 'name="resource_claim"'
    assert lines(metrics, "workqueue_depth") == [f"workqueue_depth{{{label}}} 1.0"]
    assert lines(metrics, "workqueue_adds_total") == [f"workqueue_adds_total{{{label}}} 2.0"]
    assert lines(metrics, "workqueue_unfinished") == [f"workqueue_unfinished_work_seconds{{{label}}} 2.0"]
    assert lines(metrics, "workqueue_longest") == [f"workqueue_longest_running_processor_seconds{{{label}}} 2.0"]
    queue.add_rate_limited(key)
    queue.done(key)
    assert lines(metrics, "workqueue_retries_total") == [f"workqueue_retries_total{{{label}}} 1.0"]
    waited = lines(metrics, "workqueue_queue_duration_seconds")
    assert f'workqueue_queue_duration_seconds_bucket{{le="0.1",{label}}} 0.0' in waited
    assert f'workqueue_queue_duration_seconds_bucket{{le="1.0",{label}}} 1.0' in waited
    assert f"workqueue_work_duration_seconds_sum{{{label}}} 2.0" in lines(metrics, "workqueue_work_duration")
    assert not lines(metrics, "workqueue_adds_created")
    queue.shut_down()


class AgentMetrics(ManagerMetrics, Observer):
    """As the agent does it."""


def test_the_manager_is_counted_as_in_the_kubelet(metrics: Metrics) -> None:
    observer: Observer = AgentMetrics(metrics)
    observer.operation("PrepareResources", 0.2, False)
    observer.operation("PrepareResources", 3.0, True)
    observer.driver_call("gpu.example.com", "NodePrepareResources", 0.3, "OK")
    observer.driver_call("a", "NodePrepareResources", 45.0, "DEADLINE_EXCEEDED")
    observer.write(0.004, 3, 2, False)
    observer.health_changed("gpu.example.com", "pool-0", "gpu-1", "Unhealthy")
    t.cast(ManagerMetrics, observer).claims_in_use(lambda: {"<any>": 2, "gpu.example.com": 2})
    found = metrics.text()[0].decode()
    for line in (
        'dra_operations_duration_seconds_bucket{is_error="false",le="0.235355",operation_name="PrepareResources"} 1.0',
        'dra_operations_duration_seconds_count{is_error="true",operation_name="PrepareResources"} 1.0',
        'dra_grpc_operations_duration_seconds_count{driver_name="gpu.example.com",grpc_status_code="OK",'
        'method_name="NodePrepareResources"} 1.0',
        'dra_grpc_operations_duration_seconds_bucket{driver_name="a",grpc_status_code="DeadlineExceeded",le="40.0",'
        'method_name="NodePrepareResources"} 0.0',
        'dra_resource_claims_in_use{driver_name="<any>"} 2.0',
        'nodeops_dra_state_write_duration_seconds_bucket{le="0.005",result="success"} 1.0',
        "nodeops_dra_state_write_claims_total 3.0",
        "nodeops_dra_state_write_commits_total 2.0",
        'nodeops_dra_device_health_changes_total{driver_name="gpu.example.com",health="Unhealthy"} 1.0',
    ):
        assert line in found.splitlines(), found
    assert metrics.undeclared() == []


def test_every_grpc_status_is_spelt_as_in_go(metrics: Metrics) -> None:
    import grpc

    observer = AgentMetrics(metrics)
    for status in grpc.StatusCode:
        observer.driver_call("a", "NodePrepareResources", 0.1, status.name)
    found = "".join(lines(metrics, "dra_grpc_operations_duration_seconds_count"))
    assert set(re.findall(r'grpc_status_code="(\w+)"', found)) == {
        "OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists",
        "PermissionDenied", "ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented",
        "Internal", "Unavailable", "DataLoss", "Unauthenticated",
    }  # fmt: skip


def test_an_observer_overrides_each_method_of_the_manager() -> None:
    for name, method in vars(Observer).items():
        # What the manager waits for is work, not a measurement.
        if isinstance(method, types.FunctionType) and not inspect.iscoroutinefunction(method):
            assert getattr(AgentMetrics, name) is not method, name


# What lower layers tell when asked


class Counts(t.NamedTuple):
    """A histogram as a lower layer keeps it: not cumulated."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float


def test_samples_of_a_lower_layer_can_be_read(metrics: Metrics) -> None:
    notes = Counts((0.1, 1.0), (1, 2, 1), 8.15)
    samples = [
        Value("workqueue_work_duration_seconds", "histogram", "h", {"name": "q"}, notes),
        Value("workqueue_depth", "gauge", "h", {"name": "q"}, 3),
        Value("workqueue_depth", "gauge", "h", {"name": "r"}, 4),
        Value("workqueue_adds_total", "counter", "h", {"name": "q"}, 5),
    ]
    metrics.read_samples(lambda: samples)
    assert lines(metrics, "workqueue_work_duration_seconds") == [
        'workqueue_work_duration_seconds_bucket{le="0.1",name="q"} 1.0',
        'workqueue_work_duration_seconds_bucket{le="1.0",name="q"} 3.0',
        'workqueue_work_duration_seconds_bucket{le="+Inf",name="q"} 4.0',
        'workqueue_work_duration_seconds_count{name="q"} 4.0',
        'workqueue_work_duration_seconds_sum{name="q"} 8.15',
    ]
    assert lines(metrics, "workqueue_depth") == ['workqueue_depth{name="q"} 3.0', 'workqueue_depth{name="r"} 4.0']
    assert lines(metrics, "workqueue_adds_total") == ['workqueue_adds_total{name="q"} 5.0']
    assert metrics.undeclared() == []


def test_a_part_that_cannot_tell_hides_no_other(metrics: Metrics, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> t.Iterable[Value]:
        raise KeyError("k")

    metrics.read_samples(broken)
    metrics.read_values("workqueue_depth", lambda: {("q",): 1.0})
    assert lines(metrics, "workqueue_depth") == ['workqueue_depth{name="q"} 1.0']
    assert "metrics of one part could not be read" in caplog.text


# Documentation


def test_what_is_not_in_the_table_cannot_be_counted(metrics: Metrics) -> None:
    with pytest.raises(KeyError, match="not_there is not in the table"):
        metrics.counter("not_there")
    with pytest.raises(TypeError, match="workqueue_depth is a gauge, not a counter"):
        metrics.counter("workqueue_depth")
    metrics.read_samples(lambda: [Value("not_there_total", "counter", "h", {}, 1)])
    assert metrics.undeclared() == ["not_there_total"]


def test_every_metric_is_documented(metrics: Metrics) -> None:
    assert metrics.undeclared() == []
    text = metrics_rst(ALL)
    for metric in ALL:
        assert f"``{metric.name}`` ({metric.kind})\n   {metric.help}" in text
        assert metric.help.endswith("."), metric.name
        assert all(meaning.endswith(".") for meaning in metric.labels.values()), metric.name
        assert (metric.kind == "histogram") == bool(metric.buckets), metric.name
        assert (metric.kind == "counter") == metric.name.endswith("_total"), metric.name
    assert len({metric.name for metric in ALL}) == len(ALL)


def test_the_table_is_valid_rst() -> None:
    docutils = pytest.importorskip("docutils.core")
    docutils.publish_string(metrics_rst(ALL), settings_overrides={"halt_level": 2, "report_level": 2})


def test_two_daemons_in_one_process_do_not_meet() -> None:
    one, two = (Metrics((Metric("a_total", "counter", "A."),), process=False) for _number in range(2))
    one.counter("a_total").inc()
    two.counter("a_total")
    assert lines(one, "a_total") == ["a_total 1.0"]
    assert lines(two, "a_total") == ["a_total 0.0"]
