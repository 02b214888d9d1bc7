# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The checksum that drivers put into their own files: the kubelet's ``checksum.New``, given JSON bytes.

What is hashed is go-spew's text for a byte slice, ``([]uint8)[123 34 ...]``, four characters for a byte of JSON. It is
made and hashed piece by piece and never exists as a whole.
"""

from __future__ import annotations

import hashlib

from .gojson import encode_text

_OFFSET = 2166136261
_PRIME = 16777619
_MASK = 0xFFFFFFFF
_PIECE = 1 << 12  # joining takes a buffer of 80 bytes for each part
_DECIMALS = [b"%d " % byte for byte in range(256)]


def _fnv(data: bytes, value: int) -> int:
    for byte in data:
        value = ((value ^ byte) * _PRIME) & _MASK
    return value


_HEAD = _fnv(b"([]uint8)[", _OFFSET)


def fnv_of_bytes(text: str) -> int:
    """FNV-1a, 32 bits, of the dump of a JSON text's bytes."""
    value = _HEAD
    last = len(text) - 1
    for start in range(0, len(text), _PIECE):
        piece = b"".join(map(_DECIMALS.__getitem__, encode_text(text[start : start + _PIECE])))
        value = _fnv(piece if start + _PIECE <= last else piece[:-1], value)
    return _fnv(b"]", value)


class ChecksumCache:
    """`fnv_of_bytes` of texts that mostly are the same: every reader of a file hashes what it wrote again."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}

    def fnv(self, text: str) -> int:
        """The checksum of ``text``."""
        key = hashlib.sha256(encode_text(text)).digest()
        if key not in self._known:
            self._known[key] = fnv_of_bytes(text)
        return self._known[key]
