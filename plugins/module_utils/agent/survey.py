# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Every claim on a node with who knows it, what it waits for, and where the sources contradict each other."""

from __future__ import annotations

import typing as t

from ..cdi.claims import claim_files, orphan_findings
from ..checkpoint.entries import Entry
from ..checkpoint.findings import Finding
from ..checkpoint.report import claim_report
from ..manager.durable_claims import Record
from ..resource.allocation import allocated_drivers, is_allocated, is_classic
from ..resource.devices import allocated_devices
from ..resource.view import JsonObject
from .claim_request import identity
from .claim_work import record_report
from .sources import Sources

Json = dict[str, t.Any]

_RELEASE = "Delete the pod, or release the claim with nodeops.dra.claim (state=unprepared)."


def survey(sources: Sources) -> Json:
    """``claims``, sorted by namespace, name and UID, and ``findings``, those about the sources first."""
    in_api = {identity(claim)[0]: claim for claim in sources.claims or ()}
    pods = None if sources.pods is None else {identity(pod)[0]: pod for pod in sources.pods}
    uids = {*sources.manager, *(sources.kubelet or {})}
    uids |= {uid for claims in sources.drivers.values() for uid in claims}
    uids |= {uid for uid, claim in in_api.items() if _concerns_node(claim, pods)}
    findings = list(sources.findings)
    reports = []
    for uid in sorted(uids - {""}):
        report = _claim(uid, sources, in_api, pods)
        found = [*_contradictions(report, sources, in_api), *_cdi_findings(report, sources)]
        report["findings"] = sorted({item.code for item in found})
        report["waits_for"] = _waits_for(report, sources, in_api.get(uid))
        findings += found
        reports.append(report)
    findings += _overlaps(reports)
    if sources.cdi is not None:
        known = {*uids, *in_api}
        findings += orphan_findings(sources.cdi.files, known)
    reports.sort(key=lambda claim: (claim["namespace"], claim["name"], claim["uid"]))
    return {"claims": reports, "findings": [item.to_dict() for item in findings]}


def _concerns_node(claim: JsonObject, pods: t.Mapping[str, JsonObject] | None) -> bool:
    """Whether a claim of the API is reserved for a pod that is here."""
    return any(entry.get("uid") in (pods or {}) for entry in _reserved(claim))


def _reserved(claim: JsonObject) -> list[JsonObject]:
    status = claim.get("status") or {}
    return [entry for entry in status.get("reservedFor") or () if isinstance(entry, t.Mapping)]


def _claim(
    uid: str, sources: Sources, in_api: t.Mapping[str, JsonObject], pods: t.Mapping[str, JsonObject] | None
) -> Json:
    record = sources.manager.get(uid)
    entry = (sources.kubelet or {}).get(uid)
    known_by_drivers = sorted(name for name, claims in sources.drivers.items() if uid in claims)
    base = _base(uid, record, entry, sources, in_api.get(uid))
    holders = [] if base["pods"] is None else base["pods"]
    files = [] if sources.cdi is None else claim_files(sources.cdi.files, uid)
    return {
        **base,
        "pods": [_pod(pod_uid, pods) for pod_uid in holders],
        "in_manager": record is not None,
        "in_kubelet": entry is not None if sources.kubelet is not None else None,
        "in_drivers": known_by_drivers,
        "in_cdi": sorted(file.path for file in files),
        "in_api": uid in in_api if sources.claims is not None else None,
    }


def _base(uid: str, record: Record | None, entry: Entry | None, sources: Sources, claim: JsonObject | None) -> Json:
    """What the best source says: our manager, the kubelet, the API, a driver, in this order."""
    if record is not None:
        return {**record_report(record), "source": "manager"}
    empty: Json = {"uid": uid, "name": "", "namespace": "", "pods": [], "drivers": [], "prepared": None}
    if entry is not None:
        known = claim_report(entry)
        del known["class_name"]
        base: Json = {**empty, **known, "source": "kubelet"}
    elif claim is not None:
        _, namespace, name = identity(claim)
        reserved = sorted(str(one.get("uid")) for one in _reserved(claim))
        drivers = [{"name": driver, "devices": None} for driver in _drivers_of(claim)]
        base = {**empty, "name": name, "namespace": namespace, "pods": reserved, "drivers": drivers, "source": "api"}
    else:
        driver, known = next((name, claims[uid]) for name, claims in sources.drivers.items() if uid in claims)
        base = {**empty, "name": known["name"], "namespace": known["namespace"], "source": f"driver {driver}"}
        base["drivers"] = [{"name": driver, "devices": None}]
    devices = [device for driver in base["drivers"] for device in driver["devices"] or ()]
    names = list(dict.fromkeys(name for device in devices for name in device["cdi_devices"]))
    return {**base, "cdi_devices": names, "device_arguments": [f"--device={name}" for name in names]}


def _drivers_of(claim: JsonObject) -> tuple[str, ...]:
    return allocated_drivers(claim) if is_allocated(claim) and not is_classic(claim) else ()


def _pod(uid: str, pods: t.Mapping[str, JsonObject] | None) -> Json:
    if pods is None:
        return {"uid": uid, "name": None, "phase": None, "alive": None}
    pod = pods.get(uid)
    if pod is None:
        return {"uid": uid, "name": None, "phase": None, "alive": False}
    phase = (pod.get("status") or {}).get("phase")
    return {"uid": uid, "name": identity(pod)[2], "phase": phase, "alive": phase not in ("Succeeded", "Failed")}


# Contradictions


