# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Preparing, unpreparing and forgetting claims with the manager of a place: planned first, then done.

The plan is the same with and without check mode, so both report the same calls, the same change, and the same refusals.
"""

from __future__ import annotations

import asyncio
import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.findings import Finding
from ..driver.registry import DriverRegistry
from ..manager.claim_table import ClaimTable
from ..manager.driver_calls import PREPARE_METHOD, UNPREPARE_METHOD
from ..manager.durable_claims import Record
from ..manager.prepare import check_claims
from .claim_check import STEPS, check_drivers, check_findings, refuse_used_claims
from .claim_diff import Change, prepare_change, release_change
from .claim_place import OwnManager, Place, Records
from .claim_request import (
    CHECKED,
    FORGOTTEN,
    PREPARED,
    ClaimRequest,
    Fetch,
    Wanted,
    check_named,
    identity,
    named_holder,
    plan,
)
from .kubelet_claims import (
    KubeletClaims,
    only_kubelet_has,
    read_kubelet_claims,
    refuse_held_devices,
    refuse_to_forget,
    refuse_to_unprepare,
    still_recorded,
    unprepare_directly,
)
from .living_pods import refuse_living_pods
from .reachable_drivers import ReachableDrivers
from .record_report import record_report

Json = dict[str, t.Any]

CONNECT_WAIT = 2.0
"""Seconds that a driver may take to connect before anything is done. One that is alive takes milliseconds."""


async def work(request: ClaimRequest, fetch: Fetch, *, check: bool = False, place: Place | None = None) -> Json:
    """Bring claims to the wanted state. Raises `DraError`; what was done before it is recorded and undone by no one.

    Without a ``place`` a manager of its own does it.

    Returns ``changed``, ``before`` and ``after`` (a `claim_diff.Change`, the same with and without ``check``),
    ``calls`` (the driver calls, planned or made), ``claims`` (those recorded afterwards), ``released``,
    ``forgotten`` and ``conformance``, ``via`` and the manager's ``findings``.
    """
    place = place or OwnManager(request)
    held = await asyncio.to_thread(read_kubelet_claims, request)
    records = place.records()
    if request.state in (PREPARED, CHECKED):
        wanted = await plan(request, fetch)
        if request.state == CHECKED:
            refuse_used_claims(wanted.plans, records, held, has_pod=request.pod is not None)
        if not request.force:
            refuse_held_devices(held, wanted.plans)
        return await (_try if request.state == CHECKED else _prepare)(request, wanted, records, place, check)
    check_named(request)
    uids = _recorded_uids(request, records)
    if request.state == FORGOTTEN:
        refuse_to_forget(held, request, uids)
        return await _forget(request, uids, records, place, check)
    refuse_to_unprepare(held, request, uids)
    return await _unprepare(request, uids, records, held, place, check)


# Prepare


async def _prepare(request: ClaimRequest, wanted: Wanted, records: Records, place: Place, check: bool) -> Json:
    calls = _calls(PREPARE_METHOD, [(one.uid, driver) for one in wanted.plans for driver in one.drivers])
    uids = [one.uid for one in wanted.plans]
    async with place.registry() as drivers:
        # Asked before anything is made, so that a refusal leaves nothing behind; the manager asks again.
        await check_claims(ClaimTable(records), _reachable(request, drivers), wanted.holder, wanted.plans)
        change = prepare_change(records, wanted.plans, wanted.holder.uid)
        if check:
            return _result(place, _is_news(wanted, records), calls, records, uids, change)
        async with place.manager(drivers) as manager:
            await manager.prepare_claims(wanted.holder, wanted.plans, timeout=request.timeout, renew=True)
            after = {report.record.state.uid: report.record for report in manager.claims()}
            findings = manager.findings()
    changed = any(after.get(uid) != records.get(uid) for uid in uids)
    return _result(place, changed, calls, after, uids, change, findings=findings)


async def _try(request: ClaimRequest, wanted: Wanted, records: Records, place: Place, check: bool) -> Json:
    pairs = [(one.uid, driver) for one in wanted.plans for driver in one.drivers]
    calls = [call for method in STEPS for call in _calls(method, pairs)]
    calls.sort(key=lambda call: call["driver"])
    async with place.registry() as registry:
        drivers = _reachable(request, registry)
        await check_claims(ClaimTable(records), drivers, wanted.holder, wanted.plans)
        reports = [] if check else await check_drivers(drivers, wanted.plans, request.timeout)
    return {**_result(place, False, calls, records, [], findings=check_findings(reports)), "conformance": reports}


def _is_news(wanted: Wanted, records: Records) -> bool:
    """Whether preparing this would change what is recorded, as far as that shows before the drivers answer."""
    for one in wanted.plans:
        record = records.get(one.uid)
        if record is None or wanted.holder.uid not in record.state.pod_uids or record.note.earlier_boot:
            return True
        if any(record.state.drivers.get(driver) is None for driver in one.drivers):
            return True
    return False


# Unprepare and forget


async def _unprepare(
    request: ClaimRequest, uids: t.Sequence[str], records: Records, held: KubeletClaims, place: Place, check: bool
) -> Json:
    """``uids`` are the recorded claims that are meant. Those that only the kubelet has come here by force alone."""
    who = _who_lets_go(request)
    foreign = only_kubelet_has(held, request, uids)
    if who is not None:
        uids = [uid for uid in uids if who in records[uid].state.pod_uids or not records[uid].state.pod_uids]
    if not request.force:
        refuse_living_pods(place, [records[uid] for uid in uids], who)
    leaving = [uid for uid in uids if who is None or not records[uid].state.pod_uids - {who}]
    change = release_change([records[uid] for uid in uids], foreign, who)
    pairs = [(uid, driver) for uid in leaving for driver in _to_tell(records[uid])]
    pairs += [(entry.uid, driver) for entry in foreign for driver in entry.drivers()]
    calls = _calls(UNPREPARE_METHOD, pairs)
    released = [*leaving, *(entry.uid for entry in foreign)]
    findings = still_recorded(held, released)
    if not uids and not foreign:
        return _result(place, False, [], records, [])
    async with place.registry() as drivers:
        if check:
            labels = {uid: _label(records[uid]) for uid in uids} | {entry.uid: entry.label for entry in foreign}
            await _reachable(request, drivers).need(calls, labels)
            left = [uid for uid in uids if uid not in leaving]
            return _result(place, True, calls, records, left, change, released=released)
        after: Records = records
        changed = bool(foreign)
        if uids:
            async with place.manager(drivers) as manager:
                changed |= (await manager.unprepare_claims(uids, pod_uid=who, timeout=request.timeout)).changed
                after = {report.record.state.uid: report.record for report in manager.claims()}
        if foreign:
            await unprepare_directly(drivers, foreign, request.timeout)
    left = [uid for uid in uids if uid in after]
    return _result(place, changed, calls, after, left, change, released=released, findings=findings)


def _who_lets_go(request: ClaimRequest) -> str | None:
    """The UID of the pod or of the holder that is meant, None when everybody is."""
    if request.pod is not None:
        return identity(request.pod)[0]
    holder = named_holder(request)
    return None if holder is None else holder.uid


def _label(record: Record) -> str:
    return f"{record.state.namespace}/{record.state.name} ({record.state.uid})"


def _to_tell(record: Record) -> list[str]:
    """The drivers that want to be told that the claim goes."""
    return sorted(set(record.state.drivers) - record.note.skip_unprepare)


async def _forget(request: ClaimRequest, uids: t.Sequence[str], records: Records, place: Place, check: bool) -> Json:
    if not request.reason.strip():
        raise DraError(
            "A claim is not forgotten without a reason: its drivers are not told, and devices may leak.",
            "Say why with reason; it goes to the audit log.",
        )
    change = release_change([records[uid] for uid in uids])
    if check or not uids:
        return _result(place, bool(uids), [], records, [], change, released=uids)
    forgotten = []
    async with (
        place.registry() as drivers,
        place.manager(drivers) as manager,
    ):
        for uid in uids:
            gone = await manager.forget(uid, reason=request.reason, by=request.by)
            if gone is not None:
                forgotten.append(gone.to_dict())
    return _result(place, bool(forgotten), [], {}, [], change, released=uids, forgotten=forgotten)


def _recorded_uids(request: ClaimRequest, records: Records) -> list[str]:
    """The recorded claims that are meant, by UID, or by namespace and name, or by the pod that holds them."""
    if request.pod is not None:
        pod_uid = identity(request.pod)[0]
        return sorted(uid for uid, record in records.items() if pod_uid in record.state.pod_uids)
    found = []
    for claim in request.claims:
        uid, namespace, name = identity(claim)
        for record in records.values():
            state = record.state
            if state.uid == uid or (not uid and (state.namespace, state.name) == (namespace, name)):
                found.append(state.uid)
    return sorted(dict.fromkeys(found))


# Common


def _reachable(request: ClaimRequest, drivers: DriverRegistry) -> ReachableDrivers:
    return ReachableDrivers(drivers, min(CONNECT_WAIT, request.timeout))


def _calls(method: str, pairs: t.Iterable[tuple[str, str]]) -> list[Json]:
    by_driver: dict[str, list[str]] = {}
    for uid, driver in pairs:
        by_driver.setdefault(driver, []).append(uid)
    return [{"driver": driver, "method": method, "claims": uids} for driver, uids in sorted(by_driver.items())]


def _result(
    place: Place,
    changed: bool,
    calls: list[Json],
    records: Records,
    uids: t.Iterable[str],
    change: Change = ({}, {}),
    *,
    released: t.Sequence[str] = (),
    forgotten: t.Sequence[Json] = (),
    findings: t.Sequence[Finding] = (),
) -> Json:
    claims = [record_report(records[uid]) for uid in uids if uid in records]
    claims.sort(key=lambda claim: (claim["namespace"], claim["name"], claim["uid"]))
    return {
        "changed": changed,
        "before": change[0],
        "after": change[1],
        "via": place.via,
        "calls": calls,
        "claims": claims,
        "released": sorted(released),
        "forgotten": list(forgotten),
        "conformance": [],
        "findings": [finding.to_dict() for finding in findings],
    }
