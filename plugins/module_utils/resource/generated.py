# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The claim that the controller makes from a template, and how it finds one that it made before."""

from __future__ import annotations

import copy
import typing as t

from ..checkpoint.errors import DraError
from .names import POD_CLAIM_ANNOTATION, deterministic_name, generated_name_base
from .ownership import claim_view, controlling_owner, owning_pod
from .pod import PodClaim, pod_view
from .release import Release
from .requests import admin_requests, has_prioritized_list
from .versions import SCHEDULING_GROUP, ApiVersion, release_or_assumed
from .view import JsonObject, ObjectView


class CreationRefusedError(DraError):
    """A template asks for a feature that is switched off. Facts: ``namespace``, ``template``, ``feature``."""


def check_template_allowed(template: JsonObject, *, admin_access: bool = True, prioritized_list: bool = True) -> None:
    """Raise ``CreationRefusedError`` when the template needs a feature whose switch is off."""
    view = template_view(template)
    spec = ("spec", "spec")
    facts = {"namespace": view.namespace, "template": view.name}
    if not admin_access and admin_requests(view, spec):
        raise CreationRefusedError(
            f"ResourceClaimTemplate {view.full_name}: admin access is requested, but the feature is disabled.",
            "Remove adminAccess from the template, or allow admin access in the controller's settings after "
            "checking who may "
            "label namespaces.",
            feature="admin_access",
            **facts,
        )
    if not prioritized_list and has_prioritized_list(view, spec):
        raise CreationRefusedError(
            f"ResourceClaimTemplate {view.full_name}: template includes a prioritized list of subrequests, but "
            "the feature "
            "is disabled.",
            "Use plain requests, or switch the feature on in the cluster and in the controller's settings.",
            feature="prioritized_list",
            **facts,
        )


def template_view(template: object) -> ObjectView:
    """The ResourceClaimTemplate for reading; raises ``MalformedObjectError`` when it is none."""
    return ObjectView("ResourceClaimTemplate", template)


def generated_claim(
    pod: JsonObject,
    pod_claim: PodClaim,
    template: JsonObject,
    version: ApiVersion,
    release: Release | None = None,
) -> dict[str, t.Any]:
    """The ResourceClaim to create for an entry of a pod, ready to be sent (controller: handleClaim).

    Everything of the template is copied deeply: the template usually sits in a cache that others read. The pod must
    have a namespace, name and UID. Up to 1.27 the name is fixed and there is no annotation.
    """
    identity = pod_view(pod).identity()
    in_force = release_or_assumed(version, release)
    owner: dict[str, t.Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": identity.name,
        "uid": identity.uid,
        "controller": True,
    }
    if in_force.sets_block_owner_deletion:
        owner["blockOwnerDeletion"] = True
    claim = _from_template(template, version, identity.namespace, owner)
    if in_force.has_deterministic_names:
        claim["metadata"]["name"] = deterministic_name(identity.name, pod_claim.name)
    else:
        claim["metadata"]["generateName"] = generated_name_base(identity.name, pod_claim.name)
        claim["metadata"].setdefault("annotations", {})[POD_CLAIM_ANNOTATION] = pod_claim.name
    return claim


def generated_pod_group_claim(
    pod_group: JsonObject,
    entry: PodClaim,
    template: JsonObject,
    version: ApiVersion,
    scheduling_version: str,
) -> dict[str, t.Any]:
    """The ResourceClaim to create for an entry of a PodGroup (1.36+).

    ``scheduling_version`` is the version of scheduling.k8s.io in use, such as ``v1alpha2``; list items do not carry it.
    """
    identity = ObjectView("PodGroup", pod_group).identity()
    owner = {
        "apiVersion": f"{SCHEDULING_GROUP}/{scheduling_version}",
        "kind": "PodGroup",
        "name": identity.name,
        "uid": identity.uid,
        "controller": True,
    }
    claim = _from_template(template, version, identity.namespace, owner)
    claim["metadata"]["generateName"] = generated_name_base(identity.name, entry.name)
    claim["metadata"].setdefault("annotations", {})[POD_CLAIM_ANNOTATION] = entry.name
    return claim


