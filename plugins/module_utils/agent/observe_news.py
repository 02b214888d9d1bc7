# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Who is told what an observing agent sees: watchers of the local API, the metrics, and the Node object."""

from __future__ import annotations

import logging
import typing as t

from ..checkpoint.errors import DraError
from ..daemon.metrics import Metrics
from ..driver.registry import DriverRegistry
from .events import EventLog
from .kubelet_state import KubeletState
from .node_events import REASONS, NodeEvents
from .state_events import StateEvents

log = logging.getLogger(__name__)


class ObserveNews:
    """``node_events`` is None where nothing is written on the Node object."""

    def __init__(self, metrics: Metrics, node_events: NodeEvents | None = None) -> None:
        self.events = EventLog()
        self._node_events = node_events
        self._writes = metrics.counter("nodeops_dra_ring_writes_total")
        self._health = metrics.counter("nodeops_dra_device_health_changes_total")
        self._of_state: StateEvents | None = None
        self._connected: set[str] = set()
        self._gone: set[str] = set()

    def state_changed(self, before: KubeletState, now: KubeletState) -> None:
        """The kubelet's file has another content. Claims in the first one that is told are no news."""
        if self._of_state is None:
            self._of_state = StateEvents(now)
        for kind, subject, text in self._of_state.of(before, now):
            log.info("%s subject=%s text=%s", kind, subject, text)
            self._add(kind, subject, text)

    def copied(self, path: str, state: KubeletState) -> None:
        """A copy was made."""
        self._writes.labels("success").inc()
        self._add("ring_copy", path, f"{len(state.claims)} claims")

    def failed(self, _error: DraError) -> None:
        """A copy could not be made; the findings say why."""
        self._writes.labels("failure").inc()

    def health_changed(self, driver: str, _pool: str, _device: str, health: str) -> None:
        """A device is in another state than before."""
        self._health.labels(driver, health).inc()

    async def follow_drivers(self, registry: DriverRegistry, changed: t.Callable[[], None]) -> None:
        """Tell of drivers that come and go, until the registry ends; ``changed`` is called each time."""
        with registry.subscribe() as events:
            self._drivers_are(registry)
            async for event in events:
                self._add(f"driver_{event.kind.value}", event.driver, event.endpoint)
                self._drivers_are(registry)
                changed()

    def _drivers_are(self, registry: DriverRegistry) -> None:
        """A driver is gone when none of its instances can be reached any more; one of several may go unnoticed."""
        now = {one.name for one in registry.drivers() if one.connected}
        for name in sorted(self._connected - now):
            self._gone.add(name)
            self._tell_node("driver_gone", f"The DRA driver {name} cannot be reached any more.")
        for name in sorted(self._gone & now):
            self._gone.discard(name)
            self._tell_node("driver_returned", f"The DRA driver {name} can be reached again.")
        self._connected = now

    def _add(self, kind: str, subject: str, text: str) -> None:
        self.events.add(kind, subject, text)
        if kind in REASONS:
            self._tell_node(kind, f"{subject}: {text}")

    def _tell_node(self, kind: str, message: str) -> None:
        if self._node_events is not None:
            self._node_events.tell(kind, message)
