# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Objects by namespace and name, by UID, and by whatever a caller wants to find them by."""

from __future__ import annotations

import dataclasses
import typing as t

from .shapes import Buffer, HeadMeta, decoder, meta_of

T = t.TypeVar("T")
#: Namespace (empty for kinds without one) and name.
Key = tuple[str, str]
#: From an object to the values under which it shall be found. Must give the same for the same object, always.
IndexFunction = t.Callable[[T], t.Iterable[t.Hashable]]


@dataclasses.dataclass(frozen=True)
class Codec(t.Generic[T]):
    """How objects of one kind are read.

    ``decode`` gives None for objects that are of no interest: nothing of them is kept. It raises ``ValueError`` for
    objects that are malformed. ``meta`` gives the identifying metadata of a decoded object.
    """

    decode: t.Callable[[Buffer], T | None]
    meta: t.Callable[[T], HeadMeta] = meta_of


def codec_for(shape: type[T], keep: t.Callable[[T], bool] | None = None) -> Codec[T]:
    """A codec for a shape (see ``shapes``) that names metadata; objects for which ``keep`` is false are dropped."""
    decode = decoder(shape)
    if keep is None:
        return Codec(decode)
    wanted = keep

    def decode_some(raw: Buffer) -> T | None:
        found = decode(raw)
        return found if wanted(found) else None

    return Codec(decode_some)


def key_of(meta: HeadMeta) -> Key:
    """The key of an object by its metadata."""
    return (meta.namespace, meta.name)


class ObjectIndex(t.Generic[T]):
    """Objects under their keys, with indexes. Objects are shared with all readers: nobody may change one."""

    def __init__(self, meta: t.Callable[[T], HeadMeta], functions: t.Mapping[str, IndexFunction[T]]) -> None:
        self.meta = meta
        self._functions = dict(functions)
        self._objects: dict[Key, T] = {}
        self._uids: dict[str, Key] = {}
        # A value mostly stands for one object: then its key is held as it is, without a set around it.
        self._indexes: dict[str, dict[t.Hashable, Key | set[Key]]] = {name: {} for name in functions}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> t.Iterator[T]:
        return iter(list(self._objects.values()))

    def keys(self) -> list[Key]:
        """All keys, in no order."""
        return list(self._objects)

    def get(self, key: Key) -> T | None:
        """The object under a key."""
        return self._objects.get(key)

    def by_uid(self, uid: str) -> T | None:
        """The object with a UID."""
        key = self._uids.get(uid)
        return None if key is None else self._objects.get(key)

    def keys_for(self, index: str, value: t.Hashable) -> list[Key]:
        """Keys of the objects that an index function gave ``value`` for, in no order."""
        found = self._indexes[index].get(value)
        if found is None:
            return []
        return sorted(found) if isinstance(found, set) else [found]

    def put(self, obj: T) -> None:
        """Take an object in, in place of the one with the same key."""
        meta = self.meta(obj)
        key = key_of(meta)
        old = self._objects.get(key)
        if old is not None:
            self._unlink(key, old)
        self._objects[key] = obj
        if meta.uid:
            self._uids[meta.uid] = key
        for name, function in self._functions.items():
            index = self._indexes[name]
            for value in function(obj):
                present = index.get(value)
                if present is None:
                    index[value] = key
                elif isinstance(present, set):
                    present.add(key)
                elif present != key:
                    index[value] = {present, key}

    def pop(self, key: Key) -> T | None:
        """Take the object under a key out."""
        obj = self._objects.pop(key, None)
        if obj is not None:
            self._unlink(key, obj)
        return obj

    def _unlink(self, key: Key, obj: T) -> None:
        uid = self.meta(obj).uid
        if self._uids.get(uid) == key:
            del self._uids[uid]
        for name, function in self._functions.items():
            index = self._indexes[name]
            for value in function(obj):
                present = index.get(value)
                if isinstance(present, set):
                    present.discard(key)
                    if not present:
                        del index[value]
                elif present == key:
                    del index[value]
