# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The health that drivers report of their devices, and its end.

A report is good until its time-out; then the device is Unknown, whether or not anything else happens, and everybody who
listens is told once (kubelet: ``healthInfoCache``, which notices only when the next report comes).
"""

from __future__ import annotations

import asyncio
import logging
import typing as t
from dataclasses import dataclass

from ..driver.claims import DeviceHealth, Health

_MESSAGE_BYTES = 1024

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class HealthState:
    """What counts at the moment."""

    health: Health = Health.UNKNOWN
    message: str = ""


@dataclass(frozen=True)
class HealthChange:
    """A device that is now in another state than before."""

    driver: str
    pool: str
    device: str
    state: HealthState


Listener = t.Callable[[t.Sequence[HealthChange]], None]
_Key = tuple[str, str]


@dataclass(frozen=True)
class _Report:
    state: HealthState
    good_until: float


class HealthTable:
    """The present health of all devices, by the loop's clock. Use it inside a running loop; `close` it at the end."""

    def __init__(self) -> None:
        self._reports: dict[str, dict[_Key, _Report]] = {}
        self._listeners: list[Listener] = []
        self._alarm: asyncio.TimerHandle | None = None

    def listen(self, listener: Listener) -> t.Callable[[], None]:
        """Tell ``listener`` of every change from now on; it must not raise. Returns a function that ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def state_of(self, driver: str, pool: str, device: str) -> HealthState:
        """The health of one device; Unknown for one that was never reported."""
        report = self._reports.get(driver, {}).get((pool, device))
        return report.state if report is not None else HealthState()

    def update(self, driver: str, devices: t.Iterable[DeviceHealth]) -> None:
        """Take a driver's report, which lists all of its devices.

        A device that it leaves out keeps its state until the time-out of the report that had it.
        """
        now = asyncio.get_running_loop().time()
        known = self._reports.setdefault(driver, {})
        changes = []
        for one in devices:
            key = one.pool_name, one.device_name
            state = HealthState(one.health, _shortened(one.message))
            before = known.get(key)
            known[key] = _Report(state, now + one.timeout)
            if before is None or before.state != state:
                changes.append(HealthChange(driver, *key, state))
        self._tell(changes)
        self._set_alarm()

    def drop(self, driver: str) -> None:
        """The driver's stream has ended: nothing is known of its devices any more."""
        known = self._reports.pop(driver, {})
        gone = HealthState()
        self._tell([HealthChange(driver, *key, gone) for key, report in known.items() if report.state != gone])
        self._set_alarm()

    def close(self) -> None:
        """Stop the clock."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _tell(self, changes: t.Sequence[HealthChange]) -> None:
        if changes:
            for listener in tuple(self._listeners):
                listener(changes)

    def _set_alarm(self) -> None:
        self.close()
        waiting = [
            report.good_until
            for known in self._reports.values()
            for report in known.values()
            if report.state != HealthState()
        ]
        if waiting:
            self._alarm = asyncio.get_running_loop().call_at(min(waiting), self._expire)

    def _expire(self) -> None:
        self._alarm = None
        # The loop may call a little early, by the resolution of its clock.
        now = asyncio.get_running_loop().time() + 0.001
        changes = []
        for driver, known in self._reports.items():
            for key in [key for key, report in known.items() if report.good_until <= now]:
                if known.pop(key).state != HealthState():
                    changes.append(HealthChange(driver, *key, HealthState()))
        for change in changes:
            _logger.warning(
                "device health is out of date driver=%s pool=%s device=%s", change.driver, change.pool, change.device
            )
        self._tell(changes)
        self._set_alarm()


def _shortened(message: str) -> str:
    """A message of at most 1024 bytes, cut between characters, with dots in place of the rest."""
    encoded = message.encode("utf-8", "replace")
    if len(encoded) <= _MESSAGE_BYTES:
        return message
    return encoded[: _MESSAGE_BYTES - 3].decode("utf-8", "ignore") + "..."
