# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The embedded API server for the benchmark of the controller, with users, scheduler and nodes inside.

What they do is done in the store itself, without requests: the requests that are counted are the controller's. Commands
come as lines on standard input, answers go out as lines of JSON.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.server import ApiServer
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.settings import ServerSettings

Json = dict[str, t.Any]
NS = "bench"
FINALIZER = "resource.kubernetes.io/delete-protection"
ALLOCATION = {
    "devices": {
        "results": [{"request": "gpu", "driver": "gpu.test.example", "pool": "node-1", "device": "dev-0"}],
        "config": [],
    },
    "nodeSelector": {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]
    },
}
# What a pod of a real cluster carries around, so that reading it costs what it costs there.
CONTAINER: Json = {
    "name": "c",
    "image": "registry.test.example/app:1",
    "env": [{"name": f"E{number}", "value": "x"} for number in range(9)],
    "resources": {"claims": [{"name": "gpu"}]},
}


def pod_body(name: str) -> Json:
    """A pod with a claim from template t1."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NS, "labels": {f"label-{number}": "value" for number in range(6)}},
        "spec": {
            "containers": [CONTAINER],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t1"}],
            "schedulerName": "bench.test.example",
        },
    }


TEMPLATE: Json = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "t1", "namespace": NS},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.test.example"}}]}}},
}


class Cluster:
    """Users, scheduler and nodes."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.store = server.cluster.store
        self.pods = server.cluster.collection(server.served("v1", "pods").kind)
        self.claims = server.cluster.collection(server.served("resource.k8s.io/v1", "resourceclaims").kind)

    async def setup(self) -> None:
        """The template."""
        self.server.seed("resource.k8s.io/v1", "resourceclaimtemplates", TEMPLATE, NS)

    async def make(self, count: int) -> None:
        """Pods."""
        for number in range(count):
            self.server.seed("v1", "pods", pod_body(f"p{number}"), NS)
            if number % 20 == 0:
                await asyncio.sleep(0)

    async def plain(self, count: int) -> None:
        """Pods without claims."""
        for number in range(count):
            body = pod_body(f"plain{number}")
            del body["spec"]["resourceClaims"]
            body["spec"]["containers"] = [{**CONTAINER, "resources": {}}]
            self.server.seed("v1", "pods", body, NS)
            if number % 20 == 0:
                await asyncio.sleep(0)

    async def allocate(self) -> None:
        """Each claim is allocated and reserved for its pod, and the pod bound."""
        for number, record in enumerate(list(self.claims.records.values())):
            body = record.object()
            owner = body["metadata"]["ownerReferences"][0]
            body["metadata"]["finalizers"] = [FINALIZER]
            self.store.put(self.claims, record.key, body)
            body = self.claims.records[record.key].object()
            consumer = {"resource": "pods", "name": owner["name"], "uid": owner["uid"]}
            body["status"] = {"allocation": ALLOCATION, "reservedFor": [consumer]}
            self.store.put(self.claims, record.key, body)
            pod = self.pods.records[f"{NS}/{owner['name']}"].object()
            pod["spec"]["nodeName"] = "node-1"
            self.store.put(self.pods, f"{NS}/{owner['name']}", pod)
            if number % 20 == 0:
                await asyncio.sleep(0)

    async def finish(self) -> None:
        """All pods succeed."""
        for number, record in enumerate(list(self.pods.records.values())):
            body = record.object()
            body["status"]["phase"] = "Succeeded"
            self.store.put(self.pods, record.key, body)
            if number % 20 == 0:
                await asyncio.sleep(0)

    async def usage(self) -> float:
        """CPU seconds so far."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime


async def main() -> None:
    """Serve; say where; do what comes on standard input."""
    settings = ServerSettings(namespaces=("default", NS), history_limit=200_000)
    async with ApiServer(settings) as server:
        cluster = Cluster(server)
        sys.stdout.write(json.dumps(server.kubeconfig()) + "\n")
        sys.stdout.flush()
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := (await reader.readline()).decode().split():
            answer = await getattr(cluster, line[0])(*map(int, line[1:]))
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
