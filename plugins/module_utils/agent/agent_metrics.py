# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The metrics of the node agent: those of the manager, under the kubelet's names, and its own."""

from __future__ import annotations

import typing as t

from ..daemon.metric_table import MANAGER_METRICS, Metric
from ..daemon.metrics import Metrics
from ..daemon.observers import ManagerMetrics
from ..manager.observer import Observer
from .agent_findings import agent_findings
from .container_files import ContainerFiles
from .keeping import Keeper
from .metric_values import Values, driver_values, finding_values
from .node_pods import NodePods
from .observe_metrics import OBSERVE_METRICS
from .workplace import Workplace

AGENT_METRICS: tuple[Metric, ...] = (
    *MANAGER_METRICS,
    Metric(
        "nodeops_dra_degraded",
        "gauge",
        "1 while nothing can be prepared or unprepared, else 0. The findings say why; nodeops.dra.checkpoint mends a "
        "state file that is damaged.",
    ),
    Metric(
        "nodeops_dra_findings",
        "gauge",
        "What is not as it should be on this node.",
        {"code": "The code of the findings.", "severity": "error, warning or info."},
    ),
    Metric(
        "nodeops_dra_drivers",
        "gauge",
        "Registered drivers.",
        {"state": "connected, or not_connected: registered, but its service cannot be reached."},
    ),
    Metric(
        "nodeops_dra_pods",
        "gauge",
        "Pods of this node that have claims.",
        {"state": "prepared, or waiting: for an object, for a driver, or ended."},
    ),
    Metric("nodeops_dra_api_lag_seconds", "gauge", "Seconds since the last news of the API server about pods."),
    Metric(
        "nodeops_dra_container_files",
        "gauge",
        "Files for containers of podman and systemd in node.container_files.",
    ),
    Metric(
        "nodeops_dra_local_api_refused_total",
        "counter",
        "Connections to the local API that were refused because of their user.",
    ),
    Metric(
        "nodeops_dra_pod_resources_requests_total",
        "counter",
        "Calls of the PodResources API.",
        {"method": "List, Get or GetAllocatableResources.", "code": "The gRPC status, such as OK or UNAVAILABLE."},
    ),
    Metric(
        "nodeops_dra_pod_health_updates_total",
        "counter",
        "Writes of the health of devices into the status of pods.",
        {
            "result": "success; not_kept: the API server does not keep it; conflict: somebody was faster, tried again; "
            "gone: the pod is gone; denied: rights are missing; or failure."
        },
    ),
    *OBSERVE_METRICS,
)


class AgentObserver(ManagerMetrics, Observer):
    """Hears what the manager tells and counts it; ``files`` are kept in step."""

    files: ContainerFiles | None = None

    async def claims_changed(self) -> None:
        """Return when the files are those of the claims."""
        if self.files is not None:
            await self.files.changed()


def export(metrics: Metrics, place: Workplace, pods: NodePods | None, keeper: Keeper | None) -> None:
    """Let each scrape ask the parts of a running agent."""

    asked: dict[str, t.Callable[[], Values]] = {
        "nodeops_dra_degraded": lambda: {(): float(place.manager.degraded is not None)},
        "nodeops_dra_findings": lambda: finding_values((one.code, one.severity) for one in agent_findings(place)),
        "nodeops_dra_drivers": lambda: driver_values(place.registry),
    }
    if pods is not None and keeper is not None:
        asked["nodeops_dra_api_lag_seconds"] = lambda: {(): pods.lag}
        asked["nodeops_dra_pods"] = lambda: {(state,): float(count) for state, count in keeper.pods.items()}
    for name, ask in asked.items():
        metrics.read_values(name, ask)
