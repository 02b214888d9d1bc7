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


def fnv(data: bytes) -> int:
    """FNV-1a, 32 bits, of some bytes."""
    value = _OFFSET
    for byte in data:
        value = ((value ^ byte) * _PRIME) & _MASK
    return value


def dump_text(form: Format, document: t.Mapping[str, t.Any]) -> str:
    """The text that a kubelet of the ``fnv`` family hashes for a decoded document; the checksum counts as 0."""
    return f"(*state.DRAManagerCheckpoint){form.document.dump({**document, 'checksum': 0})}"


def fnv_of_document(form: Format, document: t.Mapping[str, t.Any]) -> int:
    """The checksum that a kubelet of ``form`` computes for a decoded document."""
    return fnv(encode_text(dump_text(form, document)))


def fallback_document(document: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The 1.27 view that 1.28 to 1.30 try when their own checksum fails: version ``v1``, no handles, nil as empty."""
    return {"version": "v1", "entries": document["entries"] or []}


def fnv_of_fallback(document: t.Mapping[str, t.Any]) -> int:
    """The checksum of the 1.27 view of a document that a newer release of the ``fnv`` family decoded."""
    return fnv_of_document(FNV_1_27, fallback_document(document))
