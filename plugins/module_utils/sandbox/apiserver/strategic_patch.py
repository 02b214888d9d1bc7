# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Strategic merge patch: a merge patch that knows which lists are maps, with directives in keys that start with $."""

from __future__ import annotations

import typing as t

from .failures import bad_request
from .json_text import Json
from .shapes import ANY, Shape

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"


def strategic_patch(target: t.Any, patch: t.Any, shape: Shape) -> t.Any:
    """``target`` with ``patch`` merged in by the rules of ``shape``. ApiError 400 when the patch makes no sense."""
    if not isinstance(patch, dict):
        raise bad_request("cannot restore struct from: json: a strategic merge patch is an object")
    return _merge(target if isinstance(target, dict) else {}, patch, shape)


def _merge(target: Json, patch: Json, shape: Shape) -> Json:
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _PATCH}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"Unknown patch type found: {directive}")
    retained = patch.get(_RETAIN)
    result = {name: value for name, value in target.items() if retained is None or name in retained}
    orders: dict[str, list[t.Any]] = {}
    for name, value in patch.items():
        if name in (_PATCH, _RETAIN):
            continue
        if name.startswith(_ORDER):
            orders[name[len(_ORDER) :]] = value
        elif name.startswith(_DELETE_PRIMITIVES):
            field = name[len(_DELETE_PRIMITIVES) :]
            result[field] = [item for item in result.get(field) or [] if item not in value]
        elif value is None:
            result.pop(name, None)
        else:
            result[name] = _merged_value(result.get(name), value, shape.child(name))
    for name, order in orders.items():
        if isinstance(result.get(name), list):
            result[name] = _ordered(result[name], order, shape.child(name))
    return result


def _merged_value(target: t.Any, patch: t.Any, shape: Shape) -> t.Any:
    if isinstance(patch, dict):
        return _merge(target if isinstance(target, dict) else {}, patch, shape)
    if isinstance(patch, list) and shape.kind == "list" and shape.patch_key:
        return _merge_list(target if isinstance(target, list) else [], patch, shape)
    return patch


def _merge_list(target: list[t.Any], patch: list[t.Any], shape: Shape) -> list[t.Any]:
    if shape.is_set:
        return target + [item for item in patch if item not in target]
    key = shape.patch_key
    if any(isinstance(item, dict) and item.get(_PATCH) == "replace" and key not in item for item in patch):
        return [item for item in patch if not (isinstance(item, dict) and _PATCH in item)]
    result = list(target)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        at = next((index for index, old in enumerate(result) if old.get(key) == item[key]), None)
        if item.get(_PATCH) == "delete":
            if at is not None:
                del result[at]
        elif at is None:
            result.append(_merge({}, item, shape.items()))
        else:
            result[at] = _merge(result[at], item, shape.items())
    return result


def _ordered(values: list[t.Any], order: list[t.Any], shape: Shape) -> list[t.Any]:
    """Items in the order that the client wants; those that it does not name stay behind."""
    key = "" if shape.is_set or shape is ANY else shape.patch_key

    def identity(item: t.Any) -> t.Any:
        return item.get(key) if key and isinstance(item, dict) else item

    wanted = [identity(item) for item in order]
    return sorted(values, key=lambda item: wanted.index(identity(item)) if identity(item) in wanted else len(wanted))
