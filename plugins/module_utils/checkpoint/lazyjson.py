# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The same reading of JSON as `gojson`, for files of unknown size and content, in little memory.

`gojson.parse` keeps a node for every value, which costs many times the text. Driver files have no canonical short cut
and their folders may hold anything, so here the text is checked first without keeping any of it, and nodes come into
being only while a decoder walks over them.
"""

from __future__ import annotations

import re
import typing as t

from .gojson import MAX_DEPTH, TOO_DEEP, GoSyntaxError, Node, _Scanner

_WS = r"[ \t\n\r]*"
# A value that holds nothing else, of strings only those without escapes.
_SIMPLE = (
    rf'(?:"[^"\\\x00-\x1f]*"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null|'
    rf"\{{{_WS}\}}|\[{_WS}\])"
)
# Bounded repeats: the engine keeps state for every round of an unbounded one.
_ITEMS = re.compile(rf"(?:{_SIMPLE}{_WS},{_WS}){{1,500}}")
_MEMBERS = re.compile(rf'(?:"[^"\\\x00-\x1f]*"{_WS}:{_WS}{_SIMPLE}{_WS},{_WS}){{1,500}}')
_PLAIN_STRING = re.compile(r'"([^"\\\x00-\x1f\ud800-\udfff]*)"')
_STRING_PART = re.compile(r'(?:[^"\\\x00-\x1f]+|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}){1,500}')
_BLANKS = re.compile(_WS)
_FLAT = re.compile(r'(?:[^"{}\[\]]+|"[^"\\]*"|[{\[][^"{}\[\]]*(?:"[^"\\]*"[^"{}\[\]]*){0,50}[}\]]){1,500}')
_KINDS = {'"': "string", "{": "object", "[": "array", "t": "bool", "f": "bool", "n": "null"}
_LITERAL_LENGTHS = {"t": 4, "f": 5, "n": 4}
_NUMBER = re.compile(r"[-+.0-9eE]+")


def read_root(text: str) -> Node:
    """The document in ``text``. Raises `GoSyntaxError` exactly where, and with the words that, `gojson.parse` does.

    The node behaves as one of `gojson`, except that every look at the ``value`` of an object or an array gives a fresh
    view that can be iterated and tested for emptiness, and nothing else.
    """
    _Checker(text).check()
    start = _BLANKS.match(text).end()  # type: ignore[union-attr]
    return t.cast(Node, LazyNode(text, start))


class _Checker(_Scanner):
    """The grammar of `gojson` in one pass that keeps one character for each open object or array."""

    def check(self) -> None:
        text = self.text
        closing: list[str] = []
        pos = self._blanks(0)
        while True:
            char = text[pos : pos + 1]
            if char in ("{", "["):
                if len(closing) >= MAX_DEPTH:
                    raise self._unexpected(pos, TOO_DEEP)
                end = "}" if char == "{" else "]"
                pos = self._blanks(pos + 1)
                if text[pos : pos + 1] != end:
                    closing.append(end)
                    pos = self._skip_flat(pos, closing)
                    continue
                pos += 1
            else:
                pos = self._skip_scalar(pos, char)
            while True:  # a value is complete
                pos = self._blanks(pos)
                if not closing:
                    if pos != len(text):
                        message = f"invalid character {self._quote(pos)} after top-level value"
                        raise GoSyntaxError("trailing_data", pos, message)
                    return
                char = text[pos : pos + 1]
                if char == ",":
                    pos = self._skip_flat(self._blanks(pos + 1), closing)
                    break
                if char != closing[-1]:
                    after = "object key:value pair" if closing[-1] == "}" else "array element"
                    raise self._unexpected(pos, f"after {after}")
                closing.pop()
                pos += 1

    def _blanks(self, pos: int) -> int:
        return _BLANKS.match(self.text, pos).end()  # type: ignore[union-attr]

    def _skip_flat(self, pos: int, closing: list[str]) -> int:
        """Past simple items or members that another one follows, then past the key of that one, up to its value."""
        run = _MEMBERS if closing[-1] == "}" else _ITEMS
        # at the limit an empty object is an error already
        match = run.match(self.text, pos) if len(closing) < MAX_DEPTH else None
        while match is not None:
            pos = match.end()
            match = run.match(self.text, pos)
        if closing[-1] != "}":
            return pos
        if self.text[pos : pos + 1] != '"':
            raise self._unexpected(pos, "looking for beginning of object key string")
        pos = self._blanks(self._skip_string(pos))
        if self.text[pos : pos + 1] != ":":
            raise self._unexpected(pos, "after object key")
        return self._blanks(pos + 1)

    def _skip_scalar(self, pos: int, char: str) -> int:
        if char == '"':
            return self._skip_string(pos)
        return self._value(pos, 0)[1]

    def _skip_string(self, pos: int) -> int:
        text = self.text
        end = pos + 1
        part = _STRING_PART.match(text, end)
        while part is not None:
            end = part.end()
            part = _STRING_PART.match(text, end)
        if text[end : end + 1] != '"':
            raise self._string_error(pos)
        return end + 1


class LazyNode:
    """A value at a place of a text that `read_root` has checked."""

    __slots__ = ("_end", "kind", "start", "text")

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.start = start
        self.kind = _KINDS.get(text[start], "number")
        self._end = -1

    @property
    def end(self) -> int:
        """The place after the value. Free where the value was walked through, else found by skipping it."""
        if self._end < 0:
            self._end = _value_end(self.text, self.start)
        return self._end

    @end.setter
    def end(self, end: int) -> None:
        self._end = end

    @property
    def value(self) -> t.Any:
        """As `gojson.Node.value`; for an object or an array a `_Children` view."""
        if self.kind in ("object", "array"):
            return _Children(self)
        if self.kind == "string":
            text, self._end = decoded_string(self.text, self.start)
            return text
        if self.kind == "number":
            return self.text[self.start : self.end]
        return self.text[self.start] == "t" if self.kind == "bool" else None

    def members(self) -> t.Iterable[tuple[str, Node]]:
        """The members of an object, none for any other kind."""
        return self.value if self.kind == "object" else ()

    def get(self, key: str) -> Node | None:
        """The last member that is spelled exactly ``key``."""
        found = None
        for name, node in self.members():
            if name == key:
                found = node
        return found


class _Children:
    """What an object or an array holds, made while it is iterated; one child has to be done with before the next."""

    __slots__ = ("_node",)

    def __init__(self, node: LazyNode) -> None:
        self._node = node

    def __bool__(self) -> bool:
        node = self._node
        return node.text[_BLANKS.match(node.text, node.start + 1).end()] not in "}]"  # type: ignore[union-attr]

    def __iter__(self) -> t.Iterator[t.Any]:
        node = self._node
        text = node.text
        blanks = _BLANKS.match
        is_object = node.kind == "object"
        pos = blanks(text, node.start + 1).end()  # type: ignore[union-attr]
        while text[pos] not in "}]":
            if is_object:
                key, pos = decoded_string(text, pos)
                pos = blanks(text, blanks(text, pos).end() + 1).end()  # type: ignore[union-attr]
                child = LazyNode(text, pos)
                yield key, child
            else:
                child = LazyNode(text, pos)
                yield child
            pos = blanks(text, child.end).end()  # type: ignore[union-attr]
            if text[pos] == ",":
                pos = blanks(text, pos + 1).end()  # type: ignore[union-attr]
        node._end = pos + 1


def decoded_string(text: str, start: int) -> tuple[str, int]:
    """The string that opens at ``start`` of a checked text, and the place after it."""
    plain = _PLAIN_STRING.match(text, start)
    if plain is not None:
        return plain.group(1), plain.end()
    return _Scanner(text)._string(start)


def string_end(text: str, start: int) -> int:
    """The place after the string that opens at ``start``: a quote ends it unless an odd row of backslashes leads."""
    end = text.index('"', start + 1)
    while True:
        before = end - 1
        while text[before] == "\\":
            before -= 1
        if (end - before) % 2:
            return end + 1
        end = text.index('"', end + 1)


def _value_end(text: str, start: int) -> int:
    char = text[start]
    if char == '"':
        return string_end(text, start)
    if char in _LITERAL_LENGTHS:
        return start + _LITERAL_LENGTHS[char]
    if char not in "{[":
        return _NUMBER.match(text, start).end()  # type: ignore[union-attr]
    depth = 1
    pos = start + 1
    while depth:
        flat = _FLAT.match(text, pos)
        if flat is not None:
            pos = flat.end()
        char = text[pos]
        if char == '"':
            pos = string_end(text, pos)
            continue
        if char in "{}[]":
            depth += 1 if char in "{[" else -1
            pos += 1
    return pos
