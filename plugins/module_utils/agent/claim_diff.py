# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a task changes in who holds which claim, known before any driver answers. Pure."""

from __future__ import annotations

import typing as t

from ..checkpoint.entries import Entry
from ..manager.durable_claims import Record
from ..manager.planning import PlannedClaim

Json = dict[str, t.Any]
Change = tuple[Json, Json]
"""Claims before and after: for each ``namespace/name (UID)`` who holds it and whether it is prepared."""


def prepare_change(records: t.Mapping[str, Record], plans: t.Iterable[PlannedClaim], holder_uid: str) -> Change:
    """All of ``plans`` are prepared for the holder afterwards."""
    before, after = {}, {}
    for plan in plans:
        label, record = f"{plan.full_name} ({plan.uid})", records.get(plan.uid)
        pods = record.state.pod_uids if record is not None else frozenset()
        if record is not None:
            before[label] = _held(pods, is_prepared(record))
        after[label] = _held({*pods, holder_uid}, prepared=True)
    return before, after


def release_change(
    records: t.Iterable[Record], of_kubelet: t.Iterable[Entry] = (), leaving: str | None = None
) -> Change:
    """``leaving`` (None: everybody) lets go of the claims; one that nobody holds any more is gone."""
    before, after = {}, {}
    for record in records:
        state = record.state
        label = f"{state.namespace}/{state.name} ({state.uid})"
        before[label] = _held(state.pod_uids, is_prepared(record))
        left = frozenset() if leaving is None else state.pod_uids - {leaving}
        if left:
            after[label] = _held(left, is_prepared(record))
    before |= {entry.label: _held(entry.pods, prepared=True) for entry in of_kubelet}
    return before, after


def is_prepared(record: Record) -> bool:
    """Whether all drivers of a recorded claim have answered in this boot."""
    return not record.note.earlier_boot and None not in record.state.drivers.values()


def _held(pods: t.Iterable[str], prepared: bool) -> Json:
    return {"pods": sorted(pods), "prepared": prepared}
