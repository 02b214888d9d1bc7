# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the API layer costs: first list, watch, objects in memory, requests, queue; beside the official typed client.

The server answers from memory in a process of its own, each measurement runs in a process of its own too, so that
memory is that of one thing. CPU seconds are those of the client alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import time
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.kube.access import ClusterAccess
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.object_index import codec_for
from ansible_collections.nodeops.dra.plugins.module_utils.kube.reflector import Reflector
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of
from ansible_collections.nodeops.dra.plugins.module_utils.kube.store import Store
from ansible_collections.nodeops.dra.plugins.module_utils.kube.workqueue import WorkQueue

HERE = pathlib.Path(__file__).resolve()
Json = dict[str, t.Any]
CLAIMS, PODS = resource_of("ResourceClaim"), resource_of("Pod")
COUNT = 20_000
REQUESTS = 3_000


class Meta(t.TypedDict, total=False):
    """What a controller keeps of metadata."""

    name: str
    namespace: str
    uid: str
    resourceVersion: str
    deletionTimestamp: str
    annotations: dict[str, str]
    finalizers: list[str]
    ownerReferences: list[dict[str, t.Any]]


class Claim(t.TypedDict, total=False):
    """What a controller keeps of a claim."""

    metadata: Meta
    status: dict[str, t.Any]


class PodSpec(t.TypedDict, total=False):
    """What a controller keeps of a pod's spec."""

    resourceClaims: list[dict[str, str]]


class Pod(t.TypedDict, total=False):
    """What a controller keeps of a pod."""

    metadata: Meta
    spec: PodSpec


def memory() -> float:
    """Resident MB now."""
    text = pathlib.Path("/proc/self/statm").read_text(encoding="ascii")
    return int(text.split()[1]) * resource.getpagesize() / 1e6


def cpu() -> float:
    """CPU seconds so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def reflect(client: KubeClient, kind: str) -> Json:
    """The first list, and for claims the events behind it."""
    keep_pod = codec_for(Pod, keep=lambda pod: bool(pod.get("spec", {}).get("resourceClaims")))
    codec: t.Any = codec_for(Claim) if kind == "claims" else keep_pod
    store: Store[t.Any] = Store(codec, {"owner": lambda obj: [o["uid"] for o in obj["metadata"]["ownerReferences"]]})
    reflector = Reflector(client, CLAIMS if kind == "claims" else PODS, store)
    await client.path("/version")  # imports and connection are there
    before, started, used = memory(), time.perf_counter(), cpu()
    task = asyncio.ensure_future(reflector.run())
    await reflector.synced.wait()
    result: Json = {"list_s": time.perf_counter() - started, "list_cpu": cpu() - used, "objects": len(store)}
    result["mb"] = memory() - before
    if kind == "claims":
        wanted = min(COUNT, 5000)
        started, used = time.perf_counter(), cpu()
        while reflector.stats.events < wanted:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.001)
        result.update(events=wanted / (time.perf_counter() - started), event_us=(cpu() - used) / wanted * 1e6)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return result


async def requests(client: KubeClient, workers: int) -> Json:
    """Small patches, so many at a time."""
    await client.path("/version")
    started, used = time.perf_counter(), cpu()

    async def work() -> None:
        for _unused in range(REQUESTS // workers):
            await client.patch(CLAIMS, {"status": {"reservedFor": None}}, "c1", "team-a", subresource="status")

    await asyncio.gather(*(work() for _unused in range(workers)))
    seconds = time.perf_counter() - started
    return {"rate": REQUESTS / seconds, "us": (cpu() - used) / REQUESTS * 1e6}


async def queue(_client: KubeClient) -> Json:
    """Add, get, done."""
    keys: WorkQueue[int] = WorkQueue()
    started = time.perf_counter()
    for round_ in range(10):
        for key in range(5_000):
            keys.add(key + round_)
        while len(keys):
            keys.done(await keys.get())
    return {"rate": 50_000 / (time.perf_counter() - started)}


async def official(client: KubeClient) -> Json:
    """The same list through the official client's typed API, for a tenth of the objects."""
    from kubernetes.aio.client import ApiClient, Configuration, ResourceV1Api

    async with ApiClient(Configuration(host=client.transport.access.server)) as api:
        claims = ResourceV1Api(api)
        await claims.list_resource_claim_for_all_namespaces(limit=500)
        before, started, used = memory(), time.perf_counter(), cpu()
        kept: list[t.Any] = []
        token = None
        while len(kept) < COUNT // 10:
            page = await claims.list_resource_claim_for_all_namespaces(limit=500, _continue=token)
            kept.extend(page.items)
            token = page.metadata._continue
        return {
            "list_s": time.perf_counter() - started,
            "list_cpu": cpu() - used,
            "objects": len(kept),
            "mb": memory() - before,
        }


CASES: dict[str, t.Callable[[KubeClient], t.Awaitable[Json]]] = {
    "claims": lambda client: reflect(client, "claims"),
    "pods": lambda client: reflect(client, "pods"),
    "one": lambda client: requests(client, 1),
    "fifty": lambda client: requests(client, 50),
    "queue": queue,
    "official": official,
}


async def measure(case: str, url: str) -> Json:
    """One case in this process."""
    async with KubeClient.connect(ClusterAccess(url, "the benchmark"), timeout=60) as client:
        return await CASES[case](client)


def run() -> t.Iterator[str]:
    """The lines of the table."""
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[2] / ".build")}
    server = subprocess.Popen(
        [sys.executable, str(HERE.with_name("kube_server.py")), str(COUNT)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        found: dict[str, Json] = {}
        for case in CASES:
            made = subprocess.run(
                [sys.executable, str(HERE), case, url], stdout=subprocess.PIPE, text=True, check=True, env=environment
            )
            found[case] = json.loads(made.stdout)
    finally:
        server.kill()
        server.communicate()
    yield from table(found)


def table(found: dict[str, Json]) -> t.Iterator[str]:
    """The measurements as text."""
    claims, pods, typed = found["claims"], found["pods"], found["official"]
    yield f"{'list, 500 a page':<34}{'objects':>9}{'s':>8}{'CPU s':>8}{'MB kept':>9}{'B an object':>13}"
    for name, case in (
        ("claims, small dicts, two indexes", claims),
        ("pods without claims, all dropped", pods),
        ("claims, official typed client", typed),
    ):
        each = f"{case['mb'] * 1e6 / case['objects']:.0f}" if case["objects"] else "-"
        listed = COUNT if name.startswith("pods") else case["objects"]
        yield f"{name:<34}{listed:>9}{case['list_s']:>8.2f}{case['list_cpu']:>8.2f}{case['mb']:>9.1f}{each:>13}"
    yield f"{'watch events':<34}{claims['events']:>9.0f} a second, {claims['event_us']:.0f} us CPU each"
    for name, case in (("patches, one at a time", found["one"]), ("patches, fifty at a time", found["fifty"])):
        yield f"{name:<34}{case['rate']:>9.0f} a second, {case['us']:.0f} us CPU each"
    yield f"{'work queue add, get, done':<34}{found['queue']['rate']:>9.0f} a second"


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(measure(sys.argv[1], sys.argv[2]))))
