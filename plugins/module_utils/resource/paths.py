# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Groups, kinds, plural names and URL paths of the API objects that this collection touches."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ..checkpoint.errors import DraError
from .versions import RESOURCE_GROUP, SCHEDULING_GROUP
from .view import SAFE_NAME


@dataclass(frozen=True)
class Kind:
    """One kind of API object. ``group`` is empty for the core group."""

    name: str
    group: str
    plural: str
    namespaced: bool
    has_status: bool


KINDS: t.Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("Pod", "", "pods", True, True),
        Kind("Node", "", "nodes", False, True),
        Kind("Namespace", "", "namespaces", False, True),
        Kind("Event", "", "events", True, False),
        Kind("Lease", "coordination.k8s.io", "leases", True, False),
        Kind("PodGroup", SCHEDULING_GROUP, "podgroups", True, True),
        Kind("ResourceClaim", RESOURCE_GROUP, "resourceclaims", True, True),
        Kind("ResourceClaimTemplate", RESOURCE_GROUP, "resourceclaimtemplates", True, False),
        Kind("ResourceSlice", RESOURCE_GROUP, "resourceslices", False, False),
        Kind("DeviceClass", RESOURCE_GROUP, "deviceclasses", False, False),
        Kind("ResourceClass", RESOURCE_GROUP, "resourceclasses", False, False),
        Kind("PodSchedulingContext", RESOURCE_GROUP, "podschedulingcontexts", True, True),
        Kind("PodScheduling", RESOURCE_GROUP, "podschedulings", True, True),
    )
}


def collection_path(kind: str, version: str, namespace: str = "") -> str:
    """URL path of a collection: ``/apis/resource.k8s.io/v1/namespaces/team-a/resourceclaims``.

    Without ``namespace`` it is that of all namespaces. Raises ``DraError`` for an unknown kind or a name that would
    leave the path.
    """
    entry = KINDS.get(kind)
    if entry is None:
        raise DraError(f"{kind!r:.80} is not a kind that is known here.", f"Use one of {', '.join(sorted(KINDS))}.")
    root = f"/apis/{entry.group}/{version}" if entry.group else f"/api/{version}"
    if namespace and entry.namespaced:
        return f"{root}/namespaces/{_safe('namespace', namespace)}/{entry.plural}"
    return f"{root}/{entry.plural}"


def object_path(kind: str, version: str, name: str, namespace: str = "", subresource: str = "") -> str:
    """URL path of one object, or of its ``status`` and so on when ``subresource`` is given."""
    if kind in KINDS and KINDS[kind].namespaced and not namespace:
        raise DraError(
            f"{kind} {name} was named without a namespace.", "Give the namespace; kinds of this sort live in one."
        )
    if subresource == "status" and kind in KINDS and not KINDS[kind].has_status:
        raise DraError(f"{kind} {name} has no status to be written.", "Write to the object itself.")
    path = f"{collection_path(kind, version, namespace)}/{_safe('name', name)}"
    return f"{path}/{subresource}" if subresource else path


def _safe(what: str, value: str) -> str:
    if not SAFE_NAME.fullmatch(value):
        raise DraError(
            f"The {what} {value!r:.80} cannot be part of an API path, expected letters, digits, '-' and '.'.",
            "Correct the name; slashes and blanks are never part of one.",
            found=value[:80],
        )
    return value
