# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""JSON as Go's ``encoding/json`` reads and writes it.

A state file is sound exactly when the kubelet can read it, so this reader gives Go's verdict where Python's differs:
which bytes are legal, what an error is called, how deep a document may nest, what invalid UTF-8 turns into. Every node
keeps its place in the text, so that a file can be mended by replacing spans and nothing else.

Symbols followed: encoding/json ``scanner``, ``unquote``, ``appendString`` (with HTML escaping, as ``json.Marshal``).
"""

from __future__ import annotations

import io
import json.decoder
import re
import typing as t

MAX_DEPTH = 10000
"""Go's ``maxNestingDepth``: a document may open this many objects and arrays at once."""
TOO_DEEP = "exceeded max depth"
"""How Go's message ends for a document that opens one more."""

_scan_string = json.decoder.scanstring  # type: ignore[attr-defined]
_BLANKS = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_PLAIN_STRING = re.compile(r'"([^"\\\x00-\x1f\ud800-\udfff]*)"')
_SURROGATE = re.compile("[\ud800-\udfff]")
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_HEX = frozenset("0123456789abcdefABCDEF")
_DIGITS = frozenset("0123456789")


class GoSyntaxError(Exception):
    """Text that Go's scanner refuses.

    ``kind`` is ``truncated`` (the text ends too early), ``trailing_data`` (something follows the document) or
    ``syntax``. ``offset`` counts characters of the text; ``go_message`` is the message that Go gives. ``cut`` tells
    that the text just ends too early, also where Go calls that a syntax error.
    """

    def __init__(self, kind: str, offset: int, go_message: str, cut: bool = False) -> None:
        super().__init__(go_message)
        self.kind = kind
        self.offset = offset
        self.go_message = go_message
        self.cut = cut

    def alone(self) -> GoSyntaxError:
        """The same error without the traceback and the context, which hold the text."""
        return GoSyntaxError(self.kind, self.offset, self.go_message, self.cut)


class Node:
    """One JSON value and the span ``text[start:end]`` it was read from.

    ``kind`` is ``object``, ``array``, ``string``, ``number``, ``bool`` or ``null``. ``value`` is a list of
    ``(key, Node)`` in file order with repeats, a list of ``Node``, the decoded text, the number as it is spelled, a
    bool, or None.
    """

    __slots__ = ("end", "kind", "start", "value")

    def __init__(self, kind: str, start: int, end: int, value: t.Any) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.value = value

    def members(self) -> list[tuple[str, Node]]:
        """The members of an object, none for any other kind."""
        return self.value if self.kind == "object" else []

    def get(self, key: str) -> Node | None:
        """The last member that is spelled exactly ``key``."""
        found = None
        for name, node in self.members():
            if name == key:
                found = node
        return found


def decode_bytes(data: bytes | memoryview) -> str:
    """The text of a file; bytes that are not UTF-8 become lone surrogates, so that ``encode_text`` is its inverse."""
    return str(data, "utf-8", "surrogateescape")


def encode_text(text: str) -> bytes:
    """The bytes of a text made by `decode_bytes`."""
    return text.encode("utf-8", "surrogateescape")


def encode_pieces(pieces: t.Iterable[str]) -> bytes:
    """`encode_text` of a text that is never in memory as a whole."""
    data = io.BytesIO()
    for piece in pieces:
        data.write(encode_text(piece))
    return data.getvalue()


def replace_surrogates(value: str) -> str:
    """What Go makes of a string with invalid bytes or lone surrogate escapes: one U+FFFD for each of them."""
    return _SURROGATE.sub("\ufffd", value)


def parse(text: str) -> Node:
    """Read one document. Raises `GoSyntaxError` for everything that Go's ``json.Unmarshal`` calls a syntax error."""
    return _Scanner(text).document()


def parse_at(text: str, start: int) -> Node:
    """Read the value that begins at ``text[start]``, whatever follows it. Raises `GoSyntaxError` as `parse` does."""
    return _Scanner(text).value_at(start)


