# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the objects of the API say about claims, in the form that a look at a node compares with. Pure."""

from __future__ import annotations

import dataclasses
import typing as t

from ..checkpoint.errors import DraError
from ..resource.allocation import allocated_drivers, is_allocated, is_classic
from ..resource.consumers import consumers
from ..resource.devices import DeviceKey, allocated_devices
from ..resource.handles import resource_handles
from ..resource.pod import claim_references
from ..resource.view import JsonObject
from .claim_request import identity


@dataclasses.dataclass(frozen=True)
class ApiClaim:
    """A claim of the API. ``problem`` says why the rest of it cannot be understood, None where it can.

    ``deleting_since`` is empty unless the claim is being deleted. ``reserved`` are the UIDs that it is reserved for,
    ``admin_devices`` those of its devices that exclude nobody.
    """

    uid: str
    namespace: str
    name: str
    deleting_since: str = ""
    allocated: bool = False
    reserved: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    admin_devices: frozenset[DeviceKey] = frozenset()
    problem: DraError | None = None


def api_claim(claim: JsonObject) -> ApiClaim:
    """The claim as a whole, or as much of it as can be understood."""
    uid, namespace, name = identity(claim)
    since = str((claim.get("metadata") or {}).get("deletionTimestamp") or "")
    found = ApiClaim(uid, namespace, name, since)
    try:
        reserved = tuple(consumer.uid for consumer in consumers(claim))
        found = dataclasses.replace(found, allocated=is_allocated(claim), reserved=reserved)
        if not found.allocated:
            return found
        if is_classic(claim):
            drivers = tuple(dict.fromkeys(handle.driver for handle in resource_handles(claim)))
            return dataclasses.replace(found, drivers=drivers)
        admin = frozenset(device.key for device in allocated_devices(claim) if device.admin_access)
        return dataclasses.replace(found, drivers=allocated_drivers(claim), admin_devices=admin)
    except DraError as error:
        return dataclasses.replace(found, problem=error)


def is_alive(pod: JsonObject) -> bool:
    """Whether containers of the pod may still run."""
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


def names_in_use(pods: t.Iterable[JsonObject]) -> set[tuple[str, str]]:
    """Namespace and name of every claim that a living pod uses."""
    names = set()
    for pod in pods:
        if is_alive(pod):
            try:
                names |= {(identity(pod)[1], reference.claim_name) for reference in claim_references(pod)}
            except DraError:
                continue  # its claims are not made yet
    return names
