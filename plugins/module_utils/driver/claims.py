# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What goes to a driver and what comes back, in one form for every gRPC generation."""

from __future__ import annotations

import dataclasses
import enum
import typing as t

if t.TYPE_CHECKING:
    from ..checkpoint.errors import DraError


@dataclasses.dataclass(frozen=True)
class ResourceHandle:
    """One handle of classic DRA (1.27 to 1.30): status.allocation.resourceHandles[].

    ``structured_data`` is the JSON object of 1.30 (``structuredData``); when it is set, drivers get it instead of
    ``data``. An empty ``driver_name`` means the driver that is called.
    """

    driver_name: str
    data: str = ""
    structured_data: t.Mapping[str, t.Any] | None = None


@dataclasses.dataclass(frozen=True)
class ClaimRef:
    """A claim as a driver is told about it. Handles exist in classic DRA only; those of other drivers are not sent."""

    uid: str
    namespace: str
    name: str
    resource_handles: tuple[ResourceHandle, ...] = ()

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} (UID {self.uid})"


@dataclasses.dataclass(frozen=True)
class Device:
    """One prepared device. Drivers older than 1.31 name no pool, device or request: those fields are empty then.

    Empty ``request_names`` means every request of the claim. ``share_id`` None means not shared.
    """

    pool_name: str
    device_name: str
    request_names: tuple[str, ...] = ()
    cdi_device_ids: tuple[str, ...] = ()
    share_id: str | None = None


@dataclasses.dataclass(frozen=True)
class PrepareResult:
    """One claim of a prepare call: ``devices`` (maybe none at all) on success, else ``error``."""

    devices: tuple[Device, ...] | None
    error: DraError | None = None


@dataclasses.dataclass(frozen=True)
class UnprepareResult:
    """One claim of an unprepare call; ``error`` None is success."""

    error: DraError | None = None


class Health(enum.Enum):
    """Health of a device, spelt as in the pod status."""

    UNKNOWN = "Unknown"
    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"


@dataclasses.dataclass(frozen=True)
class DeviceHealth:
    """One device of a health report. ``timeout``: seconds for which the report holds, counted from its receipt.

    The time stamp that drivers send is left out: the kubelet uses the time of receipt, and so do we.
    """

    pool_name: str
    device_name: str
    health: Health
    timeout: float
    message: str = ""
