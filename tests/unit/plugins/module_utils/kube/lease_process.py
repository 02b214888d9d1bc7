# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A process that writes all the time while it holds a lease: the patient of the freezing test."""

from __future__ import annotations

import asyncio
import sys

from ansible_collections.nodeops.dra.plugins.module_utils.kube.access import ClusterAccess
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.fence import Fence
from ansible_collections.nodeops.dra.plugins.module_utils.kube.lease import Lease, LeaseSettings
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of


async def main(url: str, identity: str, duration: float) -> None:
    """Hold the lease and write."""
    claims = resource_of("ResourceClaim")
    settings = LeaseSettings(duration=duration, renew_deadline=duration * 0.75, retry=duration * 0.1)
    async with KubeClient.connect(ClusterAccess(url, "a test"), tries=1) as client:

        async def work(fence: Fence) -> None:
            fenced = client.with_fence(fence)

            async def write() -> None:
                while True:
                    await fenced.patch(claims, {"writer": identity}, "c1", "team-a")
                    await asyncio.sleep(0.02)

            await asyncio.gather(write(), write())

        await Lease(client, "team-a", "ctl", identity=identity, settings=settings).run(work)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
