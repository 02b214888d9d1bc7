# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a claim was given: allocated or not, by which drivers, classic or structured."""

from __future__ import annotations

import typing as t

from ..checkpoint.errors import DraError
from .ownership import claim_view
from .view import SAFE_NAME, JsonObject, ObjectView, Path

#: ``skipNodeOperations`` of an allocated device (1.37, before its release).
PREPARE_OPERATION = "NodePrepareResources"
UNPREPARE_OPERATION = "NodeUnprepareResources"
_EVERY_OPERATION = "*"

_RESULTS = ("status", "allocation", "devices", "results")


class NotAllocatedError(DraError):
    """A claim has no allocation, or one that gives nothing. Facts: ``namespace``, ``claim``, ``claim_uid``."""


def is_allocated(claim: JsonObject) -> bool:
    """Whether ``status.allocation`` is set, also when it is an empty object."""
    view = claim_view(claim)
    view.mapping("status", "allocation")
    return view.get("status", "allocation") is not None


def is_classic(claim: JsonObject) -> bool:
    """Whether the claim has the form of 1.26 to 1.30 (resource class, resource handles)."""
    view = claim_view(claim)
    if view.mapping("spec", "devices") or view.mapping("status", "allocation", "devices"):
        return False
    if view.text("spec", "resourceClassName"):
        return True
    allocation = view.mapping("status", "allocation")
    return "resourceHandles" in allocation or "resourceHandle" in allocation


def check_allocated(claim: JsonObject) -> None:
    """Raise ``NotAllocatedError`` unless ``is_allocated``."""
    if is_allocated(claim):
        return
    view = claim_view(claim)
    raise NotAllocatedError(
        f"ResourceClaim {view.full_name} ({view.uid}): not allocated, status.allocation is missing.",
        "The scheduler allocates a claim when it places the first pod that uses it: "
        f"`kubectl describe resourceclaim {view.name} -n {view.namespace}` and the events of the pod say what "
        "it waits for.",
        **_facts(view),
    )


def allocation_results(claim: JsonObject) -> t.Sequence[JsonObject]:
    """``status.allocation.devices.results`` as they are, empty for classic claims."""
    return claim_view(claim).entries(*_RESULTS)


def allocated_drivers(claim: JsonObject) -> tuple[str, ...]:
    """The drivers that serve a structured claim, each once, in the order of the results (kubelet: prepareResources).

    Raises ``NotAllocatedError`` without an allocation, and for one without results although the claim asks for devices:
    then nothing could be prepared and a pod would start without its devices. A claim without requests has no drivers;
    a manifest without a spec does not say that it is one.
    """
    check_allocated(claim)
    view = claim_view(claim)
    drivers: dict[str, None] = {}
    for index, _entry in enumerate(view.entries(*_RESULTS)):
        drivers[read_driver(view, (*_RESULTS, index, "driver"))] = None
    requests = len(view.entries("spec", "devices", "requests"))
    if not drivers and (requests or not view.mapping("spec")):
        asked = f"for {requests} request(s)" if requests else "in a manifest without spec"
        raise NotAllocatedError(
            f"ResourceClaim {view.full_name} ({view.uid}): its allocation has no results, expected at least one device "
            f"{asked}.",
            "The allocation was not written by a scheduler of this API version: delete the claim or let it be "
            "allocated again; in a manifest write what was allocated to status.allocation.devices.results.",
            **_facts(view),
        )
    return tuple(drivers)


def read_driver(view: ObjectView, path: Path) -> str:
    """The driver name at ``path``. It becomes part of socket paths, so anything but a plain name is malformed."""
    name = view.text(*path)
    if not name:
        raise view.malformed(path, "a DRA driver name (DRA driver name is empty)", view.get(*path))
    if not SAFE_NAME.fullmatch(name):
        raise view.malformed(path, "a DRA driver name of letters, digits, '-' and '.'", name)
    return name


def skipped_operations(claim: JsonObject, driver: str) -> frozenset[str]:
    """Which of the two node operations the kubelet leaves out for a driver of a claim.

    An operation is left out only when every device of that driver in the claim says so. Leaving out the preparation
    needs leaving out the clean-up too; values that are not known are ignored.
    """
    view = claim_view(claim)
    skipped: frozenset[str] | None = None
    for index, _entry in enumerate(view.entries(*_RESULTS)):
        if view.text(*_RESULTS, index, "driver") != driver:
            continue
        here = _known_operations(view.texts(*_RESULTS, index, "skipNodeOperations"))
        skipped = here if skipped is None else skipped & here
    return skipped if skipped is not None else frozenset()


def _known_operations(values: t.Iterable[str]) -> frozenset[str]:
    listed = set(values)
    both = frozenset((PREPARE_OPERATION, UNPREPARE_OPERATION))
    if _EVERY_OPERATION in listed:
        return both
    known = both & listed
    return known if UNPREPARE_OPERATION in known else frozenset()


def _facts(view: ObjectView) -> dict[str, str]:
    return {"namespace": view.namespace, "claim": view.name, "claim_uid": view.uid}
