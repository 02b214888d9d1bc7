# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the controller's daemon exports, and how it gets there."""

from __future__ import annotations

import typing as t

from ..daemon.metric_table import QUEUE_METRICS, Metric
from ..daemon.metrics import Metrics
from ..kube.resources import Call
from .controller import Controller, Stats

_CREATED = {"status": "success or failure.", "admin_access": "true when the claim asks for admin access, else false."}
_SORT = {
    "allocated": "true when it is allocated, else false.",
    "admin_access": "true when it asks for admin access, else false.",
    "source": "resource_claim_template, extended_resource, or empty. Since 1.36.",
}
_CACHE = {"resource": "Plural with group.", "namespace": "The namespace, empty for all of them."}

#: Names and labels of the original depend on the release of the cluster, as for its own dashboards.
_CLAIM_METRICS = (
    Metric(
        "resourceclaim_controller_create_attempts_total",
        "counter",
        "Attempts to make a ResourceClaim.",
        origin="kube-controller-manager up to 1.33",
    ),
    Metric(
        "resourceclaim_controller_create_failures_total",
        "counter",
        "Attempts to make a ResourceClaim that failed.",
        origin="kube-controller-manager up to 1.33",
    ),
    Metric(
        "resourceclaim_controller_creates_total",
        "counter",
        "Attempts to make a ResourceClaim.",
        _CREATED,
        origin="kube-controller-manager 1.34 to 1.36",
    ),
    Metric(
        "dynamic_resource_allocation_resourceclaim_creates_total",
        "counter",
        "Attempts to make a ResourceClaim.",
        _CREATED,
        origin="kube-controller-manager 1.37",
    ),
    Metric(
        "resourceclaim_controller_resource_claims",
        "gauge",
        "ResourceClaims in the cluster, or in the namespaces that are looked after.",
        _SORT,
        origin="kube-controller-manager 1.32 to 1.36, where the labels begin with 1.34",
    ),
    Metric(
        "resourceclaim_controller_allocated_resource_claims",
        "gauge",
        "ResourceClaims that are allocated.",
        origin="kube-controller-manager 1.32 and 1.33",
    ),
    Metric(
        "dynamic_resource_allocation_resource_claims",
        "gauge",
        "ResourceClaims in the cluster, or in the namespaces that are looked after.",
        _SORT,
        origin="kube-controller-manager 1.37",
    ),
)

CONTROLLER_METRICS = (
    *QUEUE_METRICS,
    *_CLAIM_METRICS,
    Metric(
        "rest_client_requests_total",
        "counter",
        "Requests to the API server.",
        {"code": "The HTTP status, or <error> when no answer came.", "method": "The HTTP method."},
        origin="client-go, without the label host",
    ),
    Metric(
        "nodeops_dra_api_request_duration_seconds",
        "histogram",
        "How long requests to the API server took; of a watch, until it began.",
        {"verb": "As in an RBAC rule.", "resource": "As in an RBAC rule; other for paths that are no resource."},
        (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    ),
    Metric(
        "leader_election_master_status",
        "gauge",
        "1 while this replica leads, else 0.",
        {"name": "Name of the Lease."},
        origin="client-go",
    ),
    Metric("nodeops_dra_lease_remaining_seconds", "gauge", "What is left of the term of this replica; 0 without one."),
    Metric("nodeops_dra_lease_holder_changes_total", "counter", "How often another holder of the Lease was seen."),
    Metric(
        "nodeops_dra_other_controller_evidence",
        "gauge",
        "Pieces of evidence that another ResourceClaim controller is at work or cannot be ruled out.",
    ),
    Metric("nodeops_dra_cache_synced", "gauge", "1 when the cache holds a whole list, else 0.", _CACHE),
    Metric("nodeops_dra_cache_lag_seconds", "gauge", "Time since the API server was heard of.", _CACHE),
    Metric(
        "nodeops_dra_cached_objects", "gauge", "Objects that are kept, of all namespaces together.", {"kind": "Kind."}
    ),
    Metric("nodeops_dra_keys_retrying", "gauge", "Pods, groups and claims whose last turn failed."),
    Metric("nodeops_dra_events_total", "counter", "Events on pods and groups.", {"result": "written or lost."}),
)


class ApiMetrics:
    """A ``kube.exchange.RequestObserver``."""

    def __init__(self, metrics: Metrics) -> None:
        self._requests = metrics.counter("rest_client_requests_total")
        self._seconds = metrics.histogram("nodeops_dra_api_request_duration_seconds")

    def requested(self, call: Call, status: int, seconds: float) -> None:
        """An exchange ended; ``status`` is 0 when no answer came."""
        self._requests.labels(str(status) if status else "<error>", call.method).inc()
        self._seconds.labels(call.verb, call.resource or "other").observe(seconds)

    def throttled(self, call: Call, seconds: float) -> None:
        """The daemon has no rate limit of its own."""


def export(metrics: Metrics, controller: t.Callable[[], Controller | None]) -> None:
    """Tell at each scrape what the controller of this moment tells; nothing while there is none."""

    def stats() -> Stats:
        found = controller()
        return Stats(ready=False) if found is None else found.stats()

    def samples() -> t.Sequence[t.Any]:
        found = controller()
        return () if found is None else found.samples()

    def caches(read: t.Callable[[t.Any], float]) -> t.Callable[[], dict[tuple[str, ...], float]]:
        return lambda: {(one.resource, one.namespace): read(one) for one in stats().reflectors}

    metrics.read_samples(samples)
    metrics.read_values("nodeops_dra_cache_synced", caches(lambda one: float(one.synced)))
    metrics.read_values("nodeops_dra_cache_lag_seconds", caches(lambda one: one.lag))
    metrics.read_values("nodeops_dra_cached_objects", lambda: {(kind,): n for kind, n in stats().objects.items()})
    metrics.read_values("nodeops_dra_keys_retrying", lambda: {(): stats().retrying})
    metrics.read_values("nodeops_dra_events_total", lambda: _events(stats()))


def _events(stats: Stats) -> dict[tuple[str, ...], float]:
    return {("written",): stats.events_written, ("lost",): stats.events_lost}
