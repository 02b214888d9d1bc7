# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""From the JSON of a request to an object that has known fields of the right type only.

Go's decoder and encoder do this in passing: unknown fields vanish, null is the same as absent, and empty values of
most fields are not written. Clients see the result, so we do the same.
"""

from __future__ import annotations

import typing as t

from .failures import bad_request
from .json_text import Json
from .shapes import Shape

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "map": (dict,),
    "list": (list,),
    "string": (str,),
    "time": (str,),
    "integer": (int,),
    "boolean": (bool,),
}
_JSON_NAMES: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
}
_EMPTY: tuple[t.Any, ...] = ("", [], {})


class _WrongTypeError(Exception):
    """A value of another type than the field has; ``path`` grows on the way up."""

    def __init__(self, found: str, wanted: str) -> None:
        super().__init__(found)
        self.found = found
        self.wanted = wanted
        self.path = ""


def clean(kind: str, version: str, value: t.Any, shape: Shape, keep_unknown: bool = False) -> tuple[Json, list[str]]:
    """``value`` as ``shape`` knows it, and the paths of the fields that it does not know.

    With ``keep_unknown`` those stay, as in a server that is newer than its clients. ApiError 400 for wrong types.
    """
    unknown: list[str] = []
    try:
        cleaned = _clean(value, shape, unknown, keep_unknown)
    except _WrongTypeError as wrong:
        field = f"{kind}{wrong.path}"
        why = f"json: cannot unmarshal {wrong.found} into Go struct field {field} of type {wrong.wanted}"
        raise cannot_be_handled(kind, version, why) from None
    return t.cast(Json, cleaned), unknown


def cannot_be_handled(kind: str, version: str, why: str) -> Exception:
    """The 400 answer for a body that cannot be decoded."""
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def _has_type(value: t.Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and not (kind == "integer" and isinstance(value, bool))


def _clean(value: t.Any, shape: Shape, unknown: list[str], keep_unknown: bool) -> t.Any:
    kind = shape.kind
    if kind == "any":
        return value
    if not _has_type(value, kind):
        if kind == "integer" and isinstance(value, float) and value.is_integer():
            return int(value)
        raise _WrongTypeError(_JSON_NAMES.get(type(value), "null"), kind)
    if kind == "object":
        return _clean_object(value, shape, unknown, keep_unknown)
    if kind == "list":
        return _clean_list(value, shape, unknown, keep_unknown)
    if kind == "map":
        return _clean_map(value, shape, unknown, keep_unknown)
    return value


def _clean_object(value: Json, shape: Shape, unknown: list[str], keep_unknown: bool) -> Json:
    result: Json = {}
    fields = shape.fields
    for name, part in value.items():
        field = fields.get(name)
        if field is None:
            unknown.append(f".{name}")
            if keep_unknown and part is not None:
                result[name] = part
            continue
        if part is None:
            if field.kind == "time":
                result[name] = None
            continue
        before = len(unknown)
        try:
            cleaned = _clean(part, field, unknown, keep_unknown)
        except _WrongTypeError as wrong:
            wrong.path = f".{name}{wrong.path}"
            raise
        if len(unknown) > before:
            unknown[before:] = [f".{name}{rest}" for rest in unknown[before:]]
        if cleaned in _EMPTY and not field.keep_empty and field.kind not in ("object", "any"):
            continue
        result[name] = cleaned
    return result


def _clean_list(value: list[t.Any], shape: Shape, unknown: list[str], keep_unknown: bool) -> list[t.Any]:
    item = shape.items()
    if item.kind == "any":
        return value
    result = []
    for index, part in enumerate(value):
        before = len(unknown)
        try:
            result.append(_clean({} if part is None and item.kind == "object" else part, item, unknown, keep_unknown))
        except _WrongTypeError as wrong:
            wrong.path = f"[{index}]{wrong.path}"
            raise
        if len(unknown) > before:
            unknown[before:] = [f"[{index}]{rest}" for rest in unknown[before:]]
    return result


def _clean_map(value: Json, shape: Shape, unknown: list[str], keep_unknown: bool) -> Json:
    item = shape.items()
    if item.kind == "any":
        return value
    result = {}
    for name, part in value.items():
        before = len(unknown)
        try:
            result[name] = _clean("" if part is None and item.kind == "string" else part, item, unknown, keep_unknown)
        except _WrongTypeError as wrong:
            wrong.path = f".{name}{wrong.path}"
            raise
        if len(unknown) > before:
            unknown[before:] = [f".{name}{rest}" for rest in unknown[before:]]
    return result


def unknown_field_texts(unknown: t.Sequence[str]) -> list[str]:
    """``unknown field "spec.future"`` for each path."""
    return [f'unknown field "{path[1:]}"' for path in unknown]


def strict_error(kind: str, version: str, texts: t.Sequence[str]) -> Exception:
    """The 400 answer of fieldValidation=Strict."""
    return cannot_be_handled(kind, version, "strict decoding error: " + ", ".join(texts))
