# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Defaults and validation of namespaces, nodes, events, leases and configuration."""

from __future__ import annotations

from . import field_errors as fe
from .json_text import Json
from .write_context import WriteContext


def default_namespace(namespace: Json, _context: WriteContext) -> None:
    namespace["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = namespace["metadata"].get(
        "name", ""
    )
    namespace.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    namespace.setdefault("status", {}).setdefault("phase", "Active")


def default_node(node: Json, _context: WriteContext) -> None:
    node.setdefault("spec", {})
    node.setdefault("status", {})


def default_spec_only(value: Json, _context: WriteContext) -> None:
    value.setdefault("spec", {})


def default_event(event: Json, _context: WriteContext) -> None:
    for name in ("involvedObject", "source"):
        event.setdefault(name, {})
    for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(name, None)
    for name in ("reportingComponent", "reportingInstance"):
        event.setdefault(name, "")


def validate_event(event: Json, _context: WriteContext) -> list[fe.FieldError]:
    errors = []
    about = event["involvedObject"].get("namespace", "")
    own = event["metadata"].get("namespace", "")
    if about != own and not (about == "" and own == "default"):
        errors.append(fe.invalid("involvedObject.namespace", about, "does not match event.namespace"))
    if event.get("eventTime"):
        for name, shown in (("reportingComponent", "reportingController"), ("reportingInstance", "reportingInstance")):
            if not event.get(name):
                errors.append(fe.required(shown))
        for name in ("action", "reason"):
            if not event.get(name):
                errors.append(fe.required(name))
    return errors


def validate_lease(lease: Json, _context: WriteContext) -> list[fe.FieldError]:
    spec = lease["spec"]
    errors = []
    if spec.get("leaseDurationSeconds", 1) <= 0:
        errors.append(fe.invalid("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0"))
    if spec.get("leaseTransitions", 0) < 0:
        errors.append(
            fe.invalid("spec.leaseTransitions", spec["leaseTransitions"], "must be greater than or equal to 0")
        )
    return errors


def config_map_update_errors(new: Json, old: Json, _context: WriteContext) -> list[fe.FieldError]:
    if not old.get("immutable"):
        return []
    return [
        fe.forbidden(name, "field is immutable when `immutable` is set")
        for name in ("immutable", "data", "binaryData")
        if new.get(name) != old.get(name)
    ]
