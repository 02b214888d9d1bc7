# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The lean reader gives the same tree, and the same errors at the same places, as the one that keeps every node."""

from __future__ import annotations

import random
import tracemalloc
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import gojson, lazyjson
from hypothesis import given
from hypothesis import strategies as st

from . import vectors

ALPHABET = '{}[]":,\\ntfu0123.eE+- \n\x00a\udc80é'


def tree(node: gojson.Node) -> t.Any:
    """Everything about a node and what is below it."""
    value = node.value
    if node.kind == "object":
        value = [(key, tree(child)) for key, child in node.value]
    elif node.kind == "array":
        value = [tree(child) for child in node.value]
    return node.kind, node.start, value, node.end


def outcome(read: t.Callable[[str], gojson.Node], text: str) -> t.Any:
    try:
        return tree(read(text))
    except gojson.GoSyntaxError as error:
        return error.kind, error.offset, error.go_message, error.cut


@given(st.text(st.sampled_from(ALPHABET), max_size=20))
def test_random_texts(text: str) -> None:
    assert outcome(lazyjson.read_root, text) == outcome(gojson.parse, text)


@given(
    st.recursive(
        st.sampled_from(["1", "-0.5e3", "true", "null", '""', '"a\\nb"', "{}", "[ ]", '"\udc80"', '"\\ud800"']),
        lambda inner: st.one_of(
            st.lists(inner).map(lambda items: f"[{', '.join(items)}]"),
            st.lists(st.tuples(st.sampled_from(['"a"', '"\\u0061"', '""']), inner)).map(
                lambda items: f"{{{','.join(f'{key} :{value}' for key, value in items)}}}"
            ),
        ),
    )
)
def test_random_documents(text: str) -> None:
    assert outcome(lazyjson.read_root, text) == outcome(gojson.parse, text)
    assert lazyjson.read_root(text).end == gojson.parse(text).end


def test_vectors_with_random_damage() -> None:
    rng = random.Random(7)
    names = [name for name in vectors.MATRIX if len(vectors.read(name)) < 1500]
    for _unused in range(3000):
        data = bytearray(vectors.read(rng.choice(names))[:600])
        for _unused in range(rng.randint(0, 3)):
            place = rng.randrange(len(data) + 1)
            data[place : place + rng.randint(0, 3)] = rng.choice([b"", b'"', b"{", b"}", b",", b"\\", b"1e5", b"[1,2]"])
        text = gojson.decode_bytes(bytes(data))
        assert outcome(lazyjson.read_root, text) == outcome(gojson.parse, text)


@pytest.mark.parametrize("inner", ["", "{}", "[],{}", "1,{},2", '{"a":{},"b":1}'])
@pytest.mark.parametrize("depth", [gojson.MAX_DEPTH - 1, gojson.MAX_DEPTH, gojson.MAX_DEPTH + 1, 100000])
def test_depth_limit(depth: int, inner: str) -> None:
    text = "[" * depth + inner + "]" * depth

    def refusal(read: t.Callable[[str], gojson.Node]) -> t.Any:
        try:
            read(text)
        except gojson.GoSyntaxError as error:
            return error.offset, error.go_message
        return None

    assert refusal(lazyjson.read_root) == refusal(gojson.parse)


@pytest.mark.parametrize(
    "text", [r'["a\"]b",{"c\\":"\\\"}"}]', r'{"x":{"\"":["\\"]},"y":"\\\\"}', r'["\\",["\"","]"]]']
)
def test_escaped_quotes_end_no_string(text: str) -> None:
    assert outcome(lazyjson.read_root, text) == outcome(gojson.parse, text)
    for lazy, whole in zip(lazyjson.read_root(text).value, gojson.parse(text).value):
        skipped, kept = (lazy[1], whole[1]) if isinstance(lazy, tuple) else (lazy, whole)
        assert skipped.end == kept.end


def test_a_view_can_be_walked_twice_and_left_early() -> None:
    root = lazyjson.read_root('{"a":[1,{"b":2}],"c":[],"d":{"e":"f"},"a":3}')
    for key, child in root.value:
        assert key == "a"
        assert bool(child.value)
        break
    assert [key for key, _unused in root.value] == ["a", "c", "d", "a"]
    assert [bool(child.value) for key, child in root.value if key == "c"] == [False]
    last = root.get("a")
    assert last is not None
    assert last.value == "3"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" + "0," * 100000 + "0]", id="numbers"),
        pytest.param('{"a":[' + "{}," * 100000 + "{}]}", id="empty objects"),
        pytest.param("[" + '["a",{"b":1}],' * 30000 + "0]", id="small lists"),
        pytest.param('["' + "ab\\n" * 100000 + '"]', id="escapes"),
        pytest.param('["' + "\\\\" * 100000 + '"]', id="backslashes"),
        pytest.param("1" * 1000000, id="digits"),
    ],
)
def test_reading_keeps_nothing_of_the_text(text: str) -> None:
    tracemalloc.start()
    try:
        lazyjson.read_root(text).end  # noqa: B018
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * len(text) + 200000
