# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which claims a pod uses, under which names, and whether it will still run."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ..checkpoint.errors import DraError
from .names import deterministic_name
from .view import JsonObject, ObjectView, Path


class ClaimNotCreatedError(DraError):
    """The claim of a pod's template is not there yet; it passes by itself once the controller has made it.

    Facts: ``namespace``, ``pod``, ``pod_uid``, ``pod_claim``, ``template``.
    """


class UnsupportedPodClaimError(DraError):
    """An entry of ``spec.resourceClaims`` names its claim in a way that is not known here. Facts as above."""


@dataclass(frozen=True)
class PodClaim:
    """One entry of ``pod.spec.resourceClaims``: exactly one of claim name and template name is set in a valid pod."""

    name: str
    claim_name: str | None
    template_name: str | None
    index: int


@dataclass(frozen=True)
class ClaimName:
    """The ResourceClaim behind a pod claim.

    ``name`` is None when the controller decided that no claim is needed. ``must_check_owner`` is set for generated
    claims: the caller has to compare the owner (``ownership.check_owner``) before it trusts an object of that name.
    """

    name: str | None
    must_check_owner: bool


@dataclass(frozen=True)
class ClaimReference:
    """A claim that a pod uses. ``pod_claim`` is None for that of extended resources, which has no entry in the spec."""

    claim_name: str
    must_check_owner: bool
    pod_claim: PodClaim | None


@dataclass(frozen=True)
class ExtendedResourceRequest:
    """Which request of the extended-resource claim serves which resource of which container."""

    container: str
    resource: str
    request: str


@dataclass(frozen=True)
class ExtendedResourceClaim:
    """``pod.status.extendedResourceClaimStatus`` (1.34+)."""

    claim_name: str
    requests: tuple[ExtendedResourceRequest, ...]


def pod_view(pod: object) -> ObjectView:
    """The pod for reading; raises ``MalformedObjectError`` when it is none."""
    return ObjectView("Pod", pod)


def pod_claims(pod: JsonObject) -> list[PodClaim]:
    """The entries of ``spec.resourceClaims`` in their order, in the form of 1.31+ or with ``source`` (1.26 to 1.30).

    Raises ``MalformedObjectError`` for a wrong shape and for two entries of one name.
    """
    view = pod_view(pod)
    result: list[PodClaim] = []
    seen: set[str] = set()
    for index, entry in enumerate(view.entries("spec", "resourceClaims")):
        at: Path = ("spec", "resourceClaims", index)
        name = view.required_text(*at, "name")
        if name in seen:
            raise view.malformed((*at, "name"), "a name that no other entry has", name)
        seen.add(name)
        claim_name, template_name = _source(view, at)
        if claim_name is None and template_name is None:
            claim_name, template_name = _source(view, (*at, "source"))
        if claim_name and template_name:
            raise view.malformed(at, "either resourceClaimName or resourceClaimTemplateName, not both", entry)
        result.append(PodClaim(name, claim_name, template_name, index))
    return result


def _source(view: ObjectView, at: Path) -> tuple[str | None, str | None]:
    return view.text(*at, "resourceClaimName") or None, view.text(*at, "resourceClaimTemplateName") or None


