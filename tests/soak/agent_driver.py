# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A simulated driver as a process that gives the devices of the allocation, as drivers with access to the API do.

    python -m ...agent_driver NAME KUBELET_ROOT CDI_DIRECTORY ALLOCATIONS

ALLOCATIONS is a directory with one JSON file a claim, ``UID.json``: driver name to device names.
"""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import signal
import sys
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver import DriverConfig, SimulatedDriver
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_calls import AskedClaim
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_control import ControlServer
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_store import PreparedDevice


async def serve(name: str, root: pathlib.Path, cdi: pathlib.Path, allocations: pathlib.Path) -> None:
    """Be the driver until SIGTERM."""
    config = DriverConfig(name, root, cdi, apis=("v1",))

    async def allocate(claim: AskedClaim) -> list[PreparedDevice]:
        text = (allocations / f"{claim.uid}.json").read_text(encoding="utf-8")
        return [PreparedDevice(config.pool, device) for device in json.loads(text)[name]]

    # What an earlier life of this driver left when it was killed in the middle of a file.
    for left in (*cdi.glob(f".k8s.{name}*.tmp"), *config.plugin_dir.glob(".*.tmp")):
        left.unlink()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    driver = SimulatedDriver(config, on_crash=lambda: os.kill(os.getpid(), signal.SIGKILL), allocate=allocate)
    async with ControlServer(driver, str(config.plugin_dir / "control.sock"), ended.set), driver:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await ended.wait()


def main(argv: t.Sequence[str]) -> None:
    """Entry point."""
    name, *paths = argv
    asyncio.run(serve(name, *map(pathlib.Path, paths)))


if __name__ == "__main__":
    main(sys.argv[1:])
