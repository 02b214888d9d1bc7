# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which versions of an API group the server serves, with which resources, and which of them to use."""

from __future__ import annotations

import dataclasses
import typing as t

from ..checkpoint.errors import DraError
from ..resource.paths import KINDS
from ..resource.release import Release, parse_release
from ..resource.versions import RESOURCE_GROUP, SCHEDULING_GROUP, ApiVersion, choose_version
from . import errors
from .client import KubeClient
from .resources import Resource

#: Versions of scheduling.k8s.io with PodGroups that are understood here, best first.
POD_GROUP_VERSIONS = ("v1", "v1beta1", "v1alpha3", "v1alpha2")


@dataclasses.dataclass(frozen=True)
class _VersionEntry:
    version: str = ""


@dataclasses.dataclass(frozen=True)
class _ApiGroup:
    versions: list[_VersionEntry] | None = None


@dataclasses.dataclass(frozen=True)
class _ApiResource:
    name: str = ""


@dataclasses.dataclass(frozen=True)
class _ApiResourceList:
    resources: list[_ApiResource] | None = None


@dataclasses.dataclass(frozen=True)
class _ServerVersion:
    git_version: str = ""


@dataclasses.dataclass(frozen=True)
class ServedGroup:
    """An API group as one server serves it: version names, each with its resources (``resourceclaims/status`` too).

    Empty when the group is not served.
    """

    group: str
    versions: t.Mapping[str, frozenset[str]]

    def serves(self, version: str, resource: str) -> bool:
        """Whether ``resource`` is there in ``version``."""
        return resource in self.versions.get(version, ())

    def choose(self, resource: str, order: t.Sequence[str]) -> str | None:
        """The first version of ``order`` that has ``resource``; None when none has."""
        return next((version for version in order if self.serves(version, resource)), None)


async def served_group(client: KubeClient, group: str) -> ServedGroup:
    """Ask the server for the versions of ``group`` and their resources. Not served: an empty answer, no error."""
    try:
        found = await client.path(f"/apis/{group}", shape=_ApiGroup)
    except errors.NotFoundError:
        return ServedGroup(group, {})
    versions: dict[str, frozenset[str]] = {}
    for entry in found.versions or ():
        try:
            listed = await client.path(f"/apis/{group}/{entry.version}", shape=_ApiResourceList)
        except errors.NotFoundError:
            continue  # switched off between the two questions
        versions[entry.version] = frozenset(resource.name for resource in listed.resources or ())
    return ServedGroup(group, versions)


async def server_release(client: KubeClient) -> Release | None:
    """The release of the API server; None when its version is no release number."""
    text = (await client.path("/version", shape=_ServerVersion)).git_version
    try:
        return parse_release(text)
    except DraError:
        return None


@dataclasses.dataclass(frozen=True)
class ServedApis:
    """What a cluster offers for claims: the version of resource.k8s.io to use, and of scheduling.k8s.io for PodGroups
    (None where they are not served)."""

    claims: ApiVersion
    pod_groups: str | None
    served: ServedGroup
    scheduling: ServedGroup

    def resource(self, kind: str) -> Resource:
        """The collection of a kind of resource.k8s.io or scheduling.k8s.io in the chosen version."""
        entry = KINDS[kind]
        if entry.group == RESOURCE_GROUP:
            return Resource(entry, self.claims.name)
        return Resource(entry, self.pod_groups or "v1") if entry.group == SCHEDULING_GROUP else Resource(entry, "v1")

    def has(self, plural: str) -> bool:
        """Whether the chosen version of resource.k8s.io serves ``plural``."""
        return self.served.serves(self.claims.name, plural)


async def discover(client: KubeClient, *, allow_alpha: bool = True, pod_groups: bool = True) -> ServedApis:
    """Find the versions to use. Call it again after a ``NotServedError``: clusters are upgraded while we run.

    Raises ``NoUsableVersionError`` when no usable version of resource.k8s.io has claims, with what is served.
    """
    served = await served_group(client, RESOURCE_GROUP)
    scheduling = await served_group(client, SCHEDULING_GROUP) if pod_groups else ServedGroup(SCHEDULING_GROUP, {})
    chosen = choose_version(served.versions, allow_alpha=allow_alpha)
    return ServedApis(chosen, scheduling.choose("podgroups", POD_GROUP_VERSIONS), served, scheduling)
