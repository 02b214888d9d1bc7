# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What waits in the work queue."""

from __future__ import annotations

import typing as t

from .references import name_of, namespace_of
from .shapes import Json

POD, CLAIM, GROUP = "pod", "claim", "podgroup"
KINDS = {POD: "Pod", CLAIM: "ResourceClaim", GROUP: "PodGroup"}


class Key(t.NamedTuple):
    """An object to look at, as ``pod:team-a/p-1``."""

    what: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.what}:{self.namespace}/{self.name}"


def pod_key(pod: Json) -> Key:
    """Of a pod."""
    return Key(POD, namespace_of(pod), name_of(pod))


def claim_key(claim: Json) -> Key:
    """Of a claim."""
    return Key(CLAIM, namespace_of(claim), name_of(claim))


def group_key(group: Json) -> Key:
    """Of a PodGroup."""
    return Key(GROUP, namespace_of(group), name_of(group))


def owner_keys(claim: Json) -> list[Key]:
    """Of the pod or PodGroup that controls a claim, if there is one."""
    owners = claim["metadata"].get("ownerReferences") or ()
    whats = {kind: what for what, kind in KINDS.items() if what != CLAIM}
    return [
        Key(whats[owner["kind"]], namespace_of(claim), owner.get("name", ""))
        for owner in owners
        if owner.get("controller") and owner.get("kind") in whats
    ]
