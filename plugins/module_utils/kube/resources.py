# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A collection of the API: a kind in one version, and the request that is made to it."""

from __future__ import annotations

import dataclasses
import typing as t

from ..checkpoint.errors import DraError
from ..resource.paths import KINDS, Kind, collection_path, object_path


@dataclasses.dataclass(frozen=True)
class Resource:
    """A kind in one version. Made by ``resource_of``."""

    kind: Kind
    version: str

    @property
    def api_version(self) -> str:
        """What objects of it have in ``apiVersion``: ``v1`` or ``resource.k8s.io/v1``."""
        return f"{self.kind.group}/{self.version}" if self.kind.group else self.version

    @property
    def full_name(self) -> str:
        """Plural with group, as kubectl takes it: ``pods`` or ``resourceclaims.resource.k8s.io``."""
        return f"{self.kind.plural}.{self.kind.group}" if self.kind.group else self.kind.plural

    def collection(self, namespace: str = "") -> str:
        """URL path of the collection; of all namespaces when none is given."""
        return collection_path(self.kind.name, self.version, namespace)

    def item(self, name: str, namespace: str = "", subresource: str = "") -> str:
        """URL path of one object or of its subresource."""
        return object_path(self.kind.name, self.version, name, namespace, subresource)


def resource_of(kind: str, version: str = "v1") -> Resource:
    """The collection of a kind that ``resource.paths`` knows, in ``version``; raises ``DraError`` for another one."""
    entry = KINDS.get(kind)
    if entry is None:
        raise DraError(f"{kind!r:.80} is not a kind that is known here.", f"Use one of {', '.join(sorted(KINDS))}.")
    return Resource(entry, version)


@dataclasses.dataclass(frozen=True)
class Call:
    """One request to the API, as it is named in errors, metrics and rights.

    ``verb`` is that of Kubernetes authorisation (get, list, watch, create, update, patch, delete). ``group`` and
    ``plural`` are empty for paths that are no resource, such as ``/version``.
    """

    verb: str
    method: str
    path: str
    group: str = ""
    plural: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def resource(self) -> str:
        """``resourceclaims/status`` as in an RBAC rule; empty when the path is no resource."""
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural

    @property
    def target(self) -> str:
        """``resourceclaims/status.resource.k8s.io``; the path itself when it is no resource."""
        if not self.plural:
            return self.path
        return f"{self.resource}.{self.group}" if self.group else self.resource

    @property
    def writes(self) -> bool:
        """Whether the request changes something in the cluster. Access reviews are created but change nothing."""
        return self.method not in ("GET", "HEAD") and self.group != "authorization.k8s.io"

    def describe(self) -> str:
        """``patch resourceclaims/status.resource.k8s.io "c1" in namespace "team-a"``."""
        text = f"{self.verb} {self.target}"
        if self.name:
            text += f' "{self.name}"'
        if self.namespace:
            text += f' in namespace "{self.namespace}"'
        elif self.plural and not self.name:
            text += " in all namespaces" if self.verb in ("list", "watch") and self._namespaced else ""
        return text

    @property
    def _namespaced(self) -> bool:
        return any(kind.plural == self.plural and kind.namespaced for kind in KINDS.values())

    def facts(self) -> dict[str, t.Any]:
        """What every error about this request carries."""
        return {
            "verb": self.verb,
            "method": self.method,
            "resource": self.resource,
            "api_group": self.group,
            "namespace": self.namespace,
            "name": self.name,
        }


_METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}


def call_for(resource: Resource, verb: str, namespace: str = "", name: str = "", subresource: str = "") -> Call:
    """The request for ``verb`` on a collection (no ``name``) or on one object."""
    path = resource.item(name, namespace, subresource) if name and verb != "create" else resource.collection(namespace)
    if verb == "create" and subresource:
        path = resource.item(name, namespace, subresource)
    return Call(
        verb=verb,
        method=_METHODS.get(verb, "GET"),
        path=path,
        group=resource.kind.group,
        plural=resource.kind.plural,
        subresource=subresource,
        namespace=namespace,
        name=name,
    )


def path_call(path: str, method: str = "GET") -> Call:
    """The request for a path that is no resource, such as ``/apis/resource.k8s.io``."""
    return Call(verb=method.lower(), method=method, path=path)
