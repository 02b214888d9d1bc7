# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Every request that the controller can make. Nothing else is sent, and the rights it needs follow from here.

``gateway`` refuses a request that is not in the list of its cluster, so the list cannot fall behind the code.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ..kube.rights import Right
from ..resource.paths import KINDS
from .target import Target


@dataclasses.dataclass(frozen=True)
class Use:
    """A verb on a kind, and why it is needed. ``subresource`` as in ``pods/status``."""

    verb: str
    kind: str
    subresource: str
    why: str

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return KINDS[self.kind].group

    @property
    def resource(self) -> str:
        """``resourceclaims/status`` as in an RBAC rule."""
        plural = KINDS[self.kind].plural
        return f"{plural}/{self.subresource}" if self.subresource else plural


def _read(kind: str) -> tuple[Use, Use]:
    return Use("list", kind, "", "first state of the cache"), Use("watch", kind, "", "changes after it")


GET_POD = Use("get", "Pod", "", "whether a consumer that is in no cache still exists")
APPLY_POD_STATUS = Use("patch", "Pod", "status", "names of the generated claims")
GET_CLAIM = Use("get", "ResourceClaim", "", "a claim that is named in a status, or exists already, but was not seen")
CREATE_CLAIM = Use("create", "ResourceClaim", "", "claims from templates")
PATCH_CLAIM = Use("patch", "ResourceClaim", "", "removal of the protection finalizer")
PATCH_CLAIM_STATUS = Use("patch", "ResourceClaim", "status", "reservation, release and deallocation")
DELETE_CLAIM = Use("delete", "ResourceClaim", "", "generated claims of finished pods, and duplicates")
CREATE_EVENT = Use("create", "Event", "", "what keeps a pod from its claims")
PATCH_EVENT = Use("patch", "Event", "", "repetitions of an event")
CREATE_CONTEXT = Use("create", "PodSchedulingContext", "", "the node of a pod that was bound without the scheduler")
PATCH_CONTEXT = Use("patch", "PodSchedulingContext", "", "the same where the object exists")
GET_POD_GROUP = Use("get", "PodGroup", "", "whether a consumer that is in no cache still exists")
APPLY_POD_GROUP_STATUS = Use("patch", "PodGroup", "status", "names of the generated claims")

GET_MANAGER_LEASE = Use("get", "Lease", "", "whether a kube-controller-manager is at work in the cluster")
LIST_MANAGER_PODS = Use("list", "Pod", "", "whether its arguments switch its own ResourceClaim controller off or on")

LIST_LEASES = Use("list", "Lease", "", "whether a controller of this collection works under another Lease")

# The election of the layer below makes these.
_ELECTION = (
    Use("get", "Lease", "", "who leads"),
    Use("patch", "Lease", "", "to lead, to go on leading, to let another one lead"),
    Use("create", "Lease", "", "the first leader of all"),
)

# Where a kube-controller-manager has its Lease and, if it is a pod, its pod.
MANAGER_NAMESPACE, MANAGER_LEASE = "kube-system", "kube-controller-manager"

# Rights that the API server asks for beside the request itself.
_BINDING = Use("patch", "ResourceClaim", "binding", "change of allocation and reservation since 1.36")
_POD_FINALIZERS = Use("update", "Pod", "finalizers", "owner references with blockOwnerDeletion, up to 1.35")

_ALWAYS = (
    *_read("Pod"),
    *_read("ResourceClaim"),
    *_read("ResourceClaimTemplate"),
    GET_POD,
    GET_CLAIM,
    CREATE_CLAIM,
    PATCH_CLAIM,
    PATCH_CLAIM_STATUS,
    DELETE_CLAIM,
    CREATE_EVENT,
    PATCH_EVENT,
)
_WITH_CONTEXTS = (*_read("PodSchedulingContext"), CREATE_CONTEXT, PATCH_CONTEXT)
_WITH_POD_GROUPS = (*_read("PodGroup"), GET_POD_GROUP, APPLY_POD_GROUP_STATUS)


def requests_of(target: Target) -> tuple[Use, ...]:
    """The requests that the controller makes in such a cluster."""
    uses = list(_ALWAYS)
    if not target.deterministic_names:
        uses.append(APPLY_POD_STATUS)
    if target.contexts:
        uses += _WITH_CONTEXTS
    if target.pod_groups:
        uses += _WITH_POD_GROUPS
    return tuple(uses)


def needed_rights(target: Target) -> tuple[Use, ...]:
    """The requests, and what the server wants to see beside them."""
    extra = [_POD_FINALIZERS] if target.release.sets_block_owner_deletion else []
    if target.release >= (1, 36):
        extra.append(_BINDING)
    return (*requests_of(target), *extra)


def rights_in(target: Target, namespaces: t.Sequence[str] = ()) -> list[Right]:
    """The same as questions to the API server, for each namespace or for all of them at once.

    ``binding`` has no namespace: the server asks for it in the whole cluster.
    """
    return [
        Right(use.verb, use.resource, use.group, "" if use is _BINDING else namespace)
        for use in needed_rights(target)
        for namespace in (namespaces or ("",))
    ]


def election_rights(namespace: str, name: str) -> list[Right]:
    """What it takes to be a candidate for the Lease ``namespace/name``."""
    return [Right(use.verb, use.resource, use.group, namespace, _named(use, name)) for use in _ELECTION]


def coexistence_rights() -> list[Right]:
    """What it takes to look for other controllers. Without them nobody can be ruled out: see ``coexistence``."""
    lease, pods, leases = GET_MANAGER_LEASE, LIST_MANAGER_PODS, LIST_LEASES
    return [
        Right(lease.verb, lease.resource, lease.group, MANAGER_NAMESPACE, MANAGER_LEASE),
        Right(pods.verb, pods.resource, pods.group, MANAGER_NAMESPACE),
        Right(leases.verb, leases.resource, leases.group),
    ]


def _named(use: Use, name: str) -> str:
    return "" if use.verb == "create" else name  # an object that is made has no name yet, as far as rights go
