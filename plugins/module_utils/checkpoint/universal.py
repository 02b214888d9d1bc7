# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One file that every kubelet from 1.27 on accepts, so that an upgrade can be rolled back.

Keys match whatever their case and unknown keys are ignored, so one document can carry the list of both families and
one checksum. It is right for both when the CRC-32 of ``Data`` equals the FNV hash of ``entries``. CRC-32 is linear:
turning one blank of a row behind the data into a tab flips a known set of its bits, whatever the rest is. Blanks are
added until their sets span all 32 bits, then one system of linear equations says which of them become tabs.
The hashed text is that of 1.27, which 1.28 to 1.30 try as well.
"""

from __future__ import annotations

import typing as t

from . import checksums, gojson, startup
from .conversion import other_family
from .draft import data_pieces, list_pieces
from .entries import Entry
from .errors import DraError
from .formats import CRC, CRC_1_35, FNV

_BITS = 32
_ROOM = 64
"""Blanks to choose from: 32 would do if their sets of bits were independent, a few more always hold such 32."""


def render(entries: t.Sequence[Entry]) -> bytes:
    """The bytes of a universal file for claims of either family.

    Raises `DraError` if the claims cannot be told apart by a kubelet of one of the families.
    """
    _refuse_collisions(entries)
    return gojson.encode_pieces(_pieces(entries))


def _pieces(entries: t.Sequence[Entry]) -> t.Iterator[str]:
    """The text claim by claim: the claims of a family are only there while they are written."""
    target = checksums.fnv_of_fallback({"version": "v1", "entries": (entry.fields for entry in _as(FNV, entries))})
    yield '{"version":"v1","entries":'
    yield from list_pieces(_as(FNV, entries))
    yield ',"Data":"'
    value = 0
    for piece in data_pieces(CRC_1_35, _as(CRC, entries)):
        value = checksums.crc(piece, value)
        yield gojson.quote(piece)[1:-1]
    # a tab is written as \t, which reads back as the tab that the checksum counts
    yield gojson.quote(blanks_for(checksums.crc(" " * _ROOM, value), target))[1:-1]
    yield f'","checksum":{target}}}'


def _as(family: str, entries: t.Iterable[Entry]) -> t.Iterator[Entry]:
    return (entry if entry.family == family else other_family(entry) for entry in entries)


def _refuse_collisions(entries: t.Iterable[Entry]) -> None:
    seen: dict[tuple[str, ...], Entry] = {}
    for entry in entries:
        who = entry.identity
        key = startup.cache_key(FNV, who.namespace, who.name)
        other = seen.setdefault(key, entry)
        if other is not entry:
            raise DraError(
                f"No file serves all releases: kubelets up to 1.30 cannot tell claim {entry.label} from {other.label}.",
                "Convert to one release instead, or drop one of the two claims.",
                claim_uid=entry.uid,
                other_uid=other.uid,
            )


def blanks_for(crc_with_blanks: int, target: int) -> str:
    """The row of blanks and tabs that gives a text the CRC ``target``.

    ``crc_with_blanks`` is the CRC of the text with `_ROOM` blanks behind it.
    """
    solution = solve([_flips(place) for place in range(_ROOM)], crc_with_blanks ^ target)
    return "".join("\t" if solution >> place & 1 else " " for place in range(_ROOM))


def _flips(place: int) -> int:
    """The bits of the CRC that change when the blank at ``place`` of the row becomes a tab; the text before is moot."""
    row = " " * _ROOM
    return checksums.crc(row) ^ checksums.crc(f"{row[:place]}\t{row[place + 1 :]}")


def solve(vectors: t.Sequence[int], target: int) -> int:
    """Which of the vectors add up (modulo 2) to the target, as a bit set. The vectors must span all 32 bits."""
    basis: list[tuple[int, int]] = [(0, 0)] * _BITS
    for number, vector in enumerate(vectors):
        value, used = vector, 1 << number
        for bit in range(_BITS - 1, -1, -1):
            if not value >> bit & 1:
                continue
            if not basis[bit][0]:
                basis[bit] = (value, used)
                break
            value, used = value ^ basis[bit][0], used ^ basis[bit][1]
    chosen = 0
    for bit in range(_BITS - 1, -1, -1):
        if target >> bit & 1:
            target, chosen = target ^ basis[bit][0], chosen ^ basis[bit][1]
    return chosen
