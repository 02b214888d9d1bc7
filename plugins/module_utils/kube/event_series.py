# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Turning many events into few: repetitions counted, similar ones combined, talkative objects held back.

The numbers are those of client-go's event correlator.
"""

from __future__ import annotations

import collections
import dataclasses
import typing as t

#: So many different messages of one object and reason within WINDOW seconds, then they are combined.
SIMILAR_LIMIT, WINDOW = 10, 600.0
#: So many events of one object at once, then one in REFILL seconds.
BURST, REFILL = 25, 300.0
#: How many objects and series are remembered.
REMEMBERED = 4096
#: Seconds after which the API server has thrown an event away by default.
EVENT_LIFE = 3600.0
COMBINED = "(combined from similar events): "
MESSAGE_LIMIT = 1024

V = t.TypeVar("V")


@dataclasses.dataclass(frozen=True)
class ObjectReference:
    """The object that an event is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    def as_json(self) -> dict[str, str]:
        """As in ``involvedObject``."""
        pairs = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
            "resourceVersion": self.resource_version,
        }
        return {key: value for key, value in pairs.items() if value}

    @property
    def identity(self) -> tuple[str, ...]:
        """The object whatever its version."""
        return (self.api_version, self.kind, self.namespace, self.name, self.uid)


@dataclasses.dataclass(frozen=True)
class Note:
    """An event as it was reported. ``kind`` is Normal or Warning."""

    reference: ObjectReference
    kind: str
    reason: str
    message: str

    @property
    def series(self) -> tuple[str, ...]:
        """What repetitions have in common."""
        return (*self.reference.identity, self.kind, self.reason, self.message)


class Recent(t.Generic[V]):
    """The values of the last ``REMEMBERED`` keys that were used."""

    def __init__(self, limit: int = REMEMBERED) -> None:
        self._limit = limit
        self._values: collections.OrderedDict[tuple[str, ...], V] = collections.OrderedDict()

    def get(self, key: tuple[str, ...]) -> V | None:
        """The value, which counts as used now."""
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def set(self, key: tuple[str, ...], value: V) -> None:
        """Keep a value; the one that was used longest ago goes when there are too many."""
        self._values[key] = value
        self._values.move_to_end(key)
        while len(self._values) > self._limit:
            self._values.popitem(last=False)

    def drop(self, key: tuple[str, ...]) -> None:
        """Forget a value."""
        self._values.pop(key, None)


@dataclasses.dataclass
class _Similar:
    """Messages of one object and reason since ``started``."""

    started: float
    messages: set[str] = dataclasses.field(default_factory=set)


class Correlator:
    """Decides what becomes of a note. Times are seconds on any one clock."""

    def __init__(self) -> None:
        self._similar: Recent[_Similar] = Recent()
        self._full_at: Recent[float] = Recent()

    def combine(self, note: Note, now: float) -> Note:
        """The note, or the combined one once there are too many that differ in their message alone."""
        if len(note.message) > MESSAGE_LIMIT:
            note = dataclasses.replace(note, message=note.message[: MESSAGE_LIMIT - 3] + "...")
        key = (*note.reference.identity, note.kind, note.reason)
        similar = self._similar.get(key)
        if similar is None or now - similar.started > WINDOW:
            similar = _Similar(now)
            self._similar.set(key, similar)
        if len(similar.messages) < SIMILAR_LIMIT or note.message in similar.messages:
            similar.messages.add(note.message)
            return note
        return dataclasses.replace(note, message=(COMBINED + note.message)[:MESSAGE_LIMIT])

    def admits(self, note: Note, now: float) -> bool:
        """Whether the object may have another event written; counts it when it may."""
        key = note.reference.identity
        full_at = max(self._full_at.get(key) or now, now)
        if full_at + REFILL - now > BURST * REFILL:
            return False
        self._full_at.set(key, full_at + REFILL)
        return True
