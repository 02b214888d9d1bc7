# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What an update of a claim may change: never the spec, and the status only step by step."""

from __future__ import annotations

import typing as t

from . import field_errors as fe
from . import go_values
from .claim_rules import admin_status_errors, config_errors, reference_errors, request_names
from .json_text import Json
from .names import driver_errors, label_errors, pool_errors
from .write_context import WriteContext

_GROUP, _CLAIMS = "resource.k8s.io", "resourceclaims"


def claim_update_errors(new: Json, old: Json, _context: WriteContext) -> list[fe.FieldError]:
    if new["spec"] == old["spec"]:
        return []
    return [fe.invalid("spec", go_values.claim_spec(new["spec"]), "field is immutable")]


def template_update_errors(new: Json, old: Json, _context: WriteContext) -> list[fe.FieldError]:
    if new["spec"] == old["spec"]:
        return []
    return [fe.invalid("spec", go_values.template_spec(new["spec"]), "field is immutable")]


def _results(status: Json) -> list[Json]:
    return (status.get("allocation") or {}).get("devices", {}).get("results") or []


def _device_id(device: Json) -> tuple[str, str, str]:
    return device.get("driver", ""), device.get("pool", ""), device.get("device", "")


def drop_deallocated_devices(new: Json, old: Json, _context: WriteContext) -> None:
    """Device status of what was allocated before and is not any more goes away by itself."""
    status = new["status"]
    if not status.get("devices"):
        return
    gone = {_device_id(result) for result in _results(old.get("status", {}))}
    gone -= {_device_id(result) for result in _results(status)}
    kept = [device for device in status["devices"] if _device_id(device) not in gone]
    if kept:
        status["devices"] = kept
    else:
        del status["devices"]


def claim_status_errors(new: Json, old: Json, context: WriteContext) -> list[fe.FieldError]:
    """What is wrong with a change of a claim's status."""
    status, before = new.get("status", {}), old.get("status", {})
    errors: list[fe.FieldError] = []
    if context.settings.granular_status_rights:
        errors += _right_errors(status, before, context)
    if _results(status) != _results(before):
        errors += admin_status_errors(_results(status), context)
    errors += _reservation_errors(new, status, before, context)
    errors += _device_status_errors(status)
    allocation, allocation_before = status.get("allocation"), before.get("allocation")
    if allocation and allocation_before:
        if allocation != allocation_before:
            shown = go_values.allocation(allocation)
            errors.append(fe.invalid("status.allocation", shown, "field is immutable"))
    elif allocation and "devices" in new["spec"]:
        errors += _allocation_errors(allocation, request_names(new["spec"]))
    elif allocation:
        errors += _classic_allocation_errors(allocation)
    return errors


def _reservation_errors(claim: Json, status: Json, before: Json, context: WriteContext) -> list[fe.FieldError]:
    field = "status.reservedFor"
    consumers = status.get("reservedFor") or []
    limit = context.settings.reserved_for_limit
    errors = [fe.too_many(field, len(consumers), limit)] if len(consumers) > limit else []
    seen: set[str] = set()
    for index, consumer in enumerate(consumers):
        for name in ("resource", "name", "uid"):
            if not consumer.get(name):
                errors.append(fe.required(f"{field}[{index}].{name}"))
        if consumer.get("uid") in seen:
            errors.append(fe.duplicate(f"{field}[{index}]", consumer.get("uid")))
        seen.add(consumer.get("uid", ""))
    if not consumers or len(consumers) > limit:
        return errors
    if not status.get("allocation"):
        errors.append(fe.forbidden(field, "may not be specified when `allocated` is not set"))
        return errors
    added = [consumer for consumer in consumers if consumer not in (before.get("reservedFor") or [])]
    if added and ("deletionTimestamp" in claim["metadata"] or before.get("deallocationRequested")):
        detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        errors.append(fe.forbidden(field, detail))
    shareable = "devices" in claim["spec"] or status["allocation"].get("shareable")
    if not shareable and len(consumers) > 1:
        errors.append(fe.forbidden(field, "may not be reserved more than once"))
    return errors


