# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The metrics that an agent has in the mode ``observe`` alone, and the others that it fills there."""

from __future__ import annotations

import time
import typing as t

from ..checkpoint.diagnosis import FAULTY, REFUSED, SOUND
from ..daemon.metric_table import Metric
from ..daemon.metrics import Metrics
from .kubelet_state import MISSING, UNREADABLE
from .metric_values import Values, driver_values, finding_values

if t.TYPE_CHECKING:
    from .observed_node import ObservedNode
    from .ring_keeper import RingKeeper

STATES = (SOUND, FAULTY, REFUSED, MISSING, UNREADABLE)

OBSERVE_METRICS: tuple[Metric, ...] = (
    Metric("nodeops_dra_kubelet_claims", "gauge", "Claims in the kubelet's state file. In the mode observe."),
    Metric(
        "nodeops_dra_kubelet_state",
        "gauge",
        "1 for what the kubelet's state file is now, 0 for what it is not. In the mode observe.",
        {
            "status": "sound; faulty: kubelets start with it, and a person should look; refused: they do not; missing: "
            "no kubelet has written it yet; unreadable."
        },
    ),
    Metric(
        "nodeops_dra_kubelet_state_contents_total",
        "counter",
        "Contents of the kubelet's state file that were seen. In the mode observe.",
    ),
    Metric(
        "nodeops_dra_driver_connected",
        "gauge",
        "1 while the service of a driver can be reached, else 0. In the mode observe.",
        {"driver_name": "Name of a driver with a registration socket."},
    ),
    Metric("nodeops_dra_ring_copies", "gauge", "Copies of the kubelet's state file in the ring. In the mode observe."),
    Metric("nodeops_dra_ring_bytes", "gauge", "Bytes of all copies in the ring. In the mode observe."),
    Metric(
        "nodeops_dra_ring_newest_age_seconds",
        "gauge",
        "Age of the newest good copy in the ring; what is unchanged is not copied again. In the mode observe.",
    ),
    Metric(
        "nodeops_dra_ring_writes_total",
        "counter",
        "Attempts to put a copy into the ring. In the mode observe.",
        {"result": "success or failure."},
    ),
)


def export(metrics: Metrics, node: ObservedNode) -> None:
    """Let each scrape ask the parts of an observing agent."""

    kubelet = node.kubelet
    asked: dict[str, t.Callable[[], Values]] = {
        "nodeops_dra_findings": lambda: finding_values((one["code"], one["severity"]) for one in node.findings()),
        "nodeops_dra_drivers": lambda: driver_values(node.registry),
        "nodeops_dra_driver_connected": lambda: {(one.name,): float(one.connected) for one in node.registry.drivers()},
        "nodeops_dra_kubelet_claims": lambda: {(): float(len(kubelet.state.claims))},
        "nodeops_dra_kubelet_state": lambda: {(one,): float(one == kubelet.state.status) for one in STATES},
        "nodeops_dra_kubelet_state_contents_total": lambda: {(): float(kubelet.contents)},
    }
    pods = node.pods
    if pods is not None:
        asked["nodeops_dra_api_lag_seconds"] = lambda: {(): pods.lag}
    if node.ring is not None:
        asked |= _of_ring(node.ring)
    for name, ask in asked.items():
        metrics.read_values(name, ask)


def _of_ring(keeper: RingKeeper) -> dict[str, t.Callable[[], Values]]:
    ring = keeper.ring

    def age() -> Values:
        return {} if ring.newest is None else {(): max(0.0, time.time() - ring.newest.made)}

    return {
        "nodeops_dra_ring_copies": lambda: {(): float(len(ring.copies))},
        "nodeops_dra_ring_bytes": lambda: {(): float(sum(copy.size for copy in ring.copies))},
        "nodeops_dra_ring_newest_age_seconds": age,
    }
