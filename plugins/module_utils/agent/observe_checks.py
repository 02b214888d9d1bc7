# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The health of an agent that observes. What it finds wrong with the node is no illness of its own: it is degraded."""

from __future__ import annotations

import contextlib

from ..checkpoint.errors import DraError
from ..checkpoint.file_errors import MissingFileError
from ..checkpoint.store import read_file
from ..daemon.health import BlockingProbe, Check, Degraded
from .kubelet_state import MISSING
from .observed_node import ObservedNode


class ObserveChecks:
    """The checks of one node; none is live, since no restart would bring back a file, a driver or an API server."""

    def __init__(self, node: ObservedNode) -> None:
        self._node = node
        self._read = BlockingProbe(self._read_now, "read kubelet state")

    def all(self) -> list[Check]:
        """Those that the settings call for."""
        found = [
            Check("kubelet_state", self._kubelet_state, "The kubelet's state file can be read, and is sound."),
            Check("drivers", self._drivers, "Every driver with a registration socket can be reached."),
        ]
        if self._node.ring is not None:
            found.append(Check("ring", self._ring, "Copies of the kubelet's state file are kept."))
        if self._node.pods is not None:
            found.append(Check("kubernetes", self._kubernetes, "The pods of this node are followed."))
        return found

    async def _kubelet_state(self) -> str | Degraded:
        await self._read()
        kubelet = self._node.kubelet
        if kubelet.late:
            raise DraError(f"the look at {kubelet.state.path} is overdue for {kubelet.late:.0f} s, its disk may hang")
        state = kubelet.state
        if state.status == MISSING:
            return f"no kubelet has written {state.path} yet"
        return Degraded(state.problem) if state.problem else f"{state.status}, {len(state.claims)} claims"

    def _read_now(self) -> None:
        """Read the file as the follower does. Blocks."""
        with contextlib.suppress(MissingFileError):
            read_file(self._node.kubelet.state.path, follow=True)

    async def _drivers(self) -> str | Degraded:
        drivers = self._node.registry.drivers()
        away = [one.name for one in drivers if not one.connected]
        if away:
            return Degraded(f"registration sockets are there, but not connected: {', '.join(away)}")
        return f"{len(drivers)} connected"

    async def _ring(self) -> str | Degraded:
        ring = self._node.ring
        if ring is None or ring.problem is None:
            return f"{0 if ring is None else len(ring.ring.copies)} copies"
        return Degraded(ring.problem.message)

    async def _kubernetes(self) -> str | Degraded:
        pods = self._node.pods
        problem = pods.problem() if pods is not None else ""
        return Degraded(problem) if problem else f"{0 if pods is None else len(pods.store)} pods with claims"
