# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The checksum of a text of which a piece changed."""

from __future__ import annotations

import zlib

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.manager.crc_update import replaced
from hypothesis import given
from hypothesis import strategies as st


@given(
    before=st.binary(max_size=9000), pieces=st.tuples(st.binary(max_size=600), st.binary(max_size=600)), after=st.data()
)
def test_the_checksum_equals_that_of_the_whole_text(
    before: bytes, pieces: tuple[bytes, bytes], after: st.DataObject
) -> None:
    size = min(map(len, pieces))
    old, new = pieces[0][:size], pieces[1][:size]
    rest = after.draw(st.binary(max_size=9000))
    assert replaced(zlib.crc32(before + old + rest), old, new, len(rest)) == zlib.crc32(before + new + rest)


@pytest.mark.parametrize("following", [0, 1, 4095, 4096, 4097, 2_000_000, 5_000_001])
def test_the_number_of_bytes_behind_the_piece_does_not_matter(following: int) -> None:
    rest = b"\x5a" * following
    assert replaced(zlib.crc32(b"old" + rest), b"old", b"new", following) == zlib.crc32(b"new" + rest)


def test_pieces_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="3 and 4 bytes"):
        replaced(0, b"old", b"four", 10)
