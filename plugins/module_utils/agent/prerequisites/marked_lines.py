# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Lines of ours in a file of somebody else, marked so that they can be taken back to the byte.

A line that is replaced stays above the new one as a comment, a line that is added ends in one. TOML and YAML both have
comments that begin with ``#``. Whoever changes other lines meanwhile loses nothing.
"""

from __future__ import annotations

import re
import typing as t

_LINE: t.Final = re.compile(r"[^\n]*\n|[^\n]+")
_ADDED: t.Final = "  # nodeops.dra"
_WAS: t.Final = "# nodeops.dra was: "
_NO_END: t.Final = "# nodeops.dra: there was no line end before this\n"
_CREATED: t.Final = "# nodeops.dra made this file."
_CREATED_ALL: t.Final = "# nodeops.dra made this file and its directory."


class MarkedText:
    """A text without our lines, into which they are put. ``lines`` are those of the text, to find places in."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ended = not text or text.endswith("\n")
        # Not splitlines: it knows line ends that are none for TOML and YAML.
        self.lines: list[str] = _LINE.findall(text if self._ended else f"{text}\n")
        self._end = "\r\n" if self.lines and self.lines[0].endswith("\r\n") else "\n"
        self._inserted: dict[int, list[str]] = {}
        self._replaced: set[int] = set()

    def insert(self, before: int, texts: t.Sequence[str]) -> None:
        """Add lines before the line of that number, counted from 0; the number of lines stands for the end."""
        self._inserted.setdefault(before, []).extend(f"{text}{_ADDED}{self._end}" for text in texts)

    def replace(self, first: int, last: int, texts: t.Sequence[str]) -> None:
        """Put lines in the place of the lines from ``first`` to ``last``."""
        self._replaced.update(range(first, last + 1))
        self.insert(last + 1, texts)

    def result(self) -> str:
        """The text with our lines; just the text if there are none."""
        if not self._inserted:
            return self._text
        parts: list[str] = []
        for number in range(len(self.lines) + 1):
            parts += self._inserted.get(number, [])
            if number < len(self.lines):
                parts.append(f"{_WAS if number in self._replaced else ''}{self.lines[number]}")
        return "".join([*parts, "" if self._ended else _NO_END])


def without_marks(text: str) -> str:
    """The text as it would be without us."""
    unfinished = text.endswith(_NO_END)
    parts = []
    for line in _LINE.findall(text):
        if line.startswith(_WAS):
            parts.append(line[len(_WAS) :])
        elif not line.rstrip("\r\n").endswith(_ADDED) and line != _NO_END:
            parts.append(line)
    plain = "".join(parts)
    return plain[:-1] if unfinished and plain.endswith("\n") else plain


def new_file(texts: t.Sequence[str], *, with_directory: bool = False) -> str:
    """A file that is ours altogether. ``with_directory``: its directory was made for it."""
    return "\n".join([_CREATED_ALL if with_directory else _CREATED, *(f"{text}{_ADDED}" for text in texts), ""])


def is_ours(text: str) -> bool:
    """Whether the whole file is ours, with nothing in it that somebody else added."""
    first, _newline, rest = text.partition("\n")
    return first in (_CREATED, _CREATED_ALL) and not without_marks(rest).strip()


def made_directory(text: str) -> bool:
    """Whether the directory was made for this file, which is ours."""
    return text.startswith(f"{_CREATED_ALL}\n")
