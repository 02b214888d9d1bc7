# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A diagnosis as plain JSON: what the module returns and what ``--output json`` prints, one shape for both."""

from __future__ import annotations

import typing as t

from .diagnosis import Diagnosis
from .entries import Entry
from .formats import CRC, RELEASES

Json = dict[str, t.Any]


def claim_report(entry: Entry) -> Json:
    """One claim, the same keys for every format.

    ``drivers`` are those that a kubelet calls for the claim, sorted by name. ``devices`` of a driver is None while its
    answer was outstanding; a device of a file of 1.27 to 1.30 has CDI names only. ``class_name`` is None for files of
    1.31 and later.
    """
    return {
        "uid": entry.uid,
        "name": entry.fields["ClaimName"],
        "namespace": entry.fields["Namespace"],
        "pods": None if entry.fields["PodUIDs"] is None else entry.pods,
        "class_name": entry.fields.get("ClassName"),
        "drivers": [{"name": name, "devices": _devices(entry, name)} for name in entry.drivers()],
    }


def _devices(entry: Entry, driver: str) -> list[Json] | None:
    if entry.family != CRC:
        names = (entry.fields["CDIDevices"] or {}).get(driver)
        return None if names is None else [_device({"CDIDeviceIDs": [name]}) for name in names]
    devices = entry.fields["DriverState"][driver]["Devices"]
    return None if devices is None else [_device(device) for device in devices]


def _device(fields: t.Mapping[str, t.Any]) -> Json:
    return {
        "pool": fields.get("PoolName", ""),
        "device": fields.get("DeviceName", ""),
        "share_id": fields.get("ShareID"),
        "requests": list(fields.get("RequestNames") or ()),
        "cdi_devices": list(fields.get("CDIDeviceIDs") or ()),
    }


def claims_report(entries: t.Iterable[Entry]) -> list[Json]:
    """Some claims, sorted by namespace, name and UID: kubelets write them in random order."""
    reports = [claim_report(entry) for entry in entries]
    return sorted(reports, key=lambda claim: (claim["namespace"], claim["name"], claim["uid"]))


def content(form: str, entries: t.Iterable[Entry]) -> Json:
    """The logical content of a file, for a diff."""
    return {"format": form, "claims": claims_report(entries)}


def diagnosis_report(diagnosis: Diagnosis) -> Json:
    """What one look at a ``dra_manager_state`` found."""
    starts = diagnosis.starts()
    form = diagnosis.format
    verdicts = diagnosis.verdicts
    return {
        "status": diagnosis.status,
        "format": form.name if form is not None else None,
        "universal": diagnosis.universal,
        "written_by": list(form.releases) if form is not None else [],
        "readable_by": [release for release in RELEASES if verdicts[release].startswith("ok:")],
        "kubelet_verdicts": verdicts,
        "kubelet_start": {release: start.outcome for release, start in starts.items()},
        "claims_kept": {release: start.claims for release, start in starts.items()},
        "checksum": _checksum(diagnosis),
        "claims_in_file": len(diagnosis.entries) if diagnosis.found is not None else None,
        "claims_saved": len(diagnosis.entries) if diagnosis.found is None else None,
        "claims_broken": diagnosis.saved.broken if diagnosis.saved is not None else 0,
        "claims": claims_report(diagnosis.entries),
        "faults": [item.to_dict() for item in diagnosis.faults],
    }


def _checksum(diagnosis: Diagnosis) -> Json:
    reading = diagnosis.reading()
    if reading is None:
        return {"stored": None, "computed": None, "ok": None}
    known = reading.stored is not None and reading.computed is not None
    return {
        "stored": reading.stored,
        "computed": reading.computed,
        "ok": reading.stored == reading.computed or reading.fallback if known else None,
    }
