# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Resource handles of classic DRA (1.26 to 1.30): what a driver's control plane left for its node part."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from .allocation import check_allocated, read_driver
from .ownership import claim_view
from .view import JsonObject, Path


@dataclass(frozen=True)
class ResourceHandle:
    """Opaque data for one driver. ``structured`` is ``structuredData`` of 1.30, which is sent instead of ``data``."""

    driver: str
    data: str = ""
    structured: JsonObject | None = None


def resource_handles(claim: JsonObject) -> tuple[ResourceHandle, ...]:
    """The handles of an allocated classic claim, with the driver of each filled in (kubelet 1.27: prepareResources).

    A handle without a driver belongs to ``status.driverName``. A claim without handles has one implied handle for that
    driver; so has a claim of 1.26, whose single handle is a string. Raises ``NotAllocatedError`` or
    ``MalformedObjectError``.
    """
    check_allocated(claim)
    view = claim_view(claim)
    listed = ("status", "allocation", "resourceHandles")
    handles = []
    for index, _entry in enumerate(view.entries(*listed)):
        at: Path = (*listed, index)
        own = view.text(*at, "driverName")
        driver = read_driver(view, (*at, "driverName") if own else ("status", "driverName"))
        structured = view.get(*at, "structuredData")
        if structured is not None:
            structured = copy.deepcopy(view.mapping(*at, "structuredData"))
        handles.append(ResourceHandle(driver, view.text(*at, "data"), structured))
    if handles:
        return tuple(handles)
    driver = read_driver(view, ("status", "driverName"))
    return (ResourceHandle(driver, view.text("status", "allocation", "resourceHandle")),)