def _from_template(
    template: JsonObject, version: ApiVersion, namespace: str, owner: dict[str, t.Any]
) -> dict[str, t.Any]:
    view = template_view(template)
    metadata: dict[str, t.Any] = {"namespace": namespace, "ownerReferences": [owner]}
    for field in ("labels", "annotations"):
        values = view.text_map("spec", "metadata", field)
        if values:
            metadata[field] = values
    return {
        "apiVersion": version.group_version,
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": copy.deepcopy(dict(view.mapping("spec", "spec"))),
    }


# Finding


def is_generated_for(
    pod: JsonObject, pod_claim: PodClaim, claim: JsonObject, *, accept_unannotated: bool = False
) -> bool:
    """Whether ``claim`` was generated for this entry of this pod.

    It must be controlled by the pod's UID and carry the annotation with the entry's name. ``accept_unannotated``
    (clusters up to 1.30) also takes a claim without annotation that has the old fixed name.
    """
    view = pod_view(pod)
    owner = owning_pod(claim)
    if owner is None or not owner.uid or owner.uid != view.uid:
        return False
    claim_object = claim_view(claim)
    annotated = claim_object.text("metadata", "annotations", POD_CLAIM_ANNOTATION)
    if annotated:
        return annotated == pod_claim.name
    return accept_unannotated and claim_object.name == deterministic_name(view.name, pod_claim.name)


def find_generated_claim(
    pod: JsonObject, pod_claim: PodClaim, claims: t.Iterable[JsonObject], *, accept_unannotated: bool = False
) -> JsonObject | None:
    """A claim that exists already for the entry, so that a second one is not made (controller: findPodResourceClaim).

    Claims that are being deleted are passed over, they can never be allocated again. Among several, which only a crash
    or a second controller leaves behind, the oldest wins, then the name, so that every controller picks the same one.
    """
    found = [
        claim
        for claim in claims
        if is_generated_for(pod, pod_claim, claim, accept_unannotated=accept_unannotated)
        and not claim_view(claim).is_deleted
    ]
    return min(found, key=_age_and_name) if found else None


def find_pod_group_claim(pod_group: JsonObject, entry: PodClaim, claims: t.Iterable[JsonObject]) -> JsonObject | None:
    """As ``find_generated_claim``, for an entry of a PodGroup."""
    uid = ObjectView("PodGroup", pod_group).required_text("metadata", "uid")
    found = []
    for claim in claims:
        owner, view = controlling_owner(claim), claim_view(claim)
        if owner is None or not owner.is_pod_group or owner.uid != uid or view.is_deleted:
            continue
        if view.text("metadata", "annotations", POD_CLAIM_ANNOTATION) == entry.name:
            found.append(claim)
    return min(found, key=_age_and_name) if found else None


def has_same_origin(claim: JsonObject, wanted: JsonObject) -> bool:
    """Whether a claim that exists is what the creation of ``wanted`` would have made: same owner UID, same entry."""
    owner, other = controlling_owner(claim), controlling_owner(wanted)
    if owner is None or other is None or not owner.uid or owner.uid != other.uid:
        return False
    annotation = ("metadata", "annotations", POD_CLAIM_ANNOTATION)
    return claim_view(claim).text(*annotation) == claim_view(wanted).text(*annotation)


def _age_and_name(claim: JsonObject) -> tuple[str, str]:
    view = claim_view(claim)
    # RFC 3339 in UTC with whole seconds: text order is time order.
    return view.text("metadata", "creationTimestamp"), view.name


def claim_status_entries(names: t.Mapping[str, str | None]) -> list[dict[str, str]]:
    """``status.resourceClaimStatuses`` for a server-side apply: pod claim name to claim name, None when none is needed.

    The list must always be complete: what an apply leaves out that its field manager owned before is removed.
    """
    entries = []
    for pod_claim, claim in names.items():
        entry = {"name": pod_claim}
        if claim is not None:
            entry["resourceClaimName"] = claim
        entries.append(entry)
    return entries
