# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A state file taken apart without losing a byte, and what each release's kubelet makes of it."""

from __future__ import annotations

import dataclasses
import typing as t

from . import canonical, checksums, gojson, lazyjson
from .claim_list import NO_CLAIMS, ClaimList, ListReader
from .formats import CRC, CRC_DOCUMENT, EMPTY_DATA, FNV, FNV_1_27, FORMATS, Format
from .gojson import GoSyntaxError, Node
from .gotypes import Decoding, TooManyFaultsError, TypeFault

OK = "ok"
MISMATCH = "checksum_mismatch"
WRONG_TYPE = "wrong_type"
_SMALL = 1 << 20
"""So many characters may have a node for every value; of a longer text nodes are made while they are looked at."""


class Part:
    """A text that holds a list of claims: the file itself (``fnv``) or the text inside ``Data`` (``crc``).

    ``root`` is its node tree, a null where ``error`` says why there is none. Of a text that is wholly ``canonical``
    only the outermost members are nodes, and there is nothing to say about its claims' spelling and types. ``text`` is
    empty for a file in which no list can be: one that is no JSON, or one whose nodes are given as ``root``.
    """

    def __init__(self, text: str, family: str, root: Node | None = None) -> None:
        self.family = family
        self.root = root or Node("null", 0, 0, None)
        self.error: GoSyntaxError | None = None
        self._canonical: ClaimList | None = None
        self._decoded: dict[str, tuple[dict[str, t.Any], list[TypeFault]]] = {}
        found = canonical.split(text, family)
        if found is not None:
            self._canonical = ClaimList(family, text, found.spans)
            self.root = self._shallow_root(found.checksum, len(text))
        elif root is None:
            try:
                self.root = gojson.parse(text) if len(text) < _SMALL else lazyjson.read_root(text)
            except GoSyntaxError as error:
                self.error = error.alone()
        self.text = "" if family == FNV and self.error else text
        self._lists = ListReader(family, self.text)

    @property
    def canonical(self) -> bool:
        """Whether all of the text is as a kubelet writes it."""
        return self._canonical is not None

    def _shallow_root(self, checksum: str, end: int) -> Node:
        members = [("version", Node("string", 0, 0, "v1"))]
        if self.family == FNV:
            members.append(("checksum", Node("number", end - 1 - len(checksum), end - 1, checksum)))
        return Node("object", 0, end, members)

    def decode(self, form: Format) -> tuple[dict[str, t.Any], list[TypeFault]]:
        """The document struct of ``form`` as Go fills it from this text, and the type errors it would meet.

        The list of claims is a `ClaimList`, the same one for all formats of the family, or None for nil.
        """
        known = self._decoded.get(form.name)
        if known is None:
            known = self._decoded[form.name] = self._decode(form)
        return known

    def _decode(self, form: Format) -> tuple[dict[str, t.Any], list[TypeFault]]:
        into = Decoding(self.text)
        document = form.document.zero()
        if form.family == FNV:
            # the kubelet decodes into a checkpoint that has these two set
            document["version"] = "v1"
            document["entries"] = NO_CLAIMS[FNV]
        try:
            self._read_members(form, document, into)
        except TooManyFaultsError:
            into.faults.append(TypeFault(form.list_key, "list of claims", "list of a thousand faults"))
        if self._canonical is not None:
            document[form.list_key] = self._canonical
        return document, into.faults

    def _read_members(self, form: Format, document: dict[str, t.Any], into: Decoding) -> None:
        if self.root.kind not in ("object", "null"):
            into.mismatch("", "object", self.root)
        for key, node in self.root.members():
            field = form.document.field_for(key)
            if field is None:
                continue
            old = document[field.name]
            if field.name == form.list_key:
                document[field.name] = self._lists.read(node, old, form, into)
            else:
                document[field.name] = field.type.decode(node, old, field.name, into)


@dataclasses.dataclass
class Reading:
    """What a kubelet that reads ``format`` makes of a file.

    ``error_class`` is ``ok`` or the class of the error it exits with; ``claims`` are those that a reader sees even if
    the checksum is wrong, None where the file cannot be read that far. ``stored`` and ``computed`` are the two
    checksums as far as they are known.
    """

    format: Format
    error_class: str
    go_message: str = ""
    claims: ClaimList | None = None
    stored: int | None = None
    computed: int | None = None
    type_faults: list[TypeFault] = dataclasses.field(default_factory=list)
    fallback: bool = False

    @property
    def verdict(self) -> str:
        """``ok:<claims>`` or the error class."""
        return f"{OK}:{len(self.claims or [])}" if self.error_class == OK else self.error_class

    @property
    def ok(self) -> bool:
        """Whether this kubelet loads the file."""
        return self.error_class == OK


