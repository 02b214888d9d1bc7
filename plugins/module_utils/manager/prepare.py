# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Preparing the claims of one pod as one transaction (kubelet: ``manager.prepareResources``).

Check everything, record what is about to happen, call the drivers, record what they answered, return. A failure in the
checks leaves nothing behind; after the first record, whatever happens, the drivers that may hold something are on disk.
"""

from __future__ import annotations

import asyncio
import dataclasses
import typing as t
from dataclasses import dataclass

from ..checkpoint.claims import Device
from ..checkpoint.errors import DraError
from ..driver.claims import ClaimRef
from ..resource.devices import AllocatedDevice
from .admission import Work, admit_all, check_drivers
from .claim_table import ClaimTable, Phase
from .context import Context, claim_key, pod_key
from .driver_calls import PREPARE_METHOD, CallFailure, Drivers
from .durable_claims import Record
from .failures import PREPARE
from .planning import Holder, PlannedClaim


class PrepareFailedError(DraError):
    """Drivers did not do their part.

    Facts: ``pod``, ``pod_uid``, ``failures``: a list of what `Failure.facts` gives, each with its ``driver``.
    """


class NotRecordedError(DraError):
    """The drivers did their part and the disk did not. Facts: those of the write that failed."""


@dataclass(frozen=True)
class PreparedClaim:
    """What a claim's drivers gave, by driver name."""

    uid: str
    namespace: str
    name: str
    devices: t.Mapping[str, tuple[Device, ...]]

    @property
    def full_name(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def cdi_device_ids(self) -> tuple[str, ...]:
        """Every CDI name once, drivers in alphabetical order."""
        devices = (device for driver in sorted(self.devices) for device in self.devices[driver])
        return tuple(dict.fromkeys(cdi for device in devices for cdi in device.cdi_device_ids))


async def prepare_claims(
    context: Context,
    holder: Holder,
    plans: t.Sequence[PlannedClaim],
    *,
    timeout: float,
    renew: bool = False,
    only_held: bool = False,
) -> list[PreparedClaim]:
    """Prepare ``plans`` for ``holder`` within ``timeout`` seconds, waiting included.

    Claims that this process has prepared already are not prepared again unless ``renew`` is set. With ``only_held``
    those that the holder does not hold any more are left out: somebody may give one back while this waits. Raises
    DraError: PrepareFailedError when a driver failed (what the others answered is kept), anything else when nothing was
    called.
    """
    deadline = asyncio.get_running_loop().time() + timeout
    keys = [pod_key(holder.uid), *(claim_key(plan.uid) for plan in plans)]
    async with context.holding(keys, deadline):
        if only_held:
            held = context.table.claims_of_pod(holder.uid)
            plans = [plan for plan in plans if plan.uid in held]
        await check_drivers(context.table, context.drivers, holder, plans, renew)
        works = admit_all(context.table, holder, plans, renew)
        try:
            await context.journal.commit({work.plan.uid: work.record for work in works})
        finally:
            context.table.settle(work.plan.uid for work in works)
        failures = await _call_drivers(context, holder, works, deadline)
        for work in works:
            _conclude(context, work, failures.get(work.plan.uid, {}))
        await context.observer.claims_changed()
        if failures:
            raise _failed(context, holder, works, failures)
        return [_result(work) for work in works]


async def check_claims(table: ClaimTable, drivers: Drivers, holder: Holder, plans: t.Sequence[PlannedClaim]) -> None:
    """Raise what `prepare_claims` would raise before it calls anybody. For a plan that is only shown.

    ``table`` is one of its own for this: the claims and their devices count as taken in it afterwards.
    """
    await check_drivers(table, drivers, holder, plans, renew=False)
    admit_all(table, holder, plans, renew=False)


# Records


async def _call_drivers(
    context: Context, holder: Holder, works: t.Sequence[Work], deadline: float
) -> dict[str, dict[str, CallFailure]]:
    """Ask the drivers and record what they answer; return claim UID to driver to failure."""
    wanted: dict[str, list[ClaimRef]] = {}
    for work in works:
        for driver in work.call:
            wanted.setdefault(driver, []).append(work.plan.ref(driver))
    if not wanted:
        return {}
    entries = {work.plan.uid: work.entry for work in works}
    outcomes = await context.calls.run(
        PREPARE_METHOD, wanted, deadline=deadline, before=lambda driver, ref: entries[ref.uid].called.add(driver)
    )
    failures: dict[str, dict[str, CallFailure]] = {}
    answers: dict[str, dict[str, tuple[Device, ...]]] = {}
    for driver, by_claim in outcomes.items():
        for uid, outcome in by_claim.items():
            if isinstance(outcome, CallFailure):
                failures.setdefault(uid, {})[driver] = outcome
            else:
                answers.setdefault(uid, {})[driver] = outcome
    changes = {work.plan.uid: _answered(holder, work, answers.get(work.plan.uid, {})) for work in works}
    try:
        await context.journal.commit(changes)
    except DraError as error:
        raise _not_recorded(holder, error) from error
    for uid, given in answers.items():
        record = changes[uid]
        if record is not None:
            entries[uid].answers.update({driver: record.state.drivers[driver] or () for driver in given})
    return failures


def _answered(holder: Holder, work: Work, answers: t.Mapping[str, tuple[Device, ...]]) -> Record | None:
    """The record after the calls: each answer replaces what the driver answered before.

    None takes the plan back: this transaction made it, and it turned out that no driver could even be called.
    """
    before = work.record
    if work.is_new and work.call and not work.entry.called and before.state.pod_uids == {holder.uid}:
        return None
    devices = {driver: _with_shares(work.plan, driver, given) for driver, given in answers.items()}
    state = dataclasses.replace(
        before.state,
        drivers={**before.state.drivers, **devices},
        planned=frozenset(key for key in before.state.planned if key[0] not in answers),
    )
    note = before.note
    if all(driver in answers or driver in work.entry.answers for driver in work.plan.drivers):
        note = dataclasses.replace(note, earlier_boot="")
    return Record(state, note)


def _with_shares(plan: PlannedClaim, driver: str, devices: tuple[Device, ...]) -> tuple[Device, ...]:
    """Devices with the share IDs of the allocation, where the driver's API version has no field for them."""
    shares: dict[tuple[str, str], list[AllocatedDevice]] = {}
    for allocated in plan.allocated:
        if allocated.driver == driver and allocated.share_id:
            shares.setdefault((allocated.pool, allocated.device), []).append(allocated)
    if not shares:
        return devices
    completed = []
    for device in devices:
        candidates = shares.get((device.pool_name, device.device_name), [])
        if len(candidates) > 1 and device.request_names:
            named = {name.split("/", 1)[0] for name in device.request_names}
            candidates = [one for one in candidates if one.main_request in named]
        if device.share_id is None and len(candidates) == 1:
            device = dataclasses.replace(device, share_id=candidates[0].share_id)
        completed.append(device)
    return tuple(completed)


# Results


def _result(work: Work) -> PreparedClaim:
    plan = work.plan
    return PreparedClaim(plan.uid, plan.namespace, plan.name, {name: work.entry.answers[name] for name in plan.drivers})


def _conclude(context: Context, work: Work, failures: t.Mapping[str, CallFailure]) -> None:
    entry = work.entry
    if not failures:
        context.failures.succeeded(PREPARE, work.plan.uid)
        if entry.phase is Phase.PLANNED and all(driver in entry.answers for driver in work.plan.drivers):
            entry.advance(Phase.PREPARED)


def _failed(
    context: Context,
    holder: Holder,
    works: t.Sequence[Work],
    failures: t.Mapping[str, t.Mapping[str, CallFailure]],
) -> PrepareFailedError:
    sentences: list[str] = []
    facts: list[dict[str, t.Any]] = []
    hints: list[str] = []
    for work in works:
        for driver, failure in sorted(failures.get(work.plan.uid, {}).items()):
            sentences.append(f"driver {driver}, ResourceClaim {work.plan.full_name} ({work.plan.uid}): {failure.text}")
            hints.append(failure.hint)
    for work in works:
        by_driver = failures.get(work.plan.uid)
        if by_driver:
            text = "; ".join(
                f"driver {driver}, {holder.label}: {one.text}" for driver, one in sorted(by_driver.items())
            )
            permanent = any(one.permanent for one in by_driver.values())
            row = context.failures.failed(PREPARE, work.plan.uid, work.plan.full_name, text, permanent=permanent)
            facts.extend(
                {**row.facts(), "driver": driver, "text": one.text} for driver, one in sorted(by_driver.items())
            )
    hint = next(filter(None, hints), "The driver's own log says more; driver_info shows its state.")
    if any(work.entry.called for work in works):
        hint += " The claim stays recorded, for the driver may hold something: prepare it again, or unprepare it."
    message = f"{_at_start(holder.label)} cannot start: {'; '.join(sentences)}."
    return PrepareFailedError(message, hint, pod=str(holder), pod_uid=holder.uid, failures=facts)


def _at_start(text: str) -> str:
    return text[:1].upper() + text[1:]


def _not_recorded(holder: Holder, error: DraError) -> NotRecordedError:
    return NotRecordedError(
        f"{_at_start(holder.label)}: the drivers answered, but that could not be recorded, so the claims do not count "
        f"as prepared: {error.message}",
        error.hint,
        **error.facts,
    )