def claim_name_for(pod: JsonObject, pod_claim: PodClaim, *, deterministic_names: bool = False) -> ClaimName:
    """Name of the ResourceClaim behind an entry (resourceclaim.Name of Kubernetes).

    An explicit name is taken as it is. A template's claim is looked up in ``status.resourceClaimStatuses``; an entry
    there without a name means that no claim is needed. With ``deterministic_names`` (clusters up to 1.27) a template's
    claim is ``<pod>-<entry>`` and the status is not asked. Raises ``ClaimNotCreatedError`` or
    ``UnsupportedPodClaimError``.
    """
    view = pod_view(pod)
    if pod_claim.claim_name:
        return ClaimName(pod_claim.claim_name, False)
    if pod_claim.template_name:
        if deterministic_names:
            return ClaimName(deterministic_name(view.required_text("metadata", "name"), pod_claim.name), True)
        listed: Path = ("status", "resourceClaimStatuses")
        for index, _entry in enumerate(view.entries(*listed)):
            if view.text(*listed, index, "name") == pod_claim.name:
                name = view.text(*listed, index, "resourceClaimName")
                return ClaimName(name or None, bool(name))
        raise ClaimNotCreatedError(
            f'pod "{view.full_name}": ResourceClaim not created yet for spec.resourceClaims entry "{pod_claim.name}".',
            f"The ResourceClaim controller makes it from ResourceClaimTemplate {pod_claim.template_name}: "
            "check that the "
            f"template exists and that the controller runs (`kubectl describe pod {view.name} -n {view.namespace}`).",
            **_facts(view, pod_claim),
        )
    raise UnsupportedPodClaimError(
        f'pod "{view.full_name}", spec.resourceClaim "{pod_claim.name}": none of the supported fields are set.',
        "Set resourceClaimName or resourceClaimTemplateName. If the pod has one, it was read through an API "
        "version that "
        "drops it.",
        **_facts(view, pod_claim),
    )


def _facts(view: ObjectView, pod_claim: PodClaim) -> dict[str, t.Any]:
    return {
        "namespace": view.namespace,
        "pod": view.name,
        "pod_uid": view.uid,
        "pod_claim": pod_claim.name,
        "template": pod_claim.template_name or "",
    }


def claim_references(pod: JsonObject, *, deterministic_names: bool = False) -> list[ClaimReference]:
    """Every claim that the pod uses: those of its spec in order, without the unneeded, then that of extended resources.

    A claim that two entries name appears once for each. Raises as ``claim_name_for`` on the first entry that has no
    claim.
    """
    result = []
    for pod_claim in pod_claims(pod):
        found = claim_name_for(pod, pod_claim, deterministic_names=deterministic_names)
        if found.name is not None:
            result.append(ClaimReference(found.name, found.must_check_owner, pod_claim))
    extended = extended_resource_claim(pod)
    if extended is not None:
        # The status names the claim outright, so it counts like an explicit name (the reservation still has to match).
        result.append(ClaimReference(extended.claim_name, False, None))
    return result


def extended_resource_claim(pod: JsonObject) -> ExtendedResourceClaim | None:
    """The claim that the scheduler made for the pod's extended resources, None when there is none."""
    view = pod_view(pod)
    base: Path = ("status", "extendedResourceClaimStatus")
    if not view.mapping(*base):
        return None
    mappings = (*base, "requestMappings")
    requests = tuple(
        ExtendedResourceRequest(
            view.required_text(*mappings, index, "containerName"),
            view.required_text(*mappings, index, "resourceName"),
            view.required_text(*mappings, index, "requestName"),
        )
        for index, _entry in enumerate(view.entries(*mappings))
    )
    return ExtendedResourceClaim(view.required_text(*base, "resourceClaimName"), requests)


def uses_claims(pod: JsonObject) -> bool:
    """Whether the pod has anything to do with claims; all other pods can be forgotten at once."""
    view = pod_view(pod)
    return bool(view.get("spec", "resourceClaims") or view.get("status", "extendedResourceClaimStatus"))


def node_name(pod: JsonObject) -> str:
    """The node that the pod is bound to, empty before that."""
    return pod_view(pod).text("spec", "nodeName")


def is_finished(pod: JsonObject) -> bool:
    """Whether all containers have ended for good: phase Succeeded or Failed."""
    return pod_view(pod).text("status", "phase") in ("Succeeded", "Failed")


def is_done(pod: JsonObject) -> bool:
    """Whether the pod needs no claims any more: finished, or deleted before it was bound to a node."""
    view = pod_view(pod)
    return is_finished(pod) or (view.is_deleted and not view.text("spec", "nodeName"))
