# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Defaults and validation of the spec of claims, templates and device classes, in the form of v1."""

from __future__ import annotations

import typing as t

from . import field_errors as fe
from .json_text import Json
from .names import driver_errors, label_errors, subdomain_errors
from .write_context import WriteContext

ADMIN_LABEL = "resource.kubernetes.io/admin-access"
OLD_ADMIN_LABEL = "resource.k8s.io/admin-access"

_MAX_REQUESTS = 32
_MAX_SUB_REQUESTS = 8
_MAX_SELECTORS = 32
_MAX_EXPRESSION = 10 * 1024
_MODES = ("All", "ExactCount")


def default_claim(claim: Json, _context: WriteContext) -> None:
    default_spec(claim.setdefault("spec", {}))
    claim.setdefault("status", {})


def default_template(template: Json, _context: WriteContext) -> None:
    default_spec(template.setdefault("spec", {}).setdefault("spec", {}))


def default_spec(spec: Json) -> None:
    if "resourceClassName" in spec:
        spec.setdefault("allocationMode", "WaitForFirstConsumer")
        return
    for request in spec.setdefault("devices", {}).get("requests") or ():
        for part in [request.get("exactly"), *request.get("firstAvailable", ())]:
            if part is None:
                continue
            if part.setdefault("allocationMode", "ExactCount") == "ExactCount":
                part.setdefault("count", 1)
            for toleration in part.get("tolerations", ()):
                toleration.setdefault("operator", "Equal")


def request_names(spec: Json) -> set[str]:
    """What a reference to a request may say: ``request`` or ``request/subrequest``."""
    names = set()
    for request in spec.get("devices", {}).get("requests") or ():
        name = request.get("name", "")
        names.add(name)
        names |= {f"{name}/{sub.get('name', '')}" for sub in request.get("firstAvailable", ())}
    return names


def validate_claim(claim: Json, context: WriteContext) -> list[fe.FieldError]:
    return admin_errors(claim["spec"], "spec", context) + spec_errors(claim["spec"], "spec")


def validate_template(template: Json, context: WriteContext) -> list[fe.FieldError]:
    spec = template["spec"]["spec"]
    return admin_errors(spec, "spec.spec", context) + spec_errors(spec, "spec.spec")


def admin_errors(spec: Json, field: str, context: WriteContext) -> list[fe.FieldError]:
    """Admin access needs a label on the namespace (since 1.33)."""
    requests = spec.get("devices", {}).get("requests") or ()
    asked = [index for index, request in enumerate(requests) if (request.get("exactly") or {}).get("adminAccess")]
    return _admin_label_errors(f"{field}.devices.requests[{asked[0]}].adminAccess", context) if asked else []


def _admin_label_errors(field: str, context: WriteContext) -> list[fe.FieldError]:
    release = context.settings.played_release
    label = ADMIN_LABEL if release >= (1, 34, 0) else OLD_ADMIN_LABEL
    if release < (1, 33, 0) or context.namespace_labels.get(label) == "true":
        return []
    detail = f"admin access to devices requires the `{label}: true` label on the containing namespace"
    return [fe.forbidden(field, detail)]


def admin_status_errors(results: t.Sequence[Json], context: WriteContext) -> list[fe.FieldError]:
    """New allocation results with admin access need the same label."""
    asked = [index for index, result in enumerate(results) if result.get("adminAccess")]
    return _admin_label_errors(f"status.allocation.devices.results[{asked[0]}].adminAccess", context) if asked else []


def spec_errors(spec: Json, field: str) -> list[fe.FieldError]:
    """What is wrong with a claim's spec."""
    if "resourceClassName" in spec:
        return _classic_errors(spec, field)
    devices = spec.get("devices", {})
    field = f"{field}.devices"
    requests = devices.get("requests") or ()
    errors = _size(f"{field}.requests", requests, _MAX_REQUESTS)
    seen: set[str] = set()
    for index, request in enumerate(requests):
        here = f"{field}.requests[{index}]"
        errors += _request_errors(request, here)
        if request.get("name", "") in seen:
            errors.append(fe.duplicate(here, request.get("name", "")))
        seen.add(request.get("name", ""))
    names = request_names(spec)
    for name in ("constraints", "config"):
        errors += _size(f"{field}.{name}", devices.get(name, ()), 32)
    for index, constraint in enumerate(devices.get("constraints", ())):
        errors += _constraint_errors(constraint, f"{field}.constraints[{index}]", names)
    for index, config in enumerate(devices.get("config", ())):
        errors += config_errors(config, f"{field}.config[{index}]", names)
    return errors


