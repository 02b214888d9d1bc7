# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The bytes of a large state file, laid out so that one claim can change without the others moving.

A file of N claims has to be on disk as a whole before anybody is told "prepared". Writing N claims for the sake of
one is what makes the cost of a pod grow with the node. Here each claim has a place of its own in the list, filled up
with JSON blanks, so a change touches that place and the checksum; `crc_update` gives the checksum without reading the
rest.

The list stands inside a JSON string, so a place has two lengths: in the file, and in the text that the checksum
covers. A claim's quotes count twice in the file and once in the text. Blanks can balance that: a tab is two
characters in the file (``\\t``) and one in the text, a space is one in both. Every place is a number of units with
the same two lengths, whatever stands in it.

To any reader this is an ordinary file of today's kubelets: JSON allows blanks between the claims of a list.
"""

from __future__ import annotations

import dataclasses
import json
import math
import typing as t
import zlib

from ..checkpoint.claims import EncodedClaim, assemble
from .crc_update import replaced

Patch = tuple[int, bytes]
"""Bytes to write at an offset of the file."""

_TABS = 64
_SPACES = 448
_UNIT_INNER = _TABS + _SPACES
_UNIT_OUTER = 2 * _TABS + _SPACES
_BLANK = EncodedClaim(b"\t" * _TABS + b" " * _SPACES, b"\\t" * _TABS + b" " * _SPACES)

_CHECKSUM_DIGITS = 10
_ROOM_UNITS = 64
_TAIL = EncodedClaim(b"]}", b"]}")
_END = b'","Checksum":'


def _head() -> EncodedClaim:
    """What stands before the first claim; `assemble` is the one place that knows it."""
    outer = assemble(())[len(b'{"Data":"') :].split(_TAIL.outer + _END)[0]
    return EncodedClaim(json.loads(b'"' + outer + b'"').encode(), outer)


_HEAD = _head()
_FIRST_UNIT = len(b'{"Data":"') + len(_HEAD.outer)


@dataclasses.dataclass
class _Place:
    """Where a claim stands: units ``first`` to ``first + count - 1``, and what fills them."""

    first: int
    count: int
    claim: EncodedClaim
    text: EncodedClaim


def _units_for(claim: EncodedClaim) -> int:
    """How many units hold the claim and its separator, with blanks for the rest."""
    quotes = len(claim.outer) - len(claim.inner)
    spaces = len(claim.inner) + 1 - quotes
    return max(math.ceil(quotes / _TABS), math.ceil(spaces / _SPACES), 1)


def _fill(separator: bytes, claim: EncodedClaim, count: int) -> EncodedClaim:
    tabs = count * _TABS - (len(claim.outer) - len(claim.inner))
    spaces = count * _UNIT_INNER - tabs - len(claim.inner) - len(separator)
    inner = b"".join((separator, claim.inner, b"\t" * tabs, b" " * spaces))
    return EncodedClaim(inner, b"".join((separator, claim.outer, b"\\t" * tabs, b" " * spaces)))


class ClaimGrid:
    """One state file as bytes in memory, with its claims by UID.

    ``data`` is the whole file. It has room for more claims; `replace` says so when the room is used up, and the caller
    makes a new grid then.
    """

    def __init__(self, claims: t.Mapping[str, EncodedClaim]) -> None:
        self._places: dict[str, _Place] = {}
        self._starts: dict[int, str] = {}
        self._free: list[int] = []
        self._lowest: int | None = None
        self._without_comma: int | None = None
        self._end = 0
        parts: list[EncodedClaim] = []
        for uid, claim in claims.items():
            count = _units_for(claim)
            text = _fill(b"," if parts else b" ", claim, count)
            parts.append(text)
            self._take(uid, _Place(self._end, count, claim, text))
            self._end += count
        self._without_comma = self._lowest = min(self._starts, default=None)
        self._units = self._end + _ROOM_UNITS + self._end // 4
        inner = b"".join([_HEAD.inner, *(p.inner for p in parts), _BLANK.inner * self._room, _TAIL.inner])
        self._inner_size = len(inner)
        self._checksum = zlib.crc32(inner)
        outer = [b'{"Data":"', _HEAD.outer, *(p.outer for p in parts), _BLANK.outer * self._room, _TAIL.outer, _END]
        self.data = bytearray(b"".join([*outer, self._checksum_text(), b"}"]))

    @property
    def _room(self) -> int:
        return self._units - self._end

    def replace(self, changes: t.Mapping[str, EncodedClaim | None]) -> list[Patch] | None:
        """Put claims in, change them, or take them out (None), and return what changed in ``data``.

        Returns None when there is no room left; the grid must not be used any more then.
        """
        patches: list[Patch] = []
        for uid, claim in changes.items():
            place = self._places.get(uid)
            if place is not None and (claim is None or _units_for(claim) > place.count):
                self._clear(uid, place, patches)
                place = None
            if claim is None:
                continue
            if place is None:
                place = self._find_place(claim)
                if place is None:
                    return None
                self._take(uid, place)
            place.claim = claim
            self._write(place, patches)
        self._place_comma(patches)
        if patches:
            patches.append(self._patch(len(self.data) - 1 - _CHECKSUM_DIGITS, self._checksum_text()))
        return patches

    def _take(self, uid: str, place: _Place) -> None:
        self._places[uid] = place
        self._starts[place.first] = uid
        if self._lowest is not None:
            self._lowest = min(self._lowest, place.first)

    def _find_place(self, claim: EncodedClaim) -> _Place | None:
        count = _units_for(claim)
        if count == 1 and self._free:
            first = self._free.pop()
        elif self._room >= count:
            first = self._end
            self._end += count
        else:
            return None
        blank = EncodedClaim(_BLANK.inner * count, _BLANK.outer * count)
        return _Place(first, count, claim, blank)

    def _clear(self, uid: str, place: _Place, patches: list[Patch]) -> None:
        blank = EncodedClaim(_BLANK.inner * place.count, _BLANK.outer * place.count)
        self._change(place, blank, patches)
        del self._places[uid], self._starts[place.first]
        self._free.extend(range(place.first, place.first + place.count))
        if self._lowest == place.first:
            self._lowest = None
        if self._without_comma == place.first:
            self._without_comma = None

    def _write(self, place: _Place, patches: list[Patch]) -> None:
        separator = b" " if place.first == self._without_comma else b","
        self._change(place, _fill(separator, place.claim, place.count), patches)

    def _place_comma(self, patches: list[Patch]) -> None:
        """See to it that the first claim in the file, and no other, goes without a comma."""
        if self._lowest is None:
            self._lowest = min(self._starts, default=None)
        before, self._without_comma = self._without_comma, self._lowest
        if before != self._lowest:
            for start in (before, self._lowest):
                if start is not None:
                    self._write(self._places[self._starts[start]], patches)

    def _change(self, place: _Place, text: EncodedClaim, patches: list[Patch]) -> None:
        if text == place.text:
            return
        inner_offset = len(_HEAD.inner) + place.first * _UNIT_INNER
        following = self._inner_size - inner_offset - len(text.inner)
        self._checksum = replaced(self._checksum, place.text.inner, text.inner, following)
        place.text = text
        patches.append(self._patch(_FIRST_UNIT + place.first * _UNIT_OUTER, text.outer))

    def _patch(self, offset: int, content: bytes) -> Patch:
        self.data[offset : offset + len(content)] = content
        return offset, content

    def _checksum_text(self) -> bytes:
        return str(self._checksum).encode().ljust(_CHECKSUM_DIGITS)
