# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Giving claims back (kubelet: ``manager.unprepareResources``).

Works from what is recorded on this node alone: the claims may be gone from the API server, or may not be read any
more. A claim that other pods hold only loses the reference. The last one is told to every driver that may hold
something, and its entry goes when all of them agreed; until then it stays as it is, so that nothing is forgotten.
"""

from __future__ import annotations

import asyncio
import dataclasses
import typing as t
from dataclasses import dataclass

from ..checkpoint.errors import DraError
from ..driver.claims import ClaimRef
from .claim_table import Entry, Phase
from .context import Context, claim_key, pod_key
from .driver_calls import UNPREPARE_METHOD, CallFailure
from .durable_claims import Record
from .failures import UNPREPARE
from .notes import EMPTY
from .planning import claim_ref, holders_label


class UnprepareFailedError(DraError):
    """Drivers did not take claims back; their entries stay.

    Facts: ``failures``: a list of what `Failure.facts` gives, each with its ``driver`` and ``pods``.
    """


@dataclass(frozen=True)
class Released:
    """What an unprepare did. ``gone`` were told to their drivers and are forgotten, ``kept`` are held by other pods."""

    gone: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether anything is different now."""
        return bool(self.gone or self.kept)


async def unprepare_pod(context: Context, pod_uid: str, *, timeout: float) -> Released:
    """Give back everything that the pod holds, within ``timeout`` seconds. A pod that holds nothing is fine.

    Raises UnprepareFailedError when a driver did not agree; what the others agreed to is done then all the same.
    """
    deadline = asyncio.get_running_loop().time() + timeout
    async with context.holding([pod_key(pod_uid)], deadline):
        uids = sorted(context.table.claims_of_pod(pod_uid))
        async with context.holding([claim_key(uid) for uid in uids], deadline):
            return await _release(context, uids, frozenset({pod_uid}), deadline)


async def unprepare_claims(
    context: Context,
    uids: t.Collection[str],
    *,
    timeout: float,
    gone_pods: t.Callable[[frozenset[str]], frozenset[str]] | None = None,
) -> Released:
    """Give claims back, whoever holds them. ``gone_pods`` chooses among the pods of a claim those that let go of it.

    It is asked when the claims cannot change any more. Unknown claims are fine. Raises UnprepareFailedError.
    """
    deadline = asyncio.get_running_loop().time() + timeout
    ordered = sorted(set(uids))
    async with context.holding([claim_key(uid) for uid in ordered], deadline):
        if gone_pods is None:
            return await _release(context, ordered, None, deadline)
        records = [context.table.record(uid) for uid in ordered]
        pods = frozenset(pod for record in records if record for pod in record.state.pod_uids)
        return await _release(context, ordered, gone_pods(pods), deadline)


async def _release(
    context: Context, uids: t.Sequence[str], leaving: frozenset[str] | None, deadline: float
) -> Released:
    """Take the pods ``leaving`` (None: all) from the claims, whose locks are held; claims without pods go."""
    changes: dict[str, Record | None] = {}
    going: list[Entry] = []
    for uid in uids:
        entry, record = context.table.entry(uid), context.table.record(uid)
        if entry is None or record is None:
            continue
        left = frozenset() if leaving is None else record.state.pod_uids - leaving
        if not left:
            going.append(entry)
        elif left != record.state.pod_uids:
            changes[uid] = Record(dataclasses.replace(record.state, pod_uids=left), record.note)
    kept = tuple(sorted(changes))
    for entry in going:
        entry.advance(Phase.UNPREPARING)
    if going:
        await context.observer.claims_changed()
    failures = await _call_drivers(context, going, deadline)
    gone = tuple(sorted(entry.uid for entry in going if entry.uid not in failures))
    # All in one write: whoever reads the file sees the pod with everything it held, or with nothing.
    await context.journal.commit({**changes, **dict.fromkeys(gone)})
    for uid in gone:
        context.failures.forget(uid)
    if kept:
        await context.observer.claims_changed()
    if failures:
        raise _failed(context, going, failures)
    return Released(gone, kept)


async def _call_drivers(
    context: Context, going: t.Sequence[Entry], deadline: float
) -> dict[str, dict[str, CallFailure]]:
    """Tell the drivers; return claim UID to driver to failure."""
    wanted: dict[str, list[ClaimRef]] = {}
    for entry in going:
        record = context.table.record(entry.uid)
        note = record.note if record else EMPTY
        # A driver that was never called holds nothing, so its absence must not keep the pod from going.
        for driver in sorted(entry.called - note.skip_unprepare):
            ref = claim_ref(entry.uid, entry.namespace, entry.name, driver, note.handles)
            wanted.setdefault(driver, []).append(ref)
    if not wanted:
        return {}
    outcomes = await context.calls.run(UNPREPARE_METHOD, wanted, deadline=deadline, before=lambda _driver, _ref: None)
    failures: dict[str, dict[str, CallFailure]] = {}
    for driver, by_claim in outcomes.items():
        for uid, outcome in by_claim.items():
            if isinstance(outcome, CallFailure):
                failures.setdefault(uid, {})[driver] = outcome
    return failures


def _failed(
    context: Context, going: t.Sequence[Entry], failures: t.Mapping[str, t.Mapping[str, CallFailure]]
) -> UnprepareFailedError:
    sentences: list[str] = []
    facts: list[dict[str, t.Any]] = []
    hints: list[str] = []
    for entry in going:
        by_driver = sorted(failures.get(entry.uid, {}).items())
        if not by_driver:
            continue
        record = context.table.record(entry.uid)
        pods = sorted(record.state.pod_uids) if record else []
        text = "; ".join(f"driver {driver}, {holders_label(pods)}: {one.text}" for driver, one in by_driver)
        permanent = any(one.permanent for _driver, one in by_driver)
        row = context.failures.failed(UNPREPARE, entry.uid, entry.full_name, text, permanent=permanent)
        sentences.append(f"ResourceClaim {entry.full_name} ({entry.uid}) is still held: {text}")
        facts.extend({**row.facts(), "driver": driver, "text": one.text, "pods": pods} for driver, one in by_driver)
        hints.extend(one.hint for _driver, one in by_driver)
    hint = next(filter(None, hints), "")
    way_out = (
        "Unprepare succeeds when it is repeated once the driver is back; if the driver is gone for good, forget the "
        "claim explicitly (claim with state=forgotten), which may leak what the driver holds."
    )
    return UnprepareFailedError(f"{'; '.join(sentences)}.", f"{hint} {way_out}".strip(), failures=facts)