class _Scanner:
    """One pass over a text with an explicit stack: depth is bounded by Go's limit, not by Python's recursion."""

    def __init__(self, text: str) -> None:
        self.text = text

    def document(self) -> Node:
        text = self.text
        root = self.value_at(_BLANKS.match(text).end())  # type: ignore[union-attr]
        pos = _BLANKS.match(text, root.end).end()  # type: ignore[union-attr]
        if pos != len(text):
            raise GoSyntaxError("trailing_data", pos, f"invalid character {self._quote(pos)} after top-level value")
        return root

    def value_at(self, pos: int) -> Node:
        text = self.text
        blanks = _BLANKS.match
        stack: list[Node] = []
        keys: list[str] = []
        while True:
            node, pos = self._value(pos, len(stack))
            if node.kind in ("object", "array") and node.end < 0:
                stack.append(node)
                pos = blanks(text, pos).end()  # type: ignore[union-attr]
                if node.kind == "array":
                    continue
                key, pos = self._key(pos)
                keys.append(key)
                continue
            while True:  # a value is complete: hang it in, and close what it closes
                if not stack:
                    return node
                top = stack[-1]
                if top.kind == "object":
                    top.value.append((keys.pop(), node))
                else:
                    top.value.append(node)
                pos = blanks(text, pos).end()  # type: ignore[union-attr]
                char = text[pos : pos + 1]
                if char == ",":
                    pos = blanks(text, pos + 1).end()  # type: ignore[union-attr]
                    if top.kind == "object":
                        key, pos = self._key(pos)
                        keys.append(key)
                    break
                if char != ("}" if top.kind == "object" else "]"):
                    after = "object key:value pair" if top.kind == "object" else "array element"
                    raise self._unexpected(pos, f"after {after}")
                pos += 1
                top.end = pos
                node = stack.pop()

    def _value(self, pos: int, depth: int) -> tuple[Node, int]:
        """The value that begins at ``pos``. A non-empty object or array comes back open, with ``end`` -1."""
        text = self.text
        char = text[pos : pos + 1]
        if char == '"':
            value, end = self._string(pos)
            return Node("string", pos, end, value), end
        if char in ("{", "["):
            if depth >= MAX_DEPTH:
                raise GoSyntaxError("syntax", pos, f"invalid character '{char}' {TOO_DEEP}")
            kind = "object" if char == "{" else "array"
            end = _BLANKS.match(text, pos + 1).end()  # type: ignore[union-attr]
            if text[end : end + 1] == ("}" if char == "{" else "]"):
                return Node(kind, pos, end + 1, []), end + 1
            return Node(kind, pos, -1, []), pos + 1
        literal = _LITERALS.get(char)
        if literal is not None:
            return self._literal(pos, literal)
        number = _NUMBER.match(text, pos)
        if number is not None:
            end = number.end()
            self._check_number_end(number.group(), end)
            return Node("number", pos, end, number.group()), end
        if char == "-":
            raise self._broken_token(pos + 1, "in numeric literal")
        raise self._unexpected(pos, "looking for beginning of value")

    def _key(self, pos: int) -> tuple[str, int]:
        """An object key with its colon, up to the place where the value begins."""
        text = self.text
        if text[pos : pos + 1] != '"':
            raise self._unexpected(pos, "looking for beginning of object key string")
        key, pos = self._string(pos)
        pos = _BLANKS.match(text, pos).end()  # type: ignore[union-attr]
        if text[pos : pos + 1] != ":":
            raise self._unexpected(pos, "after object key")
        return key, _BLANKS.match(text, pos + 1).end()  # type: ignore[union-attr]

    def _string(self, pos: int) -> tuple[str, int]:
        plain = _PLAIN_STRING.match(self.text, pos)
        if plain is not None:
            return plain.group(1), plain.end()
        try:
            value, end = _scan_string(self.text, pos + 1, True)
        except json.decoder.JSONDecodeError:
            raise self._string_error(pos) from None
        return replace_surrogates(value), end

    def _string_error(self, start: int) -> GoSyntaxError:
        """Go's words for the first thing that is wrong in the string that opens at ``start``."""
        text = self.text
        pos = start + 1
        while pos < len(text):
            char = text[pos]
            if char < " ":
                return self._unexpected(pos, "in string literal")
            if char != "\\":
                pos += 1
                continue
            escape = text[pos + 1 : pos + 2]
            if escape != "u":
                if escape == "" or escape not in '"\\/bfnrt':
                    return self._broken_token(pos + 1, "in string escape code")
                pos += 2
                continue
            for place in range(pos + 2, pos + 6):
                if text[place : place + 1] not in _HEX:
                    return self._broken_token(place, "in \\u hexadecimal character escape")
            pos += 6
        return self._unexpected(len(text), "in string literal")

    def _literal(self, pos: int, literal: str) -> tuple[Node, int]:
        text = self.text
        for index in range(1, len(literal)):
            if text[pos + index : pos + index + 1] != literal[index]:
                raise self._broken_token(pos + index, f"in literal {literal} (expecting {_quote_char(literal[index])})")
        end = pos + len(literal)
        if literal == "null":
            return Node("null", pos, end, None), end
        return Node("bool", pos, end, literal == "true"), end

    def _check_number_end(self, number: str, end: int) -> None:
        """A dot or an exponent that the number pattern left over is the number's own fault, unless it has one already:
        then it belongs to the next token."""
        char = self.text[end : end + 1]
        exponent = "e" in number or "E" in number
        if char == "." and not exponent and "." not in number:
            raise self._broken_token(end + 1, "after decimal point in numeric literal")
        if char in ("e", "E") and not exponent:
            place = end + 1
            if self.text[place : place + 1] in ("+", "-"):
                place += 1
            raise self._broken_token(place, "in exponent of numeric literal")

    def _unexpected(self, pos: int, where: str) -> GoSyntaxError:
        if pos >= len(self.text):
            return GoSyntaxError("truncated", len(self.text), "unexpected end of JSON input", cut=True)
        return GoSyntaxError("syntax", pos, f"invalid character {self._quote(pos)} {where}")

    def _broken_token(self, pos: int, where: str) -> GoSyntaxError:
        """As `_unexpected`, inside an escape, a literal or a number: at the end of the text Go's scanner feeds itself
        one blank to see whether the document was complete, and here blames that blank."""
        if pos >= len(self.text):
            return GoSyntaxError("syntax", len(self.text), f"invalid character ' ' {where}", cut=True)
        return self._unexpected(pos, where)

    def _quote(self, pos: int) -> str:
        # Go's scanner looks at bytes, so of a longer character it names the first byte.
        return _quote_char(chr(encode_text(self.text[pos])[0]))


