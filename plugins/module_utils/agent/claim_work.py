# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Preparing, unpreparing and forgetting claims with a manager in this process: planned first, then done.

The plan is the same with and without check mode, so both report the same calls and the same change.
"""

from __future__ import annotations

import contextlib
import os
import typing as t

from ..checkpoint import kubelet
from ..checkpoint.claims import Device
from ..checkpoint.diagnosis import diagnose
from ..checkpoint.errors import DraError
from ..checkpoint.file_errors import MissingFileError
from ..checkpoint.store import StateDirectory, read_file
from ..driver.registry import DriverRegistry
from ..manager.boot import current_boot_id
from ..manager.durable_claims import Record
from ..manager.loading import load
from ..manager.manager import DraManager
from ..manager.opening import Settings
from .claim_request import FORGOTTEN, PREPARED, ClaimRequest, Fetch, Wanted, identity, plan

Json = dict[str, t.Any]
Records = t.Mapping[str, Record]

PREPARE_CALL, UNPREPARE_CALL = "NodePrepareResources", "NodeUnprepareResources"


async def work(request: ClaimRequest, fetch: Fetch, *, check: bool = False) -> Json:
    """Bring claims to the wanted state. Raises `DraError`; what was done before it is recorded and undone by no one.

    Returns ``changed``, ``calls`` (the driver calls, planned or made), ``claims`` (those recorded afterwards),
    ``released`` and ``forgotten``, ``via`` and the manager's ``findings``.
    """
    records = _read_records(request)
    if request.state == PREPARED:
        wanted = await plan(request, fetch)
        return await _prepare(request, wanted, records, check)
    uids = _recorded_uids(request, records)
    if request.state == FORGOTTEN:
        return await _forget(request, uids, records, check)
    return await _unprepare(request, uids, records, check)


# Prepare


async def _prepare(request: ClaimRequest, wanted: t.Sequence[Wanted], records: Records, check: bool) -> Json:
    calls = _calls(PREPARE_CALL, [(one.uid, driver) for want in wanted for one in want.plans for driver in one.drivers])
    uids = [one.uid for want in wanted for one in want.plans]
    async with DriverRegistry(request.registry, notify=False) as drivers:
        if check:
            for call in calls:
                await drivers.get(call["driver"])
            changed = any(_is_news(want, records) for want in wanted)
            return _result(changed, calls, records, uids)
        os.makedirs(request.state_directory, mode=0o700, exist_ok=True)
        async with await _manager(request, drivers) as manager:
            for want in wanted:
                await manager.prepare_claims(want.holder, want.plans)
            after = {report.record.state.uid: report.record for report in manager.claims()}
            findings = [finding.to_dict() for finding in manager.findings()]
    changed = any(after.get(uid) != records.get(uid) for uid in uids)
    return _result(changed, calls, after, uids, findings=findings)


def _is_news(want: Wanted, records: Records) -> bool:
    """Whether preparing this would change what is recorded, as far as that shows before the drivers answer."""
    for one in want.plans:
        record = records.get(one.uid)
        if record is None or want.holder.uid not in record.state.pod_uids or record.note.earlier_boot:
            return True
        if any(record.state.drivers.get(driver) is None for driver in one.drivers):
            return True
    return False


# Unprepare and forget


async def _unprepare(request: ClaimRequest, uids: t.Sequence[str], records: Records, check: bool) -> Json:
    leaving = _leaving(request, uids, records)
    pairs = [(uid, driver) for uid in leaving for driver in sorted(records[uid].state.drivers)]
    calls = _calls(UNPREPARE_CALL, pairs)
    if uids and not request.force:
        _refuse_if_the_kubelet_holds(request, uids)
    if check or not uids:
        return _result(bool(uids), calls, records, [uid for uid in uids if uid not in leaving], released=leaving)
    async with (
        DriverRegistry(request.registry, notify=False) as drivers,
        await _manager(request, drivers) as manager,
    ):
        pod_uid = identity(request.pod)[0] if request.pod is not None else None
        done = await manager.unprepare_claims(uids, pod_uid=pod_uid)
        after = {report.record.state.uid: report.record for report in manager.claims()}
    return _result(done.changed, calls, after, [uid for uid in uids if uid in after], released=list(done.gone))


def _leaving(request: ClaimRequest, uids: t.Sequence[str], records: Records) -> list[str]:
    """The claims whose drivers are told: those that nobody else holds."""
    if request.pod is None:
        return list(uids)
    pod_uid = identity(request.pod)[0]
    return [uid for uid in uids if not records[uid].state.pod_uids - {pod_uid}]


async def _forget(request: ClaimRequest, uids: t.Sequence[str], records: Records, check: bool) -> Json:
    if not request.reason.strip():
        raise DraError(
            "A claim is not forgotten without a reason: its drivers are not told, and devices may leak.",
            "Say why with reason; it goes to the audit log.",
        )
    if check or not uids:
        return _result(bool(uids), [], records, [], released=uids)
    forgotten = []
    async with (
        DriverRegistry(request.registry, notify=False) as drivers,
        await _manager(request, drivers) as manager,
    ):
        for uid in uids:
            gone = await manager.forget(uid, reason=request.reason, by=request.by)
            if gone is not None:
                forgotten.append(gone.to_dict())
    return _result(bool(forgotten), [], {}, [], released=uids, forgotten=forgotten)


def _recorded_uids(request: ClaimRequest, records: Records) -> list[str]:
    """The recorded claims that are meant, by UID, or by namespace and name, or by the pod that holds them."""
    if request.pod is not None:
        pod_uid = identity(request.pod)[0]
        if not pod_uid:
            raise DraError("The pod has no UID.", "Give metadata.uid of the pod: names come again, UIDs do not.")
        return sorted(uid for uid, record in records.items() if pod_uid in record.state.pod_uids)
    found = []
    for claim in request.claims:
        uid, namespace, name = identity(claim)
        for record in records.values():
            state = record.state
            if state.uid == uid or (not uid and (state.namespace, state.name) == (namespace, name)):
                found.append(state.uid)
    return sorted(dict.fromkeys(found))


def _refuse_if_the_kubelet_holds(request: ClaimRequest, uids: t.Sequence[str]) -> None:
    """Two masters for one claim: the kubelet would hand a device to a container that we gave back."""
    path = os.path.join(request.kubelet_root, "dra_manager_state")
    if os.path.realpath(request.state_directory) == os.path.realpath(request.kubelet_root):
        return
    running = kubelet.kubelet_on_root(request.kubelet_root)
    try:
        content = read_file(path, follow=True)
    except MissingFileError:
        return
    held = sorted({entry.uid for entry in diagnose(content.data).entries if entry.pods} & set(uids))
    if held and running is not None:
        raise DraError(
            f"Nothing is unprepared: kubelet pid {running.pid} holds {', '.join(held)} for its pods, says {path}.",
            "Delete the pods and let the kubelet unprepare, or use force if its file is known to be wrong.",
            path=path,
            claim_uids=held,
        )


# Common


def _read_records(request: ClaimRequest) -> Records:
    """What is recorded, without taking the lock: files are replaced whole. Nothing where there is no directory yet."""
    settings = Settings(request.state_directory)
    with contextlib.suppress(MissingFileError), StateDirectory(request.state_directory) as directory:
        return load(directory, settings.state_name, settings.notes_name, current_boot_id()).records
    return {}


async def _manager(request: ClaimRequest, drivers: DriverRegistry) -> DraManager:
    settings = Settings(
        request.state_directory, timeout=request.timeout, cdi_directories=request.cdi_directories, cdi_policy="warn"
    )
    return await DraManager.open(settings, drivers)


def _calls(method: str, pairs: t.Iterable[tuple[str, str]]) -> list[Json]:
    by_driver: dict[str, list[str]] = {}
    for uid, driver in pairs:
        by_driver.setdefault(driver, []).append(uid)
    return [{"driver": driver, "method": method, "claims": uids} for driver, uids in sorted(by_driver.items())]


def _result(
    changed: bool,
    calls: list[Json],
    records: Records,
    uids: t.Iterable[str],
    *,
    released: t.Sequence[str] = (),
    forgotten: t.Sequence[Json] = (),
    findings: t.Sequence[Json] = (),
) -> Json:
    claims = [record_report(records[uid]) for uid in uids if uid in records]
    claims.sort(key=lambda claim: (claim["namespace"], claim["name"], claim["uid"]))
    return {
        "changed": changed,
        "via": "in_process",
        "calls": calls,
        "claims": claims,
        "released": sorted(released),
        "forgotten": list(forgotten),
        "findings": list(findings),
    }


def record_report(record: Record) -> Json:
    """One recorded claim as modules return it, with its CDI names ready for ``podman run``."""
    state = record.state
    names = [
        name for driver in sorted(state.drivers) for one in state.drivers[driver] or () for name in one.cdi_device_ids
    ]
    unique = list(dict.fromkeys(names))
    return {
        "uid": state.uid,
        "name": state.name,
        "namespace": state.namespace,
        "pods": sorted(state.pod_uids),
        "prepared": not record.note.earlier_boot and None not in state.drivers.values(),
        "drivers": [
            {"name": driver, "devices": None if devices is None else [_device(device) for device in devices]}
            for driver, devices in sorted(state.drivers.items())
        ],
        "cdi_devices": unique,
        "device_arguments": [f"--device={name}" for name in unique],
    }


def _device(device: Device) -> Json:
    return {
        "pool": device.pool_name,
        "device": device.device_name,
        "share_id": device.share_id,
        "requests": list(device.request_names),
        "cdi_devices": list(device.cdi_device_ids),
    }
