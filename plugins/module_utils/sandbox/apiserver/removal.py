# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""DELETE: grace, finalizers, preconditions, propagation, whole collections; and the eviction of pods."""

from __future__ import annotations

import dataclasses
import datetime
import typing as t

from .cluster import Answer, Cluster
from .failures import ApiError, bad_request, details_of, qualified
from .field_errors import invalid_object, not_supported
from .json_text import Json, from_bytes, to_bytes
from .kinds import Kind
from .reading import list_text, selection_of
from .request import ApiRequest
from .settings import time_text
from .store import Record

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
POLICIES = ("Foreground", "Background", "Orphan")
_DONE = ("Succeeded", "Failed")


@dataclasses.dataclass(frozen=True)
class Options:
    """How to delete. ``grace`` in seconds, None for the pod's own."""

    grace: int | None = None
    policy: str = "Background"
    uid: str = ""
    version: str = ""
    dry_run: bool = False


def options_of(request: ApiRequest, data: bytes) -> Options:
    """Options from the body and the query. ApiError 400 or 422 for nonsense."""
    body: t.Any = {}
    if data.strip():
        try:
            body = from_bytes(data)
        except ValueError as error:
            raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
        if not isinstance(body, dict):
            raise bad_request("couldn't get version/kind; json parse error: an object is needed")
    grace = body.get("gracePeriodSeconds", request.number("gracePeriodSeconds"))
    policy = body.get("propagationPolicy") or request.query.get("propagationPolicy") or ""
    if not policy:
        orphan = body.get("orphanDependents", request.flag("orphanDependents"))
        policy = "Orphan" if orphan else "Background"
    if policy not in POLICIES:
        raise _bad_option(not_supported("propagationPolicy", policy, POLICIES))
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
        raise bad_request("json: cannot unmarshal into Go struct field DeleteOptions.gracePeriodSeconds of type int64")
    if grace is not None and grace < 0:
        grace = 1
    conditions = body.get("preconditions") or {}
    dry_run = request.dry_run or body.get("dryRun") == ["All"]
    return Options(grace, policy, conditions.get("uid") or "", conditions.get("resourceVersion") or "", dry_run)


def _bad_option(error: t.Any) -> ApiError:
    return invalid_object("DeleteOptions", "meta.k8s.io", "", [error])


def delete(cluster: Cluster, request: ApiRequest, data: bytes) -> Answer:
    """A DELETE of one object."""
    options = options_of(request, data)
    kind = request.served.kind
    record = cluster.get(kind, request.key)
    stored, gone = delete_record(cluster, kind, record, options)
    if not gone or kind.returns_deleted:
        return cluster.answer_of(stored, request.served)
    details = details_of(kind.group, kind.plural, record.name, uid=record.uid)
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return Answer(200, to_bytes(status))


def evict(cluster: Cluster, request: ApiRequest, value: t.Any) -> Answer:
    """A POST on a pod's eviction. There are no disruption budgets here: a ``throttle`` fault stands for one."""
    eviction = value if isinstance(value, dict) else {}
    if eviction.get("kind", "Eviction") != "Eviction" or eviction.get("apiVersion", "policy/v1") != "policy/v1":
        raise bad_request(
            f'no kind "{eviction.get("kind", "")}" is registered for version "{eviction.get("apiVersion", "")}"'
        )
    if (eviction.get("metadata") or {}).get("name") != request.name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = options_of(request, to_bytes(eviction.get("deleteOptions") or {}))
    record = cluster.get(request.served.kind, request.key)
    delete_record(cluster, request.served.kind, record, options)
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return Answer(201, to_bytes(status))


def delete_collection(cluster: Cluster, request: ApiRequest, data: bytes) -> Answer:
    """A DELETE of everything that the selectors leave; answers with the list of what was there."""
    options = options_of(request, data)
    served, kind = request.served, request.served.kind
    chosen = selection_of(cluster, request)
    records = [record for record in cluster.collection(kind).in_namespace(request.namespace) if chosen(record)]
    tails = [cluster.tail(record, served) for record in records]
    for record in records:
        if cluster.find(kind, record.key) is record:
            delete_record(cluster, kind, record, options)
    metadata = to_bytes({"resourceVersion": str(cluster.store.version)})
    return Answer(200, list_text(served, metadata, tails))


def delete_record(cluster: Cluster, kind: Kind, record: Record, options: Options) -> tuple[Json, bool]:
    """Delete an object, or mark it when something has to happen first. Its last form, and whether it is gone.

    ApiError 409 when a precondition does not hold.
    """
    _check(kind, record, options)
    stored = record.object()
    metadata = stored["metadata"]
    finalizers = list(metadata.get("finalizers") or [])
    wanted = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(options.policy, "")
    # Without a collector nobody would take these finalizers away again.
    if cluster.settings.garbage_collection and record.uid in cluster.store.dependents:
        finalizers = [name for name in finalizers if name not in (FOREGROUND, ORPHAN)] + ([wanted] if wanted else [])
    grace = _grace(stored, options) if kind.kind == "Pod" else 0
    waits = bool(grace or finalizers or stored.get("spec", {}).get("finalizers"))
    if options.dry_run:
        return stored, not waits
    if waits or kind.kind == "Pod":
        record = _mark(cluster, kind, record, stored, grace, finalizers)
        stored = record.object()
    if waits:
        return stored, False
    gone = cluster.store.remove(cluster.collection(kind), record.key)
    return gone.object(), True


def _check(kind: Kind, record: Record, options: Options) -> None:
    name = qualified(kind.kind, kind.group)
    details = details_of(kind.group, kind.kind, record.name)
    prefix = f'Operation cannot be fulfilled on {name} "{record.name}": the '
    if options.uid and options.uid != record.uid:
        why = (
            f"UID in the precondition ({options.uid}) does not match the UID in record ({record.uid}). The object "
            "might have been deleted and then recreated"
        )
        raise ApiError(409, "Conflict", prefix + why, details)
    if options.version and options.version != str(record.version):
        why = (
            f"ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in record "
            f"({record.version}). The object might have been modified"
        )
        raise ApiError(409, "Conflict", prefix + why, details)


def _grace(pod: Json, options: Options) -> int:
    """Seconds that a pod gets; none when it never ran on a node or is done."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    grace = spec.get("terminationGracePeriodSeconds", 30) if options.grace is None else options.grace
    if not spec.get("nodeName") or status.get("phase") in _DONE:
        return 0
    return t.cast(int, grace)


def _mark(cluster: Cluster, kind: Kind, record: Record, stored: Json, grace: int, finalizers: list[str]) -> Record:
    """Set the deletion time stamp, unless that is done already and nothing is to be shortened."""
    metadata = stored["metadata"]
    marked = "deletionTimestamp" in metadata
    if (
        marked
        and metadata.get("deletionGracePeriodSeconds", 0) <= grace
        and finalizers == metadata.get("finalizers", [])
    ):
        return record
    ends = cluster.settings.clock() + datetime.timedelta(seconds=grace)
    if not marked or kind.kind == "Pod":
        metadata["deletionTimestamp"] = time_text(ends)
        metadata["deletionGracePeriodSeconds"] = grace
    if not marked and "generation" in metadata:
        metadata["generation"] += 1
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    if kind.kind == "Namespace":
        stored.setdefault("status", {})["phase"] = "Terminating"
    return cluster.store.put(cluster.collection(kind), record.key, stored)
