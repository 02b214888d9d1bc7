# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A short run of the fuzzer, so that it cannot rot, and its second opinion; ``make fuzz`` is the long one."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import types
import typing as t

import pytest

FUZZER = pathlib.Path(__file__).parents[1] / "fuzz" / "run.py"
FIXTURES = pathlib.Path(__file__).parent / "fixtures"
FILES = 600


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_mutated_files_get_an_answer_and_never_a_stack_trace() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(FUZZER), "--files", str(FILES), "--seed", "20", "--megabytes", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{FILES} mutated files, 0 problems" in done.stdout


@pytest.fixture(scope="module")
def reference() -> types.ModuleType:
    """The reader that the fuzzer compares with; it is no part of the collection."""
    spec = importlib.util.spec_from_file_location("fuzz_reference", FUZZER.with_name("reference.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_second_opinion_is_that_of_ten_releases(reference: types.ModuleType) -> None:
    matrix: dict[str, dict[str, str]] = json.loads((FIXTURES / "checkpoint" / "reader_matrix.json").read_text())
    wrong = {}
    for name, verdicts in matrix.items():
        found = reference.claims_loaded((FIXTURES / "checkpoint" / name).read_bytes())
        said = {release: int(text[3:]) if text.startswith("ok:") else None for release, text in verdicts.items()}
        if found != said:
            wrong[name] = found
    assert wrong == {}
    assert len(matrix) > 500


def test_the_second_opinion_reads_types_as_go_does(reference: types.ModuleType) -> None:
    """Go's own answers to documents with fields in random order, spelling, repetition and type."""
    wrong = []
    recorded: list[dict[str, t.Any]] = json.loads((FIXTURES / "gojson" / "recorded.json").read_text())["types"]
    for case in recorded:
        name, _unused, release = case["as"].partition("-")
        kind = {"outer": lambda _unused: reference.OUTER, "fnv": reference.classic, "crc": reference.modern}[name]
        before = reference.zero(kind(release))
        before |= {"version": "v1", "entries": reference.Slice()} if name == "fnv" else {}
        try:
            reference.decode(kind(release), reference.Reader(case["text"]).document(), before)
            refused = False
        except reference.RefusedError:
            refused = True
        if refused != case["refused"]:
            wrong.append(case)
    assert wrong == []
    assert len(recorded) > 500
