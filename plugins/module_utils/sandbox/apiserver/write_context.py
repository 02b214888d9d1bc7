# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the rules of a kind may know about the write that they judge."""

from __future__ import annotations

import dataclasses
import typing as t

from .rights import Access, User
from .settings import ServerSettings


@dataclasses.dataclass(frozen=True)
class WriteContext:
    """``verb`` is create, update or patch; ``namespace_labels`` those of the object's namespace."""

    settings: ServerSettings
    user: User
    verb: str
    namespace_labels: t.Mapping[str, str]

    def may(self, verb: str, group: str, resource: str, subresource: str, name: str = "") -> bool:
        """Whether the user has a further right, cluster-wide."""
        return self.user.may(Access(verb, group, resource, subresource, "", name))
