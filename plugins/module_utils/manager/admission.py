# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Whether claims can be prepared here and now: everything that speaks against it, before anything is recorded or
called.

The driver may be missing, an older claim of the same name may still be held, or the device may still be held by another
claim: the API server frees both as soon as a pod is deleted by force, whatever the node is still doing.
"""

from __future__ import annotations

import dataclasses
import typing as t
from dataclasses import dataclass

from ..checkpoint.claims import ClaimState
from ..checkpoint.errors import DraError
from ..resource.devices import AllocatedDevice, exclusive_keys
from .claim_table import ClaimTable, Entry, Phase, recorded_keys
from .driver_calls import Drivers
from .durable_claims import Record
from .planning import Holder, PlannedClaim, holders_label


class DriverMissingError(DraError):
    """A driver of the claim is not registered. Facts: ``driver``, ``claim``, ``claim_uid``, ``pod_uid``."""


class NameTakenError(DraError):
    """A claim of that name with another UID is held here. Facts: ``claim``, ``claim_uid``, ``held_uid``, ``pods``."""


class DeviceTakenError(DraError):
    """Another claim still holds the device. Facts: ``claim``, ``claim_uid``, ``device``, ``held_by``, ``held_uid``."""


class ReallocatedError(DraError):
    """The claim has another allocation than what is prepared here. Facts: ``claim``, ``claim_uid``, ``pods``."""


class BeingUnpreparedError(DraError):
    """The claim is about to go; it can be prepared again once it is gone. Facts: ``claim``, ``claim_uid``."""


@dataclass
class Work:
    """One claim that may be prepared. ``call`` are the drivers to ask, ``record`` is what is on disk before that."""

    plan: PlannedClaim
    entry: Entry
    call: tuple[str, ...]
    record: Record
    is_new: bool


async def check_drivers(
    table: ClaimTable, drivers: Drivers, holder: Holder, plans: t.Sequence[PlannedClaim], renew: bool
) -> None:
    """Raise DraError unless every driver that has to be called is there."""
    for plan in plans:
        for driver in _to_call(table, plan, renew):
            try:
                await drivers.get(driver)
            except DraError as error:
                raise _without_driver(holder, plan, driver, error) from error


def _to_call(table: ClaimTable, plan: PlannedClaim, renew: bool) -> tuple[str, ...]:
    entry = table.entry(plan.uid)
    answers = entry.answers if entry is not None else {}
    return tuple(driver for driver in plan.drivers if renew or driver not in answers)


# Nothing from here to the record waits, so that what was found to be free cannot be taken meanwhile.


def admit_all(table: ClaimTable, holder: Holder, plans: t.Sequence[PlannedClaim], renew: bool) -> list[Work]:
    """Enter all claims into the table, or none: raises DraError for the first that cannot be prepared.

    With ``renew`` drivers are asked again for what they answered already.
    """
    try:
        return [_admit(table, holder, plan, renew) for plan in plans]
    except BaseException:
        table.settle(plan.uid for plan in plans)
        raise


def _admit(table: ClaimTable, holder: Holder, plan: PlannedClaim, renew: bool) -> Work:
    held_uid = table.uid_of(plan.namespace, plan.name)
    if held_uid is not None and held_uid != plan.uid:
        raise _name_taken(table, plan, held_uid)
    entry = table.entry(plan.uid)
    if entry is not None and entry.phase is Phase.UNPREPARING:
        raise BeingUnpreparedError(
            f"ResourceClaim {plan.full_name} ({plan.uid}) is being unprepared and cannot be prepared for "
            f"{holder.label} before that has succeeded.",
            "It goes on by itself once the claim's drivers have answered; claim_info shows which one does not.",
            claim=plan.full_name,
            claim_uid=plan.uid,
        )
    if entry is not None and entry.called and entry.allocated is not None:
        _check_allocation(table, plan, entry.allocated)
    call = _to_call(table, plan, renew)
    if entry is None or entry.phase is not Phase.PREPARED:
        for device in plan.allocated:
            _check_device(table, plan, device)
    record = _planned(table.record(plan.uid), holder, plan, call)
    opened = table.open(plan.uid, plan.namespace, plan.name, plan.allocated)
    return Work(plan, opened, call, record, is_new=entry is None)


def _without_driver(holder: Holder, plan: PlannedClaim, driver: str, error: DraError) -> DriverMissingError:
    return DriverMissingError(
        f"ResourceClaim {plan.full_name} ({plan.uid}) cannot be prepared for {holder.label}: {error.message}",
        error.hint,
        **{**error.facts, "driver": driver, "claim": plan.full_name, "claim_uid": plan.uid, "pod_uid": holder.uid},
    )


def _check_device(table: ClaimTable, plan: PlannedClaim, device: AllocatedDevice) -> None:
    other = None if device.admin_access else table.other_holder(plan.uid, device.key)
    if other is not None:
        raise DeviceTakenError(
            f"ResourceClaim {plan.full_name} ({plan.uid}) was given device {device}, which ResourceClaim "
            f"{other.full_name} ({other.uid}) still holds on this node.",
            "A pod was probably deleted by force. The device is free once that claim is unprepared here: let it "
            "happen, or see with claim_info what it waits for.",
            claim=plan.full_name,
            claim_uid=plan.uid,
            device=str(device),
            held_by=other.full_name,
            held_uid=other.uid,
        )


def _check_allocation(table: ClaimTable, plan: PlannedClaim, prepared: t.Iterable[AllocatedDevice]) -> None:
    """A pod deleted by force frees its claim for a new allocation; what is prepared here are still the old devices."""
    before, now = ({device.key for device in devices} for devices in (prepared, plan.allocated))
    if before == now:
        return
    record = table.record(plan.uid)
    pods = sorted(record.state.pod_uids) if record else []
    raise ReallocatedError(
        f"ResourceClaim {plan.full_name} ({plan.uid}) was allocated anew: it now has {_named(plan.allocated)}, while "
        f"{_named(prepared)} are still prepared here for {holders_label(pods)}.",
        "It goes through once they have given the claim back: let that happen, or see with claim_info what it waits "
        "for.",
        claim=plan.full_name,
        claim_uid=plan.uid,
        pods=pods,
    )


def _named(devices: t.Iterable[AllocatedDevice]) -> str:
    return ", ".join(sorted(map(str, devices))) or "no device"


def _name_taken(table: ClaimTable, plan: PlannedClaim, held_uid: str) -> NameTakenError:
    record = table.record(held_uid)
    pods = sorted(record.state.pod_uids) if record else []
    return NameTakenError(
        f"ResourceClaim {plan.full_name} has UID {plan.uid}, but an old ResourceClaim with the same name and different "
        f"UID {held_uid} still exists here (previous pod force-deleted?), held by {holders_label(pods)}.",
        "It goes through once the old claim is unprepared: let that happen, or see with claim_info what it waits for.",
        claim=plan.full_name,
        claim_uid=plan.uid,
        held_uid=held_uid,
        pods=pods,
    )


def _planned(before: Record | None, holder: Holder, plan: PlannedClaim, call: t.Container[str]) -> Record:
    """The record before the first call: the pod holds the claim, and these drivers may hold these devices for it."""
    asked = frozenset(key for key in exclusive_keys(plan.allocated) if key[0] in call)
    if before is None:
        drivers = dict.fromkeys(plan.drivers)
        return Record(
            ClaimState(plan.uid, plan.name, plan.namespace, frozenset({holder.uid}), drivers, asked), plan.note
        )
    state = dataclasses.replace(
        before.state,
        pod_uids=before.state.pod_uids | {holder.uid},
        drivers={**dict.fromkeys(plan.drivers), **before.state.drivers},
        planned=before.state.planned | (asked - recorded_keys(before.state)),
    )
    note = dataclasses.replace(plan.note, earlier_boot=before.note.earlier_boot, stopped=before.note.stopped)
    return Record(state, note)
