# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a mode of the node agent has to offer, so that the daemon can serve its local API and look after its life."""

from __future__ import annotations

import typing as t

from ..daemon.health import Check
from ..daemon.settings import Settings
from .events import EventLog

Job = t.Coroutine[t.Any, t.Any, None]


class Mode(t.Protocol):
    """One way of working on a node, opened by ``async with``; made of a `daemon_protocol.Context`.

    The daemon then serves `service`, runs `jobs` side by side until they are cancelled, and calls `drain` before that.
    """

    @property
    def service(self) -> object:
        """The calls of the local API: one method for each of agent.proto, as `LocalService` has them."""

    @property
    def events(self) -> EventLog:
        """What happens on the node. The daemon closes it."""

    async def __aenter__(self) -> Mode: ...

    async def __aexit__(self, *exc: object) -> bool | None: ...

    async def reload(self, settings: Settings) -> None:
        """Go on with ``settings``, of which only those that the schema calls reloadable are others than before."""

    def jobs(self) -> t.Sequence[Job]:
        """Its work, begun once."""

    def checks(self) -> t.Sequence[Check]:
        """Its health checks. The daemon adds that of the local API."""

    async def drain(self) -> None:
        """Begin nothing new and return when nothing is under way any more. The local API is closed by then."""
