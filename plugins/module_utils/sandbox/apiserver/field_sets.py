# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Sets of field paths, kept in the very form in which ``managedFields`` writes them (FieldsV1).

A set is a tree of dictionaries. Keys: ``f:name`` for a field, ``k:{...}`` for an item of a keyed list, ``v:value`` for
an item of a set, ``.`` for the place itself. An empty dictionary is a leaf: the place itself and nothing below.
"""

from __future__ import annotations

import json
import typing as t

from .json_text import Json, from_bytes, to_sorted_text
from .shapes import Shape

FieldSet = dict[str, t.Any]
_SELF = "."


def item_key(item: t.Any, shape: Shape) -> str:
    """The path element of a list item."""
    if shape.keys:
        keys = {}
        for name in shape.keys:
            value = item.get(name, shape.key_defaults.get(name))
            if value is not None:
                keys[name] = value
        return "k:" + to_sorted_text(keys)
    return "v:" + json.dumps(item, ensure_ascii=False)


def is_split(value: t.Any, shape: Shape) -> bool:
    """Whether the parts of a value have owners of their own."""
    if isinstance(value, dict):
        return not shape.whole and shape.kind in ("object", "map", "any")
    return isinstance(value, list) and shape.kind == "list" and bool(shape.keys or shape.is_set)


def parts_of(value: t.Any, shape: Shape) -> dict[str, tuple[t.Any, Shape]]:
    """Path element to value and shape, for a value that is split."""
    if isinstance(value, dict):
        return {f"f:{name}": (part, shape.child(name)) for name, part in value.items()}
    if isinstance(value, list):
        return {item_key(item, shape): (item, shape.items()) for item in value}
    return {}


def everything(value: t.Any, shape: Shape) -> FieldSet:
    """All paths of a value that is new, the place itself included."""
    if not value or not is_split(value, shape):
        return {}
    result: FieldSet = {_SELF: {}}
    if isinstance(value, dict):
        for name, part in value.items():
            result[f"f:{name}"] = everything(part, shape.child(name)) if isinstance(part, (dict, list)) else {}
        return result
    for item in value:
        result[item_key(item, shape)] = everything(item, shape.items())
    return result


def applied(value: t.Any, shape: Shape, is_item: bool = False) -> FieldSet:
    """The paths that an apply configuration sets: leaves and list items, not the containers on the way."""
    if not is_split(value, shape) or not value:
        return {}
    result: FieldSet = {_SELF: {}} if is_item else {}
    in_list = isinstance(value, list)
    for key, (part, below) in parts_of(value, shape).items():
        result[key] = applied(part, below, in_list)
    return result


def changes(old: t.Any, new: t.Any, shape: Shape) -> tuple[FieldSet, FieldSet]:
    """Paths that were added or modified, and paths that were removed, in a value that is split."""
    changed: FieldSet = {}
    removed: FieldSet = {}
    if isinstance(new, dict) and isinstance(old, dict):
        for name, part in new.items():
            if name not in old:
                changed[f"f:{name}"] = everything(part, shape.child(name))
            elif old[name] != part:
                _compare(f"f:{name}", old[name], part, shape.child(name), changed, removed)
        for name, part in old.items():
            if name not in new:
                removed[f"f:{name}"] = everything(part, shape.child(name))
        return changed, removed
    before, after = parts_of(old, shape), parts_of(new, shape)
    for key, (part, below) in after.items():
        if key not in before:
            changed[key] = everything(part, below)
        elif before[key][0] != part:
            _compare(key, before[key][0], part, below, changed, removed)
    for key, (part, below) in before.items():
        if key not in after:
            removed[key] = everything(part, below)
    return changed, removed


def _compare(key: str, old: t.Any, new: t.Any, shape: Shape, changed: FieldSet, removed: FieldSet) -> None:
    """Note how one part differs."""
    if not is_split(new, shape):
        changed[key] = {}
        return
    if old is None:
        old = type(new)()  # Written as null, but there: only what it gets inside is new.
    if not is_split(old, shape):
        changed[key] = {}
        return
    inner_changed, inner_removed = changes(old, new, shape)
    if inner_changed:
        changed[key] = inner_changed
    if inner_removed:
        removed[key] = inner_removed


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in one of the two."""
    if not left or not right:
        # A leaf stands for the place itself; with paths below it needs its own entry.
        return {_SELF: {}, **(left or right)} if left or right else {}
    result = dict(left)
    for key, below in right.items():
        result[key] = union(result[key], below) if key in result else below
    return result


def merge(left: FieldSet, right: FieldSet) -> FieldSet:
    """Union of two whole sets: at the top an empty set is nothing, not a leaf."""
    if not left:
        return right
    return left if not right else union(left, right)


def has_self(paths: FieldSet) -> bool:
    return not paths or _SELF in paths


def difference(left: FieldSet, right: FieldSet) -> FieldSet | None:
    """What of ``left`` is not in ``right``; None when nothing is left. Both are places that exist in their sets."""
    if not left:
        return None if has_self(right) else {}
    result: FieldSet = {}
    for key, below in left.items():
        if key == _SELF:
            if not has_self(right):
                result[_SELF] = {}
        elif key not in right:
            result[key] = below
        else:
            rest = difference(below, right[key])
            if rest is not None:
                result[key] = rest
    if not result:
        return None
    return {} if list(result) == [_SELF] else result


def without(left: FieldSet, right: FieldSet) -> FieldSet:
    """Difference of two whole sets, {} when nothing is left."""
    if not left or not right:
        return left
    return difference({key: below for key, below in left.items() if key != _SELF}, {**right}) or {}


def cut(left: FieldSet, right: FieldSet) -> FieldSet:
    """``left`` without the leaves of ``right`` and everything below them: for what has vanished from the object."""
    result = {}
    for key, below in left.items():
        if key in right:
            if key == _SELF or has_self(right[key]):
                continue
            rest = cut(below, right[key])
            if rest:
                result[key] = rest
        else:
            result[key] = below
    return result


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in both, {} when nothing is."""
    result: FieldSet = {}
    for key, below in left.items():
        if key == _SELF or key not in right:
            continue
        other = right[key]
        inner = intersection(below, other)
        if has_self(below) and has_self(other):
            result[key] = {_SELF: {}, **inner} if inner else {}
        elif inner:
            result[key] = inner
    return result


def leaves(paths: FieldSet, prefix: tuple[str, ...] = ()) -> t.Iterator[tuple[str, ...]]:
    """Every path of a set."""
    for key, below in paths.items():
        if key == _SELF:
            yield prefix
            continue
        here = (*prefix, key)
        if below:
            yield from leaves(below, here)
        else:
            yield here


def text_of(path: t.Sequence[str]) -> str:
    """A path as messages show it: ``.spec.containers[name="c"].image``."""
    parts = []
    for key in path:
        if key.startswith("f:"):
            parts.append(f".{key[2:]}")
        elif key.startswith("k:"):
            keys: Json = from_bytes(key[2:])
            inside = ",".join(f"{name}={json.dumps(value)}" for name, value in keys.items())
            parts.append(f"[{inside}]")
        else:
            parts.append(f"[={key[2:]}]")
    return "".join(parts)
