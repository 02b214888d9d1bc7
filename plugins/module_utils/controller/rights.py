# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The rights of the controller's account, from its list of requests, as the rules of a ClusterRole and of Roles.

Every other place that grants these rights or asks for them takes them from here.
"""

from __future__ import annotations

import typing as t

from ..kube.rights import Right
from .requests import coexistence_rights, election_rights, rights_in
from .target import Target

Rule = dict[str, list[str]]
"""A rule of RBAC: ``apiGroups``, ``resources``, ``verbs``, and ``resourceNames`` where it is for some objects only."""


def account_rights(
    targets: t.Iterable[Target], lease: tuple[str, str], namespaces: t.Sequence[str] = ()
) -> frozenset[Right]:
    """All rights of a controller in clusters of these sorts, none twice.

    ``lease`` is namespace and name of its Lease; ``namespaces`` are those that it looks after, all of them when empty.
    """
    rights = {*election_rights(*lease), *coexistence_rights()}
    for target in targets:
        rights.update(rights_in(target, namespaces))
    return frozenset(right for right in rights if not _implied(right, rights))


def _implied(right: Right, others: t.Collection[Right]) -> bool:
    """Whether the same is granted for all namespaces, or all objects of the namespace, anyway."""
    wider = (
        Right(right.verb, right.resource, right.group, namespace, name)
        for namespace in (right.namespace, "")
        for name in (right.name, "")
    )
    return any(one in others for one in wider if one != right)


def roles(rights: t.Iterable[Right]) -> dict[str, list[Rule]]:
    """Rules by namespace, in stable order; those of "" are for a ClusterRole, the others for a Role each."""
    verbs: dict[tuple[str, str, str, str], set[str]] = {}
    for right in rights:
        verbs.setdefault((right.namespace, right.group, right.name, right.resource), set()).add(right.verb)
    merged: dict[tuple[str, str, str, tuple[str, ...]], list[str]] = {}
    for (namespace, group, name, resource), found in sorted(verbs.items()):
        merged.setdefault((namespace, group, name, tuple(sorted(found))), []).append(resource)
    by_namespace: dict[str, list[Rule]] = {}
    for (namespace, group, name, verbs_of), resources in merged.items():
        rule = {"apiGroups": [group], "resources": resources, "verbs": list(verbs_of)}
        by_namespace.setdefault(namespace, []).append({**rule, "resourceNames": [name]} if name else rule)
    return by_namespace