def _device_status_errors(status: Json) -> list[fe.FieldError]:
    errors = []
    allocated = {(*_device_id(result), result.get("shareID")) for result in _results(status)}
    seen = set()
    for index, device in enumerate(status.get("devices", ())):
        field = f"status.devices[{index}]"
        identity = (*_device_id(device), device.get("shareID"))
        if identity not in allocated:
            text = "/".join(part for part in identity if part)
            errors.append(fe.invalid(field, text, "must be an allocated device in the claim"))
        if identity in seen:
            errors.append(fe.duplicate(field, "/".join(part for part in identity if part)))
        seen.add(identity)
        if len(device.get("conditions", ())) > 8:
            errors.append(fe.too_many(f"{field}.conditions", len(device["conditions"]), 8))
    return errors


def _allocation_errors(allocation: Json, names: t.Container[str]) -> list[fe.FieldError]:
    devices = allocation.get("devices", {})
    results = devices.get("results") or []
    field = "status.allocation.devices"
    errors = [fe.too_many(f"{field}.results", len(results), 32)] if len(results) > 32 else []
    for index, result in enumerate(results):
        here = f"{field}.results[{index}]"
        errors += reference_errors(f"{here}.request", result.get("request", ""), names)
        errors += driver_errors(f"{here}.driver", result.get("driver", ""))
        errors += pool_errors(f"{here}.pool", result.get("pool", ""))
        errors += label_errors(f"{here}.device", result.get("device", ""))
    for index, config in enumerate(devices.get("config", ())):
        here = f"{field}.config[{index}]"
        sources = ("FromClaim", "FromClass")
        if not config.get("source"):
            errors.append(fe.required(f"{here}.source"))
        elif config["source"] not in sources:
            errors.append(fe.not_supported(f"{here}.source", config["source"], sources))
        errors += config_errors(config, here, names)
    return errors


def _classic_allocation_errors(allocation: Json) -> list[fe.FieldError]:
    handles = allocation.get("resourceHandles", ())
    field = "status.allocation.resourceHandles"
    errors = [fe.too_many(field, len(handles), 32)] if len(handles) > 32 else []
    for index, handle in enumerate(handles):
        if len(handle.get("data", "")) > 16 * 1024:
            errors.append(fe.too_long(f"{field}[{index}].data", 16 * 1024))
    return errors


def _right_errors(status: Json, before: Json, context: WriteContext) -> list[fe.FieldError]:
    """Since 1.36 parts of the status need rights of their own, besides that on the status."""
    errors = []
    if any(status.get(name) != before.get(name) for name in ("allocation", "reservedFor")) and not context.may(
        context.verb, _GROUP, _CLAIMS, "binding"
    ):
        detail = (
            'changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", '
            f'verb="{context.verb}" permission: not permitted'
        )
        errors.append(fe.forbidden("status", detail))
    verbs = (f"associated-node:{context.verb}", f"arbitrary-node:{context.verb}")
    for driver in sorted(_changed_drivers(status, before)):
        if not any(context.may(verb, _GROUP, _CLAIMS, "driver", driver) for verb in verbs):
            detail = (
                'changing status.devices requires resource="resourceclaims/driver", '
                f'verb="[{verbs[1]}]" permission: not permitted for driver {driver}'
            )
            errors.append(fe.forbidden("status.devices", detail))
    return errors


def _changed_drivers(status: Json, before: Json) -> set[str]:
    def by_driver(devices: t.Iterable[Json]) -> dict[str, list[Json]]:
        found: dict[str, list[Json]] = {}
        for device in devices:
            found.setdefault(device.get("driver", ""), []).append(device)
        return found

    new, old = by_driver(status.get("devices", ())), by_driver(before.get("devices", ()))
    return {driver for driver in new.keys() | old.keys() if new.get(driver) != old.get(driver)}
