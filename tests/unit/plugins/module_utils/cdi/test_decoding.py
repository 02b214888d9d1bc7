# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Texts of spec files, read as runtimes read them, whatever they hold."""

from __future__ import annotations

import json
import random
import sys
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.cdi import decoding
from ansible_collections.nodeops.dra.plugins.module_utils.cdi.decoding import (
    NoYamlError,
    UndecodableError,
    as_runtimes_read,
    decode,
)
from ansible_collections.nodeops.dra.plugins.module_utils.cdi.schema import SPEC_SCHEMA
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.cdi.specs import needs_yaml, spec

YAML = """---
cdiVersion: 0.5.0
kind: gpu.test.example/gpu
devices:
- name: "0"
  containerEdits:
    deviceNodes:
    - path: /dev/gpu0
      fileMode: 0660
"""


def test_json() -> None:
    assert decode(json.dumps(spec())) == spec()
    assert decode("\ufeff" + json.dumps(spec())) == spec()


@needs_yaml
def test_yaml() -> None:
    assert decode(YAML) == {
        "cdiVersion": "0.5.0",
        "kind": "gpu.test.example/gpu",
        "devices": [{"name": "0", "containerEdits": {"deviceNodes": [{"path": "/dev/gpu0", "fileMode": 0o660}]}}],
    }


@needs_yaml
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1", 1),
        ("a: -12", -12),
        ("a: 1_000", 1000),
        ("a: 0x1F", 31),
        ("a: 017", 15),
        ("a: 0o17", 15),
        ("a: 0b11", 3),
        ("a: 0x_", "0x_"),
        ("a: 1.5", 1.5),
        ("a: 089", 89.0),
        ("a: 1e3", 1000.0),
        ("a: .inf", float("inf")),
        ("a: -.Inf", float("-inf")),
        ("a: 99999999999999999999", 1e20),
        ("a: " + "9" * 5000, float("inf")),
        ("a: yes", True),
        ("a: Off", False),
        ("a: ~", None),
        ("a:", None),
        ("a: 2026-01-01", "2026-01-01"),
        ("a: 1:30", "1:30"),
        ("a: 0.5.0", "0.5.0"),
        ("a: '1'", "1"),
        ('a: "yes"', "yes"),
        ("a: !!str 1", "1"),
        ("a: ! 1", "1"),
        ("a: !!int 1", 1),
        ("a: |\n  x\n  y\n", "x\ny\n"),
        ("a: &x [1]\nb: *x", [1]),
        ("z: &x {a: 1}\n<<: *x", 1),
        ("z: &x {a: 1}\na: 2\n<<: [*x]", 2),
        ("{a: 1}", 1),
        ("a: 1\n---\na: 2", 1),
    ],
)
def test_yaml_values_as_runtimes_take_them(text: str, value: t.Any) -> None:
    assert decode(text)["a"] == value


@needs_yaml
def test_not_a_number_is_kept_apart() -> None:
    assert decode("a: .nan")["a"] != decode("a: .nan")["a"]


@needs_yaml
def test_keys_are_texts() -> None:
    assert decode("1: a\nyes: b\n~: c") == {"1": "a", "yes": "b", "~": "c"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param('{"x": 0, "a": 1, "a": 2}', 'the key "a" appears twice', id="duplicate key"),
        pytest.param('{"b": {"a": 1, "a": 1}}', 'the key "a" appears twice', id="duplicate key inside"),
        pytest.param('{"a": 1', "not valid JSON", id="cut off"),
        pytest.param('{"a": "\x00"}', "NUL byte at character 7", id="NUL"),
        pytest.param("[" * 50_000, "", id="open brackets"),
        pytest.param("[" * 33 + "]" * 33, "deeper than 32", id="33 levels"),
        pytest.param("[" * 100_000 + "]" * 100_000, "deeper than 32", id="100000 levels"),
        pytest.param('{"a":' * 5000 + "1" + "}" * 5000, "deeper than 32", id="5000 objects"),
    ],
)
def test_bad_json_is_one_error(text: str, reason: str) -> None:
    with pytest.raises(UndecodableError) as caught:
        decode(text)
    assert reason in caught.value.message
    assert str(caught.value).isprintable()


def test_deepest_document_that_is_read() -> None:
    assert decode("[" * 32 + "1" + "]" * 32)


@needs_yaml
def test_deepest_yaml_that_is_read() -> None:
    assert decode("x: " + "[" * 31 + "1" + "]" * 31)
    with pytest.raises(UndecodableError, match="deeper than 32"):
        decode("x: " + "[" * 32 + "1" + "]" * 32)


def test_words_that_are_no_json_are_refused_or_read_as_yaml_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(UndecodableError, match="NaN is no JSON value"):
        decode('{"a": NaN}')


