# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The schema gives the same findings with and without jsonschema."""

from __future__ import annotations

import copy
import importlib.util
import json
import random
import sys
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.cdi.schema import SPEC_SCHEMA
from ansible_collections.nodeops.dra.plugins.module_utils.cdi.spec import document_problems, parse_spec
from ansible_collections.nodeops.dra.plugins.module_utils.cdi.validation import schema_problems
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.cdi.specs import (
    FULL,
    device,
    spec,
)

needs_jsonschema = pytest.mark.skipif(
    importlib.util.find_spec("jsonschema") is None, reason="jsonschema is not installed"
)


def corpus() -> list[t.Any]:
    """The full spec with every part replaced by every wrong thing, and random combinations of that."""

    def paths(node: t.Any, at: tuple[t.Any, ...] = ()) -> t.Iterator[tuple[t.Any, ...]]:
        yield at
        for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
            yield from paths(value, (*at, key))

    def replaced(node: t.Any, at: tuple[t.Any, ...], value: t.Any) -> t.Any:
        if not at:
            return value
        out = copy.copy(node)
        out[at[0]] = replaced(node[at[0]], at[1:], value)
        return out

    wrong: list[t.Any] = [
        True,
        0,
        -1,
        1.0,
        1.5,
        -1.5,
        10**30,
        float("inf"),
        "",
        "x",
        "\n",
        [],
        [1],
        ["x"],
        {},
        {"x": 1},
    ]
    documents = [replaced(FULL, path, value) for path in paths(FULL) for value in wrong]
    source = random.Random(1)
    for _round in range(200):
        first, second = source.choice(documents), source.choice(list(paths(FULL)))
        try:
            documents.append(replaced(first, second, source.choice(wrong)))
        except (KeyError, IndexError, TypeError):
            continue
    return documents


@needs_jsonschema
def test_built_in_validation_agrees_with_jsonschema_in_every_word() -> None:
    documents = corpus()
    assert len(documents) > 700
    invalid = 0
    for document in documents:
        found = schema_problems(document, SPEC_SCHEMA)
        assert schema_problems(document, SPEC_SCHEMA, builtin=True) == found, document
        invalid += bool(found)
    assert invalid > 500


@needs_jsonschema
def test_schema_is_a_valid_schema() -> None:
    import jsonschema

    jsonschema.Draft7Validator.check_schema(SPEC_SCHEMA)


def test_without_jsonschema_the_findings_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    data = json.dumps({**spec(device("x", env=["A"], hooks=[{}])), "y": 1}).encode()
    before = parse_spec(data, "/x/a.json")
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    assert parse_spec(data, "/x/a.json") == before
    assert len(before.findings) == 4


def test_no_document_makes_anything_but_problems() -> None:
    for document in corpus():
        for problem in document_problems(document):
            assert problem.text.isprintable()
