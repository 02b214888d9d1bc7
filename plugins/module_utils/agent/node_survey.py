# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The look of claim_info at a node, taken again whenever something may have changed, for an agent that observes."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import glob
import logging
import os
import typing as t

from ..cdi.directories import DEFAULT_DIRECTORIES
from ..cdi.index import SpecIndex
from ..checkpoint.errors import DraError
from ..driver.registry import DriverRegistry
from ..driver.scan import scan
from ..driver.wakeup import Signal
from .api_claims import names_in_use
from .directory_looks import times_to_look
from .driver_report import report_of
from .kubelet_follower import KubeletFollower
from .kubelet_state import KubeletState
from .node_pods import NodePods
from .observe_api import ApiClaims, names_of
from .sources import Sources, read_cdi, read_drivers, read_manager, take_kubelet, take_unreadable_kubelet
from .survey import survey
from .workplace import Directories

Json = dict[str, t.Any]
log = logging.getLogger(__name__)

BREATH = 1.0
"""Seconds between two surveys at least."""
_SHARE = 19.0
"""How many times longer than a survey the pause after it is."""


@dataclasses.dataclass(frozen=True)
class Objects:
    """What the API says, None where it was not asked or does not answer."""

    claims: list[t.Any] | None = None
    pods: list[t.Any] | None = None
    node_name: str = ""


class NodeSurvey:
    """``claims`` and ``findings`` are those of the last look, as the module claim_info returns them."""

    def __init__(
        self,
        directories: Directories,
        kubelet: KubeletFollower,
        registry: DriverRegistry,
        *,
        period: float,
        pods: NodePods | None = None,
    ) -> None:
        self.claims: list[Json] = []
        self.findings: list[Json] = []
        self._where, self._kubelet, self._registry, self._period = directories, kubelet, registry, period
        self._pods = pods
        self._objects = ApiClaims(pods.fetch, period) if pods is not None else None
        self._specs = SpecIndex(directories.cdi)
        self._drivers: list[Json] = []
        self._scanned_at: float | None = None
        self._wanted, self._done = 1, 0
        self._signal = Signal()

    def changed(self, *, drivers: bool = False) -> None:
        """Something may be other than it was; with ``drivers`` one of their sockets."""
        self._wanted += 1
        self._scanned_at = None if drivers else self._scanned_at
        self._signal.notify()

    async def current(self, timeout: float) -> bool:
        """Wait until the last look is later than all changes that were told until now; whether it is in the end."""
        wanted = self._wanted
        return await self._signal.until(lambda: self._done >= wanted, timeout)

    # Work

    async def run(self) -> None:
        """Look again and again until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_files())
            while True:
                began = asyncio.get_running_loop().time()
                await self._look_once()
                await asyncio.sleep(max(BREATH, _SHARE * (asyncio.get_running_loop().time() - began)))
                await self._signal.until(lambda: self._wanted > self._done, self._period)

    async def _watch_files(self) -> None:
        """CDI specs and drivers' own files: their directories say when they change."""
        first = True
        async with contextlib.aclosing(times_to_look(self._directories, self._period)) as times:
            async for _time in times:
                if not first:
                    self.changed()
                first = False
                await asyncio.sleep(BREATH)

    def _directories(self) -> list[str]:
        plugins = os.path.join(glob.escape(self._where.kubelet_root), "plugins", "*")
        return [*(self._where.cdi or DEFAULT_DIRECTORIES), *glob.glob(plugins)]

    async def _look_once(self) -> None:
        wanted = self._wanted
        state = self._kubelet.state
        try:
            await self._scan()
            objects = await self._ask_api(state)
            reachable = {one.name: one.connected for one in self._registry.drivers()}
            found = await asyncio.to_thread(self._survey, state, objects, reachable)
            self.claims = found["claims"]
            self.findings = [*found["findings"], *self._drivers]
        except Exception:
            # The edge of the loop: an odd object or file must not end the observing of all others.
            log.exception("survey ended by a bug, trying again later")
        self._done = wanted
        self._signal.notify()

    async def _scan(self) -> None:
        """What driver_info finds, at most once in a period: each driver is asked who it is."""
        now = asyncio.get_running_loop().time()
        if self._scanned_at is None or now - self._scanned_at >= self._period:
            self._scanned_at = now
            self._drivers = report_of(await scan(self._registry.directory))["findings"]

    async def _ask_api(self, state: KubeletState) -> Objects:
        pods = self._pods
        if pods is None or self._objects is None or not pods.synced or pods.problem():
            return Objects()
        present = list(pods.store)
        names = {**dict.fromkeys(names_in_use(present), ""), **names_of(state.claims.values())}
        try:
            return Objects(await self._objects.named(names), present, pods.node_name)
        except DraError as error:
            log.warning("claims cannot be read from the API error=%s", error)
            return Objects()

    def _survey(self, state: KubeletState, objects: Objects, reachable: dict[str, bool]) -> Json:
        """The look itself. Blocks."""
        sources = Sources(self._where.kubelet_root, claims=objects.claims, pods=objects.pods)
        sources.node_name = objects.node_name
        sources.registered = reachable
        read_manager(sources, self._where.state)
        if state.error is not None:
            take_unreadable_kubelet(sources, state.path, state.error)
        elif state.diagnosis is not None:
            take_kubelet(sources, state.path, state.diagnosis)
        read_drivers(sources)
        read_cdi(sources, self._where.cdi, self._specs.registry)
        return survey(sources)
