# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The versions of resource.k8s.io, what tells them apart, and which one to use with a given API server."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ..checkpoint.errors import DraError
from .release import Release

RESOURCE_GROUP = "resource.k8s.io"
SCHEDULING_GROUP = "scheduling.k8s.io"


@dataclass(frozen=True)
class ApiVersion:
    """One version of resource.k8s.io.

    ``structured`` versions have ``spec.devices`` and ``allocation.devices.results``; the others are classic DRA with
    class names and resource handles. With ``exact_requests`` a device request is wrapped in ``exactly``.
    ``assumed_release`` stands in when the server's release is not known: the newest whose preferred version this was.
    """

    name: str
    introduced: Release
    removed: Release | None
    structured: bool
    exact_requests: bool
    scheduling_kind: str
    assumed_release: Release

    @property
    def group_version(self) -> str:
        """``resource.k8s.io/v1`` and so on, as in ``apiVersion``."""
        return f"{RESOURCE_GROUP}/{self.name}"

    @property
    def is_alpha(self) -> bool:
        """Whether this is an alpha version, which no cluster serves by default."""
        return "alpha" in self.name


#: Best first.
API_VERSIONS: tuple[ApiVersion, ...] = (
    ApiVersion("v1", Release(1, 34), None, True, True, "", Release(1, 36)),
    ApiVersion("v1beta2", Release(1, 33), Release(1, 39), True, True, "", Release(1, 33)),
    ApiVersion("v1beta1", Release(1, 32), Release(1, 38), True, False, "", Release(1, 32, 1)),
    ApiVersion("v1alpha3", Release(1, 31), Release(1, 34), True, False, "PodSchedulingContext", Release(1, 31)),
    ApiVersion("v1alpha2", Release(1, 27), Release(1, 31), False, False, "PodSchedulingContext", Release(1, 30)),
    ApiVersion("v1alpha1", Release(1, 26), Release(1, 27), False, False, "PodScheduling", Release(1, 26)),
)
_BY_NAME = {version.name: version for version in API_VERSIONS}


class NoUsableVersionError(DraError):
    """The API server serves no version of resource.k8s.io that can be used. Facts: ``served``, ``usable``."""


def api_version(name: str) -> ApiVersion:
    """The version called ``v1`` or ``resource.k8s.io/v1``; raise ``DraError`` when there is none of that name."""
    short = name[len(RESOURCE_GROUP) + 1 :] if name.startswith(RESOURCE_GROUP + "/") else name
    found = _BY_NAME.get(short)
    if found is None:
        known = ", ".join(sorted(_BY_NAME))
        raise DraError(f"{name!r:.80} is not a version of {RESOURCE_GROUP}.", f"Use one of {known}.", found=name[:80])
    return found


def choose_version(
    served: t.Mapping[str, t.Collection[str]], *, allow_alpha: bool = True, resource: str = "resourceclaims"
) -> ApiVersion:
    """The best version in which the server serves ``resource``.

    ``served`` maps each served version name to the plural names of its resources. The names alone would mislead: 1.34
    and later serve a ``v1alpha3`` that has no claims any more. ``v1alpha1`` (1.26) is never chosen: its objects can be
    read here, but no daemon speaks it. Raises ``NoUsableVersionError``.
    """
    usable = [v for v in API_VERSIONS if v.name != "v1alpha1" and (allow_alpha or not v.is_alpha)]
    for version in usable:
        if resource in served.get(version.name, ()):
            return version
    with_claims = sorted(name for name, resources in served.items() if resource in resources)
    names = [version.name for version in usable]
    if with_claims:
        found = f"serves {resource} only in {', '.join(with_claims)}"
    elif served:
        found = f"serves {RESOURCE_GROUP} in {', '.join(sorted(served))}, none of them with {resource}"
    else:
        found = f"does not serve {RESOURCE_GROUP}"
    raise NoUsableVersionError(
        f"The API server {found}; usable would be {', '.join(names)}.",
        "Upgrade the cluster to 1.34 or later, or enable the version with the API server's --runtime-config and the "
        "feature gate DynamicResourceAllocation in all components.",
        served=sorted(served),
        usable=names,
    )


def release_or_assumed(version: ApiVersion, release: Release | None) -> Release:
    """``release`` where it is known, else the release that ``version`` stands for."""
    return release if release is not None else version.assumed_release
