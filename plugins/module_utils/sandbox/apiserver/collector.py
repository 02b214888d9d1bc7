# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the controller manager does for every cluster: collect objects without owners, and empty dying namespaces."""

from __future__ import annotations

import asyncio
import logging
import typing as t

from .cluster import Cluster
from .journal import ACTOR
from .json_text import Json
from .kinds import Kind
from .removal import FOREGROUND, ORPHAN, Options, delete_record
from .store import DELETED, Change, Collection, Record

_LOG = logging.getLogger(__name__)
_Work = tuple[str, str]


class Collector:
    """Garbage collection by owner references, in all three propagation modes, and the end of namespaces.

    Listens to the store and works in a task of its own, so that clients see the same order as with Kubernetes: first
    the owner goes, then what it owned.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._kinds = {kind.collection: kind for kind in cluster.table.kinds}
        self._waiting: dict[_Work, None] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        cluster.store.listeners.append(self._notice)

    async def run(self) -> None:
        """Work until cancelled."""
        ACTOR.set("garbage collector")
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                work = next(iter(self._waiting))
                del self._waiting[work]
                self._handle(work)
                await asyncio.sleep(0)
            self._idle.set()

    async def settled(self) -> None:
        """Wait until nothing is left to do."""
        await self._idle.wait()

    def _add(self, work: _Work) -> None:
        self._waiting[work] = None
        self._idle.clear()
        self._wake.set()

    def _notice(self, collection: Collection, change: Change) -> None:
        record = change.record
        if change.kind == DELETED:
            for dependent in self._cluster.store.dependents.get(record.uid, ()):
                self._add(dependent)
            for owner in record.owners:
                self._add_uid(owner)
            if record.namespace in self._cluster.namespaces.records:
                self._add_dying_namespace(record.namespace)
            return
        new_owners = change.old is None or change.old.owners != record.owners
        if record.deleting or (record.owners and new_owners):
            self._add((collection.name, record.key))

    def _add_uid(self, uid: str) -> None:
        found = self._cluster.store.by_uid.get(uid)
        if found is not None and found[0].records[found[1]].deleting:
            self._add((found[0].name, found[1]))

    def _add_dying_namespace(self, name: str) -> None:
        if self._cluster.namespaces.records[name].deleting:
            self._add((self._cluster.namespaces.name, name))

    def _handle(self, work: _Work) -> None:
        kind = self._kinds[work[0]]
        record = self._cluster.find(kind, work[1])
        if record is None:
            return
        if record.deleting:
            self._finish_deletion(kind, record)
        elif record.owners:
            self._check_owners(kind, record)

    def _check_owners(self, kind: Kind, record: Record) -> None:
        """Delete what has lost all its owners; forget the lost ones where others are left."""
        stored = record.object()
        owners = stored["metadata"].get("ownerReferences") or []
        kept = [owner for owner in owners if not self._is_gone(owner, record.namespace)]
        if len(kept) == len(owners):
            return
        if kept:
            stored["metadata"]["ownerReferences"] = kept
            self._cluster.store.put(self._cluster.collection(kind), record.key, stored)
        else:
            _LOG.debug("owner gone kind=%s object=%s", kind.plural, record.key)
            delete_record(self._cluster, kind, record, Options())

    def _is_gone(self, owner: Json, namespace: str) -> bool:
        """Whether an owner is known not to exist. Kinds that are not served here may exist elsewhere."""
        kind = self._cluster.table.owner(owner.get("apiVersion", ""), owner.get("kind", ""))
        if kind is None:
            return False
        found = self._cluster.store.by_uid.get(owner.get("uid", ""))
        if found is None:
            return True
        return kind.namespaced and found[0].records[found[1]].namespace != namespace

    def _finish_deletion(self, kind: Kind, record: Record) -> None:
        if kind.kind == "Namespace":
            self._empty_namespace(record)
            return
        stored = record.object()
        finalizers = stored["metadata"].get("finalizers") or []
        if ORPHAN in finalizers:
            self._orphan_dependents(record)
            self._drop_finalizer(kind, record, stored, ORPHAN)
        elif FOREGROUND in finalizers and not self._delete_dependents(record):
            self._drop_finalizer(kind, record, stored, FOREGROUND)

    def _dependents(self, record: Record) -> t.Iterator[tuple[Kind, Record]]:
        for name, key in list(self._cluster.store.dependents.get(record.uid, ())):
            kind = self._kinds[name]
            found = self._cluster.find(kind, key)
            if found is not None:
                yield kind, found

    def _orphan_dependents(self, owner: Record) -> None:
        for kind, record in self._dependents(owner):
            stored = record.object()
            metadata = stored["metadata"]
            kept = [item for item in metadata["ownerReferences"] if item.get("uid") != owner.uid]
            if kept:
                metadata["ownerReferences"] = kept
            else:
                del metadata["ownerReferences"]
            self._cluster.store.put(self._cluster.collection(kind), record.key, stored)

    def _delete_dependents(self, owner: Record) -> bool:
        """Delete what is owned; whether something that blocks is still there."""
        blocked = False
        for kind, record in self._dependents(owner):
            references = record.object()["metadata"].get("ownerReferences") or []
            blocks = any(item.get("uid") == owner.uid and item.get("blockOwnerDeletion") for item in references)
            gone = False
            if not record.deleting and len(references) == 1:
                _stored, gone = delete_record(self._cluster, kind, record, Options(policy="Foreground"))
            blocked = blocked or (blocks and not gone)
        return blocked

    def _drop_finalizer(self, kind: Kind, record: Record, stored: Json, name: str) -> None:
        metadata = stored["metadata"]
        metadata["finalizers"] = [item for item in metadata["finalizers"] if item != name]
        if metadata["finalizers"] or metadata.get("deletionGracePeriodSeconds"):
            self._cluster.store.put(self._cluster.collection(kind), record.key, stored)
        else:
            self._cluster.store.remove(self._cluster.collection(kind), record.key)

    def _empty_namespace(self, namespace: Record) -> None:
        """Delete everything inside; the namespace goes with the last object."""
        left = False
        for kind in {kind.collection: kind for kind in self._cluster.table.kinds if kind.namespaced}.values():
            for record in self._cluster.collection(kind).in_namespace(namespace.name):
                gone = False
                if not record.deleting or kind.kind == "Pod":
                    # Nobody runs these pods: there is nothing to wait for.
                    _stored, gone = delete_record(self._cluster, kind, record, Options(grace=0))
                left = left or not gone
        if not left:
            self._cluster.store.remove(self._cluster.namespaces, namespace.key)
