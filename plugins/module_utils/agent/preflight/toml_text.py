# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""TOML for a Python that has no parser of it (before 3.11), as far as configuration files of runtimes use it.

Strict: what it does not know is an error, and nothing is ever read halfway. Dates are kept as text.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import typing as t

from ...checkpoint.errors import DraError

Table = dict[str, t.Any]

_BARE: t.Final = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN: t.Final = re.compile(r"[0-9A-Za-z+\-_.:]+")
_INTEGER: t.Final = re.compile(r"[+-]?(?:0|[1-9][0-9]*(?:_[0-9]+)*)|0x[0-9A-Fa-f_]+|0o[0-7_]+|0b[01_]+")
_FLOAT: t.Final = re.compile(
    r"[+-]?(?:inf|nan|(?:0|[1-9][0-9]*(?:_[0-9]+)*)(?:\.[0-9]+(?:_[0-9]+)*)?(?:[eE][+-]?[0-9]+(?:_[0-9]+)*)?)"
)
_DATE: t.Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt][0-9:.]+(?:[Zz]|[+-][0-9:]+)?)?|[0-9]{2}:[0-9]{2}(?::[0-9.]+)?"
)
_ESCAPES: t.Final = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
_MAX_DEPTH: t.Final = 50


class NoTomlError(DraError):
    """A text is no TOML, or more than this reader understands. The message ends a sentence about the file."""


@dataclasses.dataclass(frozen=True)
class Statement:
    """A header or a pair: where it is, in lines counted from 0, and what it names.

    ``keys`` begin at the document's root, ``own_keys`` are those that are written there. ``header`` is ``[``, ``[[`` or
    empty for a pair.
    """

    first_line: int
    last_line: int
    header: str
    keys: tuple[str, ...]
    own_keys: tuple[str, ...]


def read_toml(text: str) -> Table:
    """The document as tables, lists and values. Raises NoTomlError, never anything else."""
    if sys.version_info >= (3, 11):
        import tomllib

        try:
            return tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
            raise NoTomlError(f"is not valid TOML: {error}") from None
    return read_plain_toml(text)


def read_plain_toml(text: str) -> Table:
    """The same without the standard library's parser."""
    return _Reader(text.replace("\r\n", "\n")).document()


def statements(text: str) -> list[Statement]:
    """Every header and pair of a document, in order. Raises NoTomlError."""
    reader = _Reader(text.replace("\r\n", "\n"))
    reader.document()
    return reader.statements


