# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The state of one embedded API server: settings, kinds, objects, and how an object looks in a version."""

from __future__ import annotations

import dataclasses
import typing as t
import uuid

from . import failures
from .json_text import Json, from_bytes, to_bytes
from .kind_table import KindTable, Served
from .kinds import Kind
from .rights import User
from .settings import ServerSettings
from .store import Collection, Record, Store
from .write_context import WriteContext


@dataclasses.dataclass
class Answer:
    """What a request gets: status code, JSON text, and warnings for the person behind the client."""

    code: int
    body: bytes
    warnings: t.Sequence[str] = ()


def _field_values(sharing: t.Sequence[Kind]) -> t.Callable[[Json], t.Mapping[str, str]]:
    """A function for the values of all field selectors that the kinds of one collection have."""
    fields = {name: value for kind in sharing for name, value in kind.fields.items()}
    return lambda body: {name: value(body) for name, value in fields.items()}


class Cluster:
    """Everything that requests work on. One event loop uses it, so nothing here needs a lock."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.table = KindTable(settings)
        self.store = Store(settings.history_limit)
        for name in {kind.collection: None for kind in self.table.kinds}:
            sharing = [kind for kind in self.table.kinds if kind.collection == name]
            self.store.collection(name, _field_values(sharing))
        self.namespaces = self.store.collection("namespaces.")
        self._zeros: dict[str, Json] = {}
        for name in settings.namespaces:
            self.make_namespace(name)

    def collection(self, kind: Kind) -> Collection:
        return self.store.collection(kind.collection)

    def find(self, kind: Kind, key: str) -> Record | None:
        return self.collection(kind).records.get(key)

    def get(self, kind: Kind, key: str) -> Record:
        """The object, or ApiError 404."""
        record = self.find(kind, key)
        if record is None:
            raise failures.not_found(kind.group, kind.plural, key.rpartition("/")[2])
        return record

    def kind_of(self, collection: Collection) -> Kind:
        """The kind whose objects a collection holds."""
        return next(kind for kind in self.table.kinds if kind.collection == collection.name)

    def tail(self, record: Record, served: Served) -> bytes:
        """The object in the version's form as JSON, from the metadata on. Made once for each version."""
        form = served.form
        if form.is_stored:
            return record.bodies[""]
        found = record.bodies.get(served.version_name)
        if found is None:
            found = record.bodies[served.version_name] = to_bytes(form.read(record.object()))[1:]
        return found

    def view(self, record: Record, served: Served) -> Json:
        """The object in the version's form, decoded afresh, without its type."""
        return t.cast(Json, from_bytes(b"{" + self.tail(record, served)))

    def view_of(self, stored: Json, served: Served) -> Json:
        """The version's form of a stored form; may share parts with it."""
        if served.form.is_stored:
            return stored
        return served.form.read(t.cast(Json, from_bytes(to_bytes(stored))))

    def answer(self, record: Record, served: Served, code: int = 200, warnings: t.Sequence[str] = ()) -> Answer:
        return Answer(code, served.head + self.tail(record, served), warnings)

    def answer_of(self, stored: Json, served: Served, code: int = 200, warnings: t.Sequence[str] = ()) -> Answer:
        """The answer for an object that is not in the store."""
        return Answer(code, served.head + to_bytes(self.view_of(stored, served))[1:], warnings)

    def zero(self, served: Served) -> Json:
        """An object without content in the version's form."""
        found = self._zeros.get(repr(served))
        if found is None:
            stored = from_bytes(to_bytes({"metadata": {}, **served.kind.zero}))
            found = self._zeros[repr(served)] = served.form.read(stored)
        return found

    def new_uid(self) -> str:
        return str(uuid.UUID(int=self.settings.random.getrandbits(128), version=4))

    def context(self, user: User, verb: str, namespace: str) -> WriteContext:
        labels = self.namespaces.records[namespace].labels if namespace in self.namespaces.records else {}
        return WriteContext(self.settings, user, verb, labels)

    def make_namespace(self, name: str) -> None:
        """A namespace that nobody asked for by request."""
        if name in self.namespaces.records:
            return
        metadata = {
            "name": name,
            "uid": self.new_uid(),
            "creationTimestamp": self.settings.now(),
            "labels": {"kubernetes.io/metadata.name": name},
        }
        body = {"metadata": metadata, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
        self.store.put(self.namespaces, name, body)

    def need_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        """ApiError 404 or 403 when nothing can be created in the namespace."""
        record = self.namespaces.records.get(namespace)
        if record is None and self.settings.auto_namespaces:
            self.make_namespace(namespace)
            return
        if record is None:
            raise failures.not_found("", "namespaces", namespace)
        if record.deleting:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            error = failures.forbidden(kind.group, kind.plural, name, why)
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            error.details = {**(error.details or {}), "causes": [cause]}
            raise error
