# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Who changed which object when, in words that a person follows: for the story that the quickstart tells."""

from __future__ import annotations

import collections
import contextvars
import dataclasses
import time
import typing as t

from .cluster import Cluster
from .json_text import Json
from .store import ADDED, DELETED, Change, Collection

#: On whose behalf this task works: the name of a user, or that of a part of the server.
ACTOR: contextvars.ContextVar[str] = contextvars.ContextVar("actor", default="the API server")

#: Kinds that only keep the machinery going.
_BORING = frozenset({"Lease", "Event"})


@dataclasses.dataclass(frozen=True)
class Entry:
    """One change; ``at`` in seconds since 1970, ``namespace`` empty for objects of the whole cluster."""

    at: float
    who: str
    kind: str
    namespace: str
    name: str
    uid: str
    what: str


class Journal:
    """Keeps the last changes of everything that is stored from now on."""

    def __init__(self, cluster: Cluster, keep: int = 5000) -> None:
        self._changes: collections.deque[tuple[float, str, str, Change]] = collections.deque(maxlen=keep)
        self._kinds = {kind.collection: kind.kind for kind in cluster.table.kinds}
        cluster.store.listeners.append(self._notice)

    def entries(self) -> list[Entry]:
        """The changes in their order; the words are found now, so that nobody pays for a story that is not told."""
        found = []
        for at, who, kind, change in self._changes:
            what = _told(kind, change)
            if what:
                found.append(Entry(at, who, kind, change.record.namespace, change.record.name, change.record.uid, what))
        return found

    def _notice(self, collection: Collection, change: Change) -> None:
        kind = self._kinds.get(collection.name, collection.name)
        if kind not in _BORING:
            self._changes.append((time.time(), ACTOR.get(), kind, change))


def _told(kind: str, change: Change) -> str:
    if change.kind == ADDED:
        return "made"
    if change.kind == DELETED or change.old is None:
        return "gone"
    old, new = change.old.object(), change.record.object()
    changes = list(_of_any(old, new))
    if kind == "Pod":
        changes += _of_pod(old, new)
    elif kind == "ResourceClaim":
        changes += _of_claim(old, new)
    return ", ".join(changes)


def _of_any(old: Json, new: Json) -> t.Iterator[str]:
    if "deletionTimestamp" in new["metadata"] and "deletionTimestamp" not in old["metadata"]:
        yield "being deleted"


def _of_pod(old: Json, new: Json) -> t.Iterator[str]:
    status, before = new.get("status") or {}, old.get("status") or {}
    if status.get("resourceClaimStatuses") != before.get("resourceClaimStatuses"):
        names = [str(entry.get("resourceClaimName")) for entry in status.get("resourceClaimStatuses") or ()]
        yield f"uses {' and '.join(names)}"
    node = (new.get("spec") or {}).get("nodeName")
    if node and not (old.get("spec") or {}).get("nodeName"):
        yield f"bound to {node}"
    if status.get("phase") != before.get("phase"):
        yield str(status.get("phase"))


def _of_claim(old: Json, new: Json) -> t.Iterator[str]:
    status, before = new.get("status") or {}, old.get("status") or {}
    if status.get("allocation") and not before.get("allocation"):
        results = (status["allocation"].get("devices") or {}).get("results") or ()
        devices = [f"{one.get('pool')}/{one.get('device')}" for one in results]
        yield f"allocated {', '.join(devices)}".rstrip()
    elif before.get("allocation") and not status.get("allocation"):
        yield "not allocated any more"
    now, then = _consumers(status), _consumers(before)
    if now.keys() - then.keys():
        yield f"reserved for {', '.join(now[uid] for uid in now if uid not in then)}"
    if then.keys() - now.keys():
        yield f"not reserved any more for {', '.join(then[uid] for uid in then if uid not in now)}"
    finalizers, were = (set(one["metadata"].get("finalizers") or ()) for one in (new, old))
    if finalizers - were:
        yield "protected from deletion"
    if were - finalizers:
        yield "not protected any more"


def _consumers(status: Json) -> dict[str, str]:
    return {str(one.get("uid")): str(one.get("name")) for one in status.get("reservedFor") or ()}
