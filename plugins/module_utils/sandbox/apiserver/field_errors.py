# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Faults of single fields, and the 422 answer that lists them."""

from __future__ import annotations

import dataclasses
import json
import typing as t

from .failures import ApiError, details_of, qualified


@dataclasses.dataclass(frozen=True)
class FieldError:
    """One fault: ``reason`` is the machine-readable type, ``field`` a path such as ``spec.devices.requests[0]``."""

    field: str
    reason: str
    message: str

    def cause(self) -> dict[str, str]:
        return {"reason": self.reason, "message": self.message, "field": self.field}


def shown(value: t.Any) -> str:
    """A value as Kubernetes prints it in a message: strings quoted, everything else as compact JSON."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def invalid(field: str, value: t.Any, detail: str) -> FieldError:
    return FieldError(field, "FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}")


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(field, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError(field, "FieldValueForbidden", f"Forbidden: {detail}")


def duplicate(field: str, value: t.Any) -> FieldError:
    return FieldError(field, "FieldValueDuplicate", f"Duplicate value: {shown(value)}")


def not_supported(field: str, value: t.Any, supported: t.Sequence[str]) -> FieldError:
    names = ", ".join(shown(name) for name in supported)
    return FieldError(field, "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {names}")


def too_many(field: str, count: int, limit: int) -> FieldError:
    items = "item" if limit == 1 else "items"
    return FieldError(field, "FieldValueTooMany", f"Too many: {count}: must have at most {limit} {items}")


def too_long(field: str, limit: int) -> FieldError:
    return FieldError(field, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")


def invalid_object(kind: str, group: str, name: str, errors: t.Sequence[FieldError]) -> ApiError:
    """The 422 answer for an object with these faults."""
    texts = [f"{error.field}: {error.message}" for error in errors]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    message = f"{qualified(kind, group)} {shown(name)} is invalid: {listed}"
    details = details_of(group, kind, name, causes=[error.cause() for error in errors])
    return ApiError(422, "Invalid", message, details)
