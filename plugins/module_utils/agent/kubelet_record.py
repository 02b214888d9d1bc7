# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a kubelet's state file should have for a claim that it lost, from the API, drivers' own files and CDI specs.

Pure.

A kubelet without the entry never tells the driver to unprepare, and starts containers again without their devices.
"""

from __future__ import annotations

import typing as t

from ..cdi.claims import claim_files
from ..checkpoint.errors import DraError
from ..resource.devices import AllocatedDevice, allocated_devices
from ..resource.view import JsonObject
from .api_claims import ApiClaim, is_alive
from .sources import Sources

Json = dict[str, t.Any]
_DEVICE = ("pool", "device", "share_id", "requests", "cdi_devices")


def lost_record(
    claim: JsonObject, one: ApiClaim, sources: Sources, pods: t.Mapping[str, JsonObject] | None
) -> Json | None:
    """The entry as ``add_claims`` of the module ``checkpoint`` takes it; None where none is missing, or nobody knows.

    It is missing if the claim is reserved for living pods of this node and was prepared here: its devices are in CDI
    files or in the file of its driver, or one of the pods runs. Devices are None for a driver whose answer cannot be
    told any more; the kubelet then asks it again.
    """
    if not sources.node_name or pods is None or sources.kubelet is None or one.problem is not None:
        return None
    if one.uid in sources.kubelet or one.uid in (sources.manager or {}) or not (one.allocated and one.drivers):
        return None
    living = [uid for uid in one.reserved if uid in pods and is_alive(pods[uid])]
    names = _cdi_names(sources, one.uid)
    runs = any((pods[uid].get("status") or {}).get("phase") == "Running" for uid in living)
    if not living or not (runs or names or any(one.uid in claims for claims in sources.drivers.values())):
        return None
    try:
        results = allocated_devices(claim)
    except DraError:
        results = ()
    drivers = [{"name": name, "devices": _devices(name, one.uid, results, names, sources)} for name in one.drivers]
    return {
        "uid": one.uid,
        "name": one.name,
        "namespace": one.namespace,
        "pods": sorted(living),
        "drivers": sorted(drivers, key=lambda driver: driver["name"]),
    }


def _cdi_names(sources: Sources, uid: str) -> list[str]:
    if sources.cdi is None:
        return []
    return sorted({name for file in claim_files(sources.cdi.files, uid) for name in file.devices})


def _devices(
    driver: str, uid: str, results: t.Sequence[AllocatedDevice], names: t.Sequence[str], sources: Sources
) -> list[Json] | None:
    """What the driver said in its own file, else the allocation with CDI names that can only be its devices' own."""
    known = sources.drivers.get(driver, {}).get(uid)
    if known is not None and known["devices"]:
        return [{key: device[key] for key in _DEVICE} for device in known["devices"]]
    found = []
    for result in results:
        if result.driver != driver:
            continue
        own = list(names) if len(results) == 1 else [name for name in names if _is_of(name, uid, result.device)]
        if not own:
            return None
        found.append(
            {
                "pool": result.pool,
                "device": result.device,
                "share_id": result.share_id,
                "requests": [result.main_request] if result.request else [],
                "cdi_devices": own,
            }
        )
    return found or None


def _is_of(name: str, uid: str, device: str) -> bool:
    """Whether a CDI name is that of a device as drivers name those of a claim: its UID, then the device."""
    return name.rpartition("=")[2] in (f"{uid}-{device}", f"{uid}_{device}")