def _classic_errors(spec: Json, field: str) -> list[fe.FieldError]:
    errors = []
    if not spec.get("resourceClassName"):
        errors.append(fe.required(f"{field}.resourceClassName"))
    else:
        errors += subdomain_errors(f"{field}.resourceClassName", spec["resourceClassName"])
    mode = spec.get("allocationMode", "")
    if mode not in ("Immediate", "WaitForFirstConsumer"):
        errors.append(fe.not_supported(f"{field}.allocationMode", mode, ("Immediate", "WaitForFirstConsumer")))
    return errors


def _size(field: str, values: t.Sized, limit: int) -> list[fe.FieldError]:
    return [fe.too_many(field, len(values), limit)] if len(values) > limit else []


def _request_errors(request: Json, field: str) -> list[fe.FieldError]:
    errors = label_errors(f"{field}.name", request.get("name", ""))
    exactly, subs = request.get("exactly"), request.get("firstAvailable") or ()
    if exactly is None and not subs:
        errors.append(fe.required(field, "exactly one of `exactly` or `firstAvailable` is required"))
    elif exactly is not None and subs:
        detail = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
        errors.append(fe.invalid(field, None, detail))
    elif exactly is not None:
        errors += _device_errors(exactly, f"{field}.exactly")
    else:
        errors += _size(f"{field}.firstAvailable", subs, _MAX_SUB_REQUESTS)
        seen: set[str] = set()
        for index, sub in enumerate(subs):
            here = f"{field}.firstAvailable[{index}]"
            errors += label_errors(f"{here}.name", sub.get("name", ""))
            errors += _device_errors(sub, here)
            if sub.get("name", "") in seen:
                errors.append(fe.duplicate(here, sub.get("name", "")))
            seen.add(sub.get("name", ""))
    return errors


def _device_errors(request: Json, field: str) -> list[fe.FieldError]:
    errors = []
    name = request.get("deviceClassName", "")
    errors += subdomain_errors(f"{field}.deviceClassName", name) if name else [fe.required(f"{field}.deviceClassName")]
    errors += selector_errors(request.get("selectors", ()), f"{field}.selectors")
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode not in _MODES:
        errors.append(fe.not_supported(f"{field}.allocationMode", mode, _MODES))
    elif mode == "All" and count:
        errors.append(fe.invalid(f"{field}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount" and count <= 0:
        errors.append(fe.invalid(f"{field}.count", count, "must be greater than zero"))
    errors += _size(f"{field}.tolerations", request.get("tolerations", ()), 16)
    return errors


def selector_errors(selectors: t.Sequence[Json], field: str) -> list[fe.FieldError]:
    """What is wrong with device selectors. Expressions are not compiled here, only their length counts."""
    errors = _size(field, selectors, _MAX_SELECTORS)
    for index, selector in enumerate(selectors):
        cel = selector.get("cel")
        if cel is None:
            errors.append(fe.required(f"{field}[{index}].cel"))
        elif len(cel.get("expression", "")) > _MAX_EXPRESSION:
            errors.append(fe.too_long(f"{field}[{index}].cel.expression", _MAX_EXPRESSION))
    return errors


def reference_errors(field: str, name: str, names: t.Container[str]) -> list[fe.FieldError]:
    """A reference to a request must name one of this claim."""
    errors = []
    parts = name.split("/")
    if len(parts) <= 2:
        for part in parts:
            errors += label_errors(field, part)
    if len(parts) > 2 or name not in names:
        detail = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
        errors.append(fe.invalid(field, name, detail))
    return errors


def _constraint_errors(constraint: Json, field: str, names: t.Container[str]) -> list[fe.FieldError]:
    errors = []
    for index, name in enumerate(constraint.get("requests", ())):
        errors += reference_errors(f"{field}.requests[{index}]", name, names)
    if not constraint.get("matchAttribute") and not constraint.get("distinctAttribute"):
        detail = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        errors.append(fe.required(field, detail))
    return errors


def config_errors(config: Json, field: str, names: t.Container[str]) -> list[fe.FieldError]:
    """What is wrong with an opaque configuration."""
    errors = []
    for index, name in enumerate(config.get("requests", ())):
        errors += reference_errors(f"{field}.requests[{index}]", name, names)
    opaque = config.get("opaque")
    if opaque is None:
        return [*errors, fe.required(f"{field}.opaque")]
    errors += driver_errors(f"{field}.opaque.driver", opaque.get("driver", ""))
    if not isinstance(opaque.get("parameters"), dict):
        errors.append(fe.required(f"{field}.opaque.parameters"))
    return errors


def validate_device_class(device_class: Json, _context: WriteContext) -> list[fe.FieldError]:
    spec = device_class.get("spec", {})
    errors = selector_errors(spec.get("selectors", ()), "spec.selectors")
    errors += _size("spec.config", spec.get("config", ()), 32)
    for index, config in enumerate(spec.get("config", ())):
        errors += config_errors(config, f"spec.config[{index}]", ())
    return errors


def default_device_class(device_class: Json, _context: WriteContext) -> None:
    device_class.setdefault("spec", {})
