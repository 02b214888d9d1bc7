# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The CRC-32 of a long text of which a few bytes change, without reading the rest of it again.

A CRC is linear: when bytes are replaced by as many others, the checksum of the whole changes by the difference of the
two pieces' checksums, moved past everything that follows them. Moving past n bytes is a multiplication by x^(8n)
modulo the polynomial, which takes a few dozen steps for any n.
"""

from __future__ import annotations

import functools
import zlib

_POLYNOMIAL = 0xEDB88320
_ONE = 1 << 31
"""The polynomial 1: bit 31 stands for x^0, as everywhere in the reflected CRC-32 of zlib and Go."""


def _times(left: int, right: int) -> int:
    """The product of two polynomials modulo that of the CRC."""
    product = 0
    while left:
        if left & _ONE:
            product ^= right
        left = (left << 1) & 0xFFFFFFFF
        right = (right >> 1) ^ (_POLYNOMIAL if right & 1 else 0)
    return product


def _doubling_powers() -> tuple[int, ...]:
    power = _ONE >> 8
    powers = []
    for _unused in range(64):
        powers.append(power)
        power = _times(power, power)
    return tuple(powers)


_POWERS = _doubling_powers()
"""x^(8 * 2^k) at index k: the factors that move a checksum past 1, 2, 4, 8 ... bytes."""


_LOW_BITS = 12


@functools.lru_cache(maxsize=8192)
def _power(count: int, skipped: int) -> int:
    """x^(8 * count * 2^skipped)."""
    factor = _ONE
    for power in _POWERS[skipped:]:
        if not count:
            break
        if count & 1:
            factor = _times(factor, power)
        count >>= 1
    return factor


def _past(count: int) -> int:
    """x^(8 * count). Split into two parts with few values each, so that both are soon found in the cache."""
    return _times(_power(count >> _LOW_BITS, _LOW_BITS), _power(count & ((1 << _LOW_BITS) - 1), 0))


def replaced(checksum: int, old: bytes, new: bytes, following: int) -> int:
    """The checksum of a text after ``old`` in it became ``new``, a piece of the same length.

    ``checksum`` is that of the whole text before, ``following`` the number of bytes after the piece.
    """
    if len(old) != len(new):
        raise ValueError(f"the pieces have {len(old)} and {len(new)} bytes, expected the same length")
    difference = zlib.crc32(old) ^ zlib.crc32(new)
    return checksum ^ _times(difference, _past(following))
