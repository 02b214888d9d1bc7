# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Who owns a claim, and whether a claim was made for a given pod."""

from __future__ import annotations

from dataclasses import dataclass

from ..checkpoint.errors import DraError
from .pod import pod_view
from .podgroup import pod_group_name
from .versions import SCHEDULING_GROUP
from .view import JsonObject, ObjectView


class NotOwnerError(DraError):
    """A claim has the right name but was made for something else.

    Facts: ``namespace``, ``claim``, ``claim_uid``, ``pod``, ``pod_uid``, ``owner`` (kind/name/UID, empty without one).
    """


@dataclass(frozen=True)
class Owner:
    """The controlling owner reference of an object."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def is_pod(self) -> bool:
        """Whether the owner is a pod."""
        return self.kind == "Pod" and self.api_version == "v1"

    @property
    def is_pod_group(self) -> bool:
        """Whether the owner is a PodGroup of any version."""
        return self.kind == "PodGroup" and self.api_version.startswith(SCHEDULING_GROUP + "/")


def claim_view(claim: object) -> ObjectView:
    """The claim for reading; raises ``MalformedObjectError`` when it is none."""
    return ObjectView("ResourceClaim", claim)


def controlling_owner(claim: JsonObject) -> Owner | None:
    """The owner reference with ``controller: true``, None when there is none."""
    view = claim_view(claim)
    listed = ("metadata", "ownerReferences")
    for index, _entry in enumerate(view.entries(*listed)):
        if view.flag(*listed, index, "controller"):
            fields = (view.text(*listed, index, field) for field in ("apiVersion", "kind", "name", "uid"))
            return Owner(*fields)
    return None


def owning_pod(claim: JsonObject) -> Owner | None:
    """The pod that the claim was generated for, None for claims of users and PodGroups."""
    owner = controlling_owner(claim)
    return owner if owner is not None and owner.is_pod else None


def check_owner(pod: JsonObject, claim: JsonObject) -> None:
    """Raise ``NotOwnerError`` unless the claim was generated for this pod or for its PodGroup (resourceclaim.IsForPod).

    The pod is compared by UID, a PodGroup by kind and name, because the pod does not carry the UID of its group.
    """
    pod_object, claim_object = pod_view(pod), claim_view(claim)
    group = pod_group_name(pod)
    facts = {
        "namespace": claim_object.namespace,
        "claim": claim_object.name,
        "claim_uid": claim_object.uid,
        "pod": pod_object.name,
        "pod_uid": pod_object.uid,
    }
    if claim_object.namespace != pod_object.namespace:
        raise NotOwnerError(
            f"ResourceClaim {claim_object.full_name} is not in the same namespace as Pod {pod_object.full_name}.",
            "Pass a claim and a pod of one namespace.",
            owner="",
            **facts,
        )
    owner = controlling_owner(claim)
    if owner is not None:
        if owner.uid and owner.uid == pod_object.uid:
            return
        if group and owner.is_pod_group and owner.name == group:
            return
    reason = f"neither Pod nor PodGroup {group} is the owner" if group else "Pod is not owner"
    held = f"{owner.kind}/{owner.name}/{owner.uid}" if owner is not None else ""
    found = f"it belongs to {owner.kind} {owner.name} with UID {owner.uid}" if owner is not None else "it has no owner"
    raise NotOwnerError(
        f"ResourceClaim {claim_object.full_name} was not created for Pod {pod_object.full_name} ({reason}): {found}, "
        f"expected the pod's UID {pod_object.uid}.",
        "A claim of an earlier pod with the same name may be left over: delete it, then the controller makes a "
        "new one.",
        owner=held,
        **facts,
    )


def is_owned_by_pod(pod: JsonObject, claim: JsonObject) -> bool:
    """``check_owner`` as a question."""
    try:
        check_owner(pod, claim)
    except NotOwnerError:
        return False
    return True
