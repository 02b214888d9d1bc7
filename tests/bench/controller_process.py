# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A controller in a process of its own, with its clock, its CPU seconds and its memory.

Commands come as lines on standard input (``ready``, ``named N``, ``reserved N``, ``gone``), each answered with a line
of JSON when that state is reached.
"""

from __future__ import annotations

import asyncio
import json
import pathlib
import resource
import sys
import time
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.controller.controller import Controller
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.cluster import resolve
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import ConnectionOptions
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import Call
from ansible_collections.nodeops.dra.plugins.module_utils.kube.store import Store

Json = dict[str, t.Any]


class Counter:
    """Counts requests: those that a cluster has to do something for."""

    count = 0

    def requested(self, call: Call, _status: int, _seconds: float) -> None:
        """An exchange has ended."""
        if call.plural and call.verb not in ("list", "watch") and call.group != "authorization.k8s.io":
            self.count += 1

    def throttled(self, _call: Call, _seconds: float) -> None:
        """Nothing."""


def usage(counter: Counter) -> Json:
    """Clock, CPU seconds, requests, memory now and at its peak in MB."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    pages = int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return {
        "clock": time.monotonic(),
        "cpu": used.ru_utime + used.ru_stime,
        "requests": counter.count,
        "mb": pages * resource.getpagesize() / 1e6,
        "peak_mb": used.ru_maxrss * 1024 / 1e6,
    }


class Watcher:
    """Waits for states of the caches."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller

    def _store(self, kind: str) -> Store[Json]:
        assert self.controller.session is not None
        return self.controller.session.caches[""].stores[kind]

    async def full(self) -> None:
        """All caches are full."""
        await self.controller.wait_ready()

    async def ready(self) -> None:
        """All caches are full, and what was in them has been looked at."""
        await self.controller.wait_ready()
        await self.controller.drained()

    async def named(self, count: int) -> None:
        """So many pods have their claim named."""
        await self._until(
            lambda: sum(1 for pod in self._store("Pod") if "resourceClaimStatuses" in pod["status"]), count
        )

    async def reserved(self, count: int) -> None:
        """So many claims are reserved."""
        await self._until(
            lambda: sum(1 for claim in self._store("ResourceClaim") if claim.get("status", {}).get("reservedFor")),
            count,
        )

    async def gone(self) -> None:
        """There are no claims."""
        await self._until(lambda: -len(self._store("ResourceClaim")), 0)

    async def _until(self, count: t.Callable[[], int], wanted: int) -> None:
        while count() < wanted:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.2)


async def main(kubeconfig: str) -> None:
    """Work, and answer."""
    access = resolve(ConnectionOptions(kubeconfig=kubeconfig), {})
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    counter = Counter()
    async with KubeClient.connect(access, observer=counter) as client, Controller(client) as controller:
        watcher = Watcher(controller)
        while line := (await reader.readline()).decode().split():
            await getattr(watcher, line[0])(*map(int, line[1:]))
            sys.stdout.write(json.dumps(usage(counter)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