class Document:
    """One ``dra_manager_state``, as bytes and as each family of kubelets sees it.

    ``start`` and ``end`` tell that only a part of the bytes is meant.
    """

    def __init__(self, data: bytes, start: int = 0, end: int | None = None) -> None:
        self.data = data
        self._span = slice(start, len(data) if end is None else end)
        envelope = canonical.envelope(data, start, self._span.stop)
        self.outer = Part(self.text if envelope is None else "", FNV, envelope)
        self.checkpoint: dict[str, t.Any] = {"Data": EMPTY_DATA, "Checksum": checksums.crc(EMPTY_DATA)}
        self.outer_faults: list[TypeFault] = []
        if self.outer.error is None:
            into = Decoding(self.outer.text)
            self.checkpoint = CRC_DOCUMENT.decode(self.outer.root, self.checkpoint, "", into)
            self.outer_faults = into.faults
        self._inner: Part | None = None
        self._readings: dict[str, Reading] = {}
        self._sums: dict[str, int] = {}

    @property
    def text(self) -> str:
        """The file as text, made anew at every look: it is as large as the file."""
        return gojson.decode_bytes(memoryview(self.data)[self._span])

    @property
    def error(self) -> GoSyntaxError | None:
        """Why the file is not JSON, or None."""
        return self.outer.error

    @property
    def inner(self) -> Part:
        """The text inside ``Data``; that of an empty checkpoint where there is none."""
        if self._inner is None:
            self._inner = Part(self.checkpoint["Data"], CRC)
        return self._inner

    def part(self, family: str) -> Part:
        """The text that holds the claims of ``family``."""
        return self.outer if family == FNV else self.inner

    def read_as(self, form: Format) -> Reading:
        """What a kubelet that reads ``form`` makes of the file."""
        reading = self._readings.get(form.name)
        if reading is None:
            reading = self._readings[form.name] = self._read_as(form)
        return reading

    def verdicts(self) -> dict[str, str]:
        """Release to verdict, for every release that is known."""
        return {release: self.read_as(form).verdict for form in FORMATS for release in form.releases}

    def _read_as(self, form: Format) -> Reading:
        if self.error is not None:
            return Reading(form, self.error.kind, self.error.go_message)
        return self._read_fnv(form) if form.family == FNV else self._read_crc(form)

    def _read_fnv(self, form: Format) -> Reading:
        document, faults = self.outer.decode(form)
        claims = _claims_of(self.outer, form, document, faults)
        if faults:
            return Reading(form, WRONG_TYPE, _type_message(faults), claims, type_faults=faults)
        stored = document["checksum"]
        computed = self._fnv_sums(document)[form.name]
        reading = Reading(form, OK, "", claims, stored, computed)
        if computed == stored:
            return reading
        if form is not FNV_1_27 and self._fallback_sum(document) == stored:
            reading.fallback = True
            return reading
        reading.error_class = MISMATCH
        reading.go_message = "checkpoint is corrupted"
        return reading

    def _fnv_sums(self, document: t.Mapping[str, t.Any]) -> dict[str, int]:
        """The checksums of all formats in one pass over the claims, which are the same for each of them."""
        if not self._sums:
            forms = [form for form in FORMATS if form.family == FNV]
            self._sums = dict(zip((form.name for form in forms), checksums.fnv_of_formats(forms, document)))
        return self._sums

    def _fallback_sum(self, document: t.Mapping[str, t.Any]) -> int:
        if document["version"] == "v1" and document["entries"] is not None:
            computed = self.read_as(FNV_1_27).computed  # the very same text, hashed already
            if computed is not None:
                return computed
        return checksums.fnv_of_fallback(document)

    def _read_crc(self, form: Format) -> Reading:
        if self.outer_faults:
            reading = Reading(form, WRONG_TYPE)
            if not {"", "Data"} & {fault.path for fault in self.outer_faults}:
                self._fill_from_inner(form, reading)
            reading.type_faults = self.outer_faults
            reading.go_message = _type_message(self.outer_faults)
            return reading
        stored = self.checkpoint["Checksum"]
        computed = checksums.crc(self.inner.text)
        reading = Reading(form, OK, "", None, stored, computed)
        inner_class = self._fill_from_inner(form, reading)
        if computed != stored:
            reading.error_class = MISMATCH
            reading.go_message = "checkpoint is corrupted"
        elif inner_class != OK:
            reading.error_class = f"inner_{inner_class}"
        return reading

    def _fill_from_inner(self, form: Format, reading: Reading) -> str:
        error = self.inner.error
        if error is not None:
            reading.go_message = error.go_message
            return error.kind
        document, reading.type_faults = self.inner.decode(form)
        reading.claims = _claims_of(self.inner, form, document, reading.type_faults)
        if reading.type_faults:
            reading.go_message = _type_message(reading.type_faults)
            return WRONG_TYPE
        return OK


def _claims_of(
    part: Part, form: Format, document: t.Mapping[str, t.Any], faults: t.Sequence[TypeFault]
) -> ClaimList | None:
    """The claims of a decoded part; None where there is no list of claims to read."""
    if {"", form.list_key} & {fault.path for fault in faults}:
        return None
    claims: ClaimList | None = document[form.list_key]
    return NO_CLAIMS[part.family] if claims is None else claims


def _type_message(faults: t.Sequence[TypeFault]) -> str:
    first = faults[0]
    return f"json: cannot unmarshal {first.found} into field {first.path or '(document)'} ({first.expected})"
