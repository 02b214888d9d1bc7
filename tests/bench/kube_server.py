# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Answers from memory for the benchmark of the API layer: its cost is small and the same for every client.

Lists of ``count`` objects in pages, a watch that sends ``count`` events as fast as they are taken, and a small answer
for every other request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys

from aiohttp import web

MANAGED = [{"manager": "kube-scheduler", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {}}}]


def claim(number: int, version: int) -> dict[str, object]:
    """A generated, allocated and reserved claim as a real server stores it."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": f"p{number}",
        "uid": f"00000000-pod-{number:08}",
        "controller": True,
    }
    result = {"request": "gpu", "driver": "gpu.test.example", "pool": "node-1", "device": f"gpu-{number % 8}"}
    exactly = {"deviceClassName": "gpu.test.example", "allocationMode": "ExactCount", "count": 1}
    return {
        "metadata": {
            "name": f"p{number}-gpu-abcde",
            "generateName": f"p{number}-gpu-",
            "namespace": f"team-{number % 20}",
            "uid": f"00000000-claim-{number:08}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-11-30T15:12:08Z",
            "annotations": {"resource.kubernetes.io/pod-claim-name": "gpu"},
            "finalizers": ["resource.kubernetes.io/delete-protection"],
            "ownerReferences": [pod],
            "managedFields": MANAGED * 3,
        },
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        "status": {
            "allocation": {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": []}},
            "reservedFor": [{"resource": "pods", "name": pod["name"], "uid": pod["uid"]}],
        },
    }


def pod(number: int, version: int) -> dict[str, object]:
    """A pod without claims, with what every pod carries around."""
    container = {
        "name": "c",
        "image": "registry.test.example/app:1",
        "env": [{"name": f"E{i}", "value": "x"} for i in range(9)],
    }
    return {
        "metadata": {
            "name": f"p{number}",
            "namespace": f"team-{number % 20}",
            "uid": f"00000000-pod-{number:08}",
            "resourceVersion": str(version),
            "labels": {f"label-{i}": "value" for i in range(6)},
            "managedFields": MANAGED * 4,
        },
        "spec": {
            "nodeName": "node-1",
            "containers": [container] * 3,
            "tolerations": [{"key": "a", "operator": "Exists"}] * 3,
        },
        "status": {"phase": "Running", "conditions": [{"type": f"C{i}", "status": "True"} for i in range(5)]},
    }


class Server:
    """The answers."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pages: dict[tuple[str, int], list[bytes]] = {}
        self._events = b"".join(
            json.dumps({"type": "MODIFIED", "object": claim(number, count + number)}).encode() + b"\n"
            for number in range(1, min(count, 5000) + 1)
        )

    def pages(self, kind: str, limit: int) -> list[bytes]:
        """A list cut into pages, made once."""
        key = (kind, limit)
        if key not in self._pages:
            make = claim if kind == "resourceclaims" else pod
            found = []
            for start in range(0, self.count, limit):
                items = [make(number, number + 1) for number in range(start, min(start + limit, self.count))]
                token = str(start + limit) if start + limit < self.count else ""
                metadata = {"resourceVersion": str(self.count), "continue": token}
                found.append(json.dumps({"kind": "List", "metadata": metadata, "items": items}).encode())
            self._pages[key] = found
        return self._pages[key]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Any request."""
        kind = request.path.rsplit("/", 1)[-1]
        if request.method != "GET" or kind not in ("resourceclaims", "pods"):
            return web.Response(body=b'{"metadata":{"name":"c1"}}', content_type="application/json")
        if "watch" in request.query:
            response = web.StreamResponse()
            await response.prepare(request)
            with contextlib.suppress(ConnectionError):  # the client goes when it has seen enough
                for start in range(0, len(self._events), 1 << 16):
                    await response.write(self._events[start : start + (1 << 16)])
                await asyncio.Event().wait()
            return response
        limit = int(request.query.get("limit", self.count))
        page = int(request.query.get("continue", "0")) // limit
        return web.Response(body=self.pages(kind, limit)[page], content_type="application/json")


async def main(count: int) -> None:
    """Serve on a free port and print its number."""
    server = Server(count)
    for kind in ("resourceclaims", "pods"):
        server.pages(kind, 500)
    runner = web.ServerRunner(web.Server(server.handle, access_log=None))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    sys.stdout.write(f"{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
