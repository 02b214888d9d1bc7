# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the controller has to know of the cluster it works in: the versions to speak and the release's habits."""

from __future__ import annotations

import dataclasses

from ..kube.client import KubeClient
from ..kube.discovery import ServedApis, discover, server_release
from ..kube.resources import Resource, resource_of
from ..resource.release import Release
from ..resource.versions import RESOURCE_GROUP, SCHEDULING_GROUP, ApiVersion, release_or_assumed


@dataclasses.dataclass(frozen=True)
class Target:
    """``pod_groups`` is the version of scheduling.k8s.io, None where PodGroups are not served; ``contexts`` tells
    whether PodSchedulingContexts are.
    """

    version: ApiVersion
    release: Release
    pod_groups: str | None = None
    contexts: bool = False

    @classmethod
    def of(cls, served: ServedApis, release: Release | None = None) -> Target:
        """The target that a discovery has found; without ``release`` the one that the version stands for."""
        contexts = served.claims.scheduling_kind == "PodSchedulingContext" and served.has("podschedulingcontexts")
        return cls(served.claims, release_or_assumed(served.claims, release), served.pod_groups, contexts)

    @property
    def deterministic_names(self) -> bool:
        """Up to 1.27: ``<pod>-<pod claim>``, and no list of names in the pod's status."""
        return self.release.has_deterministic_names

    @property
    def accepts_unannotated(self) -> bool:
        """Up to 1.30 a claim with the old fixed name and no annotation is taken for a generated one."""
        return self.release < (1, 31)

    def resource(self, kind: str) -> Resource:
        """The collection of a kind in the version that is spoken."""
        group = resource_of(kind).kind.group
        if group == RESOURCE_GROUP:
            return resource_of(kind, self.version.name)
        return resource_of(kind, self.pod_groups or "v1") if group == SCHEDULING_GROUP else resource_of(kind)


async def find_target(client: KubeClient, *, allow_alpha: bool = True, pod_groups: bool = True) -> Target:
    """Ask the API server. Raises ``NoUsableVersionError`` with what it serves, or another ``KubeError``."""
    served = await discover(client, allow_alpha=allow_alpha, pod_groups=pod_groups)
    return Target.of(served, await server_release(client))
