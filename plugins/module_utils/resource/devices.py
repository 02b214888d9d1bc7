# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The devices of an allocation, and whether two claims were given the same one."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .allocation import read_driver
from .ownership import claim_view
from .requests import admin_requests
from .view import JsonObject, Path

#: (driver, pool, device, share ID); the share ID is None for a device that is not shared.
DeviceKey = tuple[str, str, str, t.Optional[str]]


@dataclass(frozen=True)
class AllocatedDevice:
    """One entry of ``status.allocation.devices.results``. ``request`` may be ``request/subrequest``."""

    request: str
    driver: str
    pool: str
    device: str
    share_id: str | None = None
    admin_access: bool = False

    @property
    def key(self) -> DeviceKey:
        """What must not be given out twice."""
        return (self.driver, self.pool, self.device, self.share_id)

    @property
    def main_request(self) -> str:
        """The request without the chosen alternative: the only name that a container can use."""
        return self.request.split("/", 1)[0]

    def __str__(self) -> str:
        text = f"{self.driver}/{self.pool}/{self.device}"
        return f"{text} (share {self.share_id})" if self.share_id else text


def allocated_devices(claim: JsonObject) -> tuple[AllocatedDevice, ...]:
    """The devices of a structured claim in the order of its results, none for a classic or unallocated one.

    1.31 does not repeat ``adminAccess`` in the results; there the request decides.
    """
    view = claim_view(claim)
    listed = ("status", "allocation", "devices", "results")
    admin = admin_requests(view, ("spec",))
    devices = []
    for index, entry in enumerate(view.entries(*listed)):
        at: Path = (*listed, index)
        request = view.text(*at, "request")
        device = view.required_text(*at, "device")
        if "/" in device:
            raise view.malformed((*at, "device"), "a device name without a slash", device)
        devices.append(
            AllocatedDevice(
                request=request,
                driver=read_driver(view, (*at, "driver")),
                pool=view.required_text(*at, "pool"),
                device=device,
                share_id=view.text(*at, "shareID") or None,
                admin_access=view.flag(*at, "adminAccess")
                or ("adminAccess" not in entry and request.split("/", 1)[0] in admin),
            )
        )
    return tuple(devices)


def exclusive_keys(devices: t.Iterable[AllocatedDevice]) -> frozenset[DeviceKey]:
    """Keys of the devices that nobody else may hold: all but those with admin access."""
    return frozenset(device.key for device in devices if not device.admin_access)


def overlapping(wanted: t.Iterable[AllocatedDevice], held: t.Container[DeviceKey]) -> tuple[AllocatedDevice, ...]:
    """Those of ``wanted`` that another claim holds (its ``exclusive_keys``). Admin access overlaps nothing."""
    return tuple(device for device in wanted if not device.admin_access and device.key in held)
