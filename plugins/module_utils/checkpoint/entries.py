# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The claims of a file with the text they were read from, so that what is not changed stays as it was."""

from __future__ import annotations

import typing as t

from . import canonical, gojson
from .canonical import Identity
from .claim_list import Claim, ClaimList, decode_claim, type_faults
from .document import Document, Part
from .formats import CRC, RICHEST, Format
from .gojson import Node
from .gotypes import TypeFault, members_named


class Entry:
    """One claim of a family: a place in a text, decoded when it is looked at.

    ``well_formed`` tells that the text is exactly as a kubelet writes it. ``text`` and ``fields`` are made anew at
    every look: whoever needs the fields more than once keeps them meanwhile.
    """

    __slots__ = ("_end", "_source", "_start", "family", "well_formed")

    def __init__(self, family: str, source: str, start: int, end: int, well_formed: bool) -> None:
        self.family = family
        self._source = source
        self._start = start
        self._end = end
        self.well_formed = well_formed

    @classmethod
    def from_fields(cls, family: str, fields: Claim, form: Format | None = None) -> Entry:
        """A new claim, spelt as a kubelet that writes ``form`` (by default the richest) spells it."""
        return cls.from_text(family, (form or RICHEST[family]).claim.encode(fields))[0]

    @classmethod
    def from_text(cls, family: str, text: str) -> tuple[Entry, list[TypeFault]]:
        """A claim from its text, with the type errors that a kubelet would meet; raises `GoSyntaxError`."""
        if canonical.claim_end(text, 0, family) == len(text):
            return cls(family, text, 0, len(text), well_formed=True), []
        root = gojson.parse(text)
        return cls(family, text, root.start, root.end, well_formed=False), type_faults(root, text, family)

    @property
    def text(self) -> str:
        """Its JSON text."""
        return self._source[self._start : self._end]

    @property
    def fields(self) -> Claim:
        """Its fields, as `RICHEST` of its family decodes them."""
        return decode_claim(self._source, self._start, self.family, self.well_formed)

    @property
    def identity(self) -> Identity:
        """Its UID, name and namespace."""
        if self.well_formed:
            return canonical.identity(self._source, self._start, self.family)
        fields = self.fields
        return Identity(fields["ClaimUID"], fields["ClaimName"], fields["Namespace"])

    @property
    def uid(self) -> str:
        """The claim's UID."""
        return self.identity.uid

    @property
    def name(self) -> str:
        """``namespace/name``, the key under which kubelets from 1.31 on keep the claim."""
        return self.identity.key

    @property
    def label(self) -> str:
        """How a person is told which claim is meant."""
        return self.identity.label

    @property
    def pods(self) -> list[str]:
        """The UIDs of the pods that hold the claim, sorted."""
        return sorted(self.fields["PodUIDs"] or ())

    def drivers(self) -> list[str]:
        """The drivers that a kubelet calls for this claim, sorted."""
        return drivers_of(self.family, self.fields)


def drivers_of(family: str, fields: Claim) -> list[str]:
    """The drivers that a kubelet calls for a decoded claim, sorted."""
    if family == CRC:
        return sorted(fields["DriverState"] or ())
    own = fields["DriverName"]
    names = [handle.get("driverName") or own for handle in fields.get("ResourceHandles") or ()] or [own]
    return sorted({*names, *(fields["CDIDevices"] or ())} - {""})


class Contents(t.NamedTuple):
    """What a file says, apart from its bytes: the name of its format, empty where nothing tells, and its claims."""

    format: str
    entries: list[Entry]


NOTHING = Contents("", [])
"""The contents of a file that is not there."""


class EntryList:
    """The claims of one part of a file.

    ``list_node`` is the list's place in the part's text, or None where the list cannot be edited in place (it is
    repeated, or missing).
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
        claims: ClaimList | None = decoded[form.list_key]
        self.list_node = self._find_list(form, claims)
        if claims is None:
            return
        if self.list_node is None:  # the claims have their values from several places
            self.entries = [Entry.from_fields(family, fields) for fields in claims]
            return
        text, odd = self.part.text, frozenset(claims.spans.odd)
        self.entries = [
            Entry(family, text, start, end, index not in odd)
            for index, (start, end) in enumerate(zip(claims.spans.starts, claims.spans.ends))
        ]

    def _find_list(self, form: Format, claims: ClaimList | None) -> Node | None:
        if self.part.canonical and claims:
            return Node("array", claims.spans.starts[0] - 1, claims.spans.ends[-1] + 1, None)
        found = members_named(self.part.root, form.list_key)
        return found[0] if len(found) == 1 and found[0].kind in ("array", "null") else None


class Edit(t.NamedTuple):
    """Replace ``text[start:end]``."""

    start: int
    end: int
    text: str


def splice(text: str, edits: t.Iterable[Edit], start: int = 0, end: int | None = None) -> str:
    """A text, or the part of it from ``start`` to ``end``, with some spans replaced; spans must not overlap."""
    return "".join(spliced(text, edits, start, end))


_PIECE = 1 << 16


def spliced(text: str, edits: t.Iterable[Edit], start: int = 0, end: int | None = None) -> t.Iterator[str]:
    """`splice` in pieces, for a text that is large."""
    for edit in sorted(edits):
        yield from _cut(text, start, edit.start)
        yield edit.text
        start = edit.end
    yield from _cut(text, start, len(text) if end is None else end)


def _cut(text: str, start: int, end: int) -> t.Iterator[str]:
    return (text[place : min(place + _PIECE, end)] for place in range(start, end, _PIECE))


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
