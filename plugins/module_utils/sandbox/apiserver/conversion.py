# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""From the form in which an object is stored to that of the version a client speaks, and back.

resource.k8s.io is stored in the form of v1, with the fields of the older generations beside it: whatever one version
cannot express is carried along when an object is written through it.
"""

from __future__ import annotations

import typing as t

from .json_text import Json

Convert = t.Callable[[Json], Json]
_EXACT = ("deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity")


def same(value: Json) -> Json:
    return value


class Form:
    """How one version of a kind relates to the stored form.

    ``read`` makes the version's form, ``write`` the stored form, ``complete`` that of a new object; all may use up
    what they get. ``hidden`` lists the paths of the stored form that the version does not know.
    """

    def __init__(
        self, read: Convert = same, write: Convert = same, hidden: t.Sequence[str] = (), complete: Convert = same
    ) -> None:
        self.is_stored = read is same and not hidden
        self._read = read
        self._write = write
        self._complete = complete
        self.hidden = tuple(tuple(path.split(".")) for path in hidden)

    def alone(self) -> Form:
        """The same without anything to hide: for a server in which no other version can have written more."""
        return Form(self._read, self._write, complete=self._complete)

    def read(self, stored: Json) -> Json:
        for path in self.hidden:
            _drop(stored, path)
        return self._read(stored)

    def write(self, value: Json, old: Json | None) -> Json:
        """The stored form; what this version cannot say is taken from ``old``."""
        stored = self._write(value)
        if old is None:
            return self._complete(stored)
        for path in self.hidden:
            _carry(stored, old, path)
        return stored


def _drop(value: t.Any, path: tuple[str, ...]) -> None:
    for name in path[:-1]:
        value = value.get(name)
        if not isinstance(value, dict):
            return
    value.pop(path[-1], None)


def _carry(value: t.Any, old: t.Any, path: tuple[str, ...]) -> None:
    for name in path[:-1]:
        old = old.get(name)
        if not isinstance(old, dict) or not isinstance(value.get(name, {}), dict):
            return
        if name not in value:
            if path[-1] not in old:
                return
            value[name] = {}
        value = value[name]
    if path[-1] in old:
        value[path[-1]] = old[path[-1]]


def _flatten_requests(spec: Json) -> None:
    for request in spec.get("devices", {}).get("requests") or ():
        request.update(request.pop("exactly", None) or {})


def _nest_requests(spec: Json) -> None:
    for request in spec.get("devices", {}).get("requests") or ():
        exact = {name: request.pop(name) for name in _EXACT if name in request}
        if exact:
            request["exactly"] = exact


def _claim_read(claim: Json) -> Json:
    _flatten_requests(claim.get("spec", {}))
    return claim


def _claim_write(claim: Json) -> Json:
    _nest_requests(claim.get("spec", {}))
    return claim


def _template_read(template: Json) -> Json:
    _flatten_requests(template.get("spec", {}).get("spec", {}))
    return template


def _template_write(template: Json) -> Json:
    _nest_requests(template.get("spec", {}).get("spec", {}))
    return template


def _slice_read(bare_capacity: bool) -> Convert:
    def read(resource_slice: Json) -> Json:
        for device in resource_slice.get("spec", {}).get("devices") or ():
            basic = {name: device.pop(name) for name in list(device) if name != "name"}
            if bare_capacity and "capacity" in basic:
                basic["capacity"] = {name: entry.get("value") for name, entry in basic["capacity"].items()}
            device["basic"] = basic
        return resource_slice

    return read


def _slice_write(bare_capacity: bool) -> Convert:
    def write(resource_slice: Json) -> Json:
        for device in resource_slice.get("spec", {}).get("devices") or ():
            basic = device.pop("basic", None) or {}
            if bare_capacity and "capacity" in basic:
                basic["capacity"] = {name: {"value": entry} for name, entry in basic["capacity"].items()}
            device.update(basic)
        return resource_slice

    return write


# Names of the same field: core events on the left, those of events.k8s.io on the right.
_EVENT_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_EVENT_NAMES_BACK = {new: old for old, new in _EVENT_NAMES.items()}


def _renamed(value: Json, names: t.Mapping[str, str]) -> Json:
    return {names.get(name, name): part for name, part in value.items()}


def _event_read(event: Json) -> Json:
    return _renamed(event, _EVENT_NAMES)


def _event_write(event: Json) -> Json:
    return _renamed(event, _EVENT_NAMES_BACK)


def _classic_claim(claim: Json) -> Json:
    claim.setdefault("spec", {}).setdefault("resourceClassName", "")
    return claim


def _classic_template(template: Json) -> Json:
    template.setdefault("spec", {}).setdefault("spec", {}).setdefault("resourceClassName", "")
    return template


_CLASSIC_SPEC = ("resourceClassName", "parametersRef", "allocationMode")
_CLASSIC_STATUS = ("driverName", "deallocationRequested")
_CLASSIC_ALLOCATION = ("resourceHandles", "availableOnNodes", "shareable")
_CONTROLLED = ["spec.controller", "status.allocation.controller", "status.deallocationRequested"]
_CLASSIC_PATHS = [
    *(f"spec.{name}" for name in _CLASSIC_SPEC),
    *(f"status.{name}" for name in _CLASSIC_STATUS),
    *(f"status.allocation.{name}" for name in _CLASSIC_ALLOCATION),
]
_STRUCTURED_PATHS = [
    "spec.devices",
    "spec.controller",
    "status.devices",
    "status.allocation.devices",
    "status.allocation.nodeSelector",
    "status.allocation.allocationTimestamp",
    "status.allocation.controller",
]
_NEW_CLAIM_PATHS = list(dict.fromkeys([*_CLASSIC_PATHS, *_CONTROLLED]))
_ALPHA3_PATHS = [path for path in _CLASSIC_PATHS if path != "status.deallocationRequested"]


def _in_template(paths: t.Sequence[str]) -> list[str]:
    return [f"spec.{path}" for path in paths if path.startswith("spec.")]


CLAIM_FORMS = {
    "v1": Form(hidden=_NEW_CLAIM_PATHS),
    "v1beta2": Form(hidden=_NEW_CLAIM_PATHS),
    "v1beta1": Form(_claim_read, _claim_write, _NEW_CLAIM_PATHS),
    "v1alpha3": Form(_claim_read, _claim_write, _ALPHA3_PATHS),
    "v1alpha2": Form(hidden=_STRUCTURED_PATHS, complete=_classic_claim),
}
TEMPLATE_FORMS = {
    "v1": Form(hidden=_in_template(_NEW_CLAIM_PATHS)),
    "v1beta2": Form(hidden=_in_template(_NEW_CLAIM_PATHS)),
    "v1beta1": Form(_template_read, _template_write, _in_template(_NEW_CLAIM_PATHS)),
    "v1alpha3": Form(_template_read, _template_write, _in_template(_ALPHA3_PATHS)),
    "v1alpha2": Form(hidden=_in_template(_STRUCTURED_PATHS), complete=_classic_template),
}
SLICE_FORMS = {
    "v1": Form(),
    "v1beta2": Form(),
    "v1beta1": Form(_slice_read(False), _slice_write(False)),
    "v1alpha3": Form(_slice_read(True), _slice_write(True)),
}
CLASS_FORMS = {
    "v1": Form(hidden=["spec.suitableNodes"]),
    "v1beta2": Form(hidden=["spec.suitableNodes"]),
    "v1beta1": Form(hidden=["spec.suitableNodes"]),
    "v1alpha3": Form(),
}
NEW_EVENT_FORM = Form(_event_read, _event_write)