class _Reader:
    def __init__(self, text: str) -> None:
        self.statements: list[Statement] = []
        self._text = text
        self._at = 0
        self._depth = 0
        # By identity: tables that a header has named, and inline tables and arrays, to which nothing is ever added.
        self._named: set[int] = set()
        self._whole: set[int] = set()

    def document(self) -> Table:
        root: Table = {}
        current = root
        inside: tuple[str, ...] = ()
        while True:
            self._skip_lines()
            if self._at >= len(self._text):
                return root
            start, header = self._at, ""
            if self._take("["):
                header = "[[" if self._peek() == "[" else "["
                current, keys = self._header(root)
                inside = ()
            else:
                keys = self._pair(current)
            first, last = (self._text.count("\n", 0, place) for place in (start, self._at))
            self.statements.append(Statement(first, last, header, (*inside, *keys), tuple(keys)))
            inside = tuple(keys) if header else inside
            self._end_of_line()

    # Statements

    def _header(self, root: Table) -> tuple[Table, list[str]]:
        is_list = self._take("[")
        self._skip()
        keys = self._key()
        self._expect("]]" if is_list else "]")
        parent = self._inner(root, keys[:-1])
        if not is_list:
            table = self._inner(parent, keys[-1:])
            if id(table) in self._named:
                raise self._wrong(f"the table {'.'.join(keys)} is there twice")
            self._named.add(id(table))
            return table, keys
        entries = parent.setdefault(keys[-1], [])
        if not isinstance(entries, list) or id(entries) in self._whole:
            raise self._wrong(f"{'.'.join(keys)} is there as something else")
        entries.append({})
        new: Table = entries[-1]
        return new, keys

    def _pair(self, table: Table) -> list[str]:
        keys = self._key()
        self._expect("=")
        self._skip()
        value = self._value()
        place = self._inner(table, keys[:-1])
        if keys[-1] in place:
            raise self._wrong(f"the key {'.'.join(keys)} is there twice")
        place[keys[-1]] = value
        return keys

    def _inner(self, table: Table, keys: t.Sequence[str]) -> Table:
        for key in keys:
            found = table.setdefault(key, {})
            if isinstance(found, list) and found and id(found) not in self._whole:
                found = found[-1]
            if not isinstance(found, dict) or id(found) in self._whole:
                raise self._wrong(f"the key {key} is there as something else")
            table = found
        return table

    def _key(self) -> list[str]:
        keys = []
        while True:
            self._skip()
            if self._peek() in ('"', "'"):
                keys.append(self._string(self._peek()))
            else:
                found = _BARE.match(self._text, self._at)
                if found is None:
                    raise self._wrong("a key is missing")
                self._at = found.end()
                keys.append(found[0])
            self._skip()
            if not self._take("."):
                return keys

    # Values

    def _value(self) -> t.Any:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._wrong("it is nested too deep")
        first = self._peek()
        if first in ('"', "'"):
            long = self._text.startswith(first * 3, self._at)
            value: t.Any = self._long_string(first) if long else self._string(first)
        elif self._take("["):
            value = self._array()
        elif self._take("{"):
            value = self._inline_table()
        else:
            value = self._plain()
        self._depth -= 1
        return value

    def _plain(self) -> t.Any:
        found = _PLAIN.match(self._text, self._at)
        word = found[0] if found else ""
        self._at += len(word)
        if word in ("true", "false"):
            return word == "true"
        if _INTEGER.fullmatch(word):
            return int(word, 0) if word[:2] in ("0x", "0o", "0b") else int(word)
        if _FLOAT.fullmatch(word):
            return float(word.replace("_", ""))
        if _DATE.fullmatch(word):
            return word
        raise self._wrong("a value is missing or unknown")

    def _array(self) -> list[t.Any]:
        values: list[t.Any] = []
        self._whole.add(id(values))
        while True:
            self._skip_lines()
            if self._take("]"):
                return values
            values.append(self._value())
            self._skip_lines()
            if not self._take(","):
                self._expect("]")
                return values

    def _inline_table(self) -> Table:
        table: Table = {}
        self._skip()
        if not self._take("}"):
            while True:
                self._pair(table)
                self._skip()
                if not self._take(","):
                    break
            self._expect("}")
        self._whole.add(id(table))
        return table

    def _string(self, quote: str) -> str:
        self._at += 1
        parts: list[str] = []
        while True:
            char = self._peek()
            if char in ("", "\n"):
                raise self._wrong("a string does not end")
            self._at += 1
            if char == quote:
                return "".join(parts)
            parts.append(self._escape() if char == "\\" and quote == '"' else char)

    def _long_string(self, quote: str) -> str:
        self._at += 3
        self._take("\n")
        parts: list[str] = []
        while not self._take(quote * 3):
            char = self._peek()
            if not char:
                raise self._wrong("a string does not end")
            self._at += 1
            if char == "\\" and quote == '"':
                folded = re.compile(r"[ \t]*\n\s*").match(self._text, self._at)
                if folded is not None:
                    self._at = folded.end()
                    continue
                char = self._escape()
            parts.append(char)
        while self._peek() == quote:  # up to two quotes may stand before the closing ones
            self._at += 1
            parts.append(quote)
        return "".join(parts)

    def _escape(self) -> str:
        letter = self._peek()
        self._at += 1
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        found = re.compile(r"[0-9A-Fa-f]{8}" if letter == "U" else r"[0-9A-Fa-f]{4}").match(self._text, self._at)
        if letter not in ("u", "U") or found is None or int(found[0], 16) > 0x10FFFF:
            raise self._wrong("a string has an unknown escape")
        self._at = found.end()
        return chr(int(found[0], 16))

    # Characters

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, text: str) -> bool:
        found = self._text.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    def _expect(self, text: str) -> None:
        self._skip()
        if not self._take(text):
            raise self._wrong(f"{text} is missing")

    def _skip(self) -> None:
        while self._peek() in (" ", "\t"):
            self._at += 1

    def _skip_lines(self) -> None:
        while self._peek() in (" ", "\t", "\n", "#"):
            if self._peek() == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            else:
                self._at += 1

    def _end_of_line(self) -> None:
        self._skip()
        if self._peek() not in ("", "\n", "#"):
            raise self._wrong("something stands behind the end of a statement")

    def _wrong(self, what: str) -> NoTomlError:
        line = self._text.count("\n", 0, self._at) + 1
        return NoTomlError(f"is not valid TOML, or more than is understood here: {what} (line {line})")
