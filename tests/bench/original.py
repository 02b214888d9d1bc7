# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the kubelet's manager does for a pod, as a yardstick for ours.

It keeps all claims in one cache under one lock. For each prepare it encodes and writes the whole file twice, before and
after the driver is called, and for each unprepare once; the lock is held for the write, not for the call. Here it has
the same plan, the same driver client and the same durable writer as our manager. Its encoder is the standard
library's, in C, over claims that stand ready as dicts: what Go spends on the same text, or less.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import typing as t
import zlib

from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.claims import ClaimState
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.formats import DATA_API_VERSION, DATA_KIND
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.store import StateDirectory
from ansible_collections.nodeops.dra.plugins.module_utils.manager.driver_calls import (
    PREPARE_METHOD,
    UNPREPARE_METHOD,
    DriverCalls,
    Drivers,
)
from ansible_collections.nodeops.dra.plugins.module_utils.manager.observer import Observer
from ansible_collections.nodeops.dra.plugins.module_utils.manager.planning import Holder, PlannedClaim

TIMEOUT = 45.0


class Original:
    """Prepare and unprepare in the way of the original; good cases only."""

    def __init__(
        self, directory: StateDirectory, name: str, claims: t.Iterable[ClaimState], drivers: Drivers, observer: Observer
    ) -> None:
        self._directory = directory
        self._name = name
        self._claims = {claim.uid: claim for claim in claims}
        self._fields = {uid: claim.to_fields() for uid, claim in self._claims.items()}
        self._calls = DriverCalls(drivers, observer)
        self._lock = asyncio.Lock()
        self.bytes_written = 0
        self.syncs = 0

    async def prepare(self, holder: Holder, plan: PlannedClaim) -> None:
        state = ClaimState(plan.uid, plan.name, plan.namespace, frozenset({holder.uid}), dict.fromkeys(plan.drivers))
        async with self._lock:
            self._set(state)
            await self._sync()
        outcomes = await self._run(PREPARE_METHOD, plan)
        async with self._lock:
            self._set(dataclasses.replace(state, drivers={name: one[plan.uid] for name, one in outcomes.items()}))
            await self._sync()

    async def unprepare(self, plan: PlannedClaim) -> None:
        await self._run(UNPREPARE_METHOD, plan)
        async with self._lock:
            del self._claims[plan.uid], self._fields[plan.uid]
            await self._sync()

    async def _run(self, method: str, plan: PlannedClaim) -> dict[str, t.Any]:
        deadline = asyncio.get_running_loop().time() + TIMEOUT
        refs = {driver: [plan.ref(driver)] for driver in plan.drivers}
        return await self._calls.run(method, refs, deadline=deadline, before=lambda _driver, _ref: None)

    def _set(self, claim: ClaimState) -> None:
        self._claims[claim.uid] = claim
        self._fields[claim.uid] = claim.to_fields()

    async def _sync(self) -> None:
        await asyncio.to_thread(self._write)

    def _write(self) -> None:
        document = {
            "kind": DATA_KIND,
            "apiVersion": DATA_API_VERSION,
            "ClaimInfoStateList": list(self._fields.values()),
        }
        text = json.dumps(document, separators=(",", ":"))
        whole = json.dumps({"Data": text, "Checksum": zlib.crc32(text.encode())}, separators=(",", ":")).encode()
        self._directory.write(self._name, whole)
        self.bytes_written += len(whole)
        self.syncs += 2
