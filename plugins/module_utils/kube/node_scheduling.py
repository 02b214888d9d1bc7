# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Keep pods off a node, move those that are there, let them come back, and wait for its kubelet: through the API alone.

Follows kubectl's cordon, drain and uncordon. Pods are only ever evicted, so disruption budgets hold.
"""

from __future__ import annotations

import asyncio
import typing as t

from ..checkpoint.errors import DraError
from . import errors
from .client import KubeClient
from .cluster import resolve
from .options import options_from
from .pods_of_node import DrainPlan, DrainRules, NodePod, plan_drain
from .resources import call_for, resource_of

Json = dict[str, t.Any]

NODES, PODS, LEASES = resource_of("Node"), resource_of("Pod"), resource_of("Lease")
LEASE_NAMESPACE = "kube-node-lease"
STATES = ("cordoned", "drained", "uncordoned", "ready")
PAUSE = 2.0
"""Seconds between two looks, and between two tries to evict a pod that a disruption budget protects."""


async def schedule(options: t.Mapping[str, t.Any], *, check: bool, pause: float = PAUSE) -> Json:
    """Bring the node ``name`` into ``state``, one of STATES; other keys as in the options of the module.

    Nothing is written with ``check``, and nothing is waited for. Raises ``DraError``: the node is unknown, a pod must
    not be evicted, or ``timeout`` seconds were not enough.
    """
    async with KubeClient.connect(resolve(options_from(options))) as client:
        return await NodeWork(client, options["name"], options["timeout"], check=check, pause=pause).bring(options)


class NodeWork:
    """Work on one node with one deadline for all of it."""

    def __init__(self, client: KubeClient, name: str, timeout: float, *, check: bool, pause: float = PAUSE) -> None:
        self._client, self._name, self._timeout = client, name, timeout
        self._check, self._pause = check, pause
        self._deadline = asyncio.get_running_loop().time() + timeout

    async def bring(self, options: t.Mapping[str, t.Any]) -> Json:
        """See ``schedule``."""
        node = await self._node()
        state = options["state"]
        before = _is_cordoned(node)
        plan = DrainPlan((), (), ())
        if state == "drained":
            plan = await self._plan(
                DrainRules(options["claims_only"], options["force"], options["delete_emptydir_data"])
            )
        wanted = before if state == "ready" else state != "uncordoned"
        if wanted != before and not self._check:
            await self._client.patch(
                NODES, {"spec": {"unschedulable": True if wanted else None}}, self._name, field_manager="nodeops-dra"
            )
        if plan.evict and not self._check:
            await self._evict(plan.evict, options["grace_period"])
        if state == "ready" and not self._check:
            node = await self._ready(options["heartbeat"])
        pods = [str(pod) for pod in plan.evict]
        return {
            "changed": wanted != before or bool(plan.evict),
            "name": self._name,
            "unschedulable": wanted,
            "ready": _ready_status(node) == "True",
            "heartbeat": await self._heartbeat(node),
            "evicted": [pod.to_dict() for pod in plan.evict],
            "left": [pod.to_dict() for pod in plan.left],
            "before": {"unschedulable": before, "pods": pods},
            "after": {"unschedulable": wanted, "pods": []},
        }

    async def _node(self) -> Json:
        try:
            return t.cast("Json", await self._client.get(NODES, self._name))
        except errors.NotFoundError:
            raise DraError(
                f"The API server {self._client.transport.access.server} knows no node {self._name!r:.80}.",
                "Give the name that kubectl get nodes shows.",
                name=self._name,
            ) from None

    async def _heartbeat(self, node: Json) -> str:
        """When the kubelet last said that it lives, by its own clock: from its lease, else from its status."""
        try:
            lease = await self._client.get(LEASES, self._name, LEASE_NAMESPACE)
            renewed = str((lease.get("spec") or {}).get("renewTime") or "")
        except (errors.NotFoundError, errors.ForbiddenError):
            renewed = ""
        return renewed or str(_ready_condition(node).get("lastHeartbeatTime") or "")

    async def _ready(self, heartbeat: str | None) -> Json:
        """Wait for a kubelet that is ready, and that has said so after ``heartbeat``."""
        while True:
            node = await self._node()
            status = _ready_status(node)
            if status == "True" and await self._heartbeat(node) != (heartbeat or None):
                return node
            said = str(_ready_condition(node).get("message") or "")
            still = "it has not said anything since" if status == "True" else f"Ready is {status}: {said:.300}"
            await self._wait(
                f"Node {self._name} was not ready after {self._timeout:g} seconds: {still}.",
                "Look at the journal of its kubelet.",
                ready=status,
            )

    # Drain

    async def _pods(self) -> list[Json]:
        return await self._client.list(PODS, field_selector=f"spec.nodeName={self._name}")

    async def _plan(self, rules: DrainRules) -> DrainPlan:
        plan = plan_drain(await self._pods(), rules)
        if plan.refused:
            named = ", ".join(f"{pod}: {pod.reason}" for pod in plan.refused)
            raise DraError(
                f"Node {self._name} was not drained, nothing was changed: {named}.",
                "Remove these pods yourself, or set the option in brackets.",
                refused=[pod.to_dict() for pod in plan.refused],
            )
        return plan

    async def _evict(self, pods: t.Sequence[NodePod], grace_period: int | None) -> None:
        """Evict all, again where a budget says no, and wait until they are gone: by UID, so a successor counts not."""
        held: dict[str, str] = {}
        asked: set[str] = set()
        waiting = list(pods)
        while True:
            for pod in waiting:
                if pod.uid not in asked:
                    held.pop(pod.uid, None)
                    refusal = await self._evict_one(pod, grace_period)
                    if refusal:
                        held[pod.uid] = refusal
                    else:
                        asked.add(pod.uid)
            here = {str(pod["metadata"].get("uid")) for pod in await self._pods()}
            waiting = [pod for pod in waiting if pod.uid in here]
            if not waiting:
                return
            named = ", ".join(f"{pod} ({held.get(pod.uid, 'still terminating')})" for pod in waiting)
            await self._wait(
                f"Node {self._name} was not drained after {self._timeout:g} seconds, "
                f"{len(waiting)} of {len(pods)} pods are still there: {named}.",
                "The node stays cordoned. Look at these pods and their disruption budgets, then run it again.",
                waiting=[pod.to_dict() for pod in waiting],
            )

    async def _evict_one(self, pod: NodePod, grace_period: int | None) -> str:
        """Ask for an eviction; the server's words if a disruption budget does not allow it now, else empty."""
        options: Json = {"preconditions": {"uid": pod.uid}}
        if grace_period is not None:
            options["gracePeriodSeconds"] = grace_period
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": options,
        }
        call = call_for(PODS, "create", pod.namespace, pod.name, "eviction")
        try:
            await self._client.without_limits().request(call, body=body)
        except errors.TooManyRequestsError as error:
            return str(error.facts.get("server_message") or error.message)
        except (errors.NotFoundError, errors.ConflictError):
            return ""  # it is gone, or another pod has its name now
        return ""

    async def _wait(self, message: str, hint: str, **facts: t.Any) -> None:
        """Pause before the next look, or raise when there is no time for it."""
        if asyncio.get_running_loop().time() + self._pause > self._deadline:
            raise DraError(message, hint, name=self._name, timeout=self._timeout, **facts)
        await asyncio.sleep(self._pause)


def _is_cordoned(node: Json) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def _ready_condition(node: Json) -> Json:
    found = (node.get("status") or {}).get("conditions") or ()
    return next((one for one in found if one.get("type") == "Ready"), {})


def _ready_status(node: Json) -> str:
    return str(_ready_condition(node).get("status") or "Unknown")
