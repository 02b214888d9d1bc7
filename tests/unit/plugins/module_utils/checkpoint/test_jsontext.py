# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Texts brought into Go's shape: the same members in the same order, one spelling for each string."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import gojson, jsontext
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.bytedump import ChecksumCache, fnv_of_bytes
from hypothesis import given
from hypothesis import strategies as st

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def written(value: t.Any) -> str:
    """What Go writes for a value, members in their order."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return gojson.quote(value)
    if isinstance(value, list):
        return f"[{','.join(written(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{gojson.quote(key)}:{written(item)}' for key, item in value.items())}}}"
    return str(value)


@given(DOCUMENTS, st.sampled_from([None, 0, 2]), st.booleans())
def test_normal_text_does_not_depend_on_blanks_and_escapes(value: t.Any, indent: t.Any, ascii_only: bool) -> None:
    assert jsontext.normal(json.dumps(value, indent=indent, ensure_ascii=ascii_only)) == written(value)


@pytest.mark.parametrize(
    ("text", "compacted"),
    [
        ('{ "a" : "b c" ,\n "d":[ 1.0 , 1e5 ] }', '{"a":"b c","d":[1.0,1e5]}'),
        ('"<&>\u2028\u2029\\u003c\\/"', '"\\u003c\\u0026\\u003e\\u2028\\u2029\\u003c\\/"'),
        ('{"\\u00e9":"é\\"\\\\"}', '{"\\u00e9":"é\\"\\\\"}'),
        ("null", "null"),
    ],
)
def test_compact_text_keeps_every_spelling_but_that_of_html(text: str, compacted: str) -> None:
    assert jsontext.compact(text) == compacted


def slow_fnv(text: str) -> int:
    """The checksum as it is described, over the whole dump."""
    value = 2166136261
    for byte in f"([]uint8)[{' '.join(str(byte) for byte in gojson.encode_text(text))}]".encode():
        value = (value ^ byte) * 16777619 % 2**32
    return value


@pytest.mark.parametrize("length", [0, 1, 2, 4095, 4096, 4097, 8192, 20000])
def test_checksum_in_pieces_equals_that_of_the_whole_dump(length: int) -> None:
    text = ('{"é":\udc80"<' * length)[:length]
    assert fnv_of_bytes(text) == slow_fnv(text)


@pytest.mark.parametrize(("text", "checksum"), [('{"checksum":0,"v1":{}}', 1083090442), ('{"checksum":0}', 4166374854)])
def test_known_checksums(text: str, checksum: int) -> None:
    cache = ChecksumCache()
    assert [cache.fnv(text), cache.fnv(text)] == [checksum, checksum]
