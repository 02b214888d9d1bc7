# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""How a module ends."""

from __future__ import annotations

import getpass
import os
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.outcome import run, who
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError


class EndedError(Exception):
    """The module has ended."""


class FakeModule:
    """Takes what a module says at its end."""

    def __init__(self) -> None:
        self.said: dict[str, t.Any] = {}

    def fail_json(self, **facts: t.Any) -> t.NoReturn:
        self.said = {"failed": True, **facts}
        raise EndedError

    def exit_json(self, **facts: t.Any) -> t.NoReturn:
        self.said = facts
        raise EndedError


def ended(work: t.Callable[[], dict[str, t.Any]]) -> dict[str, t.Any]:
    module = FakeModule()
    with pytest.raises(EndedError):
        run(t.cast("t.Any", module), work)
    return module.said


def test_a_result_is_returned_as_it_is() -> None:
    assert ended(lambda: {"changed": False, "claims": []}) == {"changed": False, "claims": []}


@pytest.mark.report("F093")
def test_an_expected_failure_is_a_message_with_its_next_step_and_its_facts() -> None:
    def work() -> dict[str, t.Any]:
        # pylint: disable-next=raising-format-tuple
        raise DraError("It says {{ lookup('env', 'HOME') }}.", "Look.", path="/a", claim_uid="u-1")

    assert ended(work) == {
        "failed": True,
        "msg": "It says {{ lookup('env', 'HOME') }}. Look.",
        "file": "/a",
        "claim_uid": "u-1",
    }


def test_who_runs_a_module_has_a_name_even_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    assert who() == "ada through Ansible"

    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert who() == f"user {os.getuid()} through Ansible"
