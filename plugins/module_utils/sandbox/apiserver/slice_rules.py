# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Validation of ResourceSlices (form of v1) and of PodSchedulingContexts."""

from __future__ import annotations

from . import field_errors as fe
from .json_text import Json
from .names import driver_errors, label_errors, pool_errors, subdomain_errors
from .write_context import WriteContext

_MAX_DEVICES = 128
_MAX_ADVANCED_DEVICES = 64
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def validate_slice(resource_slice: Json, _context: WriteContext) -> list[fe.FieldError]:
    spec = resource_slice.get("spec", {})
    errors = driver_errors("spec.driver", spec.get("driver", ""))
    pool = spec.get("pool", {})
    errors += pool_errors("spec.pool.name", pool.get("name", ""))
    if pool.get("resourceSliceCount", 0) <= 0:
        errors.append(
            fe.invalid("spec.pool.resourceSliceCount", pool.get("resourceSliceCount", 0), "must be greater than zero")
        )
    errors += _place_errors(spec)
    if "sharedCounters" in spec and "devices" in spec:
        errors.append(fe.invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    return errors + _device_errors(spec)


def _place_errors(spec: Json) -> list[fe.FieldError]:
    errors = []
    if spec.get("nodeName"):
        errors += subdomain_errors("spec.nodeName", spec["nodeName"])
    for name in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(name) is False:
            errors.append(fe.invalid(f"spec.{name}", False, "must be either unset or set to true"))
    chosen = [f"`{name}`" for name in _PLACES if spec.get(name)]
    wanted = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
    if not chosen:
        errors.append(fe.required("spec", wanted))
    elif len(chosen) > 1:
        shown = "{" + ", ".join(chosen) + "}"
        errors.append(fe.invalid("spec", shown, f"{wanted}, but multiple fields are set"))
    return errors


def _device_errors(spec: Json) -> list[fe.FieldError]:
    devices = spec.get("devices", ())
    advanced = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    limit = _MAX_ADVANCED_DEVICES if advanced else _MAX_DEVICES
    errors = [fe.too_many("spec.devices", len(devices), limit)] if len(devices) > limit else []
    seen: set[str] = set()
    for index, device in enumerate(devices):
        field = f"spec.devices[{index}]"
        name = device.get("name", "")
        errors += label_errors(f"{field}.name", name)
        if name in seen:
            errors.append(fe.duplicate(field, name))
        seen.add(name)
        size = len(device.get("attributes", ())) + len(device.get("capacity", ()))
        if size > 32:
            errors.append(fe.invalid(field, size, "the total number of attributes and capacities must not exceed 32"))
    return errors


def slice_update_errors(new: Json, old: Json, _context: WriteContext) -> list[fe.FieldError]:
    errors = []
    for path in (("pool", "name"), ("driver",), ("nodeName",)):
        values = []
        for spec in (new.get("spec", {}), old.get("spec", {})):
            value = spec
            for name in path:
                value = value.get(name) if isinstance(value, dict) else None
            values.append(value)
        if values[0] != values[1]:
            errors.append(fe.invalid("spec." + ".".join(path), values[0], "field is immutable"))
    return errors


def validate_scheduling_context(context_object: Json, _context: WriteContext) -> list[fe.FieldError]:
    nodes = context_object.get("spec", {}).get("potentialNodes", ())
    return [fe.too_many("spec.potentialNodes", len(nodes), 128)] if len(nodes) > 128 else []


def scheduling_status_errors(new: Json, _old: Json, _context: WriteContext) -> list[fe.FieldError]:
    errors = []
    for index, claim in enumerate(new.get("status", {}).get("resourceClaims", ())):
        nodes = claim.get("unsuitableNodes", ())
        if len(nodes) > 128:
            errors.append(fe.too_many(f"status.resourceClaims[{index}].unsuitableNodes", len(nodes), 128))
    return errors
