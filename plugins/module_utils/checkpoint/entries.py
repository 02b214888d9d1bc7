# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The claims of a file with the text they were read from, so that what is not changed stays as it was."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import typing as t

from . import gojson
from .document import Claim, Document, Part
from .formats import CRC, CRC_1_35, FNV, FNV_1_30, Format
from .gojson import Node
from .gotypes import Decoding, TooManyFaultsError, TypeFault, fold

RICHEST: t.Mapping[str, Format] = {FNV: FNV_1_30, CRC: CRC_1_35}
"""For each family the format whose claims hold all that the others hold."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One claim: its JSON text, and its fields as `RICHEST` of its family decodes them."""

    family: str
    text: str
    fields: Claim

    @classmethod
    def from_fields(cls, family: str, fields: Claim, form: Format | None = None) -> Entry:
        """A new claim, spelt as a kubelet that writes ``form`` (by default the richest) spells it."""
        return cls(family, (form or RICHEST[family]).claim.encode(fields), fields)

    @classmethod
    def from_text(cls, family: str, text: str) -> tuple[Entry, list[TypeFault]]:
        """A claim from its text, with the type errors that a kubelet would meet; raises `GoSyntaxError`."""
        into = Decoding(text)
        struct = RICHEST[family].claim
        fields = struct.zero()
        with contextlib.suppress(TooManyFaultsError):
            fields = struct.decode(gojson.parse(text), fields, "", into)
        return cls(family, text, fields), into.faults

    @property
    def uid(self) -> str:
        """The claim's UID."""
        return str(self.fields["ClaimUID"])

    @property
    def name(self) -> str:
        """``namespace/name``, the key under which kubelets from 1.31 on keep the claim."""
        return f"{self.fields['Namespace']}/{self.fields['ClaimName']}"

    @property
    def label(self) -> str:
        """How a person is told which claim is meant."""
        return f"{self.name} ({self.uid or 'no UID'})"

    @property
    def pods(self) -> list[str]:
        """The UIDs of the pods that hold the claim, sorted."""
        return sorted(self.fields["PodUIDs"] or ())

    def drivers(self) -> list[str]:
        """The drivers that a kubelet calls for this claim, sorted."""
        if self.family == CRC:
            return sorted(self.fields["DriverState"] or ())
        own = self.fields["DriverName"]
        names = [handle.get("driverName") or own for handle in self.fields.get("ResourceHandles") or ()] or [own]
        return sorted({*names, *(self.fields["CDIDevices"] or ())} - {""})


class EntryList:
    """The claims of one part of a file.

    ``list_node`` is the list's place in the part's text, or None where the list cannot be edited in place (it is
    repeated, or missing). ``spans`` are the claims' places, as far as they have one.
    """

    def __init__(self, document: Document, family: str) -> None:
        self.part: Part = document.part(family)
        self.family = family
        self.list_node: Node | None = None
        self.faults: list[TypeFault] = []
        self.entries: list[Entry] = []
        if self.part.error is not None:
            return
        form = RICHEST[family]
        decoded, self.faults = self.part.decode(form)
        claims = decoded[form.list_key] or []
        self.list_node = self._find_list(form)
        for fields, span in itertools.zip_longest(claims, itertools.islice(self._spans(), len(claims))):
            if span is None:
                self.entries.append(Entry.from_fields(family, fields))
            else:
                self.entries.append(Entry(family, self.part.text[slice(*span)], fields))

    def _find_list(self, form: Format) -> Node | None:
        if self.part.spans:
            return Node("array", self.part.spans[0][0] - 1, self.part.spans[-1][1] + 1, None)
        found = [node for key, node in self.part.root.members() if fold(key) == fold(form.list_key)]
        return found[0] if len(found) == 1 and found[0].kind in ("array", "null") else None

    def _spans(self) -> t.Iterable[tuple[int, int]]:
        if self.part.spans:
            return self.part.spans
        if self.list_node is None or self.list_node.kind == "null":
            return ()
        return ((node.start, node.end) for node in self.list_node.value)


class Edit(t.NamedTuple):
    """Replace ``text[start:end]``."""

    start: int
    end: int
    text: str


def splice(text: str, edits: t.Iterable[Edit], within: Node | None = None) -> str:
    """A text, or the part of it that a node spans, with some spans replaced; spans must not overlap."""
    parts = []
    pos, end = (0, len(text)) if within is None else (within.start, within.end)
    for edit in sorted(edits):
        parts += [text[pos : edit.start], edit.text]
        pos = edit.end
    return "".join([*parts, text[pos:end]])


def members_named(node: Node, name: str) -> list[Node]:
    """The members of an object that Go would read into the field ``name``, in file order."""
    return [member for key, member in node.members() if fold(key) == fold(name)]


def with_field(entry: Entry, name: str, value_text: str) -> Entry:
    """The entry with one field's JSON replaced, or added at the end; everything else stays letter for letter."""
    root = gojson.parse(entry.text)
    found = members_named(root, name)
    if found:
        edits = [Edit(node.start, node.end, value_text) for node in found]
    else:
        comma = "," if root.value else ""
        edits = [Edit(root.end - 1, root.end - 1, f"{comma}{gojson.quote(name)}:{value_text}")]
    return Entry.from_text(entry.family, splice(entry.text, edits))[0]


def object_without(text: str, node: Node, keys: t.Container[str]) -> str:
    """An object's JSON without some of its members; the values of the others keep their spelling."""
    members = [
        f"{gojson.quote(name)}:{text[value.start : value.end]}" for name, value in node.members() if name not in keys
    ]
    return f"{{{','.join(members)}}}"


def without_items(text: str, array: Node, drop: t.Container[int]) -> str:
    """An array's JSON without some of its items; the others keep their spelling."""
    kept = [text[node.start : node.end] for index, node in enumerate(array.value) if index not in drop]
    return f"[{','.join(kept)}]"
