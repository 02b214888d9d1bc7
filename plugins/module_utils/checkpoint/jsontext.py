# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""JSON texts brought into the shape in which Go writes them, without building their values.

Everything here takes a text that `lazyjson.read_root` or `gojson.parse` has accepted, and is linear in it.
"""

from __future__ import annotations

import re
import typing as t

from .gojson import quote
from .lazyjson import decoded_string, string_end

_BLANK_OR_STRING = re.compile(r'[ \t\n\r]+|"')
_HTML = re.compile("[<>&\u2028\u2029]")
_NEEDS_QUOTING = re.compile("[\\\\<>&\u2028\u2029\ud800-\udfff]")


def compact(text: str) -> str:
    """As Go's encoder passes on a text that a type made itself: no blanks, and nothing a browser could trip over."""
    return _rewritten(text, _html_safe)


def normal(text: str) -> str:
    """As Go would write the same members in the same order: no blanks, every string in its one spelling."""
    return _rewritten(text, _requoted)


def _html_safe(text: str, start: int, end: int) -> str | None:
    if _HTML.search(text, start, end) is None:
        return None
    return _HTML.sub(lambda match: f"\\u{ord(match.group()):04x}", text[start:end])


def _requoted(text: str, start: int, end: int) -> str | None:
    if _NEEDS_QUOTING.search(text, start, end) is None:
        return None
    return quote(decoded_string(text, start)[0])


def _rewritten(text: str, on_string: t.Callable[[str, int, int], str | None]) -> str:
    """``text`` without blanks between its tokens; ``on_string`` respells a string, None keeps it as it is."""
    pieces: list[str] = []
    kept_from = 0
    match = _BLANK_OR_STRING.search(text)
    while match is not None:
        start, end = match.span()
        new: str | None = ""
        if text[start] == '"':
            end = string_end(text, start)
            new = on_string(text, start, end)
        if new is not None:
            pieces.append(text[kept_from:start])
            pieces.append(new)
            kept_from = end
        match = _BLANK_OR_STRING.search(text, end)
    pieces.append(text[kept_from:])
    return "".join(pieces)
