# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which devices there are, and which of them suit a claim on a node.

The allocator's simple form of what the scheduler does: whole devices only (no shared counters, no consumable
capacity, no per-device node selection), newest generation of each pool, selectors, taints, all requests of a claim
with admin access, prioritised lists and matchAttribute constraints.
"""

from __future__ import annotations

import collections
import dataclasses
import typing as t

from . import cel
from .json_text import Json

DeviceId = tuple[str, str, str]
_MAX_STEPS = 20_000


@dataclasses.dataclass(frozen=True)
class Device:
    """One device of a slice; ``place`` is the node it belongs to, "" for all nodes, or a selector as JSON."""

    identity: DeviceId
    view: t.Mapping[str, t.Any]
    attributes: t.Mapping[str, t.Any]
    taints: t.Sequence[Json]
    node: str
    selector: t.Mapping[str, t.Any] | None


@dataclasses.dataclass(frozen=True)
class Node:
    """A node that pods can be bound to."""

    name: str
    labels: t.Mapping[str, str] = dataclasses.field(default_factory=dict)


def selector_matches(selector: t.Mapping[str, t.Any] | None, node: Node) -> bool:
    """Whether a NodeSelector takes a node; None takes every node."""
    if selector is None:
        return True
    return any(_term_matches(term, node) for term in selector.get("nodeSelectorTerms") or ())


def _term_matches(term: t.Mapping[str, t.Any], node: Node) -> bool:
    conditions = [(part, {"metadata.name": node.name}) for part in term.get("matchFields") or ()]
    conditions += [(part, dict(node.labels)) for part in term.get("matchExpressions") or ()]
    return bool(conditions) and all(_condition_holds(part, values) for part, values in conditions)


def _condition_holds(part: t.Mapping[str, t.Any], values: t.Mapping[str, str]) -> bool:
    value = values.get(part.get("key", ""))
    operator = part.get("operator")
    if operator == "In":
        return value is not None and value in part.get("values", ())
    if operator == "NotIn":
        return value not in part.get("values", ())
    if operator == "Exists":
        return value is not None
    return operator == "DoesNotExist" and value is None


def _attribute(value: t.Mapping[str, t.Any]) -> t.Any:
    return next((value[name] for name in ("int", "bool", "string", "version") if name in value), None)


def _view(driver: str, device: Json) -> tuple[Json, Json]:
    """A device as CEL sees it (by domain), and its attributes by full name."""
    attributes: dict[str, Json] = collections.defaultdict(dict)
    full: Json = {}
    for name, value in (device.get("attributes") or {}).items():
        domain, _slash, short = name.rpartition("/")
        attributes[domain or driver][short] = _attribute(value)
        full[f"{domain or driver}/{short}"] = _attribute(value)
    capacity: dict[str, Json] = collections.defaultdict(dict)
    for name, value in (device.get("capacity") or {}).items():
        domain, _slash, short = name.rpartition("/")
        capacity[domain or driver][short] = cel.quantity(value.get("value") if isinstance(value, dict) else value)
    return {"driver": driver, "attributes": dict(attributes), "capacity": dict(capacity)}, full


def devices_of(slices: t.Iterable[Json]) -> list[Device]:
    """All devices of the newest generation of each pool."""
    newest: dict[tuple[str, str], int] = {}
    specs = [resource_slice["spec"] for resource_slice in slices]
    for spec in specs:
        pool = (spec["driver"], spec["pool"]["name"])
        newest[pool] = max(newest.get(pool, 0), spec["pool"].get("generation", 0))
    found = []
    for spec in specs:
        driver, pool_name = spec["driver"], spec["pool"]["name"]
        if spec["pool"].get("generation", 0) < newest[driver, pool_name]:
            continue
        for device in spec.get("devices") or ():
            view, attributes = _view(driver, device)
            identity = (driver, pool_name, device["name"])
            taints = [taint for taint in device.get("taints") or () if taint.get("effect") != "None"]
            selector = spec.get("nodeSelector")
            found.append(Device(identity, view, attributes, taints, spec.get("nodeName", ""), selector))
    return found


def _tolerated(device: Device, tolerations: t.Sequence[Json]) -> bool:
    def covers(toleration: Json, taint: Json) -> bool:
        if toleration.get("effect") not in (None, "", taint.get("effect")):
            return False
        if toleration.get("operator") == "Exists":
            return toleration.get("key") in (None, "", taint.get("key"))
        return toleration.get("key") == taint.get("key") and toleration.get("value", "") == taint.get("value", "")

    return all(any(covers(toleration, taint) for toleration in tolerations) for taint in device.taints)


class Inventory:
    """Devices, device classes, and what is taken. Candidates for a request are found once and kept."""

    def __init__(
        self, devices: t.Sequence[Device], classes: t.Mapping[str, Json], taken: t.Container[DeviceId]
    ) -> None:
        self.devices = devices
        self.classes = classes
        self.taken = taken
        self._candidates: dict[tuple[str, tuple[str, ...]], list[Device]] = {}
        self._first_free: dict[tuple[str, tuple[str, ...]], int] = {}

    def expressions(self, request: Json) -> tuple[str, ...] | None:
        """All selectors of a request and its class; None when the class does not exist."""
        device_class = self.classes.get(request.get("deviceClassName", ""))
        if device_class is None:
            return None
        parts = [*(device_class.get("spec", {}).get("selectors") or ()), *(request.get("selectors") or ())]
        return tuple(part.get("cel", {}).get("expression", "") for part in parts)

    def candidates(self, request: Json, node: Node) -> list[Device]:
        """Devices that suit a request on a node, taken or not."""
        expressions = self.expressions(request)
        if expressions is None:
            return []
        key = (node.name, expressions)
        found = self._candidates.get(key)
        if found is None:
            found = self._candidates[key] = [
                device
                for device in self.devices
                if device.node in ("", node.name)
                and selector_matches(device.selector, node)
                and all(cel.selects(expression, device.view) for expression in expressions)
            ]
        tolerations = request.get("tolerations") or ()
        return [device for device in found if not device.taints or _tolerated(device, tolerations)]

    def free(self, request: Json, node: Node) -> t.Iterator[Device]:
        """Candidates that nobody has, from where the last search found one."""
        key = (node.name, self.expressions(request) or ())
        devices = self.candidates(request, node)
        start = self._first_free.get(key, 0)
        for offset in range(len(devices)):
            at = (start + offset) % len(devices)
            if devices[at].identity not in self.taken:
                self._first_free[key] = at
                yield devices[at]


@dataclasses.dataclass(frozen=True)
class _Slot:
    """One device that has to be found: the name in the result and the request that it must suit."""

    name: str
    request: t.Mapping[str, t.Any]
    admin: bool


def _variants(request: Json) -> list[tuple[str, Json]]:
    """The ways to satisfy a request, best first."""
    if request.get("exactly"):
        return [(request["name"], request["exactly"])]
    return [(f"{request['name']}/{sub['name']}", sub) for sub in request.get("firstAvailable") or ()]


class Search:
    """Find devices for one claim on one node, without those that are promised already."""

    def __init__(self, inventory: Inventory, node: Node, promised: t.Container[DeviceId]) -> None:
        self._inventory = inventory
        self._node = node
        self._promised = promised
        self._steps = 0

    def results(self, spec: Json) -> list[Json] | None:
        """Allocation results for a claim's spec, or None when the node has too little."""
        requests = spec.get("devices", {}).get("requests") or []
        constraints = [part for part in spec["devices"].get("constraints") or () if part.get("matchAttribute")]
        found = self._requests(requests, [], constraints)
        if found is None:
            return None
        results = []
        for slot, device in found:
            driver, pool, name = device.identity
            result: Json = {"request": slot.name, "driver": driver, "pool": pool, "device": name}
            if slot.admin:
                result["adminAccess"] = True
            results.append(result)
        return results

    def _requests(
        self, requests: list[Json], chosen: list[tuple[_Slot, Device]], constraints: list[Json]
    ) -> list[tuple[_Slot, Device]] | None:
        if not requests:
            return chosen
        for name, request in _variants(requests[0]):
            for more in self._slots(self._slots_of(name, request), chosen, constraints):
                found = self._requests(requests[1:], more, constraints)
                if found is not None:
                    return found
        return None

    def _slots_of(self, name: str, request: Json) -> list[_Slot] | None:
        admin = bool(request.get("adminAccess"))
        if request.get("allocationMode") != "All":
            return [_Slot(name, request, admin)] * request.get("count", 1)
        devices = self._inventory.candidates(request, self._node)
        if not devices or (not admin and any(device.identity in self._inventory.taken for device in devices)):
            return None
        return [_Slot(name, request, admin)] * len(devices)

    def _slots(
        self, slots: list[_Slot] | None, chosen: list[tuple[_Slot, Device]], constraints: list[Json]
    ) -> t.Iterator[list[tuple[_Slot, Device]]]:
        if slots is None:
            return
        if not slots:
            yield chosen
            return
        slot = slots[0]
        request = dict(slot.request)
        pool = (
            self._inventory.candidates(request, self._node) if slot.admin else self._inventory.free(request, self._node)
        )
        used = {device.identity for _slot, device in chosen}
        for device in pool:
            self._steps += 1
            if self._steps > _MAX_STEPS:
                return
            if device.identity in used or (not slot.admin and device.identity in self._promised):
                continue
            more = [*chosen, (slot, device)]
            if _constraints_hold(constraints, more):
                yield from self._slots(slots[1:], more, constraints)


def _constraints_hold(constraints: list[Json], chosen: list[tuple[_Slot, Device]]) -> bool:
    for constraint in constraints:
        names = constraint.get("requests") or ()
        values = [
            device.attributes.get(constraint["matchAttribute"])
            for slot, device in chosen
            if not names or slot.name in names or slot.name.partition("/")[0] in names
        ]
        if None in values or any(value != values[0] for value in values):
            return False
    return True
