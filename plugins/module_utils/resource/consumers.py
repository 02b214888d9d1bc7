# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""``status.reservedFor``: who may use a claim, who is a consumer no longer, and how one is added."""

from __future__ import annotations

import enum
import typing as t
from dataclasses import dataclass

from ..checkpoint.errors import DraError
from .allocation import is_allocated, is_classic
from .ownership import claim_view
from .pod import is_done, pod_view
from .podgroup import pod_group_name
from .release import Release
from .versions import SCHEDULING_GROUP
from .view import JsonObject, ObjectView


class NotReservedError(DraError):
    """A pod is not among the consumers of a claim.

    Facts: ``namespace``, ``claim``, ``claim_uid``, ``pod``, ``pod_uid``, ``reserved_uids``.
    """


@dataclass(frozen=True)
class Consumer:
    """One entry of ``status.reservedFor``. ``raw`` is the entry as it was read, for writing it back unchanged."""

    api_group: str
    resource: str
    name: str
    uid: str
    raw: JsonObject

    @property
    def is_pod(self) -> bool:
        """Whether the entry names a pod."""
        return not self.api_group and self.resource == "pods"

    @property
    def is_pod_group(self) -> bool:
        """Whether the entry names a PodGroup."""
        return self.api_group == SCHEDULING_GROUP and self.resource == "podgroups"

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.api_group}" if self.api_group else self.resource
        return f"{resource}/{self.name} ({self.uid})"


def consumers(claim: JsonObject) -> list[Consumer]:
    """The entries of ``status.reservedFor`` in their order."""
    view = claim_view(claim)
    listed = ("status", "reservedFor")
    return [
        Consumer(
            view.text(*listed, index, "apiGroup"),
            view.text(*listed, index, "resource"),
            view.text(*listed, index, "name"),
            view.text(*listed, index, "uid"),
            entry,
        )
        for index, entry in enumerate(view.entries(*listed))
    ]


def is_reserved_for(pod: JsonObject, claim: JsonObject) -> bool:
    """Whether the pod may use the claim (resourceclaim.IsReservedForPod).

    The pod counts by UID alone: a reservation for an earlier pod of the same name does not hold. A PodGroup counts by
    name, because the pod does not carry the UID of its group.
    """
    uid = pod_view(pod).required_text("metadata", "uid")
    group = pod_group_name(pod)
    return any(c.uid == uid or (bool(group) and c.is_pod_group and c.name == group) for c in consumers(claim))


def check_reserved_for(pod: JsonObject, claim: JsonObject) -> None:
    """Raise ``NotReservedError`` unless ``is_reserved_for`` holds."""
    if is_reserved_for(pod, claim):
        return
    pod_object, claim_object = pod_view(pod), claim_view(claim)
    reserved = consumers(claim)
    held = ", ".join(map(str, reserved)) if reserved else "nobody"
    if any(c.is_pod and c.name == pod_object.name for c in reserved):
        hint = (
            "The reservation is for an earlier pod of the same name. Wait until the ResourceClaim controller "
            "has dropped it "
            "and the scheduler has reserved the claim for this pod; if that does not happen, check both."
        )
    else:
        hint = (
            "The scheduler reserves claims when it binds a pod, the ResourceClaim controller for pods that "
            "were bound without "
            "it: check that both run with the feature gate DynamicResourceAllocation on."
        )
    raise NotReservedError(
        f"pod {pod_object.name} ({pod_object.uid}) is not allowed to use ResourceClaim {claim_object.name} "
        f"({claim_object.uid}): in namespace {claim_object.namespace} it is reserved for {held}.",
        hint,
        namespace=claim_object.namespace,
        claim=claim_object.name,
        claim_uid=claim_object.uid,
        pod=pod_object.name,
        pod_uid=pod_object.uid,
        reserved_uids=[c.uid for c in reserved],
    )


# Adding


def pod_consumer(pod: JsonObject) -> dict[str, str]:
    """The entry for a pod, as the scheduler writes it."""
    identity = pod_view(pod).identity()
    return {"resource": "pods", "name": identity.name, "uid": identity.uid}


