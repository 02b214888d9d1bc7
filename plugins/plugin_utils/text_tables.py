# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Tables for whoever reads the output of a playbook: plain text, columns side by side, never wider than a terminal."""

from __future__ import annotations

import textwrap
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.console import visible

WIDTH = 88
"""Ansible indents a list by 8 columns and puts quotes and a comma around each line, which makes 100 with a margin."""
_LEAST = 24


def table(head: t.Sequence[str], rows: t.Sequence[t.Sequence[t.Any]], width: int = WIDTH) -> list[str]:
    """Lines of a table. The last column is wrapped so that no line is longer than ``width``.

    Nothing is "-", and characters that a terminal would act on are escaped.
    """
    cells = [[visible(_text(cell)) or "-" for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head) - 1)]
    before = sum(widths) + 2 * len(widths)
    room = max(width - before, _LEAST)
    lines: list[str] = []
    for row in cells:
        first = "".join(cell.ljust(size) + "  " for cell, size in zip(row, widths))
        parts = wrapped(row[-1], room)
        lines += [(first + parts[0]).rstrip(), *(" " * before + part for part in parts[1:])]
    return lines


def wrapped(text: str, width: int = WIDTH, indent: int = 0) -> list[str]:
    """A text in lines of at most ``width``, those after the first indented; paths are not cut at their hyphens."""
    return textwrap.wrap(text, width, break_on_hyphens=False, subsequent_indent=" " * indent) or [text]


def facts(pairs: t.Mapping[str, str], width: int = WIDTH) -> list[str]:
    """Names with what there is to say about each, indented by two columns."""
    names = max(map(len, pairs))
    return [
        line
        for name, text in pairs.items()
        for line in wrapped(f"  {name.ljust(names)}  {visible(text)}", width, indent=names + 4)
    ]


def counted(number: int, one: str, many: str = "") -> str:
    """``1 node``, ``2 nodes``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def _text(cell: t.Any) -> str:
    """A cell in words: lists with commas, yes and no, "?" for what is not known."""
    if cell is None:
        return "?"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, (list, tuple)):
        return ", ".join(str(item) for item in cell)
    return " ".join(str(cell).split())