def _quote_char(char: str) -> str:
    """A byte as Go's scanner quotes it in a message."""
    if char == "'":
        return "'\\''"
    if char == '"':
        return "'\"'"
    named = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\"}
    if char in named:
        return f"'{named[char]}'"
    code = ord(char)
    if code < 0x20 or code == 0x7F:
        return f"'\\x{code:02x}'"
    if 0x80 <= code < 0xA1 or code == 0xAD:
        return f"'\\u{code:04x}'"
    return f"'{char}'"


_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\b": "\\b",
    "\f": "\\f",
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}
_NEEDS_ESCAPE = re.compile('[\x00-\x1f"\\\\<>&\u2028\u2029\ud800-\udfff]')


def _escape(match: t.Match[str]) -> str:
    char = match.group()
    if "\ud800" <= char <= "\udfff":
        return "\\ufffd"
    return _ESCAPES.get(char) or f"\\u{ord(char):04x}"


_PIECE = 1 << 12


def substituted(pattern: t.Pattern[str], new: t.Callable[[t.Match[str]], str], text: str) -> str:
    """``pattern.sub(new, text)``, which for a long text keeps an object for every match until its end."""
    pieces: list[str] = []
    recent: list[str] = []
    done = 0
    for match in pattern.finditer(text):
        recent += (text[done : match.start()], new(match))
        done = match.end()
        if len(recent) > _PIECE:
            pieces.append("".join(recent))
            recent.clear()
    return "".join([*pieces, *recent, text[done:]]) if done else text


def quote(value: str) -> str:
    """A string as ``json.Marshal`` of Go 1.22 to 1.26 writes it."""
    if len(value) < _PIECE:
        return f'"{_NEEDS_ESCAPE.sub(_escape, value)}"'
    return f'"{substituted(_NEEDS_ESCAPE, _escape, value)}"'
