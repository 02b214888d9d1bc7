# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""From a pod and its claims to what has to be prepared. Pure: looks at objects, touches no state, calls nobody.

Kubernetes symbols: the first part of ``manager.prepareResources``, ``newClaimInfoFromClaim``.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ..checkpoint.errors import DraError
from ..driver.claims import ClaimRef
from ..driver.claims import ResourceHandle as CallHandle
from ..resource.allocation import (
    PREPARE_OPERATION,
    UNPREPARE_OPERATION,
    allocated_drivers,
    is_classic,
    skipped_operations,
)
from ..resource.consumers import check_reserved_for
from ..resource.containers import referenced_pod_claims
from ..resource.devices import AllocatedDevice, allocated_devices
from ..resource.handles import ResourceHandle, resource_handles
from ..resource.ownership import check_owner, claim_view
from ..resource.pod import ClaimReference, claim_references, pod_view
from ..resource.view import JsonObject
from .notes import ClaimNote


class ClaimMissingError(DraError):
    """A pod needs a claim that was not given. Facts: ``namespace``, ``claim``, ``pod``, ``pod_uid``."""


_NO_POD = "holder:"
"""Before the name of a holder that is no pod. It is part of what is recorded: who looks for pods that are gone finds
every holder in the state file, and must not take a running service for one of them."""


@dataclass(frozen=True)
class Holder:
    """Who holds claims: a pod, or whatever stands for one where there is no kubelet. ``uid`` is what counts."""

    uid: str
    namespace: str
    name: str

    @classmethod
    def named(cls, name: str) -> Holder:
        """A holder that is no pod, such as a systemd unit."""
        return cls(f"{_NO_POD}{name}", "", name)

    @property
    def is_pod(self) -> bool:
        """Whether it is a pod."""
        return is_pod_uid(self.uid)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} ({self.uid})" if self.is_pod else self.name

    @property
    def label(self) -> str:
        """What a person is told, as part of a sentence."""
        return f"pod {self}" if self.is_pod else f"holder {self}"


def is_pod_uid(uid: str) -> bool:
    """Whether a recorded holder is a pod."""
    return not uid.startswith(_NO_POD)


def holders_label(uids: t.Iterable[str]) -> str:
    """What a person is told of recorded holders, as part of a sentence."""
    ordered = sorted(uids)
    pods = ", ".join(uid for uid in ordered if is_pod_uid(uid))
    others = [f"holder {uid[len(_NO_POD) :]}" for uid in ordered if not is_pod_uid(uid)]
    return " and ".join([*([f"pods {pods}"] if pods else []), *others]) or "nobody"


@dataclass(frozen=True)
class PlannedClaim:
    """One claim and what is to be done with it.

    ``drivers`` have to be called to prepare it. ``note`` is what has to be remembered beside the state file.
    """

    uid: str
    namespace: str
    name: str
    drivers: tuple[str, ...]
    allocated: tuple[AllocatedDevice, ...] = ()
    note: ClaimNote = field(default_factory=ClaimNote)

    @property
    def is_classic(self) -> bool:
        """Whether the claim is one of up to 1.30, with resource handles."""
        return bool(self.note.handles)

    @property
    def full_name(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    def ref(self, driver: str) -> ClaimRef:
        """The claim as ``driver`` is told of it."""
        return claim_ref(self.uid, self.namespace, self.name, driver, self.note.handles)


def claim_ref(uid: str, namespace: str, name: str, driver: str, handles: t.Iterable[ResourceHandle]) -> ClaimRef:
    """A claim for a call to ``driver``, with its own among the resource handles."""
    own = tuple(
        CallHandle(handle.driver, handle.data, handle.structured) for handle in handles if handle.driver == driver
    )
    return ClaimRef(uid, namespace, name, own)


def holder_of(pod: JsonObject) -> Holder:
    """The pod as a holder; raises MalformedObject when its name or UID is missing or unsafe."""
    identity = pod_view(pod).identity()
    return Holder(identity.uid, identity.namespace, identity.name)


def plan_pod(
    pod: JsonObject, claims: t.Iterable[JsonObject], *, deterministic_names: bool = False
) -> list[PlannedClaim]:
    """What has to be prepared for the pod. ``claims`` are the objects it uses, as fetched, in any order.

    Each claim is checked as the kubelet does: made for this pod, reserved for it, allocated. Classic claims are left
    out unless a container uses them, as up to 1.30. Raises ClaimMissingError, ClaimNotCreated, NotOwner, NotReserved,
    NotAllocated, MalformedObject.
    """
    holder = holder_of(pod)
    by_name = {(view.namespace, view.name): claim for claim in claims for view in (claim_view(claim),)}
    plans: dict[str, PlannedClaim] = {}
    for reference in claim_references(pod, deterministic_names=deterministic_names):
        claim = by_name.get((holder.namespace, reference.claim_name))
        if claim is None:
            raise ClaimMissingError(
                f"ResourceClaim {holder.namespace}/{reference.claim_name}, which pod {holder} uses, was not found.",
                f"Check that it exists (`kubectl get resourceclaim {reference.claim_name} -n {holder.namespace}`) and "
                "may be read from this node.",
                namespace=holder.namespace,
                claim=reference.claim_name,
                pod=holder.name,
                pod_uid=holder.uid,
            )
        if reference.must_check_owner:
            check_owner(pod, claim)
        check_reserved_for(pod, claim)
        plan = plan_claim(claim)
        if plan.is_classic and not _is_used(pod, reference):
            continue
        plans[plan.uid] = plan
    return list(plans.values())


def _is_used(pod: JsonObject, reference: ClaimReference) -> bool:
    """Whether some container uses the claim."""
    return reference.pod_claim is None or reference.pod_claim.name in referenced_pod_claims(pod)


def plan_claim(claim: JsonObject) -> PlannedClaim:
    """What has to be prepared for one claim, whoever is to hold it. Raises NotAllocated, MalformedObject."""
    identity = claim_view(claim).identity()
    if is_classic(claim):
        handles = resource_handles(claim)
        drivers = tuple(dict.fromkeys(handle.driver for handle in handles))
        note = ClaimNote(handles=handles)
        return PlannedClaim(identity.uid, identity.namespace, identity.name, drivers, (), note)
    skipped = {driver: skipped_operations(claim, driver) for driver in allocated_drivers(claim)}
    drivers = tuple(driver for driver, operations in skipped.items() if PREPARE_OPERATION not in operations)
    allocated = allocated_devices(claim)
    note = ClaimNote(
        admin_devices=frozenset(device.key for device in allocated if device.admin_access),
        skip_unprepare=frozenset(driver for driver in drivers if UNPREPARE_OPERATION in skipped[driver]),
    )
    return PlannedClaim(identity.uid, identity.namespace, identity.name, drivers, allocated, note)
