# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A node to which things happen, what its agent tells of them, and how it fares."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import pathlib
import random
import re
import time
import typing as t
import urllib.error
import urllib.request

from ansible_collections.nodeops.dra.tests.soak.agent_load import Load, Pod
from ansible_collections.nodeops.dra.tests.soak.agent_node import DRIVERS, SoakNode, until
from ansible_collections.nodeops.dra.tests.soak.agent_proxy import Proxy

GPU, NIC = DRIVERS[:2]


@dataclasses.dataclass
class Row:
    """What a scenario showed."""

    health: str = ""
    metrics: str = ""
    findings: str = ""
    recovered: float | None = None
    memory: list[float] = dataclasses.field(default_factory=list)


class ChaosNode:
    """Made by `chaos_node`. ``row`` is filled as the agent is looked at; ``lines`` is its log."""

    def __init__(self, node: SoakNode, load: Load, proxy: Proxy) -> None:
        self.node, self.load, self.proxy = node, load, proxy
        self.row = Row()
        self.lines: list[str] = []
        self._mended: float | None = None
        node.heard = self.lines.append

    # What it does

    async def add_pod(self, driver: str = GPU) -> Pod:
        """A pod with a claim of one driver."""
        claim = await self.load.make_claim(driver)
        assert claim is not None, f"{driver} has no device left"
        return await self.load.make_pod(claim)

    async def are_prepared(self, pods: t.Iterable[Pod]) -> bool:
        """Whether the containers of all these pods can be started."""
        return False not in [await self.is_prepared(pod) for pod in pods]

    async def is_prepared(self, pod: Pod) -> bool:
        """Whether the containers of a pod can be started."""
        metadata = {"namespace": "default", "name": pod.name, "uid": pod.uid}
        with contextlib.suppress(Exception):
            async with self.node.local() as client:
                return bool((await client.resources({"metadata": metadata}))["main"])
        return False

    async def until_prepared(self, *pods: Pod) -> None:
        """Wait until all of them can be started."""
        for pod in pods:
            await until(lambda pod=pod: self.is_prepared(pod), f"pod {pod.name} is prepared")  # type: ignore[misc]

    # What it tells

    async def get(self, path: str) -> tuple[int, str]:
        """What its HTTP server answers."""

        def ask() -> tuple[int, str]:
            try:
                opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
                with opener.open(self.node.url + path, timeout=30) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read().decode()

        return await asyncio.to_thread(ask)

    async def until_seen(self, check: str, metric: str, code: str, patience: float = 90.0) -> None:
        """Wait until a health check, a metric and a finding tell that something is wrong.

        ``check`` is the begin of a line of /readyz?verbose, ``metric`` a whole line of /metrics.
        """

        async def health() -> str:
            _status, text = await self.get("/readyz?verbose")
            return next((line for line in text.splitlines() if line.startswith(check)), "")

        async def metrics() -> str:
            _status, text = await self.get("/metrics")
            return metric if metric in text.splitlines() else ""

        async def findings() -> str:
            async with self.node.local() as client:
                return next((one["text"] for one in await client.findings() if one["code"] == code), "")

        self.row.health = await until(health, f"a line {check} in /readyz?verbose", patience)
        self.row.metrics = await until(metrics, f"{metric} in /metrics")
        text = await until(findings, f"a finding {code}")
        self.row.findings = f"{code}: {text}"
        assert (await self.get("/healthz"))[0] == 200, "a restart would not mend it"

    def mended(self) -> None:
        """From now on the agent can recover."""
        self._mended = time.monotonic()

    async def until_content(self) -> None:
        """Wait until everything is as it should be, and note how long after `mended` that is."""
        told: list[str] = []

        async def content() -> bool:
            status, health = await self.get("/readyz?verbose")
            async with self.node.local() as client:
                findings = await client.findings()
            told[:] = [health, *(one["text"] for one in findings)]
            return status == 200 and "[!]" not in health and not findings

        try:
            await until(content, "the agent is content")
        except AssertionError as error:
            raise AssertionError(f"{error}: {told}") from error
        self.row.recovered = None if self._mended is None else time.monotonic() - self._mended

    def memory(self) -> float:
        """Note the MB of memory that the agent uses now."""
        assert self.node.agent is not None
        status = pathlib.Path(f"/proc/{self.node.agent.child.pid}/status").read_text(encoding="ascii")
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        self.row.memory.append(int(found[1]) / 1024)
        return self.row.memory[-1]

    def said(self, text: str) -> list[str]:
        """Lines of its log with this text."""
        return [line for line in self.lines if text in line]


@contextlib.asynccontextmanager
async def chaos_node(
    root: pathlib.Path, *, environment: t.Mapping[str, str] | None = None
) -> t.AsyncIterator[ChaosNode]:
    """A node with two drivers and three prepared pods, whose agent reaches the API server through a proxy."""
    node = SoakNode(root, DRIVERS[:2])
    node.settings = {"kubernetes": {"kubeconfig": str(root / "kubeconfig.agent")}, "log": {"repeat_window": 60}}
    node.environment = dict(environment or {})
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(node.end_all)
        await asyncio.gather(node.start_api(), *map(node.start_driver, node.names))
        config = json.loads(node.kubeconfig.read_text(encoding="utf-8"))
        cluster = config["clusters"][0]["cluster"]
        proxy = await stack.enter_async_context(Proxy(int(cluster["server"].rpartition(":")[2])))
        cluster["server"] = f"http://127.0.0.1:{proxy.own_port}"
        (root / "kubeconfig.agent").write_text(json.dumps(config), encoding="utf-8")
        client = await stack.enter_async_context(node.cluster())
        made = ChaosNode(node, Load(node, client, random.Random(1)), proxy)
        await node.start_agent()
        await node.until_ready()
        await made.until_prepared(*[await made.add_pod(driver) for driver in (GPU, NIC, GPU)])
        await made.until_content()
        made.memory()
        yield made
