# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Own writes, visible at once.

Between a write and the watch event about it lies time in which the store still shows the old object, or none. Who
decides on that writes a second time: a second claim for the same pod, a second release.
"""

from __future__ import annotations

import asyncio
import dataclasses
import typing as t

from .object_index import Key, ObjectIndex, key_of
from .resource_versions import covers, is_older
from .store import Store

T = t.TypeVar("T")

#: Seconds after which an own write is forgotten even if the store never came to see it.
TTL = 3600.0


@dataclasses.dataclass
class _Note:
    """When a write of ours stops to count, if nothing else ends it before."""

    uid: str
    resource_version: str
    expires: float
    gone: bool = False


class MutationCache(t.Generic[T]):
    """Reads like its ``store``, with the answers to our own writes laid over it while they are newer.

    An own write counts until the store has seen its resourceVersion, or newer, or ``ttl`` seconds. ``clock`` is the
    loop's clock by default.
    """

    def __init__(self, store: Store[T], *, ttl: float = TTL, clock: t.Callable[[], float] | None = None) -> None:
        self._store, self._ttl = store, ttl
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self._newer: ObjectIndex[T] = ObjectIndex(store.codec.meta, store.index_functions)
        self._notes: dict[Key, _Note] = {}

    def mutated(self, obj: T) -> None:
        """Note the object as the server returned it from a create or a change."""
        meta = self._store.codec.meta(obj)
        key = key_of(meta)
        note = self._notes.get(key)
        if note is not None and note.uid == meta.uid and is_older(meta.resource_version, note.resource_version):
            return  # the answers of two writes came in the other order
        self._notes[key] = _Note(meta.uid, meta.resource_version, self._clock() + self._ttl)
        self._newer.put(obj)
        self._forget_some()

    def removed(self, obj: T) -> None:
        """Note that the object is gone by our own delete: it had no finalizers, or its last one went."""
        meta = self._store.codec.meta(obj)
        key = key_of(meta)
        self._notes[key] = _Note(meta.uid, "", self._clock() + self._ttl, gone=True)
        self._newer.pop(key)
        self._forget_some()

    def get(self, name: str, namespace: str = "") -> T | None:
        """The object of that name."""
        return self._at((namespace, name))

    def by_uid(self, uid: str) -> T | None:
        """The object with that UID."""
        for found in (self._newer.by_uid(uid), self._store.by_uid(uid)):
            if found is not None:
                current = self._at(key_of(self._store.codec.meta(found)))
                if current is not None and self._store.codec.meta(current).uid == uid:
                    return current
        return None

    def indexed(self, index: str, value: t.Hashable) -> list[T]:
        """The objects for which an index function of the store gives ``value``, by key."""
        function = self._store.index_functions[index]
        keys = sorted({*self._store.keys_for(index, value), *self._newer.keys_for(index, value)})
        found = (self._at(key) for key in keys)
        return [obj for obj in found if obj is not None and value in set(function(obj))]

    def __len__(self) -> int:
        """How many own writes are still laid over the store."""
        return len(self._notes)

    def _at(self, key: Key) -> T | None:
        note = self._notes.get(key)
        stored = self._store.get(key[1], key[0])
        if note is None:
            return stored
        if not self._counts(note, stored):
            self._drop(key)
            return stored
        return None if note.gone else self._newer.get(key)

    def _counts(self, note: _Note, stored: T | None) -> bool:
        """Whether an own write is still news."""
        if self._clock() >= note.expires:
            return False
        meta = None if stored is None else self._store.codec.meta(stored)
        if note.gone:
            return meta is not None and meta.uid == note.uid
        if covers(self._store.resource_version, note.resource_version):
            return False
        if meta is None:
            return True
        if meta.uid != note.uid:
            return is_older(meta.resource_version, note.resource_version)
        return meta.resource_version != note.resource_version and not is_older(
            note.resource_version, meta.resource_version
        )

    def _drop(self, key: Key) -> None:
        del self._notes[key]
        self._newer.pop(key)

    def _forget_some(self) -> None:
        """Look at the two oldest notes for each new one, so that notes nobody asks for do not pile up."""
        for key in [key for _number, key in zip(range(2), self._notes)]:
            note = self._notes.pop(key)
            if self._counts(note, self._store.get(key[1], key[0])):
                self._notes[key] = note
            else:
                self._newer.pop(key)
