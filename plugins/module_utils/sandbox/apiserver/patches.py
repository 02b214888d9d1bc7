# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386)."""

from __future__ import annotations

import copy
import typing as t

from .failures import bad_request, rejected_patch
from .json_text import Json

MAX_OPERATIONS = 10_000
_MISSING = object()


def merge_patch(target: t.Any, patch: t.Any) -> t.Any:
    """``target`` with ``patch`` merged in: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


def json_patch(target: t.Any, operations: t.Any) -> t.Any:
    """``target`` after the operations. ApiError 400 for no patch at all, 422 for one that does not fit."""
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        raise bad_request("error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    if len(operations) > MAX_OPERATIONS:
        raise bad_request(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}")
    document = target
    for operation in operations:
        try:
            document = _apply(document, operation)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise rejected_patch() from error
    return document


def _pointer(text: t.Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise ValueError(text)
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _index(parts: list[t.Any], step: str, adding: bool) -> int:
    if step == "-" and adding:
        return len(parts)
    if not step.isdigit() or (len(step) > 1 and step[0] == "0"):
        raise ValueError(step)
    index = int(step)
    if index > len(parts) - (0 if adding else 1):
        raise IndexError(step)
    return index


def _get(document: t.Any, path: t.Sequence[str]) -> t.Any:
    for token in path:
        document = document[_index(document, token, False)] if isinstance(document, list) else document[token]
    return document


def _apply(document: t.Any, operation: Json) -> t.Any:
    name, path = operation.get("op"), _pointer(operation.get("path"))
    if name in ("add", "replace", "test") and "value" not in operation:
        raise ValueError("no value")
    if name == "test":
        found = _lookup(document, path)
        if found is _MISSING and operation["value"] is None:
            return document
        if found is _MISSING or not _same(found, operation["value"]):
            raise ValueError("test failed")
        return document
    if name == "remove":
        return _remove(document, path)
    if name == "replace":
        _get(document, path)
        return _put(document, path, operation["value"], replace=True)
    if name == "add":
        return _put(document, path, operation["value"])
    if name == "copy":
        return _put(document, path, copy.deepcopy(_get(document, _pointer(operation.get("from")))))
    if name == "move":
        source = _pointer(operation.get("from"))
        value = _get(document, source)
        return _put(_remove(document, source), path, value)
    raise ValueError(f"unknown operation {name!r}")


def _same(left: t.Any, right: t.Any) -> bool:
    """JSON equality: true is not 1."""
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_same(a, b) for a, b in zip(left, right))
    return bool(left == right)


def _lookup(document: t.Any, path: t.Sequence[str]) -> t.Any:
    try:
        return _get(document, path)
    except (KeyError, IndexError):
        return _MISSING


def _put(document: t.Any, path: list[str], value: t.Any, replace: bool = False) -> t.Any:
    if not path:
        return value
    parent, last = _get(document, path[:-1]), path[-1]
    if isinstance(parent, list):
        index = _index(parent, last, not replace)
        if replace:
            parent[index] = value
        else:
            parent.insert(index, value)
    else:
        parent[last] = value
    return document


def _remove(document: t.Any, path: list[str]) -> t.Any:
    parent, last = _get(document, path[:-1]), path[-1]
    if isinstance(parent, list):
        del parent[_index(parent, last, False)]
    else:
        del parent[last]
    return document
