# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A state file in the making: the claims it shall hold, what was done to them, and the bytes that come out.

Where the old file can be edited in place, only the list of claims and the checksum are replaced and everything else
stays as it was; otherwise a new file is written around the claims, which keep their own text. Either way the new text
is made claim by claim: it is in memory once, as the bytes of the file.
"""

from __future__ import annotations

import dataclasses
import itertools
import typing as t

from . import checksums, gojson
from .document import Document, Part
from .entries import Edit, Entry, EntryList, spliced
from .formats import CRC, DATA_API_VERSION, DATA_KIND, FNV, RICHEST, Format
from .gojson import Node
from .gotypes import members_named

Pieces = t.Iterator[str]


class Step(t.NamedTuple):
    """One thing that was done: the action's name, where, in one sentence, and what it loses (empty for nothing)."""

    action: str
    place: str
    text: str
    loses: str = ""

    def to_dict(self) -> dict[str, str]:
        """As modules return it."""
        return self._asdict()


@dataclasses.dataclass
class Draft:
    """The claims of one family on their way into a file.

    ``source`` is the list that they came from, None when the file is written anew. ``resets`` are members outside the
    list that get the value a kubelet writes.
    """

    family: str
    entries: list[Entry]
    source: EntryList | None = None
    document: Document | None = None
    resets: dict[str, str] = dataclasses.field(default_factory=dict)
    steps: list[Step] = dataclasses.field(default_factory=list)

    def did(self, action: str, place: str, text: str, loses: str = "") -> None:
        """Note a step."""
        self.steps.append(Step(action, place, text, loses))

    def render(self, form: Format) -> bytes:
        """The file's bytes for kubelets that read ``form``."""
        return gojson.encode_pieces(self._in_place(form) or self._anew(form))

    def _anew(self, form: Format) -> Pieces:
        if self.family == CRC:
            yield '{"Data":"'
            value = 0
            for piece in data_pieces(form, self.entries):
                value = checksums.crc(piece, value)
                yield gojson.quote(piece)[1:-1]
            yield f'","Checksum":{value}}}'
            return
        yield '{"version":"v1",'
        if self.entries:
            yield '"entries":'
            yield from list_pieces(self.entries)
            yield ","
        yield f'"checksum":{checksums.fnv_of_document(form, {"version": "v1", "entries": self._fields()})}}}'

    def _fields(self) -> t.Iterator[t.Any]:
        return (entry.fields for entry in self.entries)

    def _in_place(self, form: Format) -> Pieces | None:
        """The old file with what changed replaced; None where it cannot be edited."""
        source, document = self.source, self.document
        if source is None or document is None or (source.list_node is None and not self._unchanged(source)):
            return None
        return self._with_fnv(source, form) if self.family == FNV else self._around(source, document)

    def _unchanged(self, source: EntryList) -> bool:
        return len(source.entries) == len(self.entries) and all(
            old is new or old.text == new.text for old, new in zip(source.entries, self.entries)
        )

    def _edited(self, source: EntryList, edits: t.Iterable[Edit] = ()) -> Pieces:
        """The text that holds the list, with that, the resets and some edits more in place."""
        edits = [*edits, *self._resets(source.part)]
        text, node = source.part.text, source.list_node
        if node is None or self._unchanged(source):
            return spliced(text, edits)
        return _with_value(text, node, list_pieces(self.entries), edits)

    def _resets(self, part: Part) -> list[Edit]:
        if part.canonical:
            return []  # there they have these values
        return [
            Edit(node.start, node.end, value)
            for name, value in self.resets.items()
            for node in members_named(part.root, name)
        ]

    def _with_fnv(self, source: EntryList, form: Format) -> Pieces:
        """A file of the ``fnv`` family with the checksum that kubelets of ``form`` compute."""
        root = source.part.root
        decoded, _unused = source.part.decode(RICHEST[FNV])
        version = "v1" if "version" in self.resets else decoded["version"]
        entries = decoded["entries"] if self._unchanged(source) else self._fields()
        value = checksums.fnv_of_document(form, {"version": version, "entries": entries})
        sums = [Edit(node.start, node.end, str(value)) for node in members_named(root, "checksum")]
        return self._edited(source, sums or [Edit(root.end - 1, root.end - 1, f',"checksum":{value}')])

    def _around(self, source: EntryList, document: Document) -> Pieces | None:
        """A file with another text inside ``Data``; None where it has no such member, or several."""
        root = document.outer.root
        data = members_named(root, "Data")
        sums = members_named(root, "Checksum")
        if len(data) != 1 or data[0].kind != "string" or not sums:
            return None
        value = 0
        for piece in self._edited(source):
            value = checksums.crc(piece, value)
        edits = [Edit(node.start, node.end, str(value)) for node in sums]
        if self._unchanged(source) and not self._resets(source.part):
            return spliced(document.text, edits)
        quoted = (gojson.quote(piece)[1:-1] for piece in self._edited(source))
        return _with_value(document.text, data[0], itertools.chain(['"'], quoted, ['"']), edits)


def _with_value(text: str, node: Node, value: Pieces, edits: t.Sequence[Edit]) -> Pieces:
    """A text with the value at ``node`` replaced by a long one, and edits before and behind it."""
    yield from spliced(text, [edit for edit in edits if edit.start < node.start], end=node.start)
    yield from value
    yield from spliced(text, [edit for edit in edits if edit.start > node.start], node.end)


def list_pieces(entries: t.Iterable[Entry]) -> Pieces:
    """A list of claims, claim by claim."""
    opening = "["
    for entry in entries:
        yield opening + entry.text
        opening = ","
    yield "]" if opening == "," else "[]"


def data_pieces(form: Format, entries: t.Iterable[Entry]) -> Pieces:
    """The text inside ``Data`` of a file of the ``crc`` family, as a kubelet that writes ``form`` writes it."""
    yield f'{{"kind":"{DATA_KIND}","apiVersion":"{DATA_API_VERSION}","{form.list_key}":'
    yield from list_pieces(entries)
    yield "}"
