# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the sources of a node contradict each other, or themselves: findings with stable codes, and what to do.

A claim is looked at in the form in which the survey reports it.
"""

from __future__ import annotations

import typing as t

from ..checkpoint.findings import Finding, Severity
from ..manager.planning import holders_label, is_pod_uid
from ..resource.devices import DeviceKey
from .api_claims import ApiClaim
from .sources import Sources

Json = dict[str, t.Any]

CODES: t.Mapping[str, str] = {
    "manager_state_unusable": "The state file of this collection's manager cannot be used.",
    "manager_notes_unusable": "The notes beside that file cannot be used, so its claims count as from an earlier boot.",
    "kubelet_state_unreadable": "The kubelet's state file cannot be read.",
    "kubelet_state_refused": "The kubelet does not start with its state file.",
    "driver_state_unreadable": "The file that a driver keeps for itself cannot be read.",
    "claim_unknown_to_driver": "A claim is recorded as prepared, and its driver's own file does not know it.",
    "claim_only_in_driver": "A driver holds a claim that nobody on the node has recorded: it is never unprepared.",
    "claim_not_recorded": "The API and CDI files know a claim that nobody on the node has recorded.",
    "claim_needs_prepare": "A claim was not prepared since the last boot, or its driver has not answered.",
    "claim_malformed": "The object in the API cannot be understood.",
    "claim_replaced": "The claim was made anew under its old name; the old one is still held.",
    "claim_orphaned": "The claim and its pods are gone from the API; it is still held.",
    "claim_not_in_api": "The claim is not in the API, and is held by a pod that is alive, or by something else.",
    "claim_deleting": "The claim is being deleted, and is still held.",
    "pods_gone": "No pod that holds the claim is alive; it is still held.",
    "driver_missing": "A driver of the claim is not there: it can be neither prepared nor unprepared.",
    "device_held_twice": "Two claims hold the same device.",
}
"""Every code of this file and of `sources`, with its meaning. CDI codes are in `cdi.codes`."""


def contradictions(report: Json, sources: Sources, claim: ApiClaim | None) -> t.Iterator[Finding]:
    """What is wrong about one claim. ``claim`` is what the API has under its UID."""
    recorded = report["in_manager"] or report["in_kubelet"]
    yield from _of_files(report, sources, bool(recorded))
    if report["in_manager"] and report["prepared"] is False:
        text = f"Claim {label(report)} was prepared before the last boot, or its driver has not answered yet."
        yield _finding("claim_needs_prepare", "warning", report, text, "Prepare it again with nodeops.dra.claim.")
    yield from _of_drivers(report, sources)
    if claim is not None and claim.problem is not None:
        yield _finding("claim_malformed", "error", report, claim.problem.message, claim.problem.hint)
    if sources.claims is not None and recorded:
        yield from _of_api(report, sources, claim)


def _of_files(report: Json, sources: Sources, recorded: bool) -> t.Iterator[Finding]:
    uid = report["uid"]
    for driver, claims in sources.drivers.items():
        is_ours = driver in {one["name"] for one in report["drivers"]}
        if recorded and is_ours and uid not in claims and driver not in sources.damaged:
            text = f"Claim {label(report)} is recorded as prepared by {driver}, whose own file does not know it."
            yield _finding("claim_unknown_to_driver", "error", report, text, "Prepare the claim again.", driver=driver)
        if uid in claims and not recorded and sources.complete:
            text = f"Driver {driver} holds claim {label(report)}, which nothing on this node would ever unprepare."
            remedy = (
                "If no pod uses it, prepare and unprepare it once with nodeops.dra.claim, or clean up in the driver."
            )
            yield _finding("claim_only_in_driver", "error", report, text, remedy, driver=driver)
    if report["in_cdi"] and report["in_api"] and not recorded and not report["in_drivers"] and sources.complete:
        text = f"Claim {label(report)} has CDI files here, and nobody on this node has recorded it."
        remedy = "Its driver may be at work on it now. If not, prepare and unprepare it once with nodeops.dra.claim."
        yield _finding("claim_not_recorded", "warning", report, text, remedy, paths=report["in_cdi"])


def _of_drivers(report: Json, sources: Sources) -> t.Iterator[Finding]:
    if sources.registered is None or not (report["in_manager"] or report["in_kubelet"] or report["in_api"]):
        return
    for driver in report["drivers"]:
        name = driver["name"]
        if not sources.registered.get(name, False):
            state = "is registered but does not answer" if name in sources.registered else "is not registered"
            text = f"Driver {name} of claim {label(report)} {state}: the claim can be neither prepared nor unprepared."
            way_out = "see state=forgotten of nodeops.dra.claim"
            if report["in_kubelet"] and not report["in_manager"]:
                way_out = "stop the kubelet and take the claim out of its file with nodeops.dra.checkpoint"
            remedy = f"Start the driver on this node; if it is gone for good, {way_out}."
            yield _finding("driver_missing", "error", report, text, remedy, driver=name)


def _of_api(report: Json, sources: Sources, claim: ApiClaim | None) -> t.Iterator[Finding]:
    name, remedy = label(report), _release(report, sources)
    alive = [pod["uid"] for pod in report["pods"] if pod["alive"]]
    others = [pod["uid"] for pod in report["pods"] if not is_pod_uid(pod["uid"])]
    if claim is None:
        own_name = (report["namespace"], report["name"])
        new = [one["metadata"]["uid"] for one in sources.claims or () if _name_of(one) == own_name]
        if new:
            text = f"Claim {name} was made anew in the API with UID {new[0]}; the old one is still held here."
            yield _finding("claim_replaced", "error", report, text, remedy, new_uid=new[0])
        elif alive:
            text = f"Claim {name} is gone from the API, and pod {alive[0]} that holds it is alive."
            yield _finding("claim_not_in_api", "warning", report, text, "Delete the pod, or make the claim again.")
        elif others:
            text = (
                f"Claim {name} is not in the API, and {holders_label(others)} has it, of which the API knows nothing."
            )
            yield _finding("claim_not_in_api", "info", report, text, f"When it is done: {remedy}")
        else:
            text = f"Claim {name} is gone from the API and so are its pods, but it is still held here."
            yield _finding("claim_orphaned", "error", report, text, remedy)
        return
    if report["pods"] and not alive and all(pod["alive"] is False for pod in report["pods"]):
        text = f"No pod that holds claim {name} is alive, but it is still held here."
        yield _finding("pods_gone", "warning", report, text, remedy)
    if claim.deleting_since:
        text = f"Claim {name} is being deleted since {claim.deleting_since} and is still held here."
        yield _finding("claim_deleting", "warning", report, text, remedy, since=claim.deleting_since)


def _name_of(thing: t.Mapping[str, t.Any]) -> tuple[str, str]:
    metadata = thing.get("metadata") or {}
    return metadata.get("namespace", ""), metadata.get("name", "")


def _release(report: Json, sources: Sources) -> str:
    if report["in_manager"]:
        return "Delete the pod, or release the claim with nodeops.dra.claim (state=unprepared)."
    return (
        "The kubelet unprepares it once its pods are deleted and its drivers answer. If no kubelet will run here "
        f"again, release it with nodeops.dra.claim (state=unprepared, state_directory={sources.kubelet_root})."
    )


def overlaps(
    reports: t.Sequence[Json], sources: Sources, in_api: t.Mapping[str, ApiClaim]
) -> t.Iterator[tuple[Json, Finding]]:
    """Devices that two claims hold at the same time, with the second of the claims.

    Shares of a device are told apart by their share ID. Admin access excludes nobody; the kubelet does not record it,
    so between its claims only the API can tell.
    """
    held: dict[DeviceKey, Json] = {}
    for report in reports:
        if not (report["in_manager"] or report["in_kubelet"]):
            continue
        free = _admin_devices(report, sources, in_api)
        for driver in report["drivers"]:
            for device in driver["devices"] or ():
                key = (driver["name"], device["pool"], device["device"], device["share_id"])
                if not device["device"] or key in free:
                    continue
                other = held.setdefault(key, report)
                if other is not report:
                    sure = all(one["in_manager"] for one in (other, report)) or sources.claims is not None
                    yield report, _overlap(other, report, "/".join(key[:3]), sure)


def _overlap(one: Json, other: Json, device: str, sure: bool) -> Finding:
    text = f"Device {device} is held by claim {label(one)} and by claim {label(other)}."
    remedy = "Release the claim whose pod is gone; see which one with_api knows no pod of."
    if not sure:
        remedy = "Compare with the API (with_api): one may have admin access. Else release the one whose pod is gone."
    severity: Severity = "error" if sure else "warning"
    return _finding("device_held_twice", severity, other, text, remedy, device=device, other_uid=one["uid"])


def _admin_devices(report: Json, sources: Sources, in_api: t.Mapping[str, ApiClaim]) -> frozenset[DeviceKey]:
    record = (sources.manager or {}).get(report["uid"])
    claim = in_api.get(report["uid"])
    noted = record.note.admin_devices if record is not None else frozenset()
    return noted | (claim.admin_devices if claim is not None else frozenset())


def label(report: Json) -> str:
    """How a person is told which claim is meant."""
    return f"{report['namespace']}/{report['name']} ({report['uid']})" if report["name"] else str(report["uid"])


def _finding(code: str, severity: Severity, report: Json, text: str, remedy: str, **facts: t.Any) -> Finding:
    return Finding(code, severity, label(report), text, remedy, {"claim_uid": report["uid"], **facts})
