# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a setting, told so that it can be mended: where, which key, found, expected, next step."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ..checkpoint.errors import DraError

_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")
_LONGEST = 60


@dataclasses.dataclass(frozen=True)
class Problem:
    """One problem. ``where`` is a file with its line or a variable, ``key`` the dotted key (empty: the whole file)."""

    where: str
    key: str
    found: str
    expected: str
    hint: str = ""

    def __str__(self) -> str:
        subject = f"{self.where}: {self.key}" if self.key else self.where
        text = f"{subject}: found {self.found}, expected {self.expected}."
        return f"{text} {self.hint}" if self.hint else text


class SettingsError(DraError):
    """The settings cannot be used. Fact ``problems``: every problem, each with the fields of ``Problem``."""

    def __init__(self, file: str, problems: t.Sequence[Problem], hint: str = "") -> None:
        lines = "".join(f"\n- {problem}" for problem in problems)
        number = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(
            f"The settings in {file} cannot be used, {number}:{lines}",
            f"\n{hint}" if hint else "",
            file=file,
            problems=[dataclasses.asdict(problem) for problem in problems],
        )
        self.problems = tuple(problems)


def shown(value: t.Any, *, secret: bool = False) -> str:
    """A value for a message: short, on one line, with nothing secret in it."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if value is None:
        return "nothing"
    if secret:
        return "a value that is not shown"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = _USERINFO.sub("********@", value)
        return repr(text if len(text) <= _LONGEST else text[:_LONGEST] + "...")
    text = repr(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
