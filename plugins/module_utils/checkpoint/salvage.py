# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Finding whole claims in what is left of a broken file.

A claim is one self-contained JSON object, so every claim that is complete can be saved, wherever the cut, the zeros or
the foreign bytes are. Claims of the ``crc`` family stand inside a JSON string; the escapes are taken away first, as
far as they are escapes.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from . import canonical, gojson
from .claim_list import type_faults
from .entries import Entry
from .formats import CRC, FNV
from .gojson import GoSyntaxError, Node, substituted
from .gotypes import TypeFault

_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))')
_PLAIN = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_START = re.compile(
    r'\{\s*"(?:ClaimUID|DriverName|ClassName|ClaimName|Namespace|PodUIDs|DriverState|CDIDevices)"', re.I
)
_NAMES = re.compile("ClaimUID|CDIDevices|DriverState", re.IGNORECASE)
_RAW_CONTROL = re.compile(r"(?<=[^\x00-\x20,\[\]{}:])[\x01-\x1f](?=[^\x00-\x20,\[\]{}:])")
"""A control character between two letters: no blank between tokens stands there."""
_IDENTITY = ("ClaimUID", "ClaimName", "Namespace")
_PATIENCE = 2
"""Failed attempts may read the text this many times in total: hostile nesting must not make the search quadratic."""


class Saved(t.NamedTuple):
    """A claim that was found whole, and the fields whose value had to be left behind."""

    entry: Entry
    faults: tuple[TypeFault, ...] = ()


@dataclasses.dataclass(frozen=True)
class Salvage:
    """What a search brought up: claims in file order, and the number of places where a claim began but did not end.

    ``exhausted`` tells that the search gave up early because the bytes fight it.
    """

    family: str
    saved: tuple[Saved, ...] = ()
    broken: int = 0
    exhausted: bool = False


def unescape(text: str) -> str:
    """A text with one level of JSON string escapes taken away; what is no escape stays."""

    def plain(match: t.Match[str]) -> str:
        short, code = match.groups()
        return _PLAIN.get(short, short) if short else chr(int(code, 16))

    if "\\" not in text:
        return text
    return gojson.replace_surrogates(substituted(_ESCAPE, plain, text))


def search(text: str) -> Salvage:
    """All whole claims in some text, of the family that has most of them, with equal numbers of the newer. Linear.

    A list may stand in the open, inside one string (the ``crc`` family), or inside two, where a tool quoted the file.
    """
    best = Salvage(FNV)
    if _NAMES.search(text) is None:
        return best
    level = text
    for _unused in range(3):
        level = _mend_spelling(level)
        for family in (FNV, CRC):
            found = _search_in(level, family)
            if _rank(found) > _rank(best):
                best = found
        if "\\" not in level:
            break
        level = unescape(level)
    return best


def _rank(found: Salvage) -> tuple[int, bool, int]:
    return len(found.saved), bool(found.saved) and found.family == CRC, found.broken


def _mend_spelling(text: str) -> str:
    """Foreign spellings that lose nothing: single quotes throughout, and control characters left raw in a string."""
    if '"' not in text:
        text = text.replace("'", '"')
    return substituted(_RAW_CONTROL, lambda match: f"\\u{ord(match.group()):04x}", text)


def _search_in(text: str, family: str) -> Salvage:
    found: list[Saved] = []
    broken = 0
    budget = _PATIENCE * len(text) + 4096
    pos = 0
    start = _START.search(text)
    while start is not None:
        end = canonical.claim_end(text, start.start(), family)
        if end is None:
            end, spent, saved = _read_claim(text, start.start(), family)
            budget -= spent
            if saved is not None:
                found.append(saved)
            elif end is None:
                broken += 1
            if budget < 0:
                return Salvage(family, tuple(found), broken, exhausted=True)
        else:
            found.append(Saved(Entry(family, text, start.start(), end, well_formed=True)))
        pos = end if end is not None else start.start() + 1
        start = _START.search(text, pos)
    return Salvage(family, tuple(found), broken)


def _read_claim(text: str, start: int, family: str) -> tuple[int | None, int, Saved | None]:
    """The object at ``start``: where it ends, how many characters that cost, and the claim if it is one."""
    try:
        node = gojson.parse_at(text, start)
    except GoSyntaxError as error:
        return None, error.offset - start, None
    if not looks_like_claim(node, family):
        return start + 1, node.end - start, None
    faults = type_faults(node, text, family)
    if any(fault.path in _IDENTITY for fault in faults):
        return node.end, 0, None
    return node.end, 0, Saved(Entry(family, text, node.start, node.end, well_formed=False), tuple(faults))


def looks_like_claim(node: Node, family: str) -> bool:
    """Whether an object has the members that make a claim of this family."""
    keys = {key.lower() for key, _unused in node.members()}
    return "claimuid" in keys and ("driverstate" if family == CRC else "cdidevices") in keys


def family_hint(text: str) -> str | None:
    """Which family some broken text belongs to, by the names in it; None when nothing tells.

    ``Data`` counts last: a resource handle of the other family has a member ``data``.
    """
    if re.search(r"DRACheckpoint|ClaimInfoStateList|DriverState", text, re.I):
        return CRC
    if re.search(r'(?:entries|CDIDevices|ResourceHandles|ClassName)\\*"\s*:|\{\s*\\*"version\\*"\s*:', text, re.I):
        return FNV
    return CRC if re.search(r'"Data"\s*:\s*["{]', text, re.I) else None