def _contradictions(report: Json, sources: Sources, in_api: t.Mapping[str, JsonObject]) -> t.Iterator[Finding]:
    uid, label = report["uid"], _label(report)
    recorded = report["in_manager"] or bool(report["in_kubelet"])
    for driver, claims in sources.drivers.items():
        if recorded and driver in {one["name"] for one in report["drivers"]} and uid not in claims:
            text = f"Claim {label} is recorded as prepared by {driver}, whose own file does not know it."
            yield _finding("claim_unknown_to_driver", "error", report, text, "Prepare the claim again.", driver=driver)
        if uid in claims and not recorded:
            text = f"Driver {driver} holds claim {label}, which nothing on this node would ever unprepare."
            remedy = (
                "If no pod uses it, prepare and unprepare it once with nodeops.dra.claim, or clean up in the driver."
            )
            yield _finding("claim_only_in_driver", "error", report, text, remedy, driver=driver)
    if report["in_manager"] and report["prepared"] is False:
        text = f"Claim {label} was prepared before the last boot, or its driver has not answered yet."
        yield _finding("claim_needs_prepare", "warning", report, text, "Prepare it again with nodeops.dra.claim.")
    yield from _driver_findings(report, sources)
    if sources.claims is not None and recorded:
        yield from _api_findings(report, in_api, sources.claims)


def _driver_findings(report: Json, sources: Sources) -> t.Iterator[Finding]:
    if sources.registered is None:
        return
    for driver in report["drivers"]:
        name = driver["name"]
        if not sources.registered.get(name, False):
            state = "is registered but does not answer" if name in sources.registered else "is not registered"
            text = f"Driver {name} of claim {_label(report)} {state}: the claim can be neither prepared nor unprepared."
            remedy = "Start the driver on this node; if it is gone for good, see state=forgotten of nodeops.dra.claim."
            yield _finding("driver_missing", "error", report, text, remedy, driver=name)


def _api_findings(
    report: Json, in_api: t.Mapping[str, JsonObject], claims: t.Sequence[JsonObject]
) -> t.Iterator[Finding]:
    label = _label(report)
    alive = [pod["uid"] for pod in report["pods"] if pod["alive"]]
    claim = in_api.get(report["uid"])
    if claim is None:
        same_name = [identity(one)[0] for one in claims if identity(one)[1:] == (report["namespace"], report["name"])]
        if same_name:
            text = f"Claim {label} was made anew in the API with UID {same_name[0]}; the old one is still held here."
            yield _finding("claim_replaced", "error", report, text, _RELEASE, new_uid=same_name[0])
        elif not alive:
            text = f"Claim {label} is gone from the API and so are its pods, but it is still held here."
            yield _finding("claim_orphaned", "error", report, text, _RELEASE)
        return
    if report["pods"] and not alive and all(pod["alive"] is False for pod in report["pods"]):
        text = f"No pod that holds claim {label} is alive, but it is still held here."
        yield _finding("pods_gone", "warning", report, text, _RELEASE)
    if (claim.get("metadata") or {}).get("deletionTimestamp"):
        text = f"Claim {label} is being deleted since {claim['metadata']['deletionTimestamp']} and is still held here."
        yield _finding(
            "claim_deleting", "warning", report, text, _RELEASE, since=claim["metadata"]["deletionTimestamp"]
        )


def _cdi_findings(report: Json, sources: Sources) -> list[Finding]:
    if sources.cdi is None:
        return []
    missing = sources.cdi.unresolved(report["cdi_devices"])
    return sources.cdi.check({_label(report): missing}) if missing else []


def _overlaps(reports: t.Sequence[Json]) -> t.Iterator[Finding]:
    """Devices that two claims hold at the same time; shares of a device are told apart by their share ID."""
    held: dict[tuple[str, str, str, str | None], Json] = {}
    for report in reports:
        if not (report["in_manager"] or report["in_kubelet"]):
            continue
        for driver in report["drivers"]:
            for device in driver["devices"] or ():
                if not device["device"]:
                    continue
                key = (driver["name"], device["pool"], device["device"], device["share_id"])
                other = held.setdefault(key, report)
                if other is not report:
                    name = "/".join(key[:3])
                    text = f"Device {name} is held by claim {_label(other)} and by claim {_label(report)}."
                    remedy = "Unless one of them has admin access, release the claim whose pod is gone."
                    yield _finding("device_held_twice", "error", report, text, remedy, device=name)


# What a claim waits for


def _waits_for(report: Json, sources: Sources, claim: JsonObject | None) -> str:
    """The next step on the claim's way, in a few words; empty when it waits for nothing."""
    codes = report["findings"]
    if "driver_missing" in codes:
        return "its driver to come back"
    if "claim_replaced" in codes or "claim_orphaned" in codes or "pods_gone" in codes:
        return "unprepare"
    if report["in_manager"] or report["in_kubelet"]:
        if any(driver["devices"] is None for driver in report["drivers"]):
            return "the driver's answer to prepare"
        if "cdi_unresolved" in codes:
            return "its CDI files"
        return "prepare, again after a boot" if report["prepared"] is False else ""
    if claim is None:
        return ""
    if not is_allocated(claim):
        return "allocation by the scheduler"
    if not _reserved(claim):
        return "reservation for its pod"
    return "prepare on this node" if not is_classic(claim) and allocated_devices(claim) else ""


def _label(report: Json) -> str:
    return f"{report['namespace']}/{report['name']} ({report['uid']})"


def _finding(
    code: str, severity: t.Literal["error", "warning", "info"], report: Json, text: str, remedy: str, **facts: t.Any
) -> Finding:
    return Finding(code, severity, _label(report), text, remedy, {"claim_uid": report["uid"], **facts})
