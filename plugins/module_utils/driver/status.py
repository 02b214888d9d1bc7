# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What can be told about drivers and their registration at one moment. Times are wall time in seconds."""

from __future__ import annotations

import dataclasses
import enum
import typing as t


@dataclasses.dataclass(frozen=True)
class InstanceStatus:
    """One instance. That its sockets exist, that it is registered (it is listed), and that it is connected are three
    different things: a driver that was killed leaves its files and stays registered, but is not connected.

    ``changed_at`` is when `connected` changed, for people; ``unchanged_for`` counts the seconds since, whatever is done
    to the clock of the machine.
    """

    endpoint: str
    registration_socket: str
    socket_exists: bool
    registration_socket_exists: bool
    connected: bool
    changed_at: float
    unchanged_for: float
    connections_lost: int
    registered_at: float
    advertised: tuple[str, ...]
    service: str
    health_service: str | None


@dataclasses.dataclass(frozen=True)
class DriverStatus:
    """A driver and its instances, newest first.

    ``connected``: at least one instance is. ``changed_at``: when that last changed. ``gone``: not connected for longer
    than the grace period (the kubelet removes ResourceSlices after it).
    """

    name: str
    connected: bool
    changed_at: float
    gone: bool
    instances: tuple[InstanceStatus, ...]

    @classmethod
    def of(cls, name: str, instances: t.Sequence[InstanceStatus], gone_after: float) -> DriverStatus:
        connected = any(instance.connected for instance in instances)
        times = [i.changed_at for i in instances if i.connected == connected]
        changed_at = min(times) if connected else max(times)
        gone = not connected and min(i.unchanged_for for i in instances) > gone_after
        return cls(name, connected, changed_at, gone, tuple(instances))


class RegistrationState(enum.Enum):
    """How far a registration socket has come."""

    TRYING = "trying"  # the first attempt, or another one, is under way
    REGISTERED = "registered"
    WAITING = "waiting"  # failed, tried again at next_try_at
    FOREIGN = "foreign"  # another kind of plugin, none of our business


@dataclasses.dataclass(frozen=True)
class RegistrationStatus:
    """One socket of the registry directory. ``driver`` is empty until known, ``error`` is that of the last attempt."""

    socket: str
    state: RegistrationState
    since: float
    driver: str = ""
    attempts: int = 0
    error: str = ""
    next_try_at: float | None = None
