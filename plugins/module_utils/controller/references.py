# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""By what the objects in the caches are found: owners, consumers, claims, templates and PodGroups.

These run for every change of every object, so they read the decoded JSON directly; the codec has checked its types.
"""

from __future__ import annotations

import typing as t

from ..resource.names import deterministic_name
from .shapes import Json

#: Namespace and name.
Named = tuple[str, str]


def namespace_of(obj: Json) -> str:
    """``metadata.namespace``."""
    return str(obj["metadata"].get("namespace", ""))


def name_of(obj: Json) -> str:
    """``metadata.name``."""
    return str(obj["metadata"].get("name", ""))


def uid_of(obj: Json) -> str:
    """``metadata.uid``."""
    return str(obj["metadata"].get("uid", ""))


def owner_uids(obj: Json) -> list[str]:
    """The UID of the controlling owner, if there is one."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return [owner.get("uid", "") for owner in owners if owner.get("controller")]


def consumer_uids(claim: Json) -> list[str]:
    """UIDs in ``status.reservedFor``."""
    return [str(entry.get("uid", "")) for entry in (claim.get("status") or {}).get("reservedFor") or ()]


def claim_names(pod: Json, deterministic_names: bool) -> set[Named]:
    """The claims that a pod names in spec or status, or had named up to 1.27."""
    namespace, spec, status = namespace_of(pod), pod.get("spec") or {}, pod.get("status") or {}
    names = set()
    for entry in spec.get("resourceClaims") or ():
        source = entry.get("source") or entry
        if source.get("resourceClaimName"):
            names.add(source["resourceClaimName"])
        elif deterministic_names:
            names.add(deterministic_name(name_of(pod), entry.get("name", "")))
    for entry in status.get("resourceClaimStatuses") or ():
        names.add(entry.get("resourceClaimName"))
    names.add((status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName"))
    return {(namespace, name) for name in names if name}


def template_names(owner: Json) -> set[Named]:
    """The templates that a pod or a PodGroup makes claims from."""
    namespace = namespace_of(owner)
    entries = (owner.get("spec") or {}).get("resourceClaims") or ()
    names = ((entry.get("source") or entry).get("resourceClaimTemplateName") for entry in entries)
    return {(namespace, name) for name in names if name}


def group_names(pod: Json) -> list[Named]:
    """The PodGroup that a pod belongs to, if it does."""
    name = ((pod.get("spec") or {}).get("schedulingGroup") or {}).get("podGroupName")
    return [(namespace_of(pod), name)] if name else []


def pod_indexes(deterministic_names: bool) -> dict[str, t.Callable[[Json], t.Iterable[t.Hashable]]]:
    """Indexes of pods: by claim, by template, by PodGroup."""
    return {
        "claim": lambda pod: claim_names(pod, deterministic_names),
        "template": template_names,
        "group": group_names,
    }


CLAIM_INDEXES: dict[str, t.Callable[[Json], t.Iterable[t.Hashable]]] = {"owner": owner_uids, "consumer": consumer_uids}
GROUP_INDEXES: dict[str, t.Callable[[Json], t.Iterable[t.Hashable]]] = {"template": template_names}
