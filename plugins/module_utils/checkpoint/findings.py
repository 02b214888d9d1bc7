# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a look at a node found: the one shape that every layer reports in."""

from __future__ import annotations

import dataclasses
import typing as t

Severity = t.Literal["error", "warning", "info"]


@dataclasses.dataclass(frozen=True)
class Finding:
    """One observation about one place.

    ``code`` is stable and documented, so people can search for it and playbooks can branch on it. ``place`` says where
    (a path inside a document, a file, a claim). ``text`` is one plain sentence. ``remedy`` is the next step, empty when
    there is none to take. ``facts`` holds JSON-typed details.
    """

    code: str
    severity: Severity
    place: str
    text: str
    remedy: str = ""
    facts: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)

    def to_dict(self) -> dict[str, t.Any]:
        """The finding as modules return it: every field, in declaration order, with JSON types only; its own facts."""
        return {
            "code": self.code,
            "severity": self.severity,
            "place": self.place,
            "text": self.text,
            "remedy": self.remedy,
            "facts": self.facts or {},
        }
