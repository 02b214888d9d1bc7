# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What is known of one collection of the cluster, and who wants to hear when it changes."""

from __future__ import annotations

import dataclasses
import logging
import typing as t

from ..checkpoint.errors import DraError
from .object_index import Codec, IndexFunction, Key, ObjectIndex, key_of
from .resource_versions import is_older

T = t.TypeVar("T")
log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Handler(t.Generic[T]):
    """Functions that hear of changes, called one after the other in the step in which the store changed.

    They only note what is to be done, usually a key for a work queue; they must neither wait nor change an object.
    ``dropped`` is for objects that exist but are of no interest to the codec any more; without it they count as
    deleted.
    """

    added: t.Callable[[T], None] | None = None
    updated: t.Callable[[T, T], None] | None = None
    deleted: t.Callable[[T], None] | None = None
    dropped: t.Callable[[T], None] | None = None


class Store(t.Generic[T]):
    """The objects of a collection as far as a reflector has seen them.

    ``indexes`` maps names to functions from an object to the values under which ``indexed`` finds it.
    ``resource_version`` tells how far the store has come: everything up to there is in it.
    """

    def __init__(self, codec: Codec[T], indexes: t.Mapping[str, IndexFunction[T]] | None = None) -> None:
        self.codec = codec
        self.index_functions: dict[str, IndexFunction[T]] = dict(indexes or {})
        self.resource_version = ""
        self.handler_failures = 0
        self._index = ObjectIndex(codec.meta, self.index_functions)
        self._handlers: list[Handler[T]] = []

    # Reading

    def __len__(self) -> int:
        return len(self._index)

    def __iter__(self) -> t.Iterator[T]:
        return iter(self._index)

    def keys(self) -> list[Key]:
        """All keys, in no order."""
        return self._index.keys()

    def get(self, name: str, namespace: str = "") -> T | None:
        """The object of that name."""
        return self._index.get((namespace, name))

    def by_uid(self, uid: str) -> T | None:
        """The object with that UID."""
        return self._index.by_uid(uid)

    def indexed(self, index: str, value: t.Hashable) -> list[T]:
        """The objects that an index function gave ``value`` for, by key. ``KeyError`` for an unknown index."""
        found = (self._index.get(key) for key in self._index.keys_for(index, value))
        return [obj for obj in found if obj is not None]

    def keys_for(self, index: str, value: t.Hashable) -> list[Key]:
        """Keys of the same."""
        return self._index.keys_for(index, value)

    # Hearing

    def subscribe(self, handler: Handler[T]) -> t.Callable[[], None]:
        """Call ``handler`` from now on, first with everything that is there; gives a function that ends it."""
        self._handlers.append(handler)
        if handler.added is not None:
            for obj in self:
                self._call(handler.added, obj)

        def unsubscribe() -> None:
            if handler in self._handlers:
                self._handlers.remove(handler)

        return unsubscribe

    # Writing: for the reflector

    def put(self, obj: T, *, force: bool = False) -> bool:
        """Take in an object as the server has it; False when nothing changed.

        An object that is older than the one at hand is ignored unless ``force`` is set. One with another UID is another
        object: the old one is deleted first, for the index and for the handlers.
        """
        meta = self.codec.meta(obj)
        old = self._index.get(key_of(meta))
        if old is None:
            self._index.put(obj)
            self._tell("added", obj)
            return True
        before = self.codec.meta(old)
        if before.uid != meta.uid:
            if not force and is_older(meta.resource_version, before.resource_version):
                return False
            self.remove(key_of(meta))
            return self.put(obj)
        if before.resource_version == meta.resource_version:
            return False
        if not force and is_older(meta.resource_version, before.resource_version):
            return False
        self._index.put(obj)
        self._tell("updated", old, obj)
        return True

    def remove(self, key: Key, final: T | None = None) -> T | None:
        """Take the object under a key out; gives what was there. Handlers get its ``final`` state where it is known."""
        old = self._index.pop(key)
        if old is not None:
            self._tell("deleted", old if final is None else final)
        return old

    def drop(self, key: Key) -> None:
        """Take an object out that still exists but is not to be kept any more."""
        old = self._index.pop(key)
        if old is not None:
            self._tell("dropped", old)

    def _tell(self, what: str, *objects: T) -> None:
        for handler in tuple(self._handlers):
            function = getattr(handler, what)
            if function is None and what == "dropped":
                function = handler.deleted
            if function is not None:
                self._call(function, *objects)

    def _call(self, function: t.Callable[..., None], *objects: T) -> None:
        try:
            function(*objects)
        except DraError as error:
            # One object that a handler cannot read must not blind it to all others.
            self.handler_failures += 1
            namespace, name = key_of(self.codec.meta(objects[-1]))
            log.error("event handler failed namespace=%s name=%s error=%s", namespace, name, error)
