# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which container of a pod uses which claim, and which of its requests."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .pod import extended_resource_claim, pod_view
from .view import JsonObject, Path


@dataclass(frozen=True)
class ContainerClaim:
    """One use of a claim by a container.

    ``pod_claim`` is the name of the entry in ``spec.resourceClaims``, None for the claim of extended resources.
    ``request`` limits the use to one request of the claim; empty means all of it.
    """

    pod_claim: str | None
    request: str = ""


@dataclass(frozen=True)
class ContainerClaims:
    """A container and its claims. ``restartable`` marks init containers that run beside the others (sidecars)."""

    name: str
    is_init: bool
    restartable: bool
    claims: tuple[ContainerClaim, ...]


def container_claims(pod: JsonObject) -> list[ContainerClaims]:
    """Every init container and container of the pod in start order, with the claims that it uses (kubelet:
    GetResources).

    Ephemeral containers cannot have claims. Uses that come from extended resources follow those of the spec.
    """
    view = pod_view(pod)
    extended = extended_resource_claim(pod)
    result = []
    for field in ("initContainers", "containers"):
        for index, _entry in enumerate(view.entries("spec", field)):
            at: Path = ("spec", field, index)
            name = view.required_text(*at, "name")
            listed = (*at, "resources", "claims")
            claims = [
                ContainerClaim(
                    view.required_text(*listed, position, "name"),
                    view.text(*listed, position, "request"),
                )
                for position, _claim in enumerate(view.entries(*listed))
            ]
            if extended is not None:
                claims += [
                    ContainerClaim(None, mapping.request) for mapping in extended.requests if mapping.container == name
                ]
            is_init = field == "initContainers"
            restartable = is_init and view.text(*at, "restartPolicy") == "Always"
            result.append(ContainerClaims(name, is_init, restartable, tuple(claims)))
    return result


def referenced_pod_claims(pod: JsonObject) -> set[str]:
    """Names of the entries of ``spec.resourceClaims`` that some container uses; up to 1.30 only these were prepared."""
    return {claim.pod_claim for container in container_claims(pod) for claim in container.claims if claim.pod_claim}


def request_matches(device_requests: t.Collection[str] | None, container_request: str) -> bool:
    """Whether a device that was prepared for ``device_requests`` belongs to what a container asks for.

    No names on the device mean every request of the claim, no request in the container means the whole claim. Drivers
    built with helpers before 1.33 report the chosen alternative as ``request/subrequest``; a container can only name
    the request, so the part before the slash counts too (the kubelet compares literally and hands out nothing).
    """
    if not container_request or not device_requests:
        return True
    return any(name == container_request or name.split("/", 1)[0] == container_request for name in device_requests)
