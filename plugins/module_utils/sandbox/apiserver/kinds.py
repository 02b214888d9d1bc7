# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What makes a kind: one description that every part of the API server reads."""

from __future__ import annotations

import dataclasses
import typing as t

from .conversion import Form
from .field_errors import FieldError
from .json_text import Json
from .shapes import Shape
from .write_context import WriteContext

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")

Prepare = t.Callable[[Json, WriteContext], None]
Validate = t.Callable[[Json, WriteContext], "list[FieldError]"]
Compare = t.Callable[[Json, Json, WriteContext], "list[FieldError]"]


def nothing(_value: Json, _context: WriteContext) -> None:
    """No defaults, no admission."""


def no_errors(_value: Json, _context: WriteContext) -> list[FieldError]:
    return []


def no_changes(_new: Json, _old: Json, _context: WriteContext) -> list[FieldError]:
    return []


@dataclasses.dataclass(frozen=True)
class Column:
    """A column that kubectl prints. ``wide`` ones only with ``-o wide``."""

    title: str
    cell: t.Callable[[Json], t.Any]
    type: str = "string"
    wide: bool = False


@dataclasses.dataclass(frozen=True)
class Kind:
    """One kind of object in one group.

    ``forms`` and ``shapes`` by version; ``storage`` names the collection, which two kinds may share. The functions
    work on the stored form: ``default`` on every write, ``admit`` on creation after the client's fields are recorded,
    ``drop`` on a status update before it is validated. ``fields`` gives the values of further field selectors,
    ``zero`` is an object without content in stored form.
    """

    group: str
    kind: str
    plural: str
    shapes: t.Mapping[str, Shape]
    forms: t.Mapping[str, Form] = dataclasses.field(default_factory=dict)
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    storage: str = ""
    status: bool = False
    generation: bool = False
    returns_deleted: bool = False
    unconditional_update: bool = True
    create_on_update: bool = False
    status_keeps_metadata: bool = True
    created_with_status: bool = False
    label_name: bool = False
    verbs: tuple[str, ...] = ALL_VERBS
    default: Prepare = nothing
    admit: Prepare = nothing
    validate: Validate = no_errors
    compare: Compare = no_changes
    compare_status: Compare = no_changes
    drop: t.Callable[[Json, Json, WriteContext], None] | None = None
    fields: t.Mapping[str, t.Callable[[Json], str]] = dataclasses.field(default_factory=dict)
    field_fault: str = ""
    zero: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    columns: tuple[Column, ...] = ()

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def collection(self) -> str:
        return self.storage or f"{self.plural}.{self.group}"

    def form(self, version: str) -> Form:
        return self.forms.get(version) or _STORED

    @property
    def selectable(self) -> tuple[str, ...]:
        """Names that a field selector may use."""
        own = ("metadata.name", "metadata.namespace") if self.namespaced else ("metadata.name",)
        return (*own, *self.fields)


_STORED = Form()


def group_version(group: str, version: str) -> str:
    """``resource.k8s.io/v1``, or ``v1`` for the core group."""
    return f"{group}/{version}" if group else version
