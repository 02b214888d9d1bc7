# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Follows the files that a kubelet keeps of its claims. They are only read, whole, and decoded when they are new."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import typing as t

from ..checkpoint import store
from ..checkpoint.file_errors import StoreError
from ..checkpoint.findings import Finding
from ..checkpoint.health import read_health
from .directory_looks import times_to_look
from .kubelet_state import MISSING, KubeletState, look, state_path

log = logging.getLogger(__name__)

HEALTH_FILE = "dra_health_state"
BREATH = 0.1
"""Seconds between two looks at least: a kubelet that writes hundreds of times a second is not looked at each time."""
_SHARE = 9.0
"""How many times longer than a look the pause after it is: looking takes no more than a tenth of a processor."""


class KubeletFollower:
    """``state`` is what the state file said at the last look.

    ``changed`` is told the state before and the new one after each change of either. ``contents`` counts new states.
    """

    def __init__(self, kubelet_root: str, poll: float, changed: t.Callable[[KubeletState, KubeletState], None]) -> None:
        self.state = KubeletState(state_path(kubelet_root))
        self.contents = 0
        self._health_findings: list[Finding] = []
        self._root = kubelet_root
        self._poll = poll
        self._changed = changed
        self._health_data: bytes | None = None
        self._looked_at = 0.0

    async def start(self) -> None:
        """The first look, before anybody asks. Nobody is told of it."""
        await self._look()

    async def run(self) -> None:
        """Follow the files until cancelled."""
        loop = asyncio.get_running_loop()
        async with contextlib.aclosing(times_to_look(lambda: [self._root], self._poll)) as times:
            async for _time in times:
                began = loop.time()
                before, health = self.state, self._health_data
                await self._look()
                self.contents += self.state is not before and self.state.data is not None
                if self.state is not before or self._health_data != health:
                    self._tell(before)
                await asyncio.sleep(max(BREATH, _SHARE * (loop.time() - began)))

    def findings(self) -> list[Finding]:
        """What checkpoint_info finds in both files, beside what is only worth a remark."""
        faults = self.state.diagnosis.faults if self.state.diagnosis is not None else ()
        return [*_findings(self.state.path, faults), *self._health_findings]

    @property
    def late(self) -> float:
        """Seconds that the next look is overdue; 0 while all is well."""
        return max(0.0, asyncio.get_running_loop().time() - self._looked_at - 2 * self._poll - 10.0)

    async def _look(self) -> None:
        found, health = await asyncio.to_thread(self._read)
        self.state = found
        if health != self._health_data:
            self._health_data = health
            self._health_findings = [] if health is None else await asyncio.to_thread(_judge_health, self._root, health)
        self._looked_at = asyncio.get_running_loop().time()

    def _read(self) -> tuple[KubeletState, bytes | None]:
        try:
            health = store.read_file(os.path.join(self._root, HEALTH_FILE), follow=True).data
        except StoreError:
            health = None  # kubelets do without it
        return look(self.state.path, self.state), health

    def _tell(self, before: KubeletState) -> None:
        now = self.state
        if before.status != now.status:
            level = logging.INFO if now.good or now.status == MISSING else logging.WARNING
            log.log(level, "kubelet state is %s path=%s problem=%s", now.status, now.path, now.problem)
        log.debug("kubelet state read claims=%d bytes=%d", len(now.claims), len(now.data or b""))
        self._changed(before, now)


def _judge_health(root: str, data: bytes) -> list[Finding]:
    """What is wrong with the kubelet's own record of devices' health."""
    return _findings(os.path.join(root, HEALTH_FILE), read_health(data).findings)


def _findings(path: str, found: t.Iterable[Finding]) -> list[Finding]:
    return [
        Finding(one.code, one.severity, f"{path} {one.place}".strip(), one.text, one.remedy, one.facts)
        for one in found
        if one.severity != "info"
    ]
