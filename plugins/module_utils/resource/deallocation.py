# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What becomes of a claim when consumers go: reservation, allocation, finalizer, and the claim itself.

A plan says which writes are due; it makes none. The status is written first and with the resourceVersion that the plan
was computed from, the finalizer is removed in a second write that builds on the answer to the first.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .allocation import is_allocated, is_classic
from .consumers import consumers
from .ownership import claim_view, owning_pod
from .pod import is_done, pod_view
from .release import PROTECTION_FINALIZERS
from .view import JsonObject, ObjectView


@dataclass(frozen=True)
class ReleasePlan:
    """The writes that bring a claim in line with its remaining consumers.

    ``reserved_for`` is the whole new list, None when it stays. ``remove_finalizers`` are to go after the status write.
    """

    reserved_for: tuple[JsonObject, ...] | None = None
    clear_allocation: bool = False
    request_deallocation: bool = False
    remove_finalizers: tuple[str, ...] = ()

    @property
    def changes_status(self) -> bool:
        """Whether a write of the status is due."""
        return self.reserved_for is not None or self.clear_allocation or self.request_deallocation

    def __bool__(self) -> bool:
        return self.changes_status or bool(self.remove_finalizers)


def plan_release(claim: JsonObject, keep_uids: t.Collection[str]) -> ReleasePlan:
    """The plan for a claim whose consumers with ``keep_uids`` remain (controller: syncClaim).

    The last consumer leaving deallocates: at once where the scheduler allocated (its finalizer is there), by request
    where the driver's own controller did. A classic claim with immediate allocation stays allocated until it is
    deleted. A claim that is merely unused is left alone, because allocation and reservation need not come in one write.
    """
    view = claim_view(claim)
    present = consumers(claim)
    kept = tuple(c.raw for c in present if c.uid in keep_uids)
    lost = len(kept) < len(present)
    reserved_for = kept if lost else None
    if kept:
        return ReleasePlan(reserved_for)
    finalizers = protection_finalizers(view)
    allocated = is_allocated(claim)
    delayed = _is_delayed(view)
    if finalizers:
        clear = allocated and (view.is_deleted or (lost and delayed))
        # Without a loss the finalizer of a live claim stays even when nothing is allocated: the scheduler sets it
        # before it allocates, and removing it in between would undo that.
        unneeded = (lost or view.is_deleted) and (clear or not allocated)
        return ReleasePlan(reserved_for, clear_allocation=clear, remove_finalizers=finalizers if unneeded else ())
    request = lost and allocated and _driver_deallocates(claim) and not view.flag("status", "deallocationRequested")
    return ReleasePlan(reserved_for, request_deallocation=request)


def protection_finalizers(view: ObjectView) -> tuple[str, ...]:
    """The finalizers on the claim that the built-in allocation has put there, under the name of any release."""
    present = view.texts("metadata", "finalizers")
    return tuple(name for name in present if name in PROTECTION_FINALIZERS)


def _is_delayed(view: ObjectView) -> bool:
    # Only classic claims have the field; its default, and the rule for all others, is delayed allocation.
    return view.text("spec", "allocationMode") != "Immediate"


def _driver_deallocates(claim: JsonObject) -> bool:
    view = claim_view(claim)
    if is_classic(claim):
        return _is_delayed(view)
    # 1.31: classic DRA inside the structured API, told by the name of a controller.
    return bool(view.text("status", "allocation", "controller") or view.text("spec", "controller"))


def status_patch(claim: JsonObject, plan: ReleasePlan) -> dict[str, t.Any]:
    """JSON merge patch for ``/status``; with the resourceVersion, so that a lost race is a conflict."""
    status: dict[str, t.Any] = {}
    if plan.reserved_for is not None:
        status["reservedFor"] = list(plan.reserved_for) or None
    if plan.clear_allocation:
        status["allocation"] = None
    if plan.request_deallocation:
        status["deallocationRequested"] = True
    return {"metadata": _guard(claim), "status": status}


def finalizer_patch(claim: JsonObject, remove: t.Collection[str]) -> dict[str, t.Any]:
    """JSON merge patch for the claim itself that removes finalizers; ``claim`` is the answer to the status write."""
    left = [name for name in claim_view(claim).texts("metadata", "finalizers") if name not in remove]
    return {"metadata": {**_guard(claim), "finalizers": left or None}}


def reservation_patch(claim: JsonObject, reserved_for: t.Sequence[JsonObject]) -> dict[str, t.Any]:
    """JSON merge patch for ``/status`` that sets the whole list of consumers, guarded by the resourceVersion."""
    return {"metadata": _guard(claim), "status": {"reservedFor": list(reserved_for) or None}}


def _guard(claim: JsonObject) -> dict[str, str]:
    return {"resourceVersion": claim_view(claim).required_text("metadata", "resourceVersion")}


def is_obsolete(claim: JsonObject, pod: JsonObject | None) -> bool:
    """Whether an unreserved claim that was generated for a pod can be deleted: its pod was replaced or is done.

    ``pod`` is what has the owner's name now. Without a pod the garbage collector decides, since the pod may only not be
    known yet. Claims of users and PodGroups, and reserved ones, are never obsolete.
    """
    owner = owning_pod(claim)
    if owner is None or pod is None or consumers(claim):
        return False
    return pod_view(pod).uid != owner.uid or is_done(pod)


def holders(claim: JsonObject) -> dict[str, list[str]]:
    """What keeps a deleted claim: its finalizers, and the consumers as ``pods/name (uid)``."""
    return {
        "finalizers": list(claim_view(claim).texts("metadata", "finalizers")),
        "consumers": [str(consumer) for consumer in consumers(claim)],
    }
