# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Claims that belong to a PodGroup and are shared by its pods (1.36+, scheduling.k8s.io)."""

from __future__ import annotations

from .pod import ClaimName, ClaimNotCreatedError, PodClaim, UnsupportedPodClaimError, pod_view
from .view import JsonObject, ObjectView


def pod_group_name(pod: JsonObject) -> str:
    """Name of the PodGroup that the pod is scheduled with, empty when there is none."""
    return pod_view(pod).text("spec", "schedulingGroup", "podGroupName")


def pod_group_claims(pod_group: JsonObject) -> list[PodClaim]:
    """The entries of the PodGroup's ``spec.resourceClaims``, in the same shape as those of a pod."""
    view = ObjectView("PodGroup", pod_group)
    listed = ("spec", "resourceClaims")
    return [
        PodClaim(
            view.required_text(*listed, index, "name"),
            view.text(*listed, index, "resourceClaimName") or None,
            view.text(*listed, index, "resourceClaimTemplateName") or None,
            index,
        )
        for index, _entry in enumerate(view.entries(*listed))
    ]


def is_member(pod: JsonObject, pod_group: JsonObject) -> bool:
    """Whether the pod names this PodGroup, in its own namespace."""
    group = ObjectView("PodGroup", pod_group)
    name = pod_group_name(pod)
    return bool(name) and name == group.name and pod_view(pod).namespace == group.namespace


def binds_to_pod_group(pod: JsonObject, pod_claim: PodClaim, pod_group: JsonObject | None) -> bool:
    """Whether a pod's claim is the PodGroup's: name, claim name and template name all equal an entry of it.

    Anything else binds to the pod itself, as does every claim of a pod that is no member.
    """
    if pod_group is None or not is_member(pod, pod_group):
        return False
    wanted = (pod_claim.name, pod_claim.claim_name, pod_claim.template_name)
    return any((c.name, c.claim_name, c.template_name) == wanted for c in pod_group_claims(pod_group))


def pod_group_claim_name_for(pod_group: JsonObject, claim: PodClaim) -> ClaimName:
    """Name of the ResourceClaim behind an entry of a PodGroup, by the same rules as for a pod."""
    view = ObjectView("PodGroup", pod_group)
    if claim.claim_name:
        return ClaimName(claim.claim_name, False)
    facts = {
        "namespace": view.namespace,
        "pod_group": view.name,
        "pod_claim": claim.name,
        "template": claim.template_name or "",
    }
    if not claim.template_name:
        raise UnsupportedPodClaimError(
            f"PodGroup {view.full_name}, spec.resourceClaim {claim.name}: none of the supported fields are set.",
            "Set resourceClaimName or resourceClaimTemplateName.",
            **facts,
        )
    listed = ("status", "resourceClaimStatuses")
    for index, _entry in enumerate(view.entries(*listed)):
        if view.text(*listed, index, "name") == claim.name:
            name = view.text(*listed, index, "resourceClaimName")
            return ClaimName(name or None, bool(name))
    raise ClaimNotCreatedError(
        f'PodGroup {view.full_name}: ResourceClaim not created yet for spec.resourceClaims entry "{claim.name}".',
        f"The ResourceClaim controller makes it from ResourceClaimTemplate {claim.template_name}: check that "
        "the template "
        "exists and that the controller runs.",
        **facts,
    )
