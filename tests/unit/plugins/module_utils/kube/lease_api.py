# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A stub that keeps one Lease with optimistic concurrency, and notes who writes to claims while who holds it."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import time
import typing as t

from aiohttp import web
from ansible_collections.nodeops.dra.plugins.module_utils.kube.access import ClusterAccess
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.transport import Transport

from .stub_api import Json, StubApi, failure


@dataclasses.dataclass(frozen=True)
class Write:
    """A write to a claim: by whom, when, and who held the lease then."""

    writer: str
    at: float
    holder: str


class LeaseApi(StubApi):
    """``before`` is called for each request and may answer itself; ``after`` may spoil an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.lease: Json | None = None
        self.version = 100
        self.writes: list[Write] = []
        self.before: t.Callable[[web.Request], web.StreamResponse | None] = lambda request: None
        self.after: t.Callable[[web.Request], t.Awaitable[None]] = _nothing
        self.otherwise = self._answer

    @property
    def holder(self) -> str:
        """Who holds the lease by its record."""
        return (self.lease or {}).get("spec", {}).get("holderIdentity", "")

    def writes_of(self, writer: str) -> list[Write]:
        """What one of them wrote."""
        return [write for write in self.writes if write.writer == writer]

    def hold(self, holder: str, duration: int = 15, **more: t.Any) -> None:
        """Put a record there."""
        self.version += 1
        self.lease = {
            "metadata": {"name": "ctl", "namespace": "team-a", "resourceVersion": str(self.version)},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": duration, "renewTime": "x", **more},
        }

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        early = self.before(request)
        if early is not None:
            return early
        answer = self._lease(request) if "/leases" in request.path else self._claim(request)
        await self.after(request)
        return answer

    def _claim(self, request: web.Request) -> web.Response:
        body = self.bodies[-1] or {}
        self.writes.append(Write(body.get("writer", ""), time.monotonic(), self.holder))
        return web.json_response({"metadata": {"name": "c1"}})

    def _lease(self, request: web.Request) -> web.Response:
        body = copy.deepcopy(json.loads(request._read_bytes or b"{}")) if request.method != "GET" else {}
        if request.method == "POST":
            if self.lease is not None:
                return failure(409, "AlreadyExists", name="ctl")
            self.lease = body
        elif self.lease is None:
            return failure(404, "NotFound", 'leases.coordination.k8s.io "ctl" not found', name="ctl")
        if request.method == "PATCH":
            if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
                return failure(409, "Conflict", name="ctl")
            self.lease["spec"].update(body["spec"])
        if request.method != "GET":
            self.version += 1
            self.lease["metadata"]["resourceVersion"] = str(self.version)
        return web.json_response(self.lease)


async def _nothing(request: web.Request) -> None:
    return None


@contextlib.asynccontextmanager
async def lease_api() -> t.AsyncIterator[LeaseApi]:
    """A running one."""
    api = LeaseApi()
    await api.start()
    try:
        yield api
    finally:
        await api.stop()


@contextlib.asynccontextmanager
async def client_of(api: StubApi, **settings: t.Any) -> t.AsyncIterator[KubeClient]:
    """A client with connections of its own."""
    async with Transport(ClusterAccess(api.url, "a test"), max_connections=settings.pop("max_connections", 10)) as made:
        yield KubeClient(made, rand=lambda: 0.5, **settings)
