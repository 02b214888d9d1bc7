# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Health of devices in the status of a pod: what should stand there, and the patch that brings it there.

``status.containerStatuses`` is one atomic list for the API server: an apply or a merge patch of one container would
replace all of them. Only a JSON patch reaches one field of one container, and its test of the resourceVersion makes
sure that this container still stands at that place (API: ``ContainerStatus.allocatedResourcesStatus``).
"""

from __future__ import annotations

import typing as t

from ..manager.container_devices import ResourceStatus
from ..resource.containers import container_claims
from ..resource.view import JsonObject

FIELD = "allocatedResourcesStatus"
UNKNOWN = "Unknown"

PodHealth = dict[str, list[JsonObject]]
"""Names of containers to entries of `FIELD`."""
Statuses = t.Callable[[JsonObject, str], t.Sequence[ResourceStatus]]
"""Pod and container to its entries, as `manager.DraManager.allocated_resources_status`."""


def known_health(pod: JsonObject, statuses: Statuses) -> PodHealth:
    """What is known of the devices of each container that has a status by now.

    A claim of which no device is known yet is left out. Raises `DraError` for a pod that cannot be understood.
    """
    wanted = {one.name for one in container_claims(pod) if one.claims and not one.is_init}
    found = {}
    for status in _container_statuses(pod):
        name = status.get("name", "")
        entries = [_entry(one) for one in statuses(pod, name) if one.resources] if name in wanted else []
        if entries:
            found[name] = entries
    return found


def shown_health(pod: JsonObject, wanted: PodHealth) -> PodHealth:
    """What the pod's status has in the place of ``wanted`` and in its order, whatever else stands there."""
    shown = {}
    for status in _container_statuses(pod):
        name = status.get("name", "")
        if name in wanted:
            present = {one.get("name"): one for one in status.get(FIELD) or ()}
            shown[name] = [present[one["name"]] for one in wanted[name] if one["name"] in present]
    return shown


def without_doubt(wanted: PodHealth, shown: PodHealth) -> PodHealth:
    """``wanted``, but what the status knows of a device stays where nothing is known of it now."""
    known = {
        (container, entry["name"], resource.get("resourceID")): resource
        for container, entries in shown.items()
        for entry in entries
        for resource in entry.get("resources") or ()
    }

    def better(container: str, entry: str, resource: JsonObject) -> JsonObject:
        unknown = resource["health"] == UNKNOWN and "message" not in resource
        return known.get((container, entry, resource["resourceID"]), resource) if unknown else resource

    return {
        container: [
            {**entry, "resources": [better(container, entry["name"], one) for one in entry["resources"]]}
            for entry in entries
        ]
        for container, entries in wanted.items()
    }


def same_health(one: PodHealth, other: PodHealth) -> bool:
    """Whether both say the same of every device, messages aside: servers before 1.36 do not keep those."""
    return _plain(one) == _plain(other)


def health_patch(pod: JsonObject, wanted: PodHealth) -> list[JsonObject]:
    """The JSON patch, for the pod's status, that makes it show ``wanted`` and leaves everything else as it is."""
    version = pod["metadata"]["resourceVersion"]
    operations: list[JsonObject] = [{"op": "test", "path": "/metadata/resourceVersion", "value": version}]
    for index, status in enumerate(_container_statuses(pod)):
        entries = wanted.get(status.get("name", ""))
        present = status.get(FIELD) or []
        if entries is None:
            continue
        value = _merged(present, entries)
        if value != present:
            operations.append({"op": "add", "path": f"/status/containerStatuses/{index}/{FIELD}", "value": value})
    return operations


def _container_statuses(pod: JsonObject) -> list[JsonObject]:
    return (pod.get("status") or {}).get("containerStatuses") or []


def _entry(status: ResourceStatus) -> JsonObject:
    return {"name": status.name, "resources": [dict(one) for one in status.resources]}


def _merged(present: t.Sequence[JsonObject], entries: t.Sequence[JsonObject]) -> list[JsonObject]:
    """``present`` with ``entries`` in their old places, and new ones behind."""
    ours = {entry["name"]: entry for entry in entries}
    kept = [ours.pop(one.get("name"), one) for one in present]
    return [*kept, *ours.values()]


def _plain(health: PodHealth) -> dict[str, dict[str, dict[str, str]]]:
    return {
        container: {
            entry["name"]: {one.get("resourceID"): one.get("health") for one in entry.get("resources") or ()}
            for entry in entries
        }
        for container, entries in health.items()
    }
