# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the kubelet of this node has recorded, and what of a request it therefore forbids.

Two masters of one claim take a device from a container that uses it. So what the kubelet holds is left to the kubelet
unless somebody insists.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import typing as t

from ..checkpoint import kubelet
from ..checkpoint.diagnosis import diagnose
from ..checkpoint.entries import Entry
from ..checkpoint.errors import DraError
from ..checkpoint.file_errors import MissingFileError
from ..checkpoint.findings import Finding
from ..checkpoint.kubelet_root import STATE_FILE_NAME
from ..checkpoint.report import claim_report
from ..checkpoint.store import read_file
from ..driver.claims import ClaimRef
from ..manager.driver_calls import UNPREPARE_METHOD, CallFailure, DriverCalls, Drivers
from ..manager.observer import Observer
from ..manager.planning import PlannedClaim, claim_ref
from ..resource.handles import ResourceHandle
from .claim_request import ClaimRequest, identity


@dataclasses.dataclass(frozen=True)
class KubeletClaims:
    """The claims in the kubelet's file, and the kubelet that runs on that directory now, if one does."""

    root: str
    path: str
    entries: tuple[Entry, ...] = ()
    running: kubelet.KubeletProcess | None = None


def read_kubelet_claims(request: ClaimRequest) -> KubeletClaims:
    """What the kubelet of this node has recorded. Raises DraError where our manager would write into its file.

    Without a running kubelet its directory may be ours: then the file's claims are our manager's, and none are given.
    """
    root = request.kubelet_root
    path = os.path.join(root, STATE_FILE_NAME)
    running = kubelet.kubelet_on_root(root)
    if os.path.realpath(request.state_directory) == os.path.realpath(root):
        if running is not None:
            raise DraError(
                f"Nothing is done: {path} is the state file of kubelet pid {running.pid}, which would write over it.",
                f"Give another state_directory, or stop the kubelet first. {kubelet.how_to_stop(running)}",
                file=path,
                kubelet=running.as_facts(),
            )
        return KubeletClaims(root, path)
    try:
        data = read_file(path, follow=True).data
    except MissingFileError:
        return KubeletClaims(root, path, (), running)
    return KubeletClaims(root, path, tuple(entry for entry in diagnose(data).entries if entry.uid), running)


def refuse_held_devices(held: KubeletClaims, plans: t.Iterable[PlannedClaim]) -> None:
    """Raise DraError if a claim was given a device that the kubelet holds for another one."""
    owners: dict[tuple[str, str, str, str | None], Entry] = {}
    for entry in held.entries:
        for driver in claim_report(entry)["drivers"]:
            for device in driver["devices"] or ():
                if device["device"]:
                    owners[driver["name"], device["pool"], device["device"], device["share_id"]] = entry
    for plan in plans:
        for device in plan.allocated:
            owner = None if device.admin_access else owners.get(device.key)
            if owner is not None and owner.uid != plan.uid:
                raise DraError(
                    f"ResourceClaim {plan.full_name} ({plan.uid}) was given device {device}, which the kubelet still "
                    f"holds for ResourceClaim {owner.label}, says {held.path}.",
                    "The device is free once the kubelet has unprepared that claim. Use force if the other claim has "
                    "admin access, or if the file is known to be wrong.",
                    claim=plan.full_name,
                    claim_uid=plan.uid,
                    device=str(device),
                    held_uid=owner.uid,
                )


def only_kubelet_has(held: KubeletClaims, request: ClaimRequest, recorded: t.Collection[str]) -> list[Entry]:
    """The claims that are meant and that our manager, which has ``recorded`` those it was meant, does not know."""
    return [entry for entry in _meant(held, request, recorded) if entry.uid not in recorded]


def refuse_to_unprepare(held: KubeletClaims, request: ClaimRequest, recorded: t.Collection[str]) -> None:
    """Raise DraError if the kubelet would have to agree, and nobody said that it need not.

    Containers outlive their kubelet, so what it holds is in use although it does not run.
    """
    meant = _meant(held, request, recorded)
    if held.running is not None:
        who = f"kubelet pid {held.running.pid} holds"
        way = "Delete the pods and let the kubelet unprepare, or use force if its file is known to be wrong."
    else:
        who = "the kubelet, which does not run now, has recorded"
        way = (
            "Start it: it unprepares what no pod uses. If it will never run again, work on its file with "
            f"state_directory={held.root}, or use force to tell the drivers alone."
        )
    if meant and not request.force:
        raise DraError(f"Nothing is unprepared: {who} {_listed(meant)}, says {held.path}.", way, **_facts(held, meant))


