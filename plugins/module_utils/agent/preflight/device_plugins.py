# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Device plugins of the node, and whether one hands out the devices of a DRA driver too.

Read from the file in which the kubelet records them. (kubelet: devicemanager checkpoint)
"""

from __future__ import annotations

import collections
import json
import os
import typing as t

from ...checkpoint.file_errors import shown
from ...checkpoint.findings import Finding
from .codes import finding
from .node import Node, UnreadableError

RECORD: t.Final = "device-plugins/kubelet_internal_checkpoint"
#: Drivers that share a vendor with device plugins, and no devices: this one connects the nodes of a job.
OTHER_DEVICES: t.Final = frozenset(("compute-domain.nvidia.com",))
Json = dict[str, t.Any]


def device_plugins(path: str) -> list[Json]:
    """Each extended resource of a device plugin: its name, how many devices it has, how many pods hold some of them.

    Sorted by name; empty without a record. UnreadableError when the record is not what a kubelet writes.
    """
    text = Node().text(path)
    if not (text or "").strip():
        return []
    try:
        data = json.loads(text or "")["Data"]
        registered = {str(name): len(ids or ()) for name, ids in (data.get("RegisteredDevices") or {}).items()}
        held = collections.Counter(
            name
            for name, _pod in {(str(one["ResourceName"]), one["PodUID"]) for one in data.get("PodDeviceEntries") or ()}
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UnreadableError(f"{shown(path)} is not what a kubelet writes.") from None
    names = sorted({*registered, *held})
    return [{"resource": name, "devices": registered.get(name, 0), "pods": held[name]} for name in names]


def is_of_driver(resource: str, driver: str) -> bool:
    """Whether the vendor of an extended resource (``nvidia.com/gpu``) is that of a driver (``gpu.nvidia.com``)."""
    vendor = resource.partition("/")[0]
    return "." in vendor and (driver == vendor or driver.endswith(f".{vendor}") or vendor.endswith(f".{driver}"))


def overlaps(path: str, plugins: t.Sequence[Json], drivers: t.Iterable[str]) -> t.Iterator[Finding]:
    """One finding for each driver beside which a device plugin of the same vendor has devices."""
    for driver in sorted(set(drivers) - OTHER_DEVICES):
        same = [one for one in plugins if one["devices"] and is_of_driver(one["resource"], driver)]
        if same:
            listed = ", ".join(f"{shown(one['resource'])} ({one['devices']} devices)" for one in same)
            yield finding(
                "device_plugin_overlap",
                shown(path),
                f"The driver {shown(driver)} and a device plugin of its vendor both hand out devices of this node: "
                f"{listed}. If they are the same ones, each is given away twice.",
                "Drain the node and remove the device plugin from it, or accept this finding if the devices differ.",
                driver=shown(driver),
                resources=[shown(one["resource"]) for one in same],
                pods=sum(one["pods"] for one in same),
            )


def record_path(root: str) -> str:
    """Where a kubelet with that root directory records its device plugins."""
    return os.path.join(root, RECORD)
