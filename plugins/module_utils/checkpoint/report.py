# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A diagnosis as plain JSON: what the module returns and what ``--output json`` prints, one shape for both."""

from __future__ import annotations

import itertools
import operator
import typing as t

from .claim_list import Claim
from .diagnosis import Diagnosis
from .entries import Contents, Entry, drivers_of
from .faults import Fault
from .formats import CRC, RELEASES
from .freed_memory import give_back

Json = dict[str, t.Any]


Names = dict[t.Any, t.Any]
"""What was met and is likely to come again, names and lists of names: in memory once for all claims."""


def claim_report(entry: Entry, names: Names | None = None) -> Json:
    """One claim, the same keys for every format.

    ``drivers`` are those that a kubelet calls for the claim, sorted by name. ``devices`` of a driver is None while its
    answer was outstanding; a device of a file of 1.27 to 1.30 has CDI names only. ``class_name`` is None for files of
    1.31 and later.
    """
    fields = entry.fields
    pods = fields["PodUIDs"]
    names = {} if names is None else names
    drivers = []
    for driver in drivers_of(entry.family, fields):
        devices = _devices(entry.family, fields, driver, names)
        drivers.append({"name": _once(names, driver), "devices": devices})
    return {
        "uid": fields["ClaimUID"],
        "name": fields["ClaimName"],
        "namespace": _once(names, fields["Namespace"]),
        "pods": None if pods is None else sorted(pods),
        "class_name": _once(names, fields.get("ClassName")),
        "drivers": drivers,
    }


def _devices(family: str, fields: Claim, driver: str, names: Names) -> list[Json] | None:
    if family != CRC:
        cdi = (fields["CDIDevices"] or {}).get(driver)
        return None if cdi is None else [_device(names, "", "", None, (), [name]) for name in cdi]
    devices = fields["DriverState"][driver]["Devices"]
    if devices is None:
        return None
    return [
        _device(
            names, item["PoolName"], item["DeviceName"], item["ShareID"], item["RequestNames"], item["CDIDeviceIDs"]
        )
        for item in devices
    ]


def _device(
    names: Names,
    pool: str,
    device: str,
    share_id: str | None,
    requests: t.Iterable[str] | None,
    cdi: t.Iterable[str] | None,
) -> Json:
    return {
        "pool": _once(names, pool),
        "device": device,
        "share_id": share_id,
        "requests": names.setdefault(tuple(requests or ()), list(requests or ())),
        "cdi_devices": list(cdi or ()),
    }


def _once(names: Names, name: str | None) -> t.Any:
    return names.setdefault(name, name)


def claims_report(entries: t.Iterable[Entry], like: t.Iterable[Json] = ()) -> list[Json]:
    """Some claims, sorted by namespace, name and UID: kubelets write them in random order.

    What equals a part of the same claim in ``like`` is the very same object, so that it is in memory once.
    """
    give_back()
    known = {claim["uid"]: claim for claim in like}
    names: Names = {}
    reports = [_shared(claim, known.get(claim["uid"])) for claim in (claim_report(entry, names) for entry in entries)]
    for key in ("uid", "name", "namespace"):  # one after the other: a key of all three would be as much again
        reports.sort(key=operator.itemgetter(key))
    return reports


def _shared(new: t.Any, old: t.Any) -> t.Any:
    """A value, or of one that is not wholly new the old one's parts as far as they are equal."""
    if new == old:
        return old
    if isinstance(new, dict) and isinstance(old, dict):
        return {key: _shared(value, old.get(key)) for key, value in new.items()}
    if isinstance(new, list) and isinstance(old, list):
        return [_shared(*pair) for pair in itertools.zip_longest(new, old[: len(new)])]
    return new


def faults_report(faults: t.Iterable[Fault]) -> list[Json]:
    """Some faults; what kubelets do is the same list for all faults of which they do the same."""
    names: Names = {}
    reports = []
    for item in faults:
        report = item.to_dict()
        report["kubelets"] = names.setdefault(tuple(item.effects.items()), report["kubelets"])
        reports.append(report)
    return reports


def content(contents: Contents, like: Json | None = None) -> Json:
    """What a file says, for a diff; with what ``like`` says as well it shares memory."""
    return {"format": contents.format, "claims": claims_report(contents.entries, like["claims"] if like else ())}


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
        "faults": faults_report(diagnosis.faults),
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
