# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Health of the controller's daemon: each probe looks at, or goes through, what the work goes through."""

from __future__ import annotations

import asyncio
import typing as t

from ..checkpoint.errors import DraError
from ..kube.client import KubeClient
from ..kube.resources import Resource
from .controller import Controller

#: Seconds after which work that does not move is stuck: a request has a deadline of 30 s, and few are made for a key.
STUCK = 300.0
#: A watch that says nothing is opened again after 90 s; a cache that has heard nothing for so long has no watch at all.
SILENT = 600.0


class StuckError(DraError):
    """Something in the process does not move any more; only a new start helps."""


class Movement:
    """Does the work queue move? Asked by the live check, and before each renewal of the lease."""

    def __init__(self) -> None:
        self._controller: Controller | None = None
        self._done = 0
        self._moved = 0.0

    def check(self, controller: Controller | None) -> str:
        """A text when all is well; raises ``StuckError``."""
        session = controller.session if controller is not None else None
        if controller is None or session is None:
            return "no work"
        now = asyncio.get_running_loop().time()
        done = controller.metrics.queue.worked.count
        if controller is not self._controller or done != self._done or not len(session.queue):
            self._controller, self._done, self._moved = controller, done, now
        oldest = session.queue.longest_running_seconds()
        if oldest > STUCK:
            raise StuckError(
                f"A worker has been at the same key for {oldest:.0f} s.", "The process should be restarted."
            )
        if now - self._moved > STUCK:
            raise StuckError(
                f"{len(session.queue)} keys wait, and none was done for {now - self._moved:.0f} s.",
                "The process should be restarted.",
            )
        return f"{len(session.queue)} waiting, {session.queue.retrying} to be tried again"

    def moves(self, controller: Controller | None) -> bool:
        """The same as yes or no."""
        try:
            self.check(controller)
        except StuckError:
            return False
        return True


def check_watches(controller: Controller | None) -> str:
    """Raises ``StuckError`` for a cache that hears nothing and cannot say why.

    One that knows of an error tries again by itself: a restart would not bring the API server back.
    """
    if controller is None:
        return "no caches"
    caches = controller.stats().reflectors
    silent = [one for one in caches if one.lag > SILENT and not one.last_error]
    if silent:
        names = ", ".join(f"{one.resource} {one.lag:.0f} s" for one in silent)
        raise StuckError(f"Nothing was heard of the API server: {names}.", "The process should be restarted.")
    return f"{len(caches)} watches"


def check_caches(controller: Controller | None) -> str:
    """Whether the leader has read the cluster and follows it."""
    if controller is None:
        raise DraError("The controller has not begun yet.", "It looks at the cluster first; see the log.")
    stats = controller.stats()
    failing = [f"{one.resource}: {one.last_error}" for one in stats.reflectors if one.last_error]
    if failing:
        raise DraError(f"The cluster cannot be followed: {'; '.join(failing)}", "They are tried again.")
    if not stats.ready:
        waiting = [one.resource for one in stats.reflectors if not one.synced]
        raise DraError(f"The cluster is still being read: {', '.join(waiting) or 'the versions it serves'}.")
    objects = ", ".join(f"{number} {kind}" for kind, number in sorted(stats.objects.items()))
    return f"version={stats.version} release={stats.release} {objects}"


async def check_api(client: KubeClient, claims: Resource, namespaces: t.Sequence[str]) -> str:
    """Read claims, as the work does: connection, credential and right at once."""
    page = await client.page(claims, namespaces[0] if namespaces else "", limit=1)
    return f"claims read at resourceVersion {page.resource_version}"
