# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Recognising, at the speed of regular expressions, a list of claims that is exactly as a kubelet writes it.

Nearly every file is of this kind. What matches here is known to be well-formed and well-typed, with no unknown,
repeated or oddly spelt key and no escape, so the standard library's decoder gives the same values as Go's. Everything
else takes the slow, exact way (`gojson`, `gotypes`); both ways give the same result, which a test compares.
"""

from __future__ import annotations

import array
import io
import re
import typing as t

from .formats import CRC, DATA_API_VERSION, DATA_KIND, FNV
from .gojson import Node

_S = r'"[^"\\\x00-\x1f\ud800-\udfff]*"'


def _list_of(item: str) -> str:
    return rf"(?:null|\[(?:{item}(?:,{item})*)?\])"


def _map_of(item: str) -> str:
    return rf"(?:null|\{{(?:{_S}:{item}(?:,{_S}:{item})*)?\}})"


_PODS = _map_of(r"\{\}")
_HANDLE = rf'\{{(?:"driverName":{_S}(?:,"data":{_S})?|"data":{_S})?\}}'
_FNV_CLAIM = (
    rf'\{{"DriverName":{_S},"ClassName":{_S},"ClaimUID":{_S},"ClaimName":{_S},"Namespace":{_S},"PodUIDs":{_PODS}'
    rf'(?:,"ResourceHandles":{_list_of(_HANDLE)})?,"CDIDevices":{_map_of(_list_of(_S))}\}}'
)
_DEVICE = (
    rf'\{{"PoolName":{_S},"DeviceName":{_S}(?:,"ShareID":(?:null|{_S}))?,'
    rf'"RequestNames":{_list_of(_S)},"CDIDeviceIDs":{_list_of(_S)}\}}'
)
_DRIVER = rf'\{{"Devices":{_list_of(_DEVICE)}\}}'
_CRC_CLAIM = (
    rf'\{{"ClaimUID":{_S},"ClaimName":{_S},"Namespace":{_S},"PodUIDs":{_PODS},"DriverState":{_map_of(_DRIVER)}\}}'
)

_HEADS = {
    FNV: '{"version":"v1","entries":[',
    CRC: f'{{"kind":"{DATA_KIND}","apiVersion":"{DATA_API_VERSION}","ClaimInfoStateList":[',
}
_IDENTITIES = {
    FNV: re.compile(rf'\{{"DriverName":{_S},"ClassName":{_S},"ClaimUID":({_S}),"ClaimName":({_S}),"Namespace":({_S})'),
    CRC: re.compile(rf'\{{"ClaimUID":({_S}),"ClaimName":({_S}),"Namespace":({_S})'),
}
_CLAIMS = {FNV: re.compile(_FNV_CLAIM), CRC: re.compile(_CRC_CLAIM)}
_TAILS = {FNV: re.compile(r'\],"checksum":(0|[1-9][0-9]{0,18})\}'), CRC: re.compile(r"()\]\}[ \t\n\r]*")}


class Spans:
    """Where the claims of one list are in their text; ``odd`` are the numbers of those that are not canonical."""

    __slots__ = ("ends", "odd", "starts")

    def __init__(self) -> None:
        self.starts: array.array[int] = array.array("L")
        self.ends: array.array[int] = array.array("L")
        self.odd: list[int] = []

    def __len__(self) -> int:
        return len(self.starts)

    def add(self, start: int, end: int) -> None:
        """One more claim."""
        self.starts.append(start)
        self.ends.append(end)


class CanonicalList(t.NamedTuple):
    """Where the claims of a text are, and the checksum that ends it (``fnv`` family only)."""

    spans: Spans
    checksum: str


def split(text: str, family: str) -> CanonicalList | None:
    """The claims of ``text`` if all of it is as a kubelet of ``family`` writes it, else None. Linear in the text."""
    head = _HEADS[family]
    if not text.startswith(head):
        return None
    spans = Spans()
    match_claim = _CLAIMS[family].match
    pos = len(head)
    claim = match_claim(text, pos)
    while claim is not None:
        end = claim.end()
        spans.add(pos, end)
        if text[end : end + 1] != ",":
            pos = end
            break
        pos = end + 1
        claim = match_claim(text, pos)
    tail = _TAILS[family].fullmatch(text, pos)
    if tail is None:
        return None
    return CanonicalList(spans, tail.group(1))


def claim_end(text: str, start: int, family: str) -> int | None:
    """Where the canonical claim that begins at ``start`` ends; None if there is none."""
    claim = _CLAIMS[family].match(text, start)
    return None if claim is None else claim.end()


_DATA = b'{"Data":'
_CHECKSUM = b',"Checksum":'
_NUMBER_AND_END = re.compile(rb"(0|[1-9][0-9]*)\}[ \t\n\r]*")
_PIECE = 1 << 16
_NO_TEXT = re.compile(rb"[^\x20-\x7f]")


def envelope(data: bytes, start: int, end: int) -> Node | None:
    """The file in ``data[start:end]`` if it is as a kubelet from 1.31 on writes it around a text that needs no escapes
    but those of quotes, else None.

    The text is taken from the bytes, so that it is in memory once.
    """
    first, last = start + len(_DATA), data.rfind(_CHECKSUM, start, end)
    tail = _NUMBER_AND_END.fullmatch(data, last + len(_CHECKSUM), end)
    if tail is None or not data.startswith(_DATA, start) or _NO_TEXT.search(data, start, last):
        return None
    quotes = data.count(b'\\"', first, last)
    if data.count(b'"', first, last) != quotes + 2 or (data[first : first + 1], data[last - 1 : last]) != (b'"', b'"'):
        return None
    text = _unquoted(data, first + 1, last - 1)
    if text is None:
        return None
    checksum = Node("number", tail.start(1) - start, tail.end(1) - start, str(tail.group(1), "ascii"))
    members = [("Data", Node("string", first - start, last - start, text)), ("Checksum", checksum)]
    return Node("object", 0, checksum.end + 1, members)


def _unquoted(data: bytes, start: int, end: int) -> str | None:
    """The text in ``data[start:end]``, in which only quotes are escaped; None if anything else is."""
    text = io.StringIO()
    while start < end:
        stop = min(start + _PIECE, end)
        stop += data[stop - 1 : stop] == b"\\"  # an escape stays whole
        piece = data[start:stop].replace(b'\\"', b'"')
        if b"\\" in piece:
            return None
        text.write(str(piece, "ascii"))
        start = stop
    return text.getvalue()


class Identity(t.NamedTuple):
    """What tells one claim from another."""

    uid: str
    name: str
    namespace: str

    @property
    def key(self) -> str:
        """``namespace/name``, under which kubelets from 1.31 on keep a claim."""
        return f"{self.namespace}/{self.name}"

    @property
    def label(self) -> str:
        """How a person is told which claim is meant."""
        return f"{self.key} ({self.uid or 'no UID'})"


def identity(text: str, start: int, family: str) -> Identity:
    """UID, name and namespace of the canonical claim that begins at ``start``."""
    match = _IDENTITIES[family].match(text, start)
    return Identity(*(quoted[1:-1] for quoted in match.groups()))  # type: ignore[union-attr]
