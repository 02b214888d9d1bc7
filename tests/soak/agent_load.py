# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Users and a scheduler at the API server of one node: pods with claims come and go, and devices are used again.

A device is free for the next claim as soon as its claim is gone from the API, whatever the node is still doing: so it
is in a cluster after a pod was deleted by force.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import random
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.agent.claim_request import (
    PREPARED,
    UNPREPARED,
    ClaimRequest,
)
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of
from ansible_collections.nodeops.dra.tests.soak.agent_node import NODE, Json, SoakNode

NS = "default"
DEVICES = 12
MOST_PODS = 10
SERVICES = 4
"""Claims that a service holds, through the local API."""
POD, CLAIM = resource_of("Pod"), resource_of("ResourceClaim")
FAULTS = (
    "slow:seconds=0.3,times=2",
    "slow_after:seconds=0.2,times=1",
    "claim_error:times=1",
    "error:times=1,code=RESOURCE_EXHAUSTED",
    "error_after:times=1",
    "skip:times=1",
    "nonsense:times=1",
    "hang:times=1",
    "hang_after:times=1",
    "crash:times=1",
    "crash_after:times=1",
)


@dataclasses.dataclass
class Claim:
    """A claim: ``devices`` are pairs of driver and name, ``pods`` the UIDs that it is or was reserved for."""

    name: str
    uid: str
    devices: tuple[tuple[str, str], ...]
    pods: set[str] = dataclasses.field(default_factory=set)
    living: set[str] = dataclasses.field(default_factory=set)


@dataclasses.dataclass
class Pod:
    """A pod. It has ended from the moment at which somebody began to end it."""

    name: str
    uid: str
    claims: tuple[str, ...]
    ended: bool = False


