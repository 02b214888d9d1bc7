# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""POST: new objects, bindings, evictions, access reviews."""

from __future__ import annotations

import typing as t

from . import intake, managed_fields, removal, rights
from .cluster import Answer, Cluster
from .failures import already_exists, bad_request, conflict
from .field_errors import invalid_object
from .json_text import Json, to_bytes
from .kinds import Kind
from .names import generated_name, metadata_errors
from .request import ApiRequest

_TRIES = 8
_NOT_FROM_CLIENTS = (
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "resourceVersion",
    "uid",
    "creationTimestamp",
    "generation",
    "managedFields",
)


def create(cluster: Cluster, request: ApiRequest, data: bytes) -> Answer:
    """A POST on a collection, or on a pod's binding or eviction."""
    value = intake.decode(request, data)
    if request.subresource == "binding":
        return bind(cluster, request, value)
    if request.subresource == "eviction":
        return removal.evict(cluster, request, value)
    cleaned, warnings = intake.clean(cluster, request, intake.check_type(request, value))
    if request.served.kind.kind == "SelfSubjectAccessReview":
        cleaned["status"] = rights.review(request.user, cleaned.get("spec", {}))
        return cluster.answer_of(cleaned, request.served, 201)
    return create_object(cluster, request, cleaned, warnings)


def writer(cluster: Cluster, request: ApiRequest) -> managed_fields.Writer:
    """Who writes, for the records of field owners."""
    return managed_fields.Writer(
        request.manager, request.served.version_name, request.subresource, cluster.settings.now()
    )


def create_object(
    cluster: Cluster,
    request: ApiRequest,
    cleaned: Json,
    warnings: t.Sequence[str] = (),
    entries: list[Json] | None = None,
) -> Answer:
    """Store a new object. ``entries`` are the records of field owners when an apply creates it."""
    served, kind = request.served, request.served.kind
    _prepare_metadata(cluster, request, cleaned)
    context = cluster.context(request.user, request.verb, request.namespace)
    if kind.status and not kind.created_with_status:
        cleaned.pop("status", None)
    stored = served.form.write(cleaned, None)
    kind.default(stored, context)
    if cluster.settings.managed_fields:
        if entries is None:
            view = cluster.view_of(stored, served)
            entries = managed_fields.after_update(
                [], cluster.zero(served), view, served.shape, writer(cluster, request)
            )
        if entries:
            stored["metadata"]["managedFields"] = entries
    kind.admit(stored, context)
    metadata = stored["metadata"]
    errors = metadata_errors(metadata, kind.namespaced, kind.label_name) + kind.validate(stored, context)
    if errors:
        raise invalid_object(kind.kind, kind.group, metadata.get("name", ""), errors)
    key = _free_key(cluster, kind, metadata)
    if request.dry_run:
        return cluster.answer_of(stored, served, 201, warnings)
    record = cluster.store.put(cluster.collection(kind), key, stored)
    return cluster.answer(record, served, 201, warnings)


def _prepare_metadata(cluster: Cluster, request: ApiRequest, cleaned: Json) -> None:
    kind = request.served.kind
    metadata = cleaned["metadata"]
    if metadata.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    for name in _NOT_FROM_CLIENTS:
        metadata.pop(name, None)
    if kind.namespaced:
        if metadata.get("namespace", request.namespace) != request.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = request.namespace
        cluster.need_namespace(kind, request.namespace, metadata.get("name", ""))
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = generated_name(metadata["generateName"], cluster.settings.random)
        metadata["name"] = _another_name(cluster, kind, metadata)
    metadata["uid"] = cluster.new_uid()
    metadata["creationTimestamp"] = cluster.settings.now()
    if kind.generation:
        metadata["generation"] = 1


def _key(kind: Kind, metadata: Json) -> str:
    return f"{metadata['namespace']}/{metadata['name']}" if kind.namespaced else t.cast(str, metadata["name"])


def _another_name(cluster: Cluster, kind: Kind, metadata: Json) -> str:
    """A generated name that is taken is made up again, as often as Kubernetes does it."""
    records = cluster.collection(kind).records
    name = metadata["name"]
    for _try in range(_TRIES - 1):
        if _key(kind, {**metadata, "name": name}) not in records:
            break
        name = generated_name(metadata["generateName"], cluster.settings.random)
    return t.cast(str, name)


def _free_key(cluster: Cluster, kind: Kind, metadata: Json) -> str:
    key = _key(kind, metadata)
    if key in cluster.collection(kind).records:
        raise already_exists(kind.group, kind.plural, metadata["name"])
    return key


def bind(cluster: Cluster, request: ApiRequest, value: t.Any) -> Answer:
    """A pod gets its node, once."""
    kind = request.served.kind
    record = cluster.get(kind, request.key)
    pod = record.object()
    target = value.get("target", {}) if isinstance(value, dict) else {}
    node = target.get("name", "")
    if not node:
        raise bad_request("Binding.target.name is required")
    if record.deleting:
        raise conflict(
            "", "pods/binding", record.name, f"pod {record.name} is being deleted, cannot be assigned to a host"
        )
    if pod["spec"].get("nodeName"):
        why = f'pod {record.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
        raise conflict("", "pods/binding", record.name, why)
    pod["spec"]["nodeName"] = node
    conditions = [part for part in pod["status"].get("conditions", ()) if part.get("type") != "PodScheduled"]
    conditions.append(
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": cluster.settings.now(),
        }
    )
    pod["status"]["conditions"] = conditions
    if not request.dry_run:
        cluster.store.put(cluster.collection(kind), record.key, pod)
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return Answer(201, to_bytes(status))
