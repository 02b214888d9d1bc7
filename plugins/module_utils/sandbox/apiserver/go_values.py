# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Values as the real server shows them in messages: its internal structures, with Go's field names and nulls."""

from __future__ import annotations

import typing as t

from .json_text import Json

# Go field -> (JSON field, description of the value below it). A description of None: shown as it is.
_Fields = t.Mapping[str, t.Any]

_CEL: _Fields = {"CEL": ("cel", {"Expression": ("expression", "")})}
_TOLERATION: _Fields = {
    "Key": ("key", ""),
    "Operator": ("operator", ""),
    "Value": ("value", ""),
    "Effect": ("effect", ""),
    "TolerationSeconds": ("tolerationSeconds", None),
}
_REQUEST_HEAD: _Fields = {
    "DeviceClassName": ("deviceClassName", ""),
    "Selectors": ("selectors", [_CEL]),
    "AllocationMode": ("allocationMode", ""),
    "Count": ("count", 0),
}
_REQUEST_TAIL: _Fields = {
    "Tolerations": ("tolerations", [_TOLERATION]),
    "Capacity": ("capacity", {"Requests": ("requests", None)}),
}
_EXACT: _Fields = {**_REQUEST_HEAD, "AdminAccess": ("adminAccess", None), **_REQUEST_TAIL}
_SUB: _Fields = {"Name": ("name", ""), **_REQUEST_HEAD, **_REQUEST_TAIL}
_REQUEST: _Fields = {
    "Name": ("name", ""),
    "Exactly": ("exactly", _EXACT),
    "FirstAvailable": ("firstAvailable", [_SUB]),
}
_OPAQUE: _Fields = {"Opaque": ("opaque", {"Driver": ("driver", ""), "Parameters": ("parameters", None)})}
_CONSTRAINT: _Fields = {
    "Requests": ("requests", None),
    "MatchAttribute": ("matchAttribute", None),
    "DistinctAttribute": ("distinctAttribute", None),
}
_SPEC: _Fields = {
    "Devices": (
        "devices",
        {
            "Requests": ("requests", [_REQUEST]),
            "Constraints": ("constraints", [_CONSTRAINT]),
            "Config": ("config", [{"Requests": ("requests", None), **_OPAQUE}]),
        },
    )
}
_RESULT: _Fields = {
    "Request": ("request", ""),
    "Driver": ("driver", ""),
    "Pool": ("pool", ""),
    "Device": ("device", ""),
    "AdminAccess": ("adminAccess", None),
    "Tolerations": ("tolerations", [_TOLERATION]),
    "BindingConditions": ("bindingConditions", None),
    "BindingFailureConditions": ("bindingFailureConditions", None),
    "ShareID": ("shareID", None),
    "ConsumedCapacity": ("consumedCapacity", None),
}
_ALLOCATION: _Fields = {
    "Devices": (
        "devices",
        {
            "Results": ("results", [_RESULT]),
            "Config": ("config", [{"Source": ("source", ""), "Requests": ("requests", None), **_OPAQUE}]),
        },
    ),
    "NodeSelector": ("nodeSelector", None),
    "AllocationTimestamp": ("allocationTimestamp", None),
}
_ALWAYS = frozenset(("Devices",))


def _shown(value: t.Any, fields: _Fields) -> Json:
    result: Json = {}
    for name, (source, below) in fields.items():
        part = value.get(source)
        if isinstance(below, dict):
            result[name] = _shown(part or {}, below) if part is not None or name in _ALWAYS else None
        elif isinstance(below, list):
            result[name] = None if part is None else [_shown(item, below[0]) for item in part]
        else:
            result[name] = below if part is None else part
    return result


def claim_spec(spec: Json) -> Json:
    """A claim's spec (form of v1) in Go's clothes."""
    return _shown(spec, _SPEC)


def template_spec(spec: Json) -> Json:
    """A template's spec: its metadata inline, then the claim's spec."""
    return {**spec.get("metadata", {}), "Spec": claim_spec(spec.get("spec", {}))}


def allocation(value: Json) -> Json:
    """A claim's allocation."""
    return _shown(value, _ALLOCATION)
