# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""JSON read and written by Go's rules, against what Go itself said of the same texts (fixtures/gojson).

Follows: TestUnmarshalSyntax, TestUnmarshalMaxDepth, TestMarshal (encoding/json).
"""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import gojson

RECORDING = json.loads(
    (pathlib.Path(__file__).parents[3] / "fixtures" / "gojson" / "recorded.json").read_text(encoding="utf-8")
)
RECORDED: list[dict[str, t.Any]] = RECORDING["syntax"]


def error_of(text: str) -> gojson.GoSyntaxError | None:
    try:
        gojson.parse(text)
    except gojson.GoSyntaxError as error:
        return error
    return None


def test_every_recorded_text_gets_go_s_message_and_place() -> None:
    wrong = []
    for case in RECORDED:
        text = gojson.decode_bytes(case["text"].encode("latin-1"))
        error = error_of(text)
        message = error.go_message if error is not None else ""
        bytes_read = 0
        if error is not None:
            bytes_read = len(gojson.encode_text(text[: error.offset])) + (0 if error.cut else 1)
        if (message, bytes_read) != (case["error"], case["offset"]):
            wrong.append(f"{case['text']!r}: Go {case['error']!r} {case['offset']}, here {message!r} {bytes_read}")
    assert not wrong, "\n".join(wrong)
    assert len(RECORDED) > 900


def test_what_both_take_is_decoded_as_python_decodes_it() -> None:
    texts = {case["text"] for case in RECORDING["types"] if "\\ud800" not in case["text"]}
    for text in texts:
        assert plain(gojson.parse(text)) == json.loads(text)
    assert len(texts) > 150


def plain(node: gojson.Node) -> t.Any:
    if node.kind == "object":
        return {key: plain(value) for key, value in node.value}
    if node.kind == "array":
        return [plain(value) for value in node.value]
    return json.loads(node.value) if node.kind == "number" else node.value


@pytest.mark.parametrize(
    ("text", "kind", "cut"),
    [
        pytest.param("", "truncated", True, id="nothing"),
        pytest.param('{"a":[1,', "truncated", True, id="between tokens"),
        pytest.param('{"a":"b', "truncated", True, id="in a string"),
        pytest.param('{"a":"\\u00', "syntax", True, id="in an escape, which Go calls a syntax error"),
        pytest.param('{"a":tr', "syntax", True, id="in a literal"),
        pytest.param('{"a":-', "syntax", True, id="in a number"),
        pytest.param('{"a":1.', "syntax", True, id="after a decimal point"),
        pytest.param("{}{", "trailing_data", False, id="after the document"),
        pytest.param("{]", "syntax", False, id="wrong bracket"),
    ],
)
def test_a_cut_text_is_told_from_a_wrong_one(text: str, kind: str, cut: bool) -> None:
    error = error_of(text)
    assert error is not None
    assert (error.kind, error.cut) == (kind, cut)


@pytest.mark.parametrize("place", range(1, 40))
def test_a_text_cut_anywhere_is_called_cut(place: int) -> None:
    text = '{"a":[1.5e3,true,null,"\\u00e9\\n"],"b":{}}'
    error = error_of(text[: min(place, len(text) - 1)])
    assert error is not None
    assert error.cut
    assert error.kind in ("truncated", "syntax")


@pytest.mark.parametrize(
    ("opening", "inside", "closing"),
    [
        pytest.param("[", "", "]", id="arrays"),
        pytest.param('{"a":', "1", "}", id="objects"),
        pytest.param(' [ {"a" : ', "null", " } ] ", id="both, with blanks"),
    ],
)
def test_ten_thousand_levels_are_read_and_one_more_is_not(opening: str, inside: str, closing: str) -> None:
    levels = opening.count("[") + opening.count("{")
    times = gojson.MAX_DEPTH // levels
    text = opening * times + inside + closing * times
    assert gojson.parse(text).end == len(text.rstrip())
    error = error_of(f"[{text}]")
    assert error is not None
    bracket = opening.strip()[-1] if levels == 2 else opening[0]
    bracket = "{" if "{" in opening else bracket
    assert error.go_message == f"invalid character '{bracket}' exceeded max depth"
    assert error.kind == "syntax"


def test_depth_counts_in_a_member_that_nobody_reads_too() -> None:
    deep = "[" * 9999 + "]" * 9999
    assert error_of(f'{{"unknown":{deep}}}') is None
    assert error_of(f'{{"unknown":[{deep}]}}') is not None


def test_siblings_do_not_add_to_the_depth() -> None:
    assert error_of(f"[{','.join(['[]'] * 20_000)}]") is None


@pytest.mark.parametrize(
    ("escaped", "value"),
    [
        pytest.param("\\ud83d\\ude00", "\U0001f600", id="a pair is one character"),
        pytest.param("\\ud83d", "\ufffd", id="a high one alone"),
        pytest.param("\\ude00", "\ufffd", id="a low one alone"),
        pytest.param("\\ude00\\ud83d", "\ufffd\ufffd", id="in the wrong order, one for each"),
        pytest.param("\\ud83dA", "\ufffdA", id="before a letter"),
        pytest.param("\\ud83d\\ud83d\\ude00", "\ufffd\U0001f600", id="before a pair"),
        pytest.param("\\uDBFF\\uDFFF", "\U0010ffff", id="capital digits"),
    ],
)
def test_surrogate_escapes(escaped: str, value: str) -> None:
    assert gojson.parse(f'"{escaped}"').value == value


@pytest.mark.parametrize(
    ("data", "value"),
    [
        pytest.param(b"\xff", "\ufffd", id="one byte"),
        pytest.param(b"\xe2\x82", "\ufffd\ufffd", id="two of three bytes count twice"),
        pytest.param(b"\xed\xa0\x80", "\ufffd\ufffd\ufffd", id="an encoded surrogate"),
        pytest.param(b"\xc0\xaf", "\ufffd\ufffd", id="an overlong slash"),
        pytest.param(b"\xf4\x90\x80\x80", "\ufffd" * 4, id="beyond the last character"),
        pytest.param(b"a\xffb", "a\ufffdb", id="between letters"),
    ],
)
def test_each_invalid_byte_becomes_one_replacement_character(data: bytes, value: str) -> None:
    text = gojson.decode_bytes(b'"' + data + b'"')
    assert gojson.parse(text).value == value
    assert gojson.encode_text(text) == b'"' + data + b'"'


def test_every_node_spans_its_own_text() -> None:
    text = ' { "a" : [ 1 , "x\\u0041" , null ] , "b" : { } , "a" : -0.5E+2 } '
    root = gojson.parse(text)
    spans = [(key, text[node.start : node.end]) for key, node in root.members()]
    assert spans == [("a", '[ 1 , "x\\u0041" , null ]'), ("b", "{ }"), ("a", "-0.5E+2")]
    assert text[root.start : root.end] == text.strip()
    items = root.members()[0][1].value
    assert [(text[item.start : item.end], item.kind, item.value) for item in items] == [
        ("1", "number", "1"),
        ('"x\\u0041"', "string", "xA"),
        ("null", "null", None),
    ]


def test_get_takes_the_last_of_repeated_keys() -> None:
    root = gojson.parse('{"a":1,"a":2,"A":3}')
    found = root.get("a")
    assert found is not None
    assert found.value == "2"
    assert root.get("b") is None
    assert gojson.parse("[1]").members() == []


def test_parse_at_reads_one_value_and_minds_nothing_after_it() -> None:
    text = 'garbage{"a":1}garbage'
    node = gojson.parse_at(text, 7)
    assert text[node.start : node.end] == '{"a":1}'
    with pytest.raises(gojson.GoSyntaxError, match="beginning of value"):
        gojson.parse_at(text, 0)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        pytest.param('a"b\\c/', '"a\\"b\\\\c/"', id="quote and backslash, but no slash"),
        pytest.param("\n\r\t\b\f", '"\\n\\r\\t\\b\\f"', id="short escapes"),
        pytest.param("\x00\x0b\x1b\x1f", '"\\u0000\\u000b\\u001b\\u001f"', id="other control characters"),
        pytest.param("<a>&", '"\\u003ca\\u003e\\u0026"', id="what HTML minds"),
        pytest.param("\u2028\u2029", '"\\u2028\\u2029"', id="line separators"),
        pytest.param("\x7f'\ufeffé日\U0001f600", '"\x7f\'\ufeffé日\U0001f600"', id="written as they are"),
        pytest.param("\udcff\ud800", '"\\ufffd\\ufffd"', id="no text at all"),
        pytest.param("", '""', id="empty"),
    ],
)
def test_strings_are_written_as_go_writes_them(value: str, written: str) -> None:
    assert gojson.quote(value) == written


def test_what_is_written_reads_back() -> None:
    every = "".join(map(chr, [*range(0x300), 0x2028, 0x2029, 0xFEFF, 0xFFFD, 0x10FFFF]))
    assert gojson.parse(gojson.quote(every)).value == every
