# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the containers of a pod get, as far as the kubelet's state file tells. Pure.

It does not tell what was prepared since the last boot, so these are the names that the kubelet recorded for the pod.
"""

from __future__ import annotations

import typing as t

from ..checkpoint.errors import DraError
from ..resource.containers import ContainerClaim, container_claims, request_matches
from ..resource.pod import claim_name_for, extended_resource_claim, pod_claims, pod_view
from ..resource.view import JsonObject

Json = t.Mapping[str, t.Any]


def recorded_devices(pod: JsonObject, claims: t.Iterable[Json], container: str = "") -> dict[str, list[str]]:
    """CDI names by container, of one or of all, each name once. ``claims`` are reports of the recorded claims.

    Raises `DraError` for a claim that is not recorded for this pod or whose drivers have not all answered.
    """
    by_name = {(claim["namespace"], claim["name"]): claim for claim in claims}
    found = {}
    for one in container_claims(pod):
        if container in ("", one.name):
            names: dict[str, None] = {}
            for use in one.claims:
                names.update(dict.fromkeys(_names(pod, one.name, use, by_name)))
            found[one.name] = list(names)
    if container and container not in found:
        known = ", ".join(one.name for one in container_claims(pod)) or "none"
        raise DraError(
            f"Pod {pod_view(pod).full_name} has no container {container!r:.80}; its containers are: {known}.",
            "Give the name of one of them.",
            container=container[:80],
        )
    return found


def _names(
    pod: JsonObject, container: str, use: ContainerClaim, by_name: t.Mapping[tuple[str, str], Json]
) -> t.Iterator[str]:
    claim_name = _claim_name(pod, use)
    if claim_name is None:
        return
    view = pod_view(pod)
    claim = by_name.get((view.namespace, claim_name))
    if claim is None or not claim["prepared"] or view.required_text("metadata", "uid") not in claim["pods"]:
        raise DraError(
            f"Container {container} of pod {view.full_name} needs ResourceClaim {view.namespace}/{claim_name}, and the "
            f"kubelet has {_state(claim)}.",
            "Look at the pod's events and at nodeops.dra.claim_info.",
            claim=f"{view.namespace}/{claim_name}",
            pod=view.full_name,
            container=container,
        )
    for driver in claim["drivers"]:
        for device in driver["devices"]:
            if request_matches(device["requests"], use.request):
                yield from device["cdi_devices"]


def _state(claim: Json | None) -> str:
    if claim is None:
        return "not recorded it"
    return "recorded it for other pods" if claim["prepared"] else "no answer of its drivers yet"


def _claim_name(pod: JsonObject, use: ContainerClaim) -> str | None:
    """The claim behind a use, None when the pod turned out not to need one."""
    if use.pod_claim is None:
        extended = extended_resource_claim(pod)
        return extended.claim_name if extended is not None else None
    entry = next((one for one in pod_claims(pod) if one.name == use.pod_claim), None)
    return None if entry is None else claim_name_for(pod, entry).name
