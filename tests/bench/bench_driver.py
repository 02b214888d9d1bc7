# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The simulated driver as a process of its own, without the disk: what it would write is not what is measured."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import signal
import sys
import typing as t

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / ".build"))

from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver import DriverConfig, SimulatedDriver
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_calls import AskedClaim
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_store import (
    CdiFiles,
    ClaimStore,
    PreparedClaim,
    PreparedDevice,
)

NAME = "gpu.bench.example"


class MemoryStore(ClaimStore):
    """The driver's record, kept in memory only."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(path)
        self._claims: dict[str, PreparedClaim] = {}

    def claims(self) -> dict[str, PreparedClaim]:
        return self._claims

    @contextlib.contextmanager
    def transaction(self) -> t.Iterator[dict[str, PreparedClaim]]:
        yield self._claims


class NoFiles(CdiFiles):
    """CDI names without files."""

    def write(self, claim: PreparedClaim) -> None:
        """Nothing is written."""

    def remove(self, uid: str) -> None:
        """There is nothing to remove."""


async def allocate(claim: AskedClaim) -> list[PreparedDevice]:
    return [PreparedDevice("node-1", f"gpu-{claim.name}", ("req-0",))]


async def serve(root: pathlib.Path) -> None:
    config = DriverConfig(NAME, root, root / "cdi", apis=("v1",))
    driver = SimulatedDriver(config, allocate=allocate)
    driver.store = MemoryStore(config.state_file)
    driver.cdi = NoFiles(config.cdi_dir, NAME)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with driver:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(serve(pathlib.Path(sys.argv[1])))
