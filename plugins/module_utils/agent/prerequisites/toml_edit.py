# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Set a few keys of one table in a TOML text and leave every other letter of it alone."""

from __future__ import annotations

import copy
import json
import re
import typing as t

from ...checkpoint.errors import DraError
from ..preflight.toml_text import NoTomlError, Statement, Table, read_toml, statements
from .marked_lines import MarkedText

Value = t.Union[bool, t.Sequence[str]]

_BY_HAND: t.Final = "Nothing was changed. Set it by hand, or write that part of the file as a [table] of its own."


class NotEditableError(DraError):
    """The text is written in a way that is not edited here. The message ends a sentence about the file."""


def with_values(text: str, table: t.Sequence[str], values: t.Mapping[str, Value]) -> str:
    """The text with these keys of ``table`` set. What holds such a value already is not touched.

    The result is read again, and is what was asked for and nothing else, or NotEditableError is raised. NoTomlError
    where the text itself is no TOML.
    """
    before = read_toml(text)
    present = _table(before, table)
    wanted = {key: value for key, value in values.items() if present.get(key) != _plain(value)}
    if not wanted:
        return text
    marked = MarkedText(text)
    _put(marked, statements(text), tuple(table), wanted)
    result = marked.result()
    _verify(before, result, table, wanted)
    return result


def rendered(table: t.Sequence[str], values: t.Mapping[str, Value]) -> list[str]:
    """The lines of a table with these values."""
    return [f"[{_dotted(table)}]", *(f"  {key} = {_value(value)}" for key, value in values.items())]


def _put(
    marked: MarkedText, found: t.Sequence[Statement], table: tuple[str, ...], wanted: t.Mapping[str, Value]
) -> None:
    header = next((one for one in found if one.header == "[" and one.keys == table), None)
    new = {}
    for key, value in wanted.items():
        pair = next((one for one in found if not one.header and one.keys == (*table, key)), None)
        if pair is None:
            new[key] = value
            continue
        line = f"{_indent(marked, pair.first_line)}{_dotted(pair.own_keys)} = {_value(value)}"
        marked.replace(pair.first_line, pair.last_line, [line])
    if new and header is None:
        # A table of dotted keys, which stand outside of it, can have no header. Only strict readers say so.
        if any(len(one.keys) - len(one.own_keys) < len(table) < len(one.keys) for one in _below(found, table)):
            raise _not_here(table, new)
        marked.insert(len(marked.lines), rendered(table, new))
    elif new and header is not None:
        first = next((one for one in found if not one.header and one.keys[:-1] == table), None)
        indent = _indent(marked, first.first_line) if first else f"{_indent(marked, header.first_line)}  "
        marked.insert(header.last_line + 1, [f"{indent}{key} = {_value(value)}" for key, value in new.items()])


def _verify(before: Table, result: str, table: t.Sequence[str], wanted: t.Mapping[str, Value]) -> None:
    expected = copy.deepcopy(before)
    place = expected
    for name in table:
        place = place.setdefault(name, {})
    place.update({key: _plain(value) for key, value in wanted.items()})
    try:
        same = read_toml(result) == expected
    except NoTomlError:
        same = False
    if not same:
        raise _not_here(table, wanted)


def _not_here(table: t.Sequence[str], wanted: t.Iterable[str]) -> NotEditableError:
    return NotEditableError(
        f"has the table {_dotted(table)} in a form in which {', '.join(wanted)} cannot be set here.", _BY_HAND
    )


def _below(found: t.Sequence[Statement], table: tuple[str, ...]) -> t.Iterator[Statement]:
    """The pairs in the table and in those inside of it."""
    return (one for one in found if not one.header and one.keys[: len(table)] == table)


def _table(document: Table, table: t.Sequence[str]) -> Table:
    place: t.Any = document
    for name in table:
        place = place.get(name, {}) if isinstance(place, dict) else None
    if not isinstance(place, dict):
        raise NotEditableError(f"has something else than a table in the place of {_dotted(table)}.", _BY_HAND)
    return place


def _indent(marked: MarkedText, number: int) -> str:
    line = marked.lines[number]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _plain(value: Value) -> t.Any:
    return value if isinstance(value, bool) else list(value)


def _dotted(keys: t.Sequence[str]) -> str:
    return ".".join(key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key) for key in keys)


def _value(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else f"[{', '.join(_text(one) for one in value)}]"


def _text(value: str) -> str:
    # A basic string of TOML takes the escapes of JSON, and both want control characters escaped (DEL aside).
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
