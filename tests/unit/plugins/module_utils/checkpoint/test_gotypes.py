# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Decoding into Go's types, against what Go itself made of the same documents (fixtures/gojson).

Follows: TestUnmarshal, TestUnmarshalNulls, TestPrefilled (encoding/json).
"""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import formats, gojson
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.gotypes import (
    Decoding,
    Field,
    GoList,
    Map,
    Pointer,
    RawExtension,
    Slice,
    Str,
    Struct,
    TypeFault,
    Uint,
    fold,
)

RECORDED: list[dict[str, t.Any]] = json.loads(
    (pathlib.Path(__file__).parents[3] / "fixtures" / "gojson" / "recorded.json").read_text(encoding="utf-8")
)["types"]
FORMATS = {form.name: form for form in formats.FORMATS}

PAIR = Struct("x.Pair", [Field("Name", Str()), Field("Tasks", Slice("[]string", Str()))])
DEEP = Struct("x.Deep", [Field("Pairs", Slice("[]x.Pair", PAIR)), Field("ByKey", Map("map[string]x.Pair", PAIR))])


def decode(kind: t.Any, text: str, old: t.Any = None) -> tuple[t.Any, list[TypeFault]]:
    into = Decoding(text)
    value = kind.decode(gojson.parse(text), kind.zero() if old is None else old, "", into)
    return value, into.faults


def start(name: str) -> tuple[Struct, dict[str, t.Any]]:
    """The struct that a recorded case decodes into, and what is in it before."""
    if name == "outer":
        return formats.CRC_DOCUMENT, {"Data": "D", "Checksum": 7}
    struct = FORMATS[name].document
    value = struct.zero()
    if FORMATS[name].family == formats.FNV:
        value.update(version="v1", entries=GoList())
    return struct, value


def test_every_recorded_document_is_decoded_as_go_decodes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown(_unused: RawExtension, value: str | None) -> str:
        return "null" if value is None else gojson.quote(f"RAW:{value}")

    monkeypatch.setattr(RawExtension, "encode", shown)
    wrong = []
    for case in RECORDED:
        struct, value = start(case["as"])
        found, faults = decode(struct, case["text"], value)
        ours = None if faults else struct.encode(found).replace("\\ufffd", "\ufffd")
        wanted = None if case["refused"] else case["value"].replace("\\ufffd", "\ufffd")
        if ours != wanted:
            wrong.append(f"{case['as']} {case['text']}\n  Go   {wanted}\n  here {ours} {faults}")
    assert not wrong, "\n".join(wrong)
    assert len(RECORDED) > 500


@pytest.mark.parametrize(
    "key", ["Tasks", "tasks", "TASKS", "tAsKs", "ta\u017fk\u017f", "tas\u212as", "TA\u017f\u212aS"]
)
def test_keys_match_whatever_their_case(key: str) -> None:
    value, faults = decode(PAIR, json.dumps({key: ["t"]}, ensure_ascii=False))
    assert value["Tasks"] == ["t"]
    assert not faults


@pytest.mark.parametrize("key", ["task", "Tasks ", "Ta_sks", "T\u00e4sks", "Tas\u0138s", ""])
def test_other_keys_are_skipped(key: str) -> None:
    value, faults = decode(PAIR, json.dumps({key: 7}))
    assert value == {"Name": "", "Tasks": None}
    assert not faults


def test_folding_pairs_the_long_s_and_the_kelvin_sign_only() -> None:
    assert fold("\u017f\u212aK") == "skk"
    assert fold("\u0130") != "i"  # a dotted capital I is no letter of ASCII to Go
    assert fold("\u00df") != "ss"


def test_keys_of_maps_are_exact() -> None:
    value, _unused = decode(Map("map[string]string", Str()), '{"a":"1","A":"2"}')
    assert value == {"a": "1", "A": "2"}


def test_the_last_of_repeated_keys_wins() -> None:
    assert decode(PAIR, '{"Name":"a","name":"b"}')[0]["Name"] == "b"
    assert decode(PAIR, '{"name":"a","Name":null}')[0]["Name"] == "a"


def test_a_repeated_list_is_decoded_over_the_elements_that_are_there() -> None:
    text = '{"Pairs":[{"Name":"a","Tasks":["x"]},{"Name":"b"}],"Pairs":[{"Tasks":["y"]}],"Pairs":[{},{}]}'
    value, _unused = decode(DEEP, text)
    assert value["Pairs"] == [{"Name": "a", "Tasks": ["y"]}, {"Name": "b", "Tasks": None}]


@pytest.mark.parametrize("between", ["null", "[]"])
def test_a_list_that_was_emptied_in_between_forgets(between: str) -> None:
    text = f'{{"Pairs":[{{"Name":"a"}}],"Pairs":{between},"Pairs":[{{}}]}}'
    assert decode(DEEP, text)[0]["Pairs"] == [{"Name": "", "Tasks": None}]


def test_a_repeated_pointer_is_decoded_over_what_it_points_to_unless_null_came_between() -> None:
    struct = Struct("x.Holder", [Field("P", Pointer(PAIR))])
    assert decode(struct, '{"P":{"Name":"a"},"P":{"Tasks":[]}}')[0] == {"P": {"Name": "a", "Tasks": []}}
    assert decode(struct, '{"P":{"Name":"a"},"P":null,"P":{"Tasks":[]}}')[0] == {"P": {"Name": "", "Tasks": []}}


def test_a_repeated_map_keeps_its_other_keys_and_starts_repeated_ones_anew() -> None:
    text = '{"ByKey":{"k":{"Name":"a"},"l":{}},"ByKey":{"k":{"Tasks":[]}}}'
    assert decode(DEEP, text)[0]["ByKey"] == {"k": {"Name": "", "Tasks": []}, "l": {"Name": "", "Tasks": None}}


@pytest.mark.parametrize(
    ("kind", "old", "after"),
    [
        pytest.param(Str(), "kept", "kept", id="string"),
        pytest.param(Uint("uint32", 32), 5, 5, id="number"),
        pytest.param(PAIR, {"Name": "kept", "Tasks": None}, {"Name": "kept", "Tasks": None}, id="struct"),
        pytest.param(RawExtension(), "[1]", "[1]", id="raw"),
        pytest.param(Slice("[]string", Str()), GoList(["x"]), None, id="slice"),
        pytest.param(Map("map[string]string", Str()), {"x": "y"}, None, id="map"),
        pytest.param(Pointer(Str()), "x", None, id="pointer"),
    ],
)
def test_null_keeps_values_and_empties_references(kind: t.Any, old: t.Any, after: t.Any) -> None:
    value, faults = decode(kind, "null", old)
    assert value == after
    assert not faults


@pytest.mark.parametrize(
    ("number", "ok"),
    [
        ("0", True),
        ("4294967295", True),
        ("4294967296", False),
        ("9" * 20, False),
        ("9" * 5000, False),  # more digits than Python turns into a number
        ("-0", False),
        ("-1", False),
        ("1.0", False),
        ("1e3", False),
        ('"1"', False),
        ("true", False),
        ("[1]", False),
    ],
)
def test_unsigned_integers(number: str, ok: bool) -> None:
    value, faults = decode(Uint("uint32", 32), number, 8)
    assert value == (int(number) if ok else 8)
    assert [fault.expected for fault in faults] == ([] if ok else ["unsigned integer of 32 bits"])


def test_a_type_error_is_placed_and_the_rest_is_read_all_the_same() -> None:
    text = '{"Pairs":[{"Name":1,"Tasks":["x",2]},{"Name":"b"}],"ByKey":{"k":{"Name":true},"l":"no"}}'
    value, faults = decode(DEEP, text)
    assert [(fault.path, fault.expected, fault.found) for fault in faults] == [
        ("Pairs[0].Name", "string", "number"),
        ("Pairs[0].Tasks[1]", "string", "number"),
        ("ByKey[k].Name", "string", "bool"),
        ("ByKey[l]", "object", "string"),
    ]
    assert value["Pairs"][1] == {"Name": "b", "Tasks": None}


@pytest.mark.parametrize("text", ["{}", "null", '{"any":1}'])
def test_members_of_a_set_may_be_any_object(text: str) -> None:
    struct = formats.CRC_1_35.claim
    value, faults = decode(struct, f'{{"PodUIDs":{{"p":{text}}}}}')
    assert value["PodUIDs"] == {"p": {}}
    assert not faults


@pytest.mark.parametrize("text", ["true", '"x"', "[]", "1"])
def test_members_of_a_set_must_be_objects(text: str) -> None:
    _unused, faults = decode(formats.CRC_1_35.claim, f'{{"PodUIDs":{{"p":{text}}}}}')
    assert [fault.path for fault in faults] == ["PodUIDs[p]"]


def test_raw_members_keep_their_spelling_to_the_last_blank() -> None:
    text = '{"r": [ 1.50,\t{"b":2, "a":1} ] , "n":null}'
    struct = Struct("x.Raw", [Field("r", RawExtension()), Field("n", RawExtension())])
    assert decode(struct, text)[0] == {"r": '[ 1.50,\t{"b":2, "a":1} ]', "n": None}


@pytest.mark.parametrize(
    ("kind", "value", "dump", "encoded"),
    [
        pytest.param(Slice("", Str()), None, "<nil>", "null", id="nil slice"),
        pytest.param(Slice("", Str()), [], "[]", "[]", id="empty slice"),
        pytest.param(Slice("", Str()), ["a b", "c"], "[a b c]", '["a b","c"]', id="strings are raw in the dump"),
        pytest.param(Map("", Str()), None, "<nil>", "null", id="nil map"),
        pytest.param(Map("", Str()), {}, "map[]", "{}", id="empty map"),
        pytest.param(
            Map("", Str()),
            {"\uffee": "2", "\U0001f600": "3", "Z": "1", "a": "x"},
            "map[Z:1 a:x \uffee:2 \U0001f600:3]",
            '{"Z":"1","a":"x","\uffee":"2","\U0001f600":"3"}',
            id="keys sort by their bytes",
        ),
        pytest.param(Pointer(Str()), None, "<nil>", "null", id="nil pointer"),
        pytest.param(Pointer(PAIR), {}, "{Name:(string) Tasks:([]string)<nil>}", '{"Name":"","Tasks":null}', id="zero"),
        pytest.param(
            RawExtension(), "[1]", "{Raw:([]uint8)[91 49 93] Object:(runtime.Object)<nil>}", "[1]", id="raw bytes"
        ),
        pytest.param(RawExtension(), None, "{Raw:([]uint8)<nil> Object:(runtime.Object)<nil>}", "null", id="no bytes"),
        pytest.param(
            Uint("uint64", 64), 2**64 - 1, "18446744073709551615", "18446744073709551615", id="largest number"
        ),
    ],
)
def test_dump_and_json_tell_nil_from_empty(kind: t.Any, value: t.Any, dump: str, encoded: str) -> None:
    assert kind.dump(value) == dump
    assert kind.encode(value) == encoded


def test_fields_that_are_left_out_when_empty() -> None:
    struct = Struct("x.Omit", [Field("a", Str(), omit_empty=True), Field("b", Str())])
    assert struct.encode({"a": "", "b": ""}) == '{"b":""}'
    assert struct.encode({"a": "x", "b": "y"}) == '{"a":"x","b":"y"}'
