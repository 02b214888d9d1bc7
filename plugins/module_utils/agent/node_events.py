# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Kubernetes Events on the Node object, for people who look with ``kubectl describe node``.

Whatever the API server does about them, nothing else waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import typing as t

from ..checkpoint.errors import DraError
from ..kube.backoff import Backoff
from ..kube.client import KubeClient
from ..kube.cluster import resolve
from ..kube.event_series import ObjectReference
from ..kube.options import ConnectionOptions
from ..kube.recorder import NORMAL, WARNING, EventRecorder
from ..kube.rights import Right, review

log = logging.getLogger(__name__)

COMPONENT = "nodeops-dra-agent"
NAMESPACE = "default"
"""Where Kubernetes has the events of objects that have no namespace."""
RIGHTS = tuple(Right(verb, "events", namespace=NAMESPACE) for verb in ("create", "patch"))
REASONS: t.Mapping[str, tuple[str, str]] = {
    "checkpoint_damaged": (WARNING, "DRACheckpointDamaged"),
    "checkpoint_sound": (NORMAL, "DRACheckpointSound"),
    "driver_gone": (WARNING, "DRADriverGone"),
    "driver_returned": (NORMAL, "DRADriverReturned"),
}
"""What is reported, to the type and the reason of its Event."""
ASK_AGAIN = 600.0
"""Seconds between two questions for rights that are missing."""
WAITING = 100
"""How many events are held while the API server is away."""


class NodeEvents:
    """Reports with `tell`, which never waits; `run` is the work. The API is reached by ``options``."""

    def __init__(self, node_name: str, options: ConnectionOptions) -> None:
        # Kubelets give their node's name as its UID, and kubectl looks for that.
        self._node = ObjectReference("v1", "Node", node_name, uid=node_name)
        self._options = options
        self._recorder: EventRecorder | None = None
        self._held: list[tuple[str, str]] = []
        self._warned = False

    def tell(self, kind: str, message: str) -> None:
        """Report one of `REASONS`."""
        if self._recorder is None:
            self._held = [*self._held, (kind, message)][-WAITING:]
            return
        type_, reason = REASONS[kind]
        self._recorder.event(self._node, type_, reason, message)

    async def run(self) -> t.NoReturn:
        """Connect and write until cancelled."""
        backoff = Backoff(0.2, 60.0)
        while True:
            try:
                await self._work()
            except DraError as error:
                log.warning("no events are written, trying again error=%s", error)
            await asyncio.sleep(backoff.next())

    async def _work(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            access = await asyncio.to_thread(resolve, self._options)
            client = await stack.enter_async_context(KubeClient.connect(access))
            while not await self._allowed(client):
                self._held.clear()  # by then they are news no more
                await asyncio.sleep(ASK_AGAIN)
            self._recorder = EventRecorder(client, COMPONENT, host=self._node.name)
            stack.callback(self._disconnected)
            held, self._held = self._held, []
            for kind, message in held:
                self.tell(kind, message)
            await self._recorder.run()

    def _disconnected(self) -> None:
        self._recorder = None

    async def _allowed(self, client: KubeClient) -> bool:
        missing = [str(one.right) for one in await review(client, RIGHTS) if not one.allowed]
        if missing and not self._warned:
            log.warning("no events are written on the node, rights are missing rights=%s", ", ".join(missing))
            self._warned = True
        return not missing