class Load:
    """What everybody does to the node, and what they know. ``pods`` and ``claims`` are all that ever were, by UID."""

    def __init__(self, node: SoakNode, client: KubeClient, chance: random.Random, *, devices: int = DEVICES) -> None:
        self.node, self._client, self._chance = node, client, chance
        self.pods: dict[str, Pod] = {}
        self.claims: dict[str, Claim] = {}
        self.services: dict[str, bool | None] = {}
        self.faults = 0
        self._free = {name: [f"dev-{number}" for number in range(devices)] for name in node.names}
        self._number = 0

    @property
    def living(self) -> list[Pod]:
        """Pods that run, or are to run."""
        return [pod for pod in self.pods.values() if not pod.ended]

    async def step(self) -> None:
        """One thing that somebody does."""
        crowd = len(self.living)
        actions: list[tuple[float, t.Callable[[], t.Awaitable[None]]]] = [
            (6 if crowd < MOST_PODS else 0, self.add_pod),
            (2 if crowd else 0, self.finish_pod),
            (1 + crowd / 4 if crowd else 0, self.delete_pod),
            (1, self.change_service),
            (0.5, self.add_fault),
        ]
        weights = [weight for weight, _action in actions]
        (action,) = self._chance.choices([action for _weight, action in actions], weights)
        await action()

    # Pods

    async def add_pod(self) -> None:
        """A pod on the node, with new claims or a part in one that another pod uses."""
        shared = [one for one in self.claims.values() if one.living]
        made = []
        for _one in range(self._chance.choice((1, 1, 2))):
            made.append(await self.make_claim(*self._chance.sample(self.node.names, self._chance.choice((1, 1, 1, 2)))))
        used = [one for one in made if one is not None]
        if shared and self._chance.random() < 0.3:
            used.append(self._chance.choice(shared))
        if used:
            await self.make_pod(*used)

    async def make_pod(self, *used: Claim) -> Pod:
        """A pod that uses claims, which are reserved for it."""
        self._number += 1
        refs = [{"name": one.name, "resourceClaimName": one.name} for one in used]
        container = {"name": "main", "image": "i", "resources": {"claims": [{"name": one.name} for one in used]}}
        spec = {"nodeName": NODE, "containers": [container], "resourceClaims": refs}
        made = await self._client.create(POD, {"metadata": {"name": f"p{self._number}"}, "spec": spec}, NS)
        pod = Pod(str(made["metadata"]["name"]), str(made["metadata"]["uid"]), tuple(one.uid for one in used))
        self.pods[pod.uid] = pod
        for claim in used:
            claim.pods.add(pod.uid)
            claim.living.add(pod.uid)
            await self._write_status(claim)
        return pod

    async def make_claim(self, *drivers: str) -> Claim | None:
        """A claim with a device of each driver; None when one of them has none left."""
        if not all(self._free[name] for name in drivers):
            return None
        requests = [{"name": f"r{n}", "exactly": {"deviceClassName": "any"}} for n, _one in enumerate(drivers)]
        self._number += 1
        name = f"c{self._number}"
        body = {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}
        made = await self._client.create(CLAIM, body, NS)
        # The device that became free last goes first: its former claim may still be held on the node.
        claim = Claim(name, str(made["metadata"]["uid"]), tuple((one, self._free[one].pop()) for one in drivers))
        self.claims[claim.uid] = claim
        self._allocate(claim.uid, claim.devices)
        return claim

    def _allocate(self, uid: str, devices: t.Iterable[tuple[str, str]]) -> None:
        path = self.node.allocations / f"{uid}.json"
        path.write_text(json.dumps({driver: [device] for driver, device in devices}), encoding="utf-8")

    async def _write_status(self, claim: Claim) -> None:
        reserved = [{"resource": "pods", "name": self.pods[uid].name, "uid": uid} for uid in sorted(claim.living)]
        allocation = {"devices": {"results": _results(claim.devices)}}
        status = {"reservedFor": reserved, "allocation": allocation}
        await self._client.patch(CLAIM, {"status": status}, claim.name, NS, subresource="status")

    async def finish_pod(self) -> None:
        """The containers of a pod end."""
        pod = self._chance.choice(self.living)
        pod.ended = True
        phase = self._chance.choice(("Succeeded", "Failed"))
        await self._client.patch(POD, {"status": {"phase": phase}}, pod.name, NS, subresource="status")
        await self._leave(pod)
        if self._chance.random() < 0.5:
            await self._client.delete(POD, pod.name, NS, grace_period_seconds=0)

    async def delete_pod(self) -> None:
        """A pod is deleted by force."""
        await self.end_pod(self._chance.choice(self.living))

    async def end_pod(self, pod: Pod) -> None:
        """Delete a pod by force, and what of its claims nobody else uses."""
        pod.ended = True
        await self._client.delete(POD, pod.name, NS, grace_period_seconds=0)
        await self._leave(pod)

    async def _leave(self, pod: Pod) -> None:
        """The claims of a pod are for others, or they go."""
        for uid in pod.claims:
            claim = self.claims[uid]
            claim.living.discard(pod.uid)
            if claim.living:
                await self._write_status(claim)
                continue
            await self._client.delete(CLAIM, claim.name, NS, grace_period_seconds=0)
            for driver, device in claim.devices:
                self._free[driver].append(device)

    # Everybody else

    async def change_service(self) -> None:
        """A service takes a claim or gives it back, through the local API. None: nobody knows what came of it."""
        number = self._chance.randrange(SERVICES)
        await self.put_service(f"s-{number}", self._chance.random() < 0.6)

    async def put_service(self, uid: str, wanted: bool) -> None:
        """Bring one claim of a service to a state."""
        driver = self.node.names[int(uid[2:]) % len(self.node.names)]
        devices = ((driver, f"own-{uid}"),)
        if uid not in self.claims:
            self._allocate(uid, devices)
            self.claims[uid] = Claim(uid, uid, devices, {"holder:service"})
        body = {
            "metadata": {"namespace": "services", "name": uid, "uid": uid},
            "spec": {"devices": {"requests": [{"name": "r0", "exactly": {"deviceClassName": "any"}}]}},
            "status": {"allocation": {"devices": {"results": _results(devices)}}},
        }
        self.services[uid] = None
        request = ClaimRequest(PREPARED if wanted else UNPREPARED, claims=(body,), holder="service", timeout=3.0)
        with contextlib.suppress(DraError):  # it is dead, or a driver failed
            async with self.node.local() as client:
                await client.change(request)
            self.services[uid] = wanted

    async def add_fault(self) -> None:
        """A driver is slow, wrong, or about to die."""
        text = self._chance.choice(FAULTS)
        kind, _colon, rest = text.partition(":")
        values = dict(item.split("=") for item in rest.split(","))
        # After each start everything is prepared again: without a choice hardly a fault would meet an unprepare.
        values["method"] = self._chance.choice(("prepare", "unprepare"))
        with contextlib.suppress(DraError):  # it is dead
            await self.node.tell_driver(self._chance.choice(self.node.names), "fault", kind=kind, **values)
            self.faults += 1

    def needed(self) -> dict[str, Claim]:
        """What must be prepared when all is quiet, by UID: what living pods and services have."""
        wanted = {uid for pod in self.living for uid in pod.claims}
        wanted |= {uid for uid, is_held in self.services.items() if is_held}
        return {uid: self.claims[uid] for uid in wanted}


def _results(devices: t.Iterable[tuple[str, str]]) -> list[Json]:
    return [
        {"request": f"r{number}", "driver": driver, "pool": "pool-0", "device": device}
        for number, (driver, device) in enumerate(devices)
    ]
