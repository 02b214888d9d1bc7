# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What is kept of each object, and what is never kept at all.

The shapes are TypedDicts: msgspec scans over all other fields without making objects of them, and what comes out is
plain JSON, so the caches, live answers and the functions of ``resource/`` share one form and nothing has to be turned
into something else. Structs would save about a kilobyte a claim and need a second way into each of those functions.

Entries of ``reservedFor`` are kept whole, because they are written back.
"""

from __future__ import annotations

import typing as t

from ..kube.object_index import Codec
from ..kube.shapes import Buffer, decoder

Json = dict[str, t.Any]


class OwnerReference(t.TypedDict, total=False):
    """Who owns an object."""

    apiVersion: str
    kind: str
    name: str
    uid: str
    controller: bool | None


# The two annotations of ``resource.names``; all others are somebody else's.
ClaimAnnotations = t.TypedDict(
    "ClaimAnnotations",
    {"resource.kubernetes.io/pod-claim-name": str, "resource.kubernetes.io/extended-resource-claim": str},
    total=False,
)


class Metadata(t.TypedDict, total=False):
    """Of objects that own nothing here."""

    name: str
    namespace: str
    uid: str
    resourceVersion: str
    deletionTimestamp: str | None


class OwnedMetadata(t.TypedDict, total=False):
    """Of objects that belong to a pod or a PodGroup."""

    name: str
    namespace: str
    uid: str
    resourceVersion: str
    creationTimestamp: str | None
    deletionTimestamp: str | None
    annotations: ClaimAnnotations | None
    finalizers: list[str] | None
    ownerReferences: list[OwnerReference] | None


class ClaimSource(t.TypedDict, total=False):
    """Where a claim comes from, up to 1.30."""

    resourceClaimName: str | None
    resourceClaimTemplateName: str | None


class ClaimEntry(t.TypedDict, total=False):
    """An entry of ``spec.resourceClaims`` of a pod or a PodGroup."""

    name: str
    resourceClaimName: str | None
    resourceClaimTemplateName: str | None
    source: ClaimSource | None


class SchedulingGroup(t.TypedDict, total=False):
    """The PodGroup that a pod belongs to."""

    podGroupName: str | None


class PodSpec(t.TypedDict, total=False):
    """Of a pod."""

    nodeName: str
    resourceClaims: list[ClaimEntry] | None
    schedulingGroup: SchedulingGroup | None


class ClaimStatusEntry(t.TypedDict, total=False):
    """The name of a generated claim."""

    name: str
    resourceClaimName: str | None


class ExtendedResourceClaim(t.TypedDict, total=False):
    """The claim of a pod's extended resources."""

    resourceClaimName: str


class PodStatus(t.TypedDict, total=False):
    """Of a pod."""

    phase: str
    resourceClaimStatuses: list[ClaimStatusEntry] | None
    extendedResourceClaimStatus: ExtendedResourceClaim | None


class Pod(t.TypedDict, total=False):
    """A pod that uses claims."""

    metadata: Metadata
    spec: PodSpec
    status: PodStatus


class RequestBody(t.TypedDict, total=False):
    """A device request."""

    adminAccess: bool | None


class DeviceRequest(t.TypedDict, total=False):
    """A device request, flat or wrapped."""

    adminAccess: bool | None
    exactly: RequestBody | None


class Devices(t.TypedDict, total=False):
    """What a claim asks for."""

    requests: list[DeviceRequest] | None


class ClaimSpec(t.TypedDict, total=False):
    """Of a claim of any version."""

    resourceClassName: str
    allocationMode: str
    controller: str
    devices: Devices


class Allocation(t.TypedDict, total=False):
    """That there is one is all that counts; which devices is the scheduler's and the node's affair."""

    shareable: bool
    controller: str


class ClaimStatus(t.TypedDict, total=False):
    """Of a claim of any version."""

    allocation: Allocation | None
    reservedFor: list[Json] | None
    deallocationRequested: bool


class Claim(t.TypedDict, total=False):
    """A claim."""

    metadata: OwnedMetadata
    spec: ClaimSpec
    status: ClaimStatus


class Template(t.TypedDict, total=False):
    """A template, with its whole spec: that is what claims are made from."""

    metadata: Metadata
    spec: Json


class GroupSpec(t.TypedDict, total=False):
    """Of a PodGroup."""

    resourceClaims: list[ClaimEntry] | None


class GroupStatus(t.TypedDict, total=False):
    """Of a PodGroup."""

    resourceClaimStatuses: list[ClaimStatusEntry] | None


class PodGroup(t.TypedDict, total=False):
    """A PodGroup."""

    metadata: Metadata
    spec: GroupSpec
    status: GroupStatus


class ContextSpec(t.TypedDict, total=False):
    """Of a PodSchedulingContext."""

    selectedNode: str


class Context(t.TypedDict, total=False):
    """A PodSchedulingContext."""

    metadata: OwnedMetadata
    spec: ContextSpec


#: By kind. Answers to requests are decoded by the same shapes.
SHAPES: t.Mapping[str, t.Any] = {
    "Pod": Pod,
    "ResourceClaim": Claim,
    "ResourceClaimTemplate": Template,
    "PodGroup": PodGroup,
    "PodSchedulingContext": Context,
}


def keeps_pod(pod: Json) -> bool:
    """Whether a pod has anything to do with claims."""
    return bool(
        (pod.get("spec") or {}).get("resourceClaims") or (pod.get("status") or {}).get("extendedResourceClaimStatus")
    )


def codec_of(kind: str) -> Codec[Json]:
    """How the objects of a kind are read from the network.

    Everything that works on what comes out may count on a name and a UID.
    """
    decode = decoder(t.cast("type[Json]", SHAPES[kind]))
    keeps = keeps_pod if kind == "Pod" else None

    def decode_some(raw: Buffer) -> Json | None:
        obj = decode(raw)
        metadata = obj.get("metadata") or {}
        if not metadata.get("name") or not metadata.get("uid"):
            raise ValueError("it has no metadata.name or no metadata.uid")
        return obj if keeps is None or keeps(obj) else None

    return Codec(decode_some)
