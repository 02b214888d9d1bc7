# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What an object may look like: known fields, kinds of lists, and how lists merge.

One description serves three users: dropping unknown fields, strategic merge patch and server-side apply.
"""

from __future__ import annotations

import dataclasses
import typing as t


@dataclasses.dataclass(frozen=True)
class Shape:
    """Shape of a JSON value.

    ``kind``: ``object`` (named fields), ``map`` (free keys, all values alike), ``list``, ``string``, ``integer``,
    ``time``, ``boolean``, ``any`` (not looked into). ``keys`` make a list a map by these fields, ``is_set`` a set;
    other lists are replaced as a whole. ``patch_key`` is the merge key of strategic merge patch, which differs from
    ``keys`` for some lists. ``whole`` objects and maps have one owner. ``keep_empty`` values stay when they are empty.
    """

    kind: str
    fields: t.Mapping[str, Shape] = dataclasses.field(default_factory=dict)
    item: Shape | None = None
    keys: tuple[str, ...] = ()
    key_defaults: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    is_set: bool = False
    patch_key: str = ""
    whole: bool = False
    keep_empty: bool = False

    def child(self, name: str) -> Shape:
        """Shape of a field or of a map's value; ANY where nothing is known."""
        if self.kind == "object":
            return self.fields.get(name, ANY)
        return self.item or ANY

    def items(self) -> Shape:
        """Shape of a list's items."""
        return self.item or ANY


ANY = Shape("any")
STRING = Shape("string")
POINTER_STRING = Shape("string", keep_empty=True)
#: A time stamp that is written as null when it is not set.
TIME = Shape("time")
INTEGER = Shape("integer")
BOOLEAN = Shape("boolean")
STRING_MAP = Shape("map", item=POINTER_STRING)


def obj(fields: t.Mapping[str, Shape] | None = None, /, **more: Shape) -> Shape:
    """An object with these fields."""
    return Shape("object", {**(fields or {}), **more})


def whole(fields: t.Mapping[str, Shape] | None = None, /, **more: Shape) -> Shape:
    """An object that is set as a whole."""
    return Shape("object", {**(fields or {}), **more}, whole=True)


def open_map(item: Shape = ANY) -> Shape:
    """A map with free keys."""
    return Shape("map", item=item)


def items(item: Shape = ANY, keep_empty: bool = False) -> Shape:
    """A list that is replaced as a whole."""
    return Shape("list", item=item, keep_empty=keep_empty)


def keyed(
    item: Shape, *keys: str, patch_key: str | None = None, defaults: t.Mapping[str, t.Any] | None = None
) -> Shape:
    """A list of objects that are told apart by ``keys``. ``patch_key`` "" makes strategic merge patch replace it."""
    merge_by = keys[0] if patch_key is None else patch_key
    return Shape("list", item=item, keys=keys, patch_key=merge_by, key_defaults=defaults or {})


def string_set(patch_merge: bool = True) -> Shape:
    """A list of different strings."""
    return Shape("list", item=STRING, is_set=True, patch_key="" if not patch_merge else "*")


def strings(keep_empty: bool = False) -> Shape:
    """A list of strings that is replaced as a whole."""
    return items(STRING, keep_empty)


OWNER = whole(apiVersion=STRING, kind=STRING, name=STRING, uid=STRING, controller=BOOLEAN, blockOwnerDeletion=BOOLEAN)

METADATA = obj(
    name=STRING,
    generateName=STRING,
    namespace=STRING,
    selfLink=STRING,
    uid=STRING,
    resourceVersion=STRING,
    generation=INTEGER,
    creationTimestamp=STRING,
    deletionTimestamp=STRING,
    deletionGracePeriodSeconds=INTEGER,
    labels=STRING_MAP,
    annotations=STRING_MAP,
    ownerReferences=keyed(OWNER, "uid"),
    finalizers=string_set(),
    managedFields=items(ANY),
)


def top(**fields: Shape) -> Shape:
    """A whole API object: type, metadata and the given parts."""
    return obj(apiVersion=STRING, kind=STRING, metadata=METADATA, **fields)
