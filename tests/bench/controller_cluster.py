# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Users, scheduler and nodes for the benchmark of the controller against a cluster; commands as for the embedded one.

Pods get a scheduler name that nobody answers to. A namespace is made for the run and deleted with its
end, when standard input is closed.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.cluster import resolve
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import ConnectionOptions
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of
from controller_server import ALLOCATION, FINALIZER, TEMPLATE, pod_body

Json = dict[str, t.Any]
PODS, CLAIMS, NAMESPACES = resource_of("Pod"), resource_of("ResourceClaim"), resource_of("Namespace")
AT_ONCE = 50


class Cluster:
    """The commands."""

    def __init__(self, client: KubeClient) -> None:
        self.client, self.namespace = client, f"nodeops-dra-bench-{secrets.token_hex(3)}"
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def setup(self) -> None:
        """Namespace and template."""
        await self.client.create(NAMESPACES, {"metadata": {"name": self.namespace}})
        template = {**TEMPLATE, "metadata": {"name": "t1"}}
        await self.client.create(resource_of("ResourceClaimTemplate"), template, self.namespace)

    async def _each(self, things: t.Iterable[t.Any], do: t.Callable[[t.Any], t.Awaitable[t.Any]]) -> None:
        async def one(thing: t.Any) -> None:
            async with self._turns:
                await do(thing)

        async with asyncio.TaskGroup() as group:
            for thing in things:
                group.create_task(one(thing))

    async def make(self, count: int) -> None:
        """Pods."""

        async def one(number: int) -> None:
            body = pod_body(f"p{number}")
            body["metadata"].pop("namespace")
            body["spec"]["automountServiceAccountToken"] = False
            await self.client.create(PODS, body, self.namespace)

        await self._each(range(count), one)

    async def allocate(self) -> None:
        """Each claim is allocated and reserved for its pod."""

        async def one(claim: Json) -> None:
            name, owner = claim["metadata"]["name"], claim["metadata"]["ownerReferences"][0]
            await self.client.patch(CLAIMS, {"metadata": {"finalizers": [FINALIZER]}}, name, self.namespace)
            consumer = {"resource": "pods", "name": owner["name"], "uid": owner["uid"]}
            status = {"status": {"allocation": ALLOCATION, "reservedFor": [consumer]}}
            await self.client.patch(CLAIMS, status, name, self.namespace, subresource="status")

        await self._each(await self.client.list(CLAIMS, self.namespace), one)

    async def finish(self) -> None:
        """All pods succeed."""

        async def one(pod: Json) -> None:
            status = {"status": {"phase": "Succeeded"}}
            await self.client.patch(PODS, status, pod["metadata"]["name"], self.namespace, subresource="status")

        await self._each(await self.client.list(PODS, self.namespace), one)

    async def usage(self) -> float:
        """What the cluster's own processes used is not known."""
        return 0.0

    async def remove(self) -> None:
        """The namespace with everything in it."""
        await self.client.delete(NAMESPACES, self.namespace)


async def main(kubeconfig: str) -> None:
    """Do what comes on standard input."""
    async with KubeClient.connect(resolve(ConnectionOptions(kubeconfig=kubeconfig), {}), timeout=120) as client:
        cluster = Cluster(client)
        sys.stdout.write("null\n")
        sys.stdout.flush()
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        try:
            while line := (await reader.readline()).decode().split():
                answer = await getattr(cluster, line[0])(*map(int, line[1:]))
                sys.stdout.write(json.dumps(answer) + "\n")
                sys.stdout.flush()
        finally:
            await cluster.remove()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
