# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The pods of this node that have claims, followed through the API, and objects that go with them.

Everything is told apart from "not known": while the API server is away, the last state stays what it was, and nobody
takes a pod for gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.findings import Finding
from ..kube.backoff import Backoff
from ..kube.client import JSON_PATCH, KubeClient
from ..kube.cluster import resolve
from ..kube.discovery import ServedApis, discover
from ..kube.object_index import Codec
from ..kube.options import ConnectionOptions
from ..kube.reflector import Reflector
from ..kube.shapes import Buffer, decode_any
from ..kube.store import Store
from ..resource.view import JsonObject
from .api_claims import is_alive
from .claim_request import identity

log = logging.getLogger(__name__)

FIELD_MANAGER = "nodeops-dra-agent"
"""Who writes, for the API server's book on fields."""

BROKEN_AFTER = 10.0
"""Seconds of failing requests after which the API counts as not followed. A server that restarts is back by then."""

SILENT_AFTER = 120.0
"""Seconds without news after which the API counts as not followed. A watch brings bookmarks about once a minute."""


def has_claims(pod: JsonObject) -> bool:
    """Whether a pod uses claims; others are not kept."""
    extended = (pod.get("status") or {}).get("extendedResourceClaimStatus")
    return bool((pod.get("spec") or {}).get("resourceClaims") or extended)


def _decode(raw: Buffer) -> JsonObject | None:
    pod = decode_any(raw)
    if not isinstance(pod, dict):
        raise ValueError("a pod that is no JSON object")
    return pod if has_claims(pod) else None


class NodePods:
    """``store`` holds the pods; `run` keeps it equal to the API, which is reached by ``options``."""

    def __init__(self, node_name: str, options: ConnectionOptions) -> None:
        self.node_name = node_name
        self.store: Store[JsonObject] = Store(Codec(_decode))
        self._options = options
        self._client: KubeClient | None = None
        self._kinds: ServedApis | None = None
        self._reflector: Reflector[JsonObject] | None = None
        self._problem: DraError | None = None
        self._synced = False

    # What is known

    @property
    def synced(self) -> bool:
        """Whether all pods of the node were seen at least once."""
        return self._synced or (self._reflector is not None and self._reflector.synced.is_set())

    @property
    def lag(self) -> float:
        """Seconds since the last news of the API."""
        return 0.0 if self._reflector is None else self._reflector.lag()

    def problem(self) -> str:
        """Why the pods are not followed now, empty when they are."""
        if self._problem is not None:
            return str(self._problem)
        if not self.synced:
            error = self._reflector.stats.last_error if self._reflector is not None else ""
            return f"the pods of node {self.node_name} were not read yet. {error}".rstrip()
        broken = 0.0 if self._reflector is None else self._reflector.broken()
        if self.lag > SILENT_AFTER or broken > BROKEN_AFTER:
            error = self._reflector.stats.last_error if self._reflector is not None else ""
            return f"no news of the pods of node {self.node_name} for {self.lag:.0f} s. {error}".rstrip()
        return ""

    def findings(self) -> list[Finding]:
        """The problem as a finding, if there is one."""
        problem = self.problem()
        if not problem:
            return []
        text = f"The API is not followed: {problem}"
        remedy = "Look at the API server, the network and the credentials of the agent. It goes on by itself."
        return [Finding("api_not_followed", "error", f"node {self.node_name}", text, remedy)]

    def find(self, uid: str, namespace: str, name: str) -> JsonObject | None:
        """A pod by its UID, or by namespace and name if that is empty."""
        pod = self.store.by_uid(uid) if uid else self.store.get(name, namespace)
        if pod is not None and name and identity(pod)[1:] != (namespace, name):
            return None
        return pod

    def alive(self) -> list[JsonObject]:
        """All pods that may still run."""
        return [pod for pod in self.store if is_alive(pod)]

    def active(self) -> set[str]:
        """UIDs of all pods that may still run."""
        return {identity(pod)[0] for pod in self.alive()}

    def missing(self) -> str:
        """Why pods may be missing, empty once all were seen."""
        return "" if self.synced else self.problem()

    async def fetch(self, kind: str, namespace: str, name: str) -> JsonObject:
        """One object as the API has it now (a `claim_request.Fetch`)."""
        client, kinds = self._connected(f"{kind} {namespace}/{name} cannot be fetched", kind)
        found: JsonObject = await client.get(kinds.resource(kind), name, namespace)
        return found

    async def patch_status(self, pod: JsonObject, operations: t.Sequence[JsonObject]) -> JsonObject:
        """Change the status of a pod by a JSON patch; the pod as it is then. Raises `DraError`."""
        _uid, namespace, name = identity(pod)
        client, kinds = self._connected(f"The status of Pod {namespace}/{name} cannot be written", "Pod")
        patched: JsonObject = await client.patch(
            kinds.resource("Pod"),
            list(operations),
            name,
            namespace,
            kind=JSON_PATCH,
            subresource="status",
            field_manager=FIELD_MANAGER,
        )
        return patched

    def _connected(self, what: str, kind: str) -> tuple[KubeClient, ServedApis]:
        if self._client is None or self._kinds is None:
            why = self.problem() or "there is no connection to the API"
            raise DraError(
                f"{what}: {why}.",
                "It is tried again; look at the API server and the agent's credentials.",
                kind=kind,
            )
        return self._client, self._kinds

    # Work

    async def run(self) -> t.NoReturn:
        """Follow the pods until cancelled; failures are waited out."""
        backoff = Backoff(0.2, 30.0)
        while True:
            try:
                await self._follow(backoff)
            except DraError as error:
                delay = backoff.next()
                if self._problem is None or self._problem.message != error.message:
                    log.warning("API cannot be used retry_in=%.1f error=%s", delay, error)
                self._problem = error
            await asyncio.sleep(delay)

    async def _follow(self, backoff: Backoff) -> t.NoReturn:
        async with contextlib.AsyncExitStack() as stack:
            access = await asyncio.to_thread(resolve, self._options)
            client = await stack.enter_async_context(KubeClient.connect(access))
            kinds = await discover(client)
            self._client, self._kinds, self._problem = client, kinds, None
            stack.callback(self._disconnected)
            self._reflector = Reflector(
                client, kinds.resource("Pod"), self.store, field_selector=f"spec.nodeName={self.node_name}"
            )
            backoff.reset()
            log.info("following pods node=%s api=%s version=%s", self.node_name, access.server, kinds.claims.name)
            await self._reflector.run()

    def _disconnected(self) -> None:
        self._synced = self.synced
        self._client = None