def pod_group_consumer(pod_group: JsonObject) -> dict[str, str]:
    """The entry for a PodGroup."""
    identity = ObjectView("PodGroup", pod_group).identity()
    return {"apiGroup": SCHEDULING_GROUP, "resource": "podgroups", "name": identity.name, "uid": identity.uid}


class Obstacle(enum.Enum):
    """Why a claim cannot take one more consumer."""

    NOT_ALLOCATED = "not_allocated"
    DELETED = "deleted"
    DEALLOCATING = "deallocating"
    NOT_SHAREABLE = "not_shareable"
    FULL = "full"


def reservation_obstacle(claim: JsonObject, release: Release) -> Obstacle | None:
    """What stands against one more entry in ``status.reservedFor``, None when nothing does.

    The order follows what a person has to deal with first. Sharing is limited for classic claims only (up to 1.30).
    """
    view = claim_view(claim)
    reserved = len(consumers(claim))
    if not is_allocated(claim):
        return Obstacle.NOT_ALLOCATED
    if view.is_deleted:
        return Obstacle.DELETED
    if view.flag("status", "deallocationRequested"):
        return Obstacle.DEALLOCATING
    limited = release.needs_shareable or is_classic(claim)
    if limited and reserved and not view.flag("status", "allocation", "shareable"):
        return Obstacle.NOT_SHAREABLE
    if reserved >= release.reserved_for_limit:
        return Obstacle.FULL
    return None


def can_be_reserved(claim: JsonObject, release: Release) -> bool:
    """Whether the claim can take one more consumer."""
    return reservation_obstacle(claim, release) is None


def explain_obstacle(obstacle: Obstacle, claim: JsonObject, release: Release) -> str:
    """One sentence for an event or a message: why the claim takes no further consumer."""
    name = claim_view(claim).full_name
    return {
        Obstacle.NOT_ALLOCATED: f"ResourceClaim {name} is not allocated, and only the scheduler can allocate it.",
        Obstacle.DELETED: f"ResourceClaim {name} is being deleted and takes no new consumers.",
        Obstacle.DEALLOCATING: f"ResourceClaim {name} is being deallocated by its driver and takes no new consumers.",
        Obstacle.NOT_SHAREABLE: f"ResourceClaim {name} cannot be shared and is reserved for {_first(claim)}.",
        Obstacle.FULL: f"ResourceClaim {name} has {len(consumers(claim))} consumers, the limit is "
        f"{release.reserved_for_limit}. Use a PodGroup claim (1.36+) or more claims.",
    }[obstacle]


def _first(claim: JsonObject) -> str:
    reserved = consumers(claim)
    return str(reserved[0]) if reserved else "nobody"


def with_consumer(claim: JsonObject, entry: JsonObject) -> list[JsonObject]:
    """The whole new ``status.reservedFor`` with ``entry`` at its end; unchanged when its UID is listed already."""
    present = consumers(claim)
    raw = [c.raw for c in present]
    return raw if any(c.uid == entry["uid"] for c in present) else [*raw, entry]


# Dropping


class Verdict(enum.Enum):
    """What is to be done with a consumer."""

    KEEP = "keep"
    DROP = "drop"
    #: The object is in no cache and was never seen to go: ask the API server before anything is dropped.
    ASK = "ask"


def consumer_verdict(
    consumer: Consumer,
    found: JsonObject | None,
    *,
    known_deleted: t.Container[str] = (),
    is_live_answer: bool = False,
) -> Verdict:
    """Whether a consumer still is one.

    ``found`` is the pod or PodGroup of that name in the claim's namespace, None when there is none. ``known_deleted``
    holds UIDs that were seen to go. ``is_live_answer`` says that ``found`` comes from the API server and not from a
    cache: then its absence is final. Consumers of kinds that are not known here are always kept.
    """
    if not (consumer.is_pod or consumer.is_pod_group):
        return Verdict.KEEP
    if consumer.uid in known_deleted:
        return Verdict.DROP
    if found is None:
        return Verdict.DROP if is_live_answer else Verdict.ASK
    kind = "Pod" if consumer.is_pod else "PodGroup"
    if ObjectView(kind, found).uid != consumer.uid:
        return Verdict.DROP
    if consumer.is_pod and is_done(found):
        return Verdict.DROP
    return Verdict.KEEP