def refuse_to_forget(held: KubeletClaims, request: ClaimRequest, recorded: t.Collection[str]) -> None:
    """Raise DraError if a claim is meant that only the kubelet could forget."""
    meant = only_kubelet_has(held, request, recorded)
    if meant:
        raise DraError(
            f"Nothing is forgotten: only the kubelet has recorded {_listed(meant)}, says {held.path}.",
            "Stop the kubelet, take the claim out of its file with nodeops.dra.checkpoint (drop_claims), and start it.",
            **_facts(held, meant),
        )


def _meant(held: KubeletClaims, request: ClaimRequest, recorded: t.Collection[str]) -> list[Entry]:
    wanted = [identity(claim) for claim in request.claims]
    pod_uid = identity(request.pod)[0] if request.pod is not None else ""

    def is_meant(entry: Entry) -> bool:
        if request.pod is not None:
            return pod_uid in entry.pods
        name = (entry.fields["Namespace"], entry.fields["ClaimName"])
        return any(uid == entry.uid or (not uid and name == (namespace, own)) for uid, namespace, own in wanted)

    return [entry for entry in held.entries if entry.uid in recorded or is_meant(entry)]


def _listed(entries: t.Iterable[Entry]) -> str:
    return ", ".join(f"{entry.label} for pods {', '.join(entry.pods) or 'none'}" for entry in entries)


def _facts(held: KubeletClaims, entries: t.Sequence[Entry]) -> dict[str, t.Any]:
    pods = sorted({pod for entry in entries for pod in entry.pods})
    return {"file": held.path, "claim_uids": sorted(entry.uid for entry in entries), "pods": pods}


async def unprepare_directly(drivers: Drivers, entries: t.Sequence[Entry], timeout: float) -> None:
    """Tell the drivers of claims that the kubelet has recorded. Its file stays as it is. Raises DraError."""
    wanted: dict[str, list[ClaimRef]] = {}
    for entry in entries:
        for driver in entry.drivers():
            namespace, name = entry.fields["Namespace"], entry.fields["ClaimName"]
            ref = claim_ref(entry.uid, namespace, name, driver, _handles(entry))
            wanted.setdefault(driver, []).append(ref)
    outcomes = await DriverCalls(drivers, Observer()).run(
        UNPREPARE_METHOD,
        wanted,
        deadline=asyncio.get_running_loop().time() + timeout,
        before=lambda _driver, _ref: None,
    )
    labels = {entry.uid: entry.label for entry in entries}
    failures = [
        (driver, uid, outcome)
        for driver, by_claim in sorted(outcomes.items())
        for uid, outcome in by_claim.items()
        if isinstance(outcome, CallFailure)
    ]
    if failures:
        raise DraError(
            "; ".join(f"ResourceClaim {labels[uid]} is still held: driver {one}: {f.text}" for one, uid, f in failures)
            + ".",
            next((f.hint for _driver, _uid, f in failures if f.hint), "The driver's own log says more."),
            failures=[{"driver": one, "claim_uid": uid, "text": f.text} for one, uid, f in failures],
        )


def _handles(entry: Entry) -> tuple[ResourceHandle, ...]:
    own = entry.fields.get("DriverName", "")
    return tuple(
        ResourceHandle(one.get("driverName") or own, one.get("data") or "", one.get("structuredData"))
        for one in entry.fields.get("ResourceHandles") or ()
    )


def still_recorded(held: KubeletClaims, uids: t.Container[str]) -> list[Finding]:
    """What to know when drivers were told to unprepare claims, some of which the kubelet may have in its file."""
    return [
        Finding(
            "kubelet_still_records",
            "warning",
            entry.label,
            f"The drivers of claim {entry.label} were told to unprepare it, and {held.path} still has it.",
            "The kubelet tells them once more when the claim's pods go; until then it takes the claim for prepared.",
            {"claim_uid": entry.uid, "file": held.path},
        )
        for entry in held.entries
        if entry.uid in uids
    ]
