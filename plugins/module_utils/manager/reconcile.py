# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Letting go of what no living pod holds (kubelet: ``manager.reconcileLoop``).

The kubelet looks for pods that are gone and never sees a claim that no pod holds at all; here such a claim goes too.
"""

from __future__ import annotations

import asyncio
import typing as t
from dataclasses import dataclass, field

from ..checkpoint.errors import DraError
from .context import Context
from .failures import UNPREPARE, BackingOffError
from .planning import is_pod_uid
from .unprepare import Released, unprepare_claims

ActivePods = t.Callable[[], t.Collection[str]]


@dataclass
class Reconciled:
    """What one pass did: ``gone`` claims were unprepared, ``kept`` ones lost pods, ``failures`` are tried again.

    ``waiting`` are claims whose next try is not due yet.
    """

    gone: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    failures: list[DraError] = field(default_factory=list)


async def reconcile(context: Context, active_pods: ActivePods, *, timeout: float, obey_backoff: bool) -> Reconciled:
    """Take the pods that are not in ``active_pods()`` from their claims, and unprepare claims that nobody holds.

    ``active_pods`` gives the UIDs of all pods that may still run. It is asked again under the claim's lock: a pod that
    appeared meanwhile keeps what was prepared for it. Holders that are no pods let go of a claim themselves.
    """

    def gone(pods: frozenset[str]) -> frozenset[str]:
        return frozenset(filter(is_pod_uid, pods - frozenset(active_pods())))

    uids = set(context.table.without_pods())
    for pod in gone(context.table.pods()):
        uids |= context.table.claims_of_pod(pod)
    result = Reconciled()
    due = []
    for uid in sorted(uids):
        try:
            if obey_backoff:
                context.failures.check_due(UNPREPARE, uid)
            due.append(uid)
        except BackingOffError:
            result.waiting.append(uid)

    async def one(claims: t.Sequence[str]) -> None:
        try:
            released: Released = await unprepare_claims(context, claims, timeout=timeout, gone_pods=gone)
        except DraError as error:
            result.failures.append(error)
        else:
            result.gone += released.gone
            result.kept += released.kept

    async with asyncio.TaskGroup() as group:
        for claims in _by_pods(context, due):
            group.create_task(one(claims), name="dra-reconcile")
    result.gone.sort()
    result.kept.sort()
    return result


def _by_pods(context: Context, uids: t.Iterable[str]) -> list[list[str]]:
    """Claims with the same holders together, so that a driver gets one call for a pod that is gone, not one a claim."""
    groups: dict[frozenset[str], list[str]] = {}
    for uid in uids:
        record = context.table.record(uid)
        if record is not None:
            groups.setdefault(record.state.pod_uids, []).append(uid)
    return list(groups.values())
