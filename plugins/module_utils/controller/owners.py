# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Pods and PodGroups as owners of generated claims: one set of rules, two kinds."""

from __future__ import annotations

import abc
import dataclasses
import typing as t

from ..kube.event_series import ObjectReference
from ..resource.generated import (
    find_generated_claim,
    find_pod_group_claim,
    generated_claim,
    generated_pod_group_claim,
)
from ..resource.ownership import NotOwnerError, check_owner, controlling_owner
from ..resource.pod import PodClaim, pod_claims
from ..resource.podgroup import pod_group_claims
from ..resource.versions import SCHEDULING_GROUP
from .references import name_of, namespace_of, uid_of
from .shapes import Json
from .target import Target


@dataclasses.dataclass(frozen=True)
class Owner(abc.ABC):
    """An object with ``spec.resourceClaims``. ``kind`` is Pod or PodGroup."""

    kind: t.ClassVar[str] = ""
    event_prefix: t.ClassVar[str] = ""
    obj: Json
    target: Target

    @property
    def namespace(self) -> str:
        """Of the object."""
        return namespace_of(self.obj)

    @property
    def name(self) -> str:
        """Of the object."""
        return name_of(self.obj)

    @property
    def uid(self) -> str:
        """Of the object."""
        return uid_of(self.obj)

    @property
    def described(self) -> str:
        """``Pod team-a/p-1``."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def published(self) -> dict[str, str | None]:
        """``status.resourceClaimStatuses``: entries to claims, None where no claim is needed."""
        entries = (self.obj.get("status") or {}).get("resourceClaimStatuses") or ()
        return {entry.get("name", ""): entry.get("resourceClaimName") or None for entry in entries}

    @property
    def reference(self) -> ObjectReference:
        """For events."""
        return reference_of(self.kind, self.obj, self.target)

    @abc.abstractmethod
    def entries(self) -> list[PodClaim]:
        """``spec.resourceClaims``."""

    @abc.abstractmethod
    def complaint(self, claim: Json) -> str:
        """Why a claim cannot be this owner's; empty when it is."""

    @abc.abstractmethod
    def find(self, entry: PodClaim, claims: t.Iterable[Json]) -> Json | None:
        """The claim that was made for the entry, among those of this owner."""

    @abc.abstractmethod
    def claim_from(self, entry: PodClaim, template: Json) -> Json:
        """The claim to make for the entry."""


@dataclasses.dataclass(frozen=True)
class PodOwner(Owner):
    """A pod."""

    kind = "Pod"
    event_prefix = "PodResourceClaim"

    def entries(self) -> list[PodClaim]:
        """``spec.resourceClaims``."""
        return pod_claims(self.obj)

    def complaint(self, claim: Json) -> str:
        """Why a claim cannot be this pod's; empty when it is."""
        try:
            check_owner(self.obj, claim)
        except NotOwnerError as error:
            return error.message
        return ""

    def find(self, entry: PodClaim, claims: t.Iterable[Json]) -> Json | None:
        """The claim that was made for the entry."""
        found = find_generated_claim(self.obj, entry, claims, accept_unannotated=self.target.accepts_unannotated)
        return t.cast("Json | None", found)

    def claim_from(self, entry: PodClaim, template: Json) -> Json:
        """The claim to make for the entry."""
        return generated_claim(self.obj, entry, template, self.target.version, self.target.release)


@dataclasses.dataclass(frozen=True)
class GroupOwner(Owner):
    """A PodGroup."""

    kind = "PodGroup"
    event_prefix = "PodGroupResourceClaim"

    def entries(self) -> list[PodClaim]:
        """``spec.resourceClaims``."""
        return pod_group_claims(self.obj)

    def complaint(self, claim: Json) -> str:
        """Why a claim cannot be this PodGroup's; empty when it is."""
        owner = controlling_owner(claim)
        if owner is not None and owner.is_pod_group and owner.uid == self.uid:
            return ""
        return f"ResourceClaim {namespace_of(claim)}/{name_of(claim)} was not created for {self.described}."

    def find(self, entry: PodClaim, claims: t.Iterable[Json]) -> Json | None:
        """The claim that was made for the entry."""
        return t.cast("Json | None", find_pod_group_claim(self.obj, entry, claims))

    def claim_from(self, entry: PodClaim, template: Json) -> Json:
        """The claim to make for the entry."""
        version = self.target.pod_groups or ""
        return generated_pod_group_claim(self.obj, entry, template, self.target.version, version)


def reference_of(kind: str, obj: Json, target: Target) -> ObjectReference:
    """The object of an event."""
    api_version = f"{SCHEDULING_GROUP}/{target.pod_groups}" if kind == "PodGroup" else "v1"
    metadata = obj["metadata"]
    return ObjectReference(
        api_version, kind, name_of(obj), namespace_of(obj), uid_of(obj), metadata.get("resourceVersion", "")
    )
