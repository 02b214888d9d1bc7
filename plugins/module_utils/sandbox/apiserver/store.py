# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the API server remembers: objects, one version counter for all of them, and a history to watch from.

An object version is encoded once. Reads, lists and watches share these bytes; nothing in the store is ever changed in
place, a write makes a new record. Whoever wants to change an object decodes a copy of its own.
"""

from __future__ import annotations

import asyncio
import bisect
import collections
import dataclasses
import typing as t

from .failures import expired, too_new
from .json_text import Json, from_bytes, to_bytes

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"

FieldsOf = t.Callable[[Json], t.Mapping[str, str]]


class Record:
    """One version of one object.

    ``bodies`` holds the object as JSON without its opening brace, type and group version, by API version; the entry
    "" is the form that is stored, others are made when somebody asks. ``fields`` are the values for field selectors.
    """

    __slots__ = ("bodies", "deleting", "fields", "key", "labels", "name", "namespace", "owners", "uid", "version")

    def __init__(self, key: str, version: int, body: Json, fields: t.Mapping[str, str]) -> None:
        metadata = body["metadata"]
        self.key = key
        self.version = version
        self.name: str = metadata["name"]
        self.namespace: str = metadata.get("namespace", "")
        self.uid: str = metadata["uid"]
        self.labels: t.Mapping[str, str] = metadata.get("labels") or {}
        self.owners = tuple(owner.get("uid", "") for owner in metadata.get("ownerReferences") or ())
        self.deleting = "deletionTimestamp" in metadata
        self.fields = fields
        self.bodies: dict[str, bytes] = {"": to_bytes(body)[1:]}

    def object(self) -> Json:
        """The stored form, decoded afresh: the caller may change it."""
        return t.cast(Json, from_bytes(b"{" + self.bodies[""]))


@dataclasses.dataclass(frozen=True)
class Change:
    """One step of the history: ``kind`` is ADDED, MODIFIED or DELETED. ``old`` is None for ADDED."""

    __slots__ = ("kind", "old", "record", "version")

    version: int
    kind: str
    record: Record
    old: Record | None


def _version_of(change: Change) -> int:
    return change.version


class Collection:
    """All objects of one kind."""

    def __init__(self, store: Store, name: str, fields_of: FieldsOf) -> None:
        self.store = store
        self.name = name
        self.fields_of = fields_of
        self.records: dict[str, Record] = {}
        self.keys: list[str] = []
        self.log: list[Change] = []
        #: Versions up to this one have been forgotten: a watch may start from it, but not from below.
        self.floor = store.version
        self.wakers: set[asyncio.Event] = set()
        self._snapshots: collections.OrderedDict[int, tuple[list[str], dict[str, Record]]] = collections.OrderedDict()

    def span(self, keys: list[str], namespace: str) -> tuple[int, int]:
        """Where the objects of a namespace start and end in sorted keys; everything for ""."""
        if not namespace:
            return 0, len(keys)
        return bisect.bisect_left(keys, f"{namespace}/"), bisect.bisect_left(keys, f"{namespace}0")

    def in_namespace(self, namespace: str = "") -> list[Record]:
        """The objects as they are now, sorted by key."""
        first, last = self.span(self.keys, namespace)
        return [self.records[key] for key in self.keys[first:last]]

    def at(self, version: int) -> tuple[list[str], dict[str, Record]]:
        """Sorted keys and objects as they were at ``version``. ApiError 410 if forgotten, 504 if still to come."""
        if version > self.store.version:
            raise too_new(version, self.store.version)
        if version < self.floor:
            raise expired("The resourceVersion for the provided list is too old.")
        newest = self.log[-1].version if self.log else self.floor
        if version >= newest:
            return self.keys, self.records
        found = self._snapshots.get(version)
        if found is None:
            records = dict(self.records)
            for change in reversed(self.log):
                if change.version <= version:
                    break
                if change.old is None:
                    records.pop(change.record.key, None)
                else:
                    records[change.old.key] = change.old
            found = self._snapshots[version] = (sorted(records), records)
            while len(self._snapshots) > 8:
                self._snapshots.popitem(last=False)
        return found

    def after(self, version: int) -> list[Change]:
        """The history after ``version``, oldest first."""
        return self.log[bisect.bisect_right(self.log, version, key=_version_of) :]

    def append(self, change: Change) -> None:
        """Add to the history and wake whoever watches."""
        self.log.append(change)
        if len(self.log) > self.store.history_limit * 5 // 4:
            self.forget(self.log[len(self.log) - self.store.history_limit - 1].version)
        for waker in self.wakers:
            waker.set()

    def forget(self, version: int) -> None:
        """Drop the history up to and including ``version``."""
        self.floor = max(self.floor, version)
        del self.log[: bisect.bisect_right(self.log, version, key=_version_of)]
        self._snapshots.clear()


class Store:
    """All collections, the version counter, and who owns whom."""

    def __init__(self, history_limit: int = 10_000, first_version: int = 1000) -> None:
        self.version = first_version
        self.history_limit = history_limit
        self.collections: dict[str, Collection] = {}
        self.by_uid: dict[str, tuple[Collection, str]] = {}
        self.dependents: dict[str, set[tuple[str, str]]] = {}
        #: Called after each change, in order. The garbage collector and the allocator hang here.
        self.listeners: list[t.Callable[[Collection, Change], None]] = []

    def collection(self, name: str, fields_of: FieldsOf | None = None) -> Collection:
        found = self.collections.get(name)
        if found is None:
            found = self.collections[name] = Collection(self, name, fields_of or (lambda _body: {}))
        return found

    def put(self, collection: Collection, key: str, body: Json) -> Record:
        """Store a new version. ``body`` belongs to the store from now on: its resourceVersion is set here."""
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        record = Record(key, self.version, body, collection.fields_of(body))
        old = collection.records.get(key)
        collection.records[key] = record
        if old is None:
            bisect.insort(collection.keys, key)
            self.by_uid[record.uid] = (collection, key)
        self._index(collection.name, old, record)
        self._tell(collection, Change(self.version, MODIFIED if old else ADDED, record, old))
        return record

    def remove(self, collection: Collection, key: str) -> Record:
        """Delete for good; the record of the deletion has the version of the deletion, as watchers see it."""
        old = collection.records.pop(key)
        at = bisect.bisect_left(collection.keys, key)
        del collection.keys[at]
        self.by_uid.pop(old.uid, None)
        self.version += 1
        body = old.object()
        body["metadata"]["resourceVersion"] = str(self.version)
        gone = Record(key, self.version, body, old.fields)
        self._index(collection.name, old, None)
        self._tell(collection, Change(self.version, DELETED, gone, old))
        return gone

    def compact(self, version: int | None = None) -> int:
        """Forget the history up to ``version`` (all of it by default) in every collection."""
        upto = self.version if version is None else min(version, self.version)
        for collection in self.collections.values():
            collection.forget(upto)
        return upto

    def _index(self, name: str, old: Record | None, new: Record | None) -> None:
        before = old.owners if old else ()
        after = new.owners if new else ()
        if before == after:
            return
        key = (old or t.cast(Record, new)).key
        for owner in before:
            found = self.dependents.get(owner)
            if found is not None:
                found.discard((name, key))
                if not found:
                    del self.dependents[owner]
        for owner in after:
            self.dependents.setdefault(owner, set()).add((name, key))

    def _tell(self, collection: Collection, change: Change) -> None:
        collection.append(change)
        for listener in self.listeners:
            listener(collection, change)
