# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A state file in the making: the claims it shall hold, what was done to them, and the bytes that come out.

Where the old file can be edited in place, only the list of claims and the checksum are replaced and everything else
stays as it was; otherwise a new file is written around the claims, which keep their own text.
"""

from __future__ import annotations

import dataclasses
import typing as t

from . import checksums, gojson
from .document import Document, Part
from .entries import Edit, Entry, EntryList, members_named, splice
from .formats import CRC, DATA_API_VERSION, DATA_KIND, FNV, RICHEST, Format


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

    def render(self, form: Format, hashed_as: Format | None = None) -> bytes:
        """The file's bytes for kubelets that read ``form``.

        ``hashed_as`` names the text that the checksum of the ``fnv`` family covers, if not that of ``form``: the text
        of 1.27 is accepted by all kubelets up to 1.30.
        """
        in_place = self._in_place(hashed_as or form)
        return in_place if in_place is not None else self._anew(form, hashed_as or form)

    def _anew(self, form: Format, hashed_as: Format) -> bytes:
        claims = ",".join(entry.text for entry in self.entries)
        if self.family == CRC:
            inner = f'{{"kind":"{DATA_KIND}","apiVersion":"{DATA_API_VERSION}","{form.list_key}":[{claims}]}}'
            text = f'{{"Data":{gojson.quote(inner)},"Checksum":{checksums.crc(inner)}}}'
            return gojson.encode_text(text)
        entries = f'"entries":[{claims}],' if self.entries else ""
        return _with_fnv(f'{{"version":"v1",{entries}"checksum":0}}', hashed_as)

    def _in_place(self, hashed_as: Format) -> bytes | None:
        """The old file with what changed replaced; None where it cannot be edited."""
        source, document = self.source, self.document
        if source is None or document is None:
            return None
        edits = self._resets(source.part)
        if not self._unchanged(source):
            if source.list_node is None:
                return None
            claims = ",".join(entry.text for entry in self.entries)
            edits.append(Edit(source.list_node.start, source.list_node.end, f"[{claims}]"))
        text = splice(source.part.text, edits)
        return _with_fnv(text, hashed_as) if self.family == FNV else _around(document, text)

    def _unchanged(self, source: EntryList) -> bool:
        return len(source.entries) == len(self.entries) and all(
            old is new for old, new in zip(source.entries, self.entries)
        )

    def _resets(self, part: Part) -> list[Edit]:
        if not self.resets:
            return []
        root = gojson.parse(part.text)  # of a canonical part only the outermost members are nodes
        return [
            Edit(node.start, node.end, value)
            for name, value in self.resets.items()
            for node in members_named(root, name)
        ]


def _around(document: Document, inner: str) -> bytes | None:
    """The file with another text inside ``Data``; None where it has no such member, or several."""
    root = document.outer.root
    data = members_named(root, "Data")
    sums = members_named(root, "Checksum")
    if len(data) != 1 or data[0].kind != "string" or not sums:
        return None
    edits = [Edit(node.start, node.end, str(checksums.crc(inner))) for node in sums]
    if inner != document.inner.text:
        edits.append(Edit(data[0].start, data[0].end, gojson.quote(inner)))
    return gojson.encode_text(splice(document.text, edits))


def _with_fnv(text: str, hashed_as: Format) -> bytes:
    """A file of the ``fnv`` family with the checksum that kubelets of ``hashed_as`` compute."""
    document = Document(gojson.encode_text(text))
    decoded, _unused = document.outer.decode(RICHEST[FNV])
    value = checksums.fnv_of_document(hashed_as, decoded)
    sums = members_named(document.outer.root, "checksum")
    if sums:
        return gojson.encode_text(splice(text, [Edit(node.start, node.end, str(value)) for node in sums]))
    end = gojson.parse(text).end - 1
    return gojson.encode_text(splice(text, [Edit(end, end, f',"checksum":{value}')]))
