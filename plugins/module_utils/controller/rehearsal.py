# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Plans carried out in the caches alone, so that check mode sees what would follow from each request."""

from __future__ import annotations

import typing as t

from ..resource.deallocation import finalizer_patch
from ..resource.generated import claim_status_entries
from .caches import Caches
from .performing import Outcome, Performer
from .plan import (
    ApplyNames,
    CreateClaim,
    CreateContext,
    DeleteClaim,
    PatchClaimStatus,
    Plan,
    RemoveFinalizers,
    SelectNode,
    Step,
)
from .shapes import Json

#: What a resourceVersion is that no server has given: newer than any that a cache holds.
_VERSION = "rehearsed"


class Rehearsal(Performer):
    """Asks like a performer, and writes nothing."""

    async def perform(self, caches: Caches, plan: Plan) -> Outcome:
        """Note in the caches what each request would lead to."""
        for step in plan.steps:
            _rehearse(caches, step)
        return Outcome(done=list(plan.steps))


def _rehearse(caches: Caches, step: Step) -> None:
    if isinstance(step, CreateClaim):
        caches.wrote("ResourceClaim", _there(step.body, f"uid-of-{step.name}"))
    elif isinstance(step, CreateContext):
        caches.wrote("PodSchedulingContext", _there(step.body, f"uid-of-{step.name}"))
    elif isinstance(step, ApplyNames):
        _patch(caches, step.kind, step, {"status": {"resourceClaimStatuses": claim_status_entries(step.names)}})
    elif isinstance(step, SelectNode):
        _patch(caches, "PodSchedulingContext", step, step.patch)
    elif isinstance(step, PatchClaimStatus):
        _patch(caches, "ResourceClaim", step, step.patch)
    elif isinstance(step, RemoveFinalizers):
        _patch(caches, "ResourceClaim", step, finalizer_patch(step.claim, step.finalizers))
        claim = caches.claim(step.namespace, step.name)
        if claim is not None and claim["metadata"].get("deletionTimestamp"):
            _end(caches, claim)
    else:
        _delete(caches, step)


def _delete(caches: Caches, step: DeleteClaim) -> None:
    claim = caches.claim(step.namespace, step.name)
    if claim is not None:
        marked = merged(claim, {"metadata": {"deletionTimestamp": "1970-01-01T00:00:00Z"}})
        _end(caches, marked)


def _end(caches: Caches, claim: Json) -> None:
    """A deleted claim goes with its last finalizer."""
    if claim["metadata"].get("finalizers"):
        caches.wrote("ResourceClaim", claim)
    else:
        caches.removed("ResourceClaim", claim)


def _there(body: Json, uid: str) -> Json:
    return merged(body, {"metadata": {"uid": uid, "resourceVersion": _VERSION}})


def _patch(caches: Caches, kind: str, step: Step, patch: Json) -> None:
    found = caches.get(kind, step.namespace, step.name)
    if found is not None:
        caches.wrote(kind, merged(merged(found, patch), {"metadata": {"resourceVersion": _VERSION}}))


def merged(value: t.Mapping[str, t.Any], patch: t.Mapping[str, t.Any]) -> Json:
    """A JSON merge patch (RFC 7386), made without changing either side."""
    result = dict(value)
    for key, change in patch.items():
        if change is None:
            result.pop(key, None)
        elif isinstance(change, dict):
            before = result.get(key)
            result[key] = merged(before if isinstance(before, dict) else {}, change)
        else:
            result[key] = change
    return result
