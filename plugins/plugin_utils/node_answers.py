# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What nodes answered to a task, also those that did not: the base of every report over several nodes."""

from __future__ import annotations

import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError

Json = t.Mapping[str, t.Any]


def no_answer(answer: Json, key: str) -> str:
    """Why the result of a task does not have what it should (``key``): empty if it has, else one sentence."""
    if key in answer:
        return ""
    said = " ".join(str(answer.get("msg") or answer.get("module_stderr") or "no reason was given").split())
    if answer.get("unreachable"):
        return f"The node cannot be reached: {said:.300}"
    return f"The look failed: {said:.300}"


def is_unreachable(answer: Json) -> bool:
    """Whether the node did not answer at all."""
    return bool(answer.get("unreachable"))


def chosen(name: str, value: str, choices: t.Sequence[str]) -> str:
    """A value that is one of some; raises ``DraError`` that names them."""
    if value not in choices:
        raise DraError(f"{name} is {value!r:.40}, expected one of {', '.join(choices)}.", f"Set {name} to one of them.")
    return value
