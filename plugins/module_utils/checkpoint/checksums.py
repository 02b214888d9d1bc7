# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The checksums of state files.

Kubernetes symbols: ``checksum.New`` (FNV-1a over go-spew's dump of the struct) up to 1.30, ``crc32.ChecksumIEEE`` of
the data string from 1.31.
"""

from __future__ import annotations

import typing as t
import zlib

from .formats import FNV_1_27, Format
from .gojson import encode_text

_OFFSET = 2166136261
_PRIME = 16777619
_MASK = 0xFFFFFFFF
_PIECE = 1 << 16


def crc(text: str, value: int = 0) -> int:
    """CRC-32 (IEEE) of a text's UTF-8 bytes; ``value`` is the sum of the text before it."""
    for start in range(0, len(text), _PIECE):
        value = zlib.crc32(encode_text(text[start : start + _PIECE]), value)
    return value & _MASK


def fnv(data: bytes, value: int = _OFFSET) -> int:
    """FNV-1a, 32 bits, of some bytes; ``value`` is the sum of those before them."""
    for byte in data:
        value = ((value ^ byte) * _PRIME) & _MASK
    return value


def dump_pieces(forms: t.Sequence[Format], document: t.Mapping[str, t.Any]) -> t.Iterator[tuple[str, ...]]:
    """The texts that kubelets of some formats of the ``fnv`` family hash for a decoded document, claim by claim.

    Each item is the next piece for each of the formats: claims are decoded once for all of them, and ``entries`` may be
    an iterator. The checksum counts as 0. The whole text is longer than the file: it is never held in one piece.
    """
    head = f"(*state.DRAManagerCheckpoint){{Version:(string){document['version']} Entries:(state.ClaimInfoStateList)"
    yield (head,) * len(forms)
    entries = document["entries"]
    if entries is None:
        yield ("<nil>",) * len(forms)
    else:
        separator = "["
        for claim in entries:
            yield tuple(separator + form.claim.dump(claim) for form in forms)
            separator = " "
        yield ("]" if separator == " " else "[]",) * len(forms)
    yield (" Checksum:(checksum.Checksum)0}",) * len(forms)


def fnv_of_formats(forms: t.Sequence[Format], document: t.Mapping[str, t.Any]) -> list[int]:
    """The checksums that kubelets of some formats compute for a decoded document."""
    values = [_OFFSET] * len(forms)
    for pieces in dump_pieces(forms, document):
        values = [fnv(encode_text(piece), value) for piece, value in zip(pieces, values)]
    return values


def fnv_of_document(form: Format, document: t.Mapping[str, t.Any]) -> int:
    """The checksum that a kubelet of ``form`` computes for a decoded document."""
    return fnv_of_formats([form], document)[0]


def fnv_of_fallback(document: t.Mapping[str, t.Any]) -> int:
    """The checksum of the 1.27 view of a document, which 1.28 to 1.30 try when their own checksum fails.

    In that view the version is ``v1``, claims have no handles, and a nil list is an empty one.
    """
    return fnv_of_document(
        FNV_1_27, {"version": "v1", "entries": document["entries"] if document["entries"] is not None else []}
    )