@needs_yaml
def test_json_with_liberties_is_yaml() -> None:
    assert decode("{a: NaN, b: 'c', }") == {"a": "NaN", "b": "c"}


@needs_yaml
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("a: 1\na: 2", 'the key "a" appears twice', id="duplicate key"),
        pytest.param("a: [", "not valid YAML", id="broken"),
        pytest.param("a: \x07", "not valid YAML", id="control character"),
        pytest.param("\ta: 1", "not valid YAML", id="tab"),
        pytest.param("a: *x", 'the alias "x" names nothing before it', id="unknown alias"),
        pytest.param("a: &x [*x]", "names nothing before it", id="alias inside itself"),
        pytest.param("? [a]\n: 1", "a key is a list or an object", id="list as key"),
        pytest.param("x: &x [1]\n*x : 2", "a key is a list or an object", id="alias of a list as key"),
        pytest.param("<<: 1", "the merge key", id="merge of a number"),
        pytest.param("a: !!python/object:os.system x", "YAML tag", id="python tag"),
        pytest.param("a: !!binary aGk=", "YAML tag", id="binary"),
        pytest.param("- " * 40 + "x", "deeper than 32", id="nested sequences"),
        pytest.param("x: " + "[" * 100_000, "nest", id="100000 brackets"),
        pytest.param("x: " + "{a: " * 5000, "deeper than 32", id="5000 braces"),
    ],
)
def test_bad_yaml_is_one_error(text: str, reason: str) -> None:
    with pytest.raises(UndecodableError) as caught:
        decode(text)
    assert reason in caught.value.message
    assert str(caught.value).isprintable()


@needs_yaml
def test_aliases_cannot_grow_without_bound() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    with pytest.raises(UndecodableError, match="once its aliases are filled in"):
        decode("\n".join(lines))


def test_yaml_without_a_parser_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(NoYamlError) as caught:
        decode(YAML)
    assert "PyYAML" in caught.value.hint
    assert decode(json.dumps(spec())) == spec()
    with pytest.raises(UndecodableError, match="not valid JSON"):
        decode('{"a": ')


@pytest.mark.parametrize(("text", "value"), [("", None), (" \n", None), ("null", None), ('"x"', "x"), ("12\n", 12)])
def test_what_can_be_told_without_yaml(text: str, value: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert decode(text) == value


@needs_yaml
def test_large_yaml_without_the_c_parser_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import yaml

    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert decode(YAML)["cdiVersion"] == "0.5.0"
    with pytest.raises(NoYamlError, match="too much for PyYAML without its C parser"):
        decode("a: " + "x" * decoding.MAX_SLOW_YAML)


@pytest.mark.parametrize("text", ["", "   \n", "---\n", "# only a comment\n", "null"])
@needs_yaml
def test_empty_documents(text: str) -> None:
    assert decode(text) in (None, "")


def test_plain_values_become_texts_where_texts_are_wanted() -> None:
    document = spec({"name": 0, "containerEdits": {"env": [True, 1.5, 2.0], "deviceNodes": [{"path": 1, "major": 2}]}})
    document["annotations"] = {"a": 1, "b": None}
    document["containerEdits"] = None
    document["cdiVersion"] = 0.5
    read = as_runtimes_read(document, SPEC_SCHEMA)
    assert read["cdiVersion"] == "0.5"
    assert read["annotations"] == {"a": "1"}
    assert "containerEdits" not in read
    assert read["devices"][0] == {
        "name": "0",
        "containerEdits": {"env": ["true", "1.5", "2"], "deviceNodes": [{"path": "1", "major": 2}]},
    }


def test_huge_numbers_become_texts_without_a_traceback() -> None:
    for value in (10**400, float("inf"), float("nan"), -(10**5000)):
        assert isinstance(as_runtimes_read({"kind": value}, SPEC_SCHEMA)["kind"], str)


def test_no_mutated_text_makes_anything_but_an_error() -> None:
    source = random.Random(20260101)
    seeds = [YAML, json.dumps(spec()), json.dumps(spec(), indent=1)]
    pieces = [
        "\x00",
        "{",
        "}",
        "[",
        "]",
        ":",
        "- ",
        "&a ",
        "*a",
        "<<: ",
        "!!",
        "|\n",
        '"',
        "'",
        "\t",
        "\ud800",
        "%",
        "?",
        "#",
    ]
    outcomes = {"read": 0, "refused": 0}
    for _round in range(1500):
        text = source.choice(seeds)
        for _edit in range(source.randint(1, 4)):
            at = source.randrange(len(text) + 1)
            text = text[:at] + source.choice([*pieces, ""]) + text[at + source.randint(0, 6) :]
        try:
            as_runtimes_read(decode(text), SPEC_SCHEMA)
            outcomes["read"] += 1
        except UndecodableError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 50, outcomes
