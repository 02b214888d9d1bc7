# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Every duration of this layer in one place, in seconds. Defaults are the kubelet's where it has one."""

from __future__ import annotations

import dataclasses
import typing as t


@dataclasses.dataclass(frozen=True)
class Timings:
    """Durations, in seconds. Tests and special setups change single ones."""

    call: float = 45.0  # deadline of prepare and unprepare, when the caller gives none
    grace: float = 1.0  # how long after a gRPC deadline we stop waiting for gRPC itself
    connect_wait: float = 2.0  # how long a call waits for a driver that is not connected at that moment
    reconnect: float = 0.5  # longest pause between two attempts to connect; gRPC's own default is 120
    connecting: float = 5.0  # how long one attempt to connect may take: a busy driver is slow to accept
    idle: float | None = None  # close an unused connection after this time; None: never
    dial: float = 10.0  # registration: time to connect
    get_info: float = 1.0  # registration: deadline of GetInfo
    notify: float = 5.0  # registration: deadline of NotifyRegistrationStatus
    backoff_first: float = 0.5  # registration: pause after the first failure, then doubled
    backoff_max: float = 122.0  # registration: longest pause
    rescan: float = 5.0  # look at the whole registry directory this often, in case a file event was lost
    poll: float = 1.0  # the same where file events are not available
    settle: float = 3.0  # how long a look-up right after the start waits for the first look at all sockets
    health_retry: float = 5.0  # pause before a health stream that ended is opened again
    gone_after: float = 30.0  # without a connection for this long, a driver counts as gone


class Backoff:
    """Doubling pauses: first, first * 2, ... up to a longest one."""

    def __init__(self, timings: Timings) -> None:
        self._first, self._max = timings.backoff_first, timings.backoff_max
        self.failures = 0

    def next(self) -> float:
        """The pause after one more failure."""
        pause = min(self._max, self._first * 2.0 ** min(self.failures, 32))
        self.failures += 1
        return pause


class Clock(t.Protocol):
    """Wall time in seconds, for times that people see. Deadlines use the event loop's clock."""

    def __call__(self) -> float: ...
