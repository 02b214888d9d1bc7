# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The one base of every error that this collection raises on purpose.

It lives in the lowest layer so that each layer above can derive from it.
"""

from __future__ import annotations

import typing as t


class DraError(Exception):
    """A failure that is told to a person, never as a stack trace.

    ``message`` says in one sentence what failed, on which object, and what was expected against what was found.
    ``hint`` says what to do next. ``facts`` are machine-readable details (path, claim_uid, driver ...): JSON types
    only, since modules hand them to ``fail_json`` and daemons to their structured log.
    """

    def __init__(self, message: str, hint: str = "", **facts: t.Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.facts = facts

    def to_dict(self) -> dict[str, t.Any]:
        """As a module that fails returns it.

        No result has a key ``path``: Ansible would add the mode and owner of whatever stands there to it.
        """
        facts = {("file" if key == "path" else key): value for key, value in self.facts.items()}
        return {"failed": True, "msg": str(self), **facts}

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message
