# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Statuses of containers in a pod's status: what the server fills in, and the health of devices in them."""

from __future__ import annotations

import typing as t

from . import field_errors as fe
from .json_text import Json
from .write_context import WriteContext

_LISTS = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_HEALTH = "allocatedResourcesStatus"
_STATES = ("Healthy", "Unhealthy", "Unknown")
_CLAIM = "claim:"
# What Go writes even when it was not given.
_ZERO: t.Mapping[str, t.Any] = {"ready": False, "restartCount": 0, "image": "", "imageID": ""}


def default_container_statuses(status: Json) -> None:
    for name in _LISTS:
        for one in status.get(name, ()):
            for field, zero in _ZERO.items():
                one.setdefault(field, zero)
            for field in ("state", "lastState"):
                one.setdefault(field, {})
            for allocated in one.get(_HEALTH, ()):
                allocated.setdefault("name", "")
                for resource in allocated.get("resources", ()):
                    resource.setdefault("resourceID", "")


def drop_health(new: Json, old: Json, context: WriteContext) -> None:
    """Health vanishes from a status where the gate ResourceHealthStatus is off, unless it was there before."""
    settings = context.settings
    before = list(_with_health(old))
    for one in _with_health(new):
        if not settings.resource_health and not before:
            del one[_HEALTH]
        elif settings.played_release < (1, 36, 0):
            for allocated in one[_HEALTH]:
                for resource in allocated.get("resources", ()):
                    resource.pop("message", None)  # not a field yet


def _with_health(pod: Json) -> t.Iterator[Json]:
    status = pod.get("status", {})
    yield from (one for name in _LISTS for one in status.get(name, ()) if _HEALTH in one)


def health_errors(pod: Json) -> list[fe.FieldError]:
    """What is wrong with the health of devices: it is for regular containers, and for what they asked for."""
    status = pod.get("status", {})
    errors = [
        fe.forbidden(f"status.{name}[{index}].{_HEALTH}", "must not be specified in container status")
        for name in ("initContainerStatuses", "ephemeralContainerStatuses")
        for index, one in enumerate(status.get(name, ()))
        if _HEALTH in one
    ]
    containers = {container.get("name"): container for container in pod["spec"].get("containers", ())}
    for index, one in enumerate(status.get("containerStatuses", ())):
        for place, allocated in enumerate(one.get(_HEALTH, ())):
            field = f"status.containerStatuses[{index}].{_HEALTH}[{place}]"
            container = containers.get(one.get("name"))
            if container is not None:
                errors += _name_errors(field, allocated.get("name", ""), container.get("resources", {}))
            errors += _resource_errors(field, allocated.get("resources", ()))
    return errors


def _name_errors(field: str, name: str, resources: Json) -> list[fe.FieldError]:
    if name.startswith(_CLAIM):
        known = {_claim_name(claim) for claim in resources.get("claims", ())}
        detail = (
            "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
            "'claim:<claimName>' if request is empty"
        )
    else:
        known = set(resources.get("requests", ()))
        detail = "must match one of the container's resource requests"
    return [] if name in known else [fe.invalid(f"{field}.name", name, detail)]


def _claim_name(claim: Json) -> str:
    request = claim.get("request", "")
    return f"{_CLAIM}{claim.get('name', '')}" + (f"/{request}" if request else "")


def _resource_errors(field: str, resources: t.Sequence[Json]) -> list[fe.FieldError]:
    errors: list[fe.FieldError] = []
    seen: set[str] = set()
    for index, resource in enumerate(resources):
        here = f"{field}.resources[{index}]"
        if resource.get("health", "") not in _STATES:
            errors.append(fe.not_supported(f"{here}.health", resource.get("health", ""), _STATES))
        if resource.get("resourceID", "") in seen:
            errors.append(fe.duplicate(f"{here}.resourceID", resource.get("resourceID", "")))
        seen.add(resource.get("resourceID", ""))
    return errors
