# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Tells log, metrics and watchers what the health of devices has become."""

from __future__ import annotations

import logging
import typing as t

from ..manager.device_health import HealthChange
from .events import EventLog

log = logging.getLogger(__name__)


class HealthNews:
    """A listener of a health table. ``count`` is told driver, pool, device and health of each change."""

    def __init__(self, events: EventLog, count: t.Callable[[str, str, str, str], None]) -> None:
        self._events, self._count = events, count

    def __call__(self, changes: t.Sequence[HealthChange]) -> None:
        for change in changes:
            health = change.state.health.value
            device = f"{change.driver}/{change.pool}/{change.device}"
            log.info("device health changed device=%s health=%s message=%s", device, health, change.state.message)
            self._count(change.driver, change.pool, change.device, health)
            self._events.add("device_health", device, f"{health} {change.state.message}".rstrip())
