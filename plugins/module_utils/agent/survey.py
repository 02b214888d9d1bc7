# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Every claim on a node with who knows it, what it waits for, and where the sources contradict each other."""

from __future__ import annotations

import typing as t

from ..cdi.claims import claim_files, orphan_findings, orphans
from ..checkpoint.entries import Entry
from ..checkpoint.findings import Finding
from ..checkpoint.report import claim_report
from ..manager.durable_claims import Record
from ..manager.planning import is_pod_uid
from ..resource.view import JsonObject
from .api_claims import ApiClaim, api_claim, is_alive, names_in_use
from .claim_request import identity
from .disagreements import contradictions, label, overlaps
from .kubelet_record import lost_record
from .record_report import container_arguments, record_report
from .sources import Sources

Json = dict[str, t.Any]


def survey(sources: Sources) -> Json:
    """``claims``, sorted by namespace, name and UID, and ``findings``, those about the sources first."""
    in_api = {one.uid: one for one in map(api_claim, sources.claims or ())}
    pods = None if sources.pods is None else {identity(pod)[0]: pod for pod in sources.pods}
    recorded = {*(sources.manager or {}), *(sources.kubelet or {})}
    recorded |= {uid for claims in sources.drivers.values() for uid in claims}
    uids = recorded | _in_cdi(sources) | _used_here(sources, in_api)
    findings = list(sources.findings)
    reports: dict[str, Json] = {}
    for uid in sorted(uids - {""}):
        report = reports[uid] = _claim(uid, sources, in_api.get(uid), pods)
        found = [*contradictions(report, sources, in_api.get(uid)), *_cdi_findings(report, sources)]
        report["findings"] = sorted({item.code for item in found})
        findings += found
    for report, overlap in overlaps(list(reports.values()), sources, in_api):
        findings.append(overlap)
        for one in (report, reports[overlap.facts["other_uid"]]):
            one["findings"] = sorted({*one["findings"], overlap.code})
    findings += _orphans(sources, reports, {*recorded, *in_api})
    objects = {identity(claim)[0]: claim for claim in sources.claims or ()}
    for uid, report in reports.items():
        report["waits_for"] = _waits_for(report, in_api.get(uid))
        report["lost_record"] = lost_record(objects[uid], in_api[uid], sources, pods) if uid in in_api else None
    ordered = sorted(reports.values(), key=lambda claim: (claim["namespace"], claim["name"], claim["uid"]))
    return {"claims": ordered, "findings": [item.to_dict() for item in findings]}


def _in_cdi(sources: Sources) -> set[str]:
    return set() if sources.cdi is None else {file.claim_uid for file in orphans(sources.cdi.files, ())}


def _used_here(sources: Sources, in_api: t.Mapping[str, ApiClaim]) -> set[str]:
    """Claims of the API that living pods of this node use, or are to use. Whose pods they are must be known."""
    if not sources.node_name or sources.pods is None:
        return set()
    names = names_in_use(sources.pods)
    living = {identity(pod)[0] for pod in sources.pods if is_alive(pod)}
    return {uid for uid, one in in_api.items() if living & set(one.reserved) or (one.namespace, one.name) in names}


def _orphans(sources: Sources, reports: t.Mapping[str, Json], known: t.Container[str]) -> list[Finding]:
    """CDI files of claims that nobody knows; none where a file with claims in it could not be read."""
    if sources.cdi is None or not sources.complete:
        return []
    asked = "no state file" if sources.claims is None else "no state file and no API server"
    found = orphan_findings(sources.cdi.files, known, asked)
    for item in found:
        report = reports[item.facts["claim_uid"]]
        report["findings"] = sorted({*report["findings"], item.code})
    return found


# One claim


def _claim(uid: str, sources: Sources, claim: ApiClaim | None, pods: t.Mapping[str, JsonObject] | None) -> Json:
    record = (sources.manager or {}).get(uid)
    entry = (sources.kubelet or {}).get(uid)
    base = _base(uid, record, entry, sources, claim)
    files = [] if sources.cdi is None else claim_files(sources.cdi.files, uid)
    return {
        **base,
        "pods": [_pod(pod_uid, pods, is_here=base["source"] != "api") for pod_uid in base["pods"] or ()],
        "in_manager": record is not None if sources.manager is not None else None,
        "in_kubelet": entry is not None if sources.kubelet is not None else None,
        "in_drivers": sorted(name for name, claims in sources.drivers.items() if uid in claims),
        "in_cdi": sorted(file.path for file in files),
        "in_api": claim is not None if sources.claims is not None else None,
    }


def _base(uid: str, record: Record | None, entry: Entry | None, sources: Sources, claim: ApiClaim | None) -> Json:
    """What the best source says: our manager, the kubelet, the API, a driver, the CDI files, in this order."""
    if record is not None:
        return {**record_report(record), "source": "manager"}
    base: Json = {"uid": uid, "name": "", "namespace": "", "pods": [], "drivers": [], "prepared": None}
    if entry is not None:
        known = claim_report(entry)
        del known["class_name"]
        base |= {**known, "source": "kubelet"}
    elif claim is not None:
        drivers = [{"name": driver, "devices": None} for driver in claim.drivers]
        base |= {"name": claim.name, "namespace": claim.namespace, "pods": sorted(claim.reserved), "drivers": drivers}
        base["source"] = "api"
    else:
        base |= _of_driver(uid, sources)
    return {**base, **container_arguments(base["drivers"])}


def _of_driver(uid: str, sources: Sources) -> Json:
    for driver, claims in sorted(sources.drivers.items()):
        if uid in claims:
            known = claims[uid]
            wanted = ("pool", "device", "share_id", "requests", "cdi_devices")
            devices = [{key: device[key] for key in wanted} for device in known["devices"]]
            names = {key: known[key] for key in ("name", "namespace", "pods")}
            return {**names, "drivers": [{"name": driver, "devices": devices}], "source": f"driver {driver}"}
    return {"source": "cdi"}


def _pod(uid: str, pods: t.Mapping[str, JsonObject] | None, *, is_here: bool) -> Json:
    """Who holds the claim. A pod that is not on this node may be alive on another; of other holders nobody knows."""
    pod = (pods or {}).get(uid)
    if pod is None:
        is_gone = pods is not None and is_here and is_pod_uid(uid)
        return {"uid": uid, "name": None, "phase": None, "alive": False if is_gone else None, "deleting_since": None}
    return {
        "uid": uid,
        "name": identity(pod)[2],
        "phase": (pod.get("status") or {}).get("phase"),
        "alive": is_alive(pod),
        "deleting_since": (pod.get("metadata") or {}).get("deletionTimestamp"),
    }


def _cdi_findings(report: Json, sources: Sources) -> list[Finding]:
    if sources.cdi is None:
        return []
    missing = sources.cdi.unresolved(report["cdi_devices"])
    return sources.cdi.check({label(report): missing}) if missing else []


# What a claim waits for


def _waits_for(report: Json, claim: ApiClaim | None) -> str:
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
    if claim is None or claim.problem is not None:
        return ""
    if not claim.allocated:
        return "allocation by the scheduler"
    if not claim.reserved:
        return "reservation for its pod"
    return "prepare on this node" if claim.drivers else ""
