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


def crc(text: str) -> int:
    """CRC-32 (IEEE) of a text's UTF-8 bytes."""
    return zlib.crc32(encode_text(text)) & _MASK


def fnv(pieces: t.Iterable[bytes]) -> int:
    """FNV-1a, 32 bits, of some bytes that come in pieces."""
    value = _OFFSET
    for piece in pieces:
        for byte in piece:
            value = ((value ^ byte) * _PRIME) & _MASK
    return value


def dump_pieces(form: Format, document: t.Mapping[str, t.Any]) -> t.Iterator[str]:
    """The text that a kubelet of the ``fnv`` family hashes for a decoded document, claim by claim.

    The checksum counts as 0. The whole text is as long as the file: it is never held in one piece.
    """
    yield f"(*state.DRAManagerCheckpoint){{Version:(string){document['version']} Entries:(state.ClaimInfoStateList)"
    entries = document["entries"]
    if entries is None:
        yield "<nil>"
    else:
        separator = "["
        for claim in entries:
            yield separator + form.claim.dump(claim)
            separator = " "
        yield "]" if entries else "[]"
    yield " Checksum:(checksum.Checksum)0}"


def fnv_of_document(form: Format, document: t.Mapping[str, t.Any]) -> int:
    """The checksum that a kubelet of ``form`` computes for a decoded document."""
    return fnv(encode_text(piece) for piece in dump_pieces(form, document))


def fnv_of_fallback(document: t.Mapping[str, t.Any]) -> int:
    """The checksum of the 1.27 view of a document, which 1.28 to 1.30 try when their own checksum fails.

    In that view the version is ``v1``, claims have no handles, and a nil list is an empty one.
    """
    return fnv_of_document(FNV_1_27, {"version": "v1", "entries": document["entries"] or []})
