# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A library that is not there, or only in another interpreter. The integration targets do the same with real ones."""

from __future__ import annotations

import os
import pathlib
import re
import sys
import typing as t

import pytest
from ansible.module_utils.common import respawn
from ansible_collections.nodeops.dra.plugins.module_utils.bridge import requirements

HERE = sys.version_info[:2]
ROOT = pathlib.Path(requirements.__file__).parents[3]


class EndedError(Exception):
    """The module has ended."""


class FakeModule:
    """Takes what a module says at its end."""

    def __init__(self) -> None:
        self.failure: dict[str, t.Any] = {}

    def fail_json(self, **facts: t.Any) -> t.NoReturn:
        self.failure = facts
        raise EndedError


@pytest.fixture
def respawned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The interpreters in which the module was started once more. It ends here then."""
    started: list[str] = []

    def start(interpreter: str) -> t.NoReturn:
        started.append(interpreter)
        raise EndedError

    monkeypatch.setattr(respawn, "respawn_module", start)
    monkeypatch.setattr(requirements, "ENVIRONMENTS", ())
    monkeypatch.delenv(requirements.VARIABLE, raising=False)
    return started


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that nobody has."""
    package = requirements.Package("no-such-distribution", "1.2.3", "https://example.com/library")
    monkeypatch.setattr(requirements, "PACKAGES", {"no_such_library": package})


@pytest.mark.report("F088")
def test_nothing_happens_when_all_is_there(respawned: list[str]) -> None:
    requirements.ensure(t.cast("t.Any", FakeModule()), "json", python=HERE)
    assert respawned == []


@pytest.mark.report("F088")
@pytest.mark.usefixtures("absent")
def test_a_missing_library_is_named_with_the_interpreter_and_the_way_out(respawned: list[str]) -> None:
    module = FakeModule()
    with pytest.raises(EndedError):
        requirements.ensure(t.cast("t.Any", module), "json", "no_such_library", python=HERE)
    assert respawned == []
    assert module.failure["missing"] == ["no-such-distribution"]
    assert module.failure["interpreter"] == sys.executable
    for part in (
        "no-such-distribution",
        "tested with no-such-distribution 1.2.3",
        os.uname().nodename,
        sys.executable,
        "ansible_python_interpreter",
        "install the agent",
        "https://example.com/library",
    ):
        assert part in module.failure["msg"], part


@pytest.mark.report("F088")
def test_a_python_that_is_too_old_is_named(respawned: list[str]) -> None:
    module = FakeModule()
    with pytest.raises(EndedError):
        requirements.ensure(t.cast("t.Any", module), "json", python=(3, 99))
    assert respawned == []
    for part in ("Python 3.99 or later", f"{HERE[0]}.{HERE[1]}", sys.executable, "ansible_python_interpreter"):
        assert part in module.failure["msg"], part


@pytest.fixture
def other(tmp_path: pathlib.Path) -> pathlib.Path:
    """Another interpreter, which has the library."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "no_such_library.py").touch()
    script = tmp_path / "python"
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH="{tmp_path}/lib:$PYTHONPATH" exec "{sys.executable}" "$@"\n', encoding="utf-8"
    )
    script.chmod(0o755)
    return script


@pytest.mark.report("F088")
@pytest.mark.usefixtures("absent")
@pytest.mark.parametrize("by_variable", [True, False])
def test_a_library_that_only_another_interpreter_has(
    respawned: list[str], other: pathlib.Path, by_variable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_variable:
        monkeypatch.setenv(requirements.VARIABLE, str(other))
    else:
        monkeypatch.setattr(requirements, "ENVIRONMENTS", (str(other),))
    with pytest.raises(EndedError):
        requirements.ensure(t.cast("t.Any", FakeModule()), "no_such_library", python=HERE)
    assert respawned == [str(other)]


@pytest.mark.report("F088")
@pytest.mark.usefixtures("absent")
def test_the_module_is_started_once_more_only_once(
    respawned: list[str], other: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(requirements.VARIABLE, str(other))
    monkeypatch.setattr(sys.modules["__main__"], "_respawned", True, raising=False)
    module = FakeModule()
    with pytest.raises(EndedError):
        requirements.ensure(t.cast("t.Any", module), "no_such_library", python=HERE)
    assert respawned == []
    assert "no-such-distribution" in module.failure["msg"]


@pytest.mark.report("F088")
def test_the_versions_that_are_named_are_those_that_are_tested() -> None:
    text = (ROOT / "requirements" / "constraints.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([A-Za-z0-9_.-]+)==([^;\s]+)", text, re.MULTILINE))
    assert {one.name: one.tested for one in requirements.PACKAGES.values()} == {
        one.name: pinned[one.name] for one in requirements.PACKAGES.values()
    }
