# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Descriptions of metrics: what a daemon may export is declared first, and documentation is made from that.

Names, labels and buckets of the metrics that Kubernetes has are those of Kubernetes, so that its dashboards work.
"""

from __future__ import annotations

import dataclasses
import typing as t

Kind = t.Literal["counter", "gauge", "histogram"]


@dataclasses.dataclass(frozen=True)
class Metric:
    """One metric. ``labels`` maps each label to what its values mean. ``origin``: whose metric it is, empty for ours.

    ``buckets`` are the upper bounds of a histogram without the infinite one, in the unit that the name tells.
    """

    name: str
    kind: Kind
    help: str
    labels: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    buckets: tuple[float, ...] = ()
    origin: str = ""


#: 15 bounds from 0.1 to 40 s in equal steps of the logarithm (component-base: ExponentialBucketsRange).
DRA_BUCKETS = tuple(round(0.1 * (40 / 0.1) ** (step / 14), 6) for step in range(15))
#: 10 ns to 10 s (client-go's work queue).
QUEUE_BUCKETS = tuple(float(f"1e{power}") for power in range(-8, 2))

_QUEUE = {"name": "Name of the queue."}

QUEUE_METRICS = (
    Metric("workqueue_depth", "gauge", "Keys that wait for a worker.", _QUEUE, origin="client-go"),
    Metric("workqueue_adds_total", "counter", "Keys that were added.", _QUEUE, origin="client-go"),
    Metric(
        "workqueue_queue_duration_seconds",
        "histogram",
        "How long keys waited for a worker.",
        _QUEUE,
        QUEUE_BUCKETS,
        "client-go",
    ),
    Metric(
        "workqueue_work_duration_seconds",
        "histogram",
        "How long the work on keys took.",
        _QUEUE,
        QUEUE_BUCKETS,
        "client-go",
    ),
    Metric(
        "workqueue_unfinished_work_seconds",
        "gauge",
        "Seconds of work in progress, summed over all workers; it grows when some are stuck.",
        _QUEUE,
        origin="client-go",
    ),
    Metric(
        "workqueue_longest_running_processor_seconds",
        "gauge",
        "Seconds of the oldest work in progress.",
        _QUEUE,
        origin="client-go",
    ),
    Metric("workqueue_retries_total", "counter", "Keys that were put off.", _QUEUE, origin="client-go"),
)

MANAGER_METRICS = (
    Metric(
        "dra_operations_duration_seconds",
        "histogram",
        "How long preparing or unpreparing all claims of a pod took.",
        {"operation_name": "PrepareResources or UnprepareResources.", "is_error": "true when it failed, else false."},
        DRA_BUCKETS,
        "kubelet 1.32",
    ),
    Metric(
        "dra_grpc_operations_duration_seconds",
        "histogram",
        "How long calls to drivers took.",
        {
            "driver_name": "Name of the driver.",
            "method_name": "NodePrepareResources or NodeUnprepareResources, whatever version of the API the driver "
            "speaks; the kubelet has the full path here.",
            "grpc_status_code": "The status of the call in the spelling of Go, such as DeadlineExceeded. OK also when "
            "the driver refused a claim in its answer; dra_operations_duration_seconds counts that as an error.",
        },
        DRA_BUCKETS,
        "kubelet 1.32",
    ),
    Metric(
        "dra_resource_claims_in_use",
        "gauge",
        "Prepared claims.",
        {"driver_name": "Name of a driver that prepared them; <any> for all claims, each counted once."},
        origin="kubelet 1.34",
    ),
    Metric(
        "nodeops_dra_state_write_duration_seconds",
        "histogram",
        "How long writes of the state file took, to the confirmation of the disk.",
        {"result": "success or failure."},
        (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0),
    ),
    Metric("nodeops_dra_state_write_claims_total", "counter", "Changed claims in all writes of the state file."),
    Metric(
        "nodeops_dra_state_write_commits_total",
        "counter",
        "Operations that waited for a write of the state file; more than writes when they shared one.",
    ),
    Metric(
        "nodeops_dra_device_health_changes_total",
        "counter",
        "Changes of the health of devices.",
        {"driver_name": "Name of the driver.", "health": "The new health: Healthy, Unhealthy or Unknown."},
    ),
)

DAEMON_METRICS = (
    Metric(
        "nodeops_dra_build_info",
        "gauge",
        "Always 1; the labels tell what runs.",
        {"daemon": "Name of the daemon.", "version": "Version of the collection.", "python": "Version of Python."},
    ),
    Metric("nodeops_dra_ready", "gauge", "1 while /readyz answers yes, else 0, as of its last answer."),
    Metric(
        "nodeops_dra_check_up",
        "gauge",
        "Last outcome of a health check: 1 for ok, 0.5 for degraded, 0 for failed.",
        {"check": "Name of the check."},
    ),
    Metric(
        "nodeops_dra_check_duration_seconds",
        "gauge",
        "How long the last run of a health check took.",
        {"check": "Name of the check."},
    ),
    Metric(
        "nodeops_dra_reloads_total",
        "counter",
        "Reloads of the settings.",
        {"result": "success; pending when some changes need a restart; failure when the old settings were kept."},
    ),
    Metric("nodeops_dra_start_attempts_total", "counter", "Attempts to start the daemon's work in this process."),
    Metric(
        "nodeops_dra_log_lines_total",
        "counter",
        "Lines written to the log.",
        {"level": "debug, info, warning, error or critical; lost for those that could not be written."},
    ),
    Metric(
        "nodeops_dra_http_requests_total",
        "counter",
        "Answers of this server.",
        {"path": "The path, or other.", "code": "The HTTP status."},
    ),
)

PROCESS_METRICS = (
    Metric("process_cpu_seconds_total", "counter", "Processor time of user and system.", origin="prometheus_client"),
    Metric("process_max_fds", "gauge", "Files that may be open at a time.", origin="prometheus_client"),
    Metric("process_open_fds", "gauge", "Files that are open.", origin="prometheus_client"),
    Metric("process_resident_memory_bytes", "gauge", "Memory in use.", origin="prometheus_client"),
    Metric("process_start_time_seconds", "gauge", "When the process started, since 1970.", origin="prometheus_client"),
    Metric("process_virtual_memory_bytes", "gauge", "Address space in use.", origin="prometheus_client"),
)

#: What both daemons export.
COMMON_METRICS: tuple[Metric, ...] = (*DAEMON_METRICS, *PROCESS_METRICS)


def metrics_rst(metrics: t.Iterable[Metric]) -> str:
    """The metrics as reStructuredText, in the order of their names."""
    lines: list[str] = []
    for metric in sorted(metrics, key=lambda one: one.name):
        origin = f" As in {metric.origin}." if metric.origin else ""
        lines += [f"``{metric.name}`` ({metric.kind})", f"   {metric.help}{origin}", ""]
        lines += [f"   - ``{label}``: {text}" for label, text in metric.labels.items()]
        if metric.buckets:
            lines.append(f"   - buckets: {', '.join(f'{bound:g}' for bound in metric.buckets)}")
        if metric.labels or metric.buckets:
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"
