# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Classic DRA (v1alpha2): the part of a driver's controller, which allocated claims on the control plane."""

from __future__ import annotations

from ...checkpoint.errors import DraError
from .cluster import Cluster
from .json_text import Json
from .kinds import Kind
from .pod_rules import claim_source
from .store import Record


def finalizer(driver: str) -> str:
    return f"{driver}/deletion-protection"


def is_classic(claim: Json) -> bool:
    return "resourceClassName" in claim["spec"]


def can_be_shared(claim: Json) -> bool:
    """Whether a further pod may use the claim: always for structured ones."""
    return not is_classic(claim) or bool((claim.get("status", {}).get("allocation") or {}).get("shareable"))


def needs_driver(claim: Json) -> bool:
    """Whether the driver has something to do on its own: immediate allocation, or deallocation."""
    if not is_classic(claim):
        return False
    status = claim.get("status", {})
    deleting = "deletionTimestamp" in claim["metadata"]
    if status.get("deallocationRequested") or (deleting and not status.get("reservedFor")):
        return bool(status.get("allocation") or claim["metadata"].get("finalizers"))
    return claim["spec"].get("allocationMode") == "Immediate" and not status.get("allocation") and not deleting


def _driver_of(cluster: Cluster, claim: Json) -> str:
    name = claim["spec"]["resourceClassName"]
    kind = next((kind for kind in cluster.table.kinds if kind.kind == "ResourceClass"), None)
    record = cluster.find(kind, name) if kind else None
    if record is None:
        raise DraError(f'resourceclass "{name}" not found.', "Create the ResourceClass.")
    return str(record.object().get("driverName", ""))


def allocation(cluster: Cluster, claim: Json, node: str) -> Json:
    """An allocation on a node; "" for all nodes. DraError when the class does not exist."""
    made: Json = {"resourceHandles": [{"driverName": _driver_of(cluster, claim), "data": "{}"}], "shareable": True}
    if node:
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        made["availableOnNodes"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return made


def _allocate(cluster: Cluster, kind: Kind, record: Record, node: str) -> None:
    claim = record.object()
    made = allocation(cluster, claim, node)
    driver = made["resourceHandles"][0]["driverName"]
    finalizers = claim["metadata"].setdefault("finalizers", [])
    if finalizer(driver) not in finalizers:
        finalizers.append(finalizer(driver))
    claim.setdefault("status", {}).update(driverName=driver, allocation=made)
    cluster.store.put(cluster.collection(kind), record.key, claim)


def drive(cluster: Cluster, kind: Kind, record: Record) -> None:
    """Do what `needs_driver` found."""
    claim = record.object()
    if not needs_driver(claim):
        return
    status = claim["status"]
    if not status.get("deallocationRequested") and "deletionTimestamp" not in claim["metadata"]:
        _allocate(cluster, kind, record, "")
        return
    driver = status.get("driverName", "")
    for name in ("allocation", "deallocationRequested", "driverName"):
        status.pop(name, None)
    metadata = claim["metadata"]
    metadata["finalizers"] = [name for name in metadata.get("finalizers", ()) if name != finalizer(driver)]
    if not metadata["finalizers"]:
        del metadata["finalizers"]
        if "deletionTimestamp" in metadata:
            cluster.store.remove(cluster.collection(kind), record.key)
            return
    cluster.store.put(cluster.collection(kind), record.key, claim)


def follow_context(cluster: Cluster, pods: Kind, claims: Kind, context: Record) -> None:
    """Allocate for the node that a PodSchedulingContext selects."""
    node = context.object().get("spec", {}).get("selectedNode")
    record = cluster.find(pods, context.key)
    if not node or record is None:
        return
    pod = record.object()
    statuses = {entry["name"]: entry for entry in pod.get("status", {}).get("resourceClaimStatuses", ())}
    for reference in pod["spec"].get("resourceClaims", ()):
        name = claim_source(reference).get("resourceClaimName")
        name = name or statuses.get(reference["name"], {}).get("resourceClaimName")
        claim = cluster.find(claims, f"{record.namespace}/{name}") if name else None
        if claim is None or claim.deleting:
            continue
        body = claim.object()
        if is_classic(body) and not body.get("status", {}).get("allocation"):
            _allocate(cluster, claims, claim, node)
