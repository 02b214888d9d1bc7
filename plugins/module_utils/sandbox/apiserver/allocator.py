# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Plays the scheduler: allocates claims, reserves them for their pods, binds the pods to nodes.

Without Node objects the node names of ResourceSlices count as nodes, and ``sandbox-node`` when there are none either.
Only pods with the scheduler name ``default-scheduler`` are looked at. Nothing is known here of cpu, memory, affinity
or priorities. For classic claims (v1alpha2) the allocator plays the driver's controller as well, see
``classic_allocation``.
"""

from __future__ import annotations

import asyncio
import logging
import typing as t

from ...checkpoint.errors import DraError
from . import classic_allocation as classic
from .cluster import Cluster
from .devices import DeviceId, Inventory, Node, Search, devices_of, selector_matches
from .journal import ACTOR
from .json_text import Json
from .pod_rules import claim_source
from .store import ADDED, DELETED, Change, Collection, Record

_LOG = logging.getLogger(__name__)
FINALIZER = "resource.kubernetes.io/delete-protection"
OLD_FINALIZER = "dra.k8s.io/delete-protection"
DEFAULT_NODE = "sandbox-node"
SCHEDULER = "default-scheduler"
_DONE = ("Succeeded", "Failed")


class _NotYetError(DraError):
    """A pod that has to wait, and why."""


class Allocator:
    """Listens to the store and schedules in a task of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        kinds = {(kind.group, kind.kind): kind for kind in cluster.table.kinds}
        self._pods = kinds["", "Pod"]
        self._nodes = kinds["", "Node"]
        self._claims = kinds["resource.k8s.io", "ResourceClaim"]
        self._slices = kinds.get(("resource.k8s.io", "DeviceClass")) and next(
            kind for kind in cluster.table.kinds if kind.kind == "ResourceSlice" and not kind.storage
        )
        self._classes = kinds.get(("resource.k8s.io", "DeviceClass"))
        self._contexts = kinds.get(("resource.k8s.io", "PodSchedulingContext"))
        self.taken: dict[DeviceId, str] = {}
        self._devices_of_claim: dict[str, list[DeviceId]] = {}
        self._inventory: Inventory | None = None
        self._queue: dict[tuple[str, str], None] = {}
        self._unschedulable: set[str] = set()
        self._waiting_for_claim: dict[str, set[str]] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        for kind in (self._pods, self._claims):
            collection = cluster.collection(kind)
            for record in collection.in_namespace():
                self._notice(collection, Change(record.version, ADDED, record, None))
        cluster.store.listeners.append(self._notice)

    async def run(self) -> None:
        """Work until cancelled."""
        ACTOR.set("scheduler")
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                what, key = next(iter(self._queue))
                del self._queue[what, key]
                try:
                    self._handle(what, key)
                except DraError as error:
                    _LOG.warning("allocation failed object=%s error=%s", key, error)
                await asyncio.sleep(0)
            self._idle.set()

    async def settled(self) -> None:
        """Wait until nothing is left to do."""
        await self._idle.wait()

    def _add(self, what: str, key: str) -> None:
        self._queue[what, key] = None
        self._idle.clear()
        self._wake.set()

    def _notice(self, collection: Collection, change: Change) -> None:
        name, key = collection.name, change.record.key
        if name == self._pods.collection:
            if change.kind != DELETED and not change.record.fields["spec.nodeName"] and not change.record.deleting:
                self._add("pod", key)
            elif change.kind == DELETED:
                self._unschedulable.discard(key)
        elif name == self._claims.collection:
            self._note_claim(change)
        elif self._contexts and name == self._contexts.collection and change.kind != DELETED:
            self._add("context", key)
        elif any(kind and name == kind.collection for kind in (self._slices, self._classes, self._nodes)):
            self._inventory = None
            self._retry()

    def _retry(self) -> None:
        for key in sorted(self._unschedulable):
            self._add("pod", key)

    def _note_claim(self, change: Change) -> None:
        key = change.record.key
        before = self._devices_of_claim.pop(key, [])
        for device in before:
            self.taken.pop(device, None)
        if change.kind != DELETED:
            results = _results(change.record.object())
            now = [_device_id(result) for result in results if not result.get("adminAccess")]
            if now:
                self._devices_of_claim[key] = now
                self.taken.update(dict.fromkeys(now, key))
            if classic.needs_driver(change.record.object()):
                self._add("claim", key)
        if before and key not in self._devices_of_claim:
            self._retry()
        for pod in self._waiting_for_claim.pop(key, ()):
            self._add("pod", pod)

    def _handle(self, what: str, key: str) -> None:
        if what == "pod":
            record = self._cluster.find(self._pods, key)
            if record is not None:
                self._schedule(record)
        elif what == "claim":
            record = self._cluster.find(self._claims, key)
            if record is not None:
                classic.drive(self._cluster, self._claims, record)
        elif self._contexts is not None:
            record = self._cluster.find(self._contexts, key)
            if record is not None:
                classic.follow_context(self._cluster, self._pods, self._claims, record)

    def _schedule(self, record: Record) -> None:
        pod = record.object()
        spec = pod["spec"]
        done = pod.get("status", {}).get("phase") in _DONE
        if spec.get("nodeName") or record.deleting or done or spec.get("schedulerName") != SCHEDULER:
            self._unschedulable.discard(record.key)
            return
        if spec.get("schedulingGates"):
            return
        try:
            claims = self._claims_of(record, pod)
            node, results = self._place(claims)
        except DraError as error:
            self._unschedulable.add(record.key)
            self._tell_pod(record.key, str(error))
            return
        self._unschedulable.discard(record.key)
        for claim in claims:
            self._reserve(claim, record, node, results.get(claim.key))
        self._bind(record.key, node)

    def _claims_of(self, record: Record, pod: Json) -> list[Record]:
        """The claims of a pod. Raises while one is missing."""
        statuses = {entry["name"]: entry for entry in pod.get("status", {}).get("resourceClaimStatuses", ())}
        found = []
        for reference in pod["spec"].get("resourceClaims", ()):
            name = claim_source(reference).get("resourceClaimName")
            if not name:
                entry = statuses.get(reference["name"])
                if entry is None:
                    raise _NotYetError(f'waiting for the ResourceClaim of "{reference["name"]}" to be created')
                name = entry.get("resourceClaimName")
                if not name:
                    continue  # not needed
            key = f"{record.namespace}/{name}"
            claim = self._cluster.find(self._claims, key)
            if claim is None or claim.deleting:
                self._waiting_for_claim.setdefault(key, set()).add(record.key)
                raise _NotYetError(f'resourceclaim "{name}" {"is being deleted" if claim else "not found"}')
            found.append(claim)
        return found

    def _place(self, claims: t.Sequence[Record]) -> tuple[str, dict[str, Json]]:
        """A node for all claims, and new allocations by claim key. Raises when there is none."""
        bodies = {claim.key: claim.object() for claim in claims}
        limit = self._cluster.settings.reserved_for_limit
        for key, body in bodies.items():
            status = body.get("status", {})
            if len(status.get("reservedFor", ())) >= limit:
                raise _NotYetError(f"resourceclaim {key} is in use by {limit} consumers already")
            if status.get("reservedFor") and not classic.can_be_shared(body):
                raise _NotYetError(f"resourceclaim {key} is in use")
        inventory = self._inventory_now()
        reasons = "no node has the devices"
        for node in self._all_nodes(inventory):
            results = self._allocations(inventory, node, bodies)
            if results is not None:
                return node.name, results
        raise _NotYetError(f"0 nodes are available: {reasons}.")

    def _allocations(self, inventory: Inventory, node: Node, bodies: t.Mapping[str, Json]) -> dict[str, Json] | None:
        promised: set[DeviceId] = set()
        made: dict[str, Json] = {}
        for key, body in bodies.items():
            allocation = body.get("status", {}).get("allocation")
            if allocation is not None:
                selector = allocation.get("nodeSelector") or allocation.get("availableOnNodes")
                if not selector_matches(selector, node):
                    return None
                continue
            if "resourceClassName" in body["spec"]:
                made[key] = classic.allocation(self._cluster, body, node.name)
                continue
            results = Search(inventory, node, promised).results(body["spec"])
            if results is None:
                return None
            promised |= {_device_id(result) for result in results if not result.get("adminAccess")}
            made[key] = self._allocation(inventory, node, body["spec"], results)
        return made

    def _allocation(self, inventory: Inventory, node: Node, spec: Json, results: list[Json]) -> Json:
        allocation: Json = {"devices": {"results": results}}
        config = []
        for request in spec["devices"].get("requests") or ():
            part = request.get("exactly") or {}
            device_class = inventory.classes.get(part.get("deviceClassName", ""), {})
            for entry in device_class.get("spec", {}).get("config") or ():
                config.append({"source": "FromClass", "requests": [request["name"]], **entry})
        config += [{"source": "FromClaim", **entry} for entry in spec["devices"].get("config") or ()]
        if config:
            allocation["devices"]["config"] = config
        local = {device.identity: device.node or device.selector for device in inventory.devices}
        if any(local.get(_device_id(result)) for result in results):
            field = {"key": "metadata.name", "operator": "In", "values": [node.name]}
            allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        return allocation

    def _inventory_now(self) -> Inventory:
        if self._inventory is None:
            slices: list[Json] = []
            classes: dict[str, Json] = {}
            if self._slices and self._classes:
                slices = [record.object() for record in self._cluster.collection(self._slices).in_namespace()]
                for record in self._cluster.collection(self._classes).in_namespace():
                    classes[record.name] = record.object()
            self._inventory = Inventory(devices_of(slices), classes, self.taken)
        return self._inventory

    def _all_nodes(self, inventory: Inventory) -> list[Node]:
        records = self._cluster.collection(self._nodes).in_namespace()
        if records:
            return [
                Node(record.name, record.labels) for record in records if record.fields["spec.unschedulable"] != "true"
            ]
        names = sorted({device.node for device in inventory.devices if device.node}) or [DEFAULT_NODE]
        return [Node(name) for name in names]

    def _reserve(self, claim: Record, pod: Record, node: str, allocation: Json | None) -> None:
        """First the finalizer, then the status, as the scheduler does it."""
        cluster, kind = self._cluster, self._claims
        body = claim.object()
        if allocation is not None:
            finalizer = self._finalizer(body, allocation)
            finalizers = body["metadata"].setdefault("finalizers", [])
            if finalizer not in finalizers:
                finalizers.append(finalizer)
                body = cluster.store.put(cluster.collection(kind), claim.key, body).object()
        status = body.setdefault("status", {})
        if allocation is not None:
            if "resourceClassName" in body["spec"]:
                status["driverName"] = allocation["resourceHandles"][0]["driverName"]
            status["allocation"] = allocation
        consumers = status.setdefault("reservedFor", [])
        if not any(consumer.get("uid") == pod.uid for consumer in consumers):
            consumers.append({"resource": "pods", "name": pod.name, "uid": pod.uid})
        _LOG.debug("reserved claim=%s pod=%s node=%s", claim.key, pod.key, node)
        cluster.store.put(cluster.collection(kind), claim.key, body)

    def _finalizer(self, claim: Json, allocation: Json) -> str:
        if "resourceClassName" in claim["spec"]:
            return classic.finalizer(allocation["resourceHandles"][0]["driverName"])
        return FINALIZER if self._cluster.settings.played_release >= (1, 31, 0) else OLD_FINALIZER

    def _bind(self, key: str, node: str) -> None:
        record = self._cluster.get(self._pods, key)
        pod = record.object()
        pod["spec"]["nodeName"] = node
        self._set_condition(pod, "True", "", "")
        self._cluster.store.put(self._cluster.collection(self._pods), key, pod)

    def _tell_pod(self, key: str, message: str) -> None:
        record = self._cluster.find(self._pods, key)
        if record is None:
            return
        pod = record.object()
        if self._set_condition(pod, "False", "Unschedulable", message):
            self._cluster.store.put(self._cluster.collection(self._pods), key, pod)

    def _set_condition(self, pod: Json, status: str, reason: str, message: str) -> bool:
        conditions = pod["status"].setdefault("conditions", [])
        before = next((part for part in conditions if part.get("type") == "PodScheduled"), None)
        made: Json = {"type": "PodScheduled", "status": status, "lastProbeTime": None}
        made["lastTransitionTime"] = self._cluster.settings.now()
        if reason:
            made.update(reason=reason, message=message)
        if before is not None:
            if (before["status"], before.get("message", "")) == (status, message):
                return False
            conditions.remove(before)
        conditions.append(made)
        return True


def _results(claim: Json) -> list[Json]:
    return (claim.get("status", {}).get("allocation") or {}).get("devices", {}).get("results") or []


def _device_id(result: Json) -> DeviceId:
    return result.get("driver", ""), result.get("pool", ""), result.get("device", "")
