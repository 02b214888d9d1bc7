# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Objects of the API for a single look: connected to on the first question, closed at the end."""

from __future__ import annotations

import contextlib
import typing as t

from ..kube.client import KubeClient
from ..kube.cluster import resolve
from ..kube.discovery import discover
from ..kube.options import options_from
from ..resource.view import JsonObject


class ApiObjects:
    """Fetches single objects and lists. Made by `connected`; every method raises `DraError`."""

    def __init__(self, options: t.Mapping[str, t.Any], stack: contextlib.AsyncExitStack) -> None:
        self._options = options
        self._stack = stack
        self._client: KubeClient | None = None
        self._kinds: t.Any = None

    async def fetch(self, kind: str, namespace: str, name: str) -> JsonObject:
        """One object as the API has it."""
        client = await self._connect()
        found: JsonObject = await client.get(self._kinds.resource(kind), name, namespace)
        return found

    async def slices_of(self, node_name: str) -> list[JsonObject]:
        """The ResourceSlices of one node."""
        await self._connect()
        field = "spec.nodeName" if self._kinds.claims.structured else "nodeName"
        return await self.list("ResourceSlice", field_selector=f"{field}={node_name}")

    async def list(self, kind: str, *, field_selector: str = "") -> list[JsonObject]:
        """All objects of a kind, in all namespaces. Read page by page, as many as there are."""
        client = await self._connect()
        return await client.list(self._kinds.resource(kind), field_selector=field_selector)

    async def _connect(self) -> KubeClient:
        if self._client is None:
            access = resolve(options_from(self._options))
            self._client = await self._stack.enter_async_context(KubeClient.connect(access))
            self._kinds = await discover(self._client)
        return self._client


@contextlib.asynccontextmanager
async def connected(options: t.Mapping[str, t.Any]) -> t.AsyncIterator[ApiObjects]:
    """The API that ``options`` (named as in kubernetes.core) lead to; nothing is sent before the first question."""
    async with contextlib.AsyncExitStack() as stack:
        yield ApiObjects(options, stack)
