# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Keeping credentials out of every text: errors, logs, facts."""

from __future__ import annotations

import re
import typing as t

MASK = "********"

#: ``user:password@`` in a URL, and the value of an Authorization header, whoever quotes them.
_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")
_HEADER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}")

#: A secret shorter than this is not searched for: masking every "a" would hide the message and give the secret away.
SHORTEST = 4


class Secrets:
    """The secret texts of one connection. Grows when a token is renewed."""

    def __init__(self, values: t.Iterable[str | None] = ()) -> None:
        self._values: list[str] = []
        for value in values:
            self.add(value)

    def add(self, value: str | None) -> None:
        """Remember a secret; short and empty ones are ignored. The oldest go after 64 of them."""
        text = (value or "").strip()
        if len(text) >= SHORTEST and text not in self._values:
            self._values.append(text)
            del self._values[:-64]

    def scrub(self, text: str) -> str:
        """``text`` without secrets, URL passwords and Authorization values."""
        for value in sorted(self._values, key=len, reverse=True):
            text = text.replace(value, MASK)
        return _HEADER.sub(lambda match: f"{match.group(1)} {MASK}", _USERINFO.sub(f"{MASK}@", text))
