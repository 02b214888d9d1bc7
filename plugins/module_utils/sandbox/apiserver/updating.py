# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""PUT and PATCH: objects that change."""

from __future__ import annotations

import dataclasses
import typing as t

from . import intake, managed_fields
from .cluster import Answer, Cluster
from .creation import create_object, writer
from .failures import MODIFIED, bad_request, conflict, unsupported_media_type
from .field_errors import FieldError, forbidden, invalid, invalid_object, required
from .json_text import Json, from_bytes
from .names import immutable_errors, metadata_errors
from .patches import json_patch, merge_patch
from .request import ApiRequest
from .store import Record
from .strategic_patch import strategic_patch

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)

# Metadata that only the server sets.
_KEPT = (
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "generateName",
    "selfLink",
)


def update(cluster: Cluster, request: ApiRequest, data: bytes) -> Answer:
    """A PUT on an object or its status."""
    kind = request.served.kind
    cleaned, warnings = intake.clean(cluster, request, intake.check_type(request, intake.decode(request, data)))
    metadata = cleaned["metadata"]
    if not metadata.get("name"):
        raise bad_request("the name of the object (based on URL) was undeterminable: name must be provided")
    if metadata["name"] != request.name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({request.name})"
        )
    if metadata.get("namespace", request.namespace) != request.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if kind.create_on_update and not request.subresource and cluster.find(kind, request.key) is None:
        metadata.pop("resourceVersion", None)
        return create_object(cluster, request, cleaned, warnings)
    record = cluster.get(kind, request.key)
    if not kind.unconditional_update and not metadata.get("resourceVersion"):
        error = invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid_object(kind.kind, kind.group, request.name, [error])
    return _Replacement(cluster, request, record).put(cleaned, warnings)


def patch(cluster: Cluster, request: ApiRequest, data: bytes) -> Answer:
    """A PATCH of any of the four types."""
    kind = request.served.kind
    if request.content_type not in PATCH_TYPES:
        raise unsupported_media_type(PATCH_TYPES)
    if request.content_type == APPLY_PATCH:
        return _apply(cluster, request, data)
    if request.query.get("force"):
        error = forbidden("force", "may not be specified for non-apply patch")
        raise invalid_object("PatchOptions", "meta.k8s.io", "", [error])
    record = cluster.get(kind, request.key)
    try:
        value = from_bytes(data)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from None
    live = cluster.view(record, request.served)
    if request.content_type == JSON_PATCH:
        patched = json_patch(live, value)
    elif not isinstance(value, dict):
        raise bad_request("error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}")
    elif request.content_type == MERGE_PATCH:
        patched = merge_patch(live, value)
    else:
        patched = strategic_patch(live, value, request.served.shape)
    cleaned, warnings = intake.clean(cluster, request, intake.check_type(request, patched))
    return _Replacement(cluster, request, record).put(cleaned, warnings)


def _apply(cluster: Cluster, request: ApiRequest, data: bytes) -> Answer:
    served, kind = request.served, request.served.kind
    if not request.query.get("fieldManager"):
        error = required("fieldManager", "is required for apply patch")
        raise invalid_object("PatchOptions", "meta.k8s.io", "", [error])
    try:
        value = intake.check_type(request, from_bytes(data))
    except ValueError as error:
        raise bad_request(f"error decoding YAML: only its JSON subset is understood here: {error}") from None
    if (value.get("metadata") or {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    config, warnings = intake.clean(cluster, request, value)
    if config["metadata"].setdefault("name", request.name) != request.name:
        raise bad_request(
            f"the name of the object ({config['metadata']['name']}) does not match the name on the URL ({request.name})"
        )
    config = _own_part(config, kind.status, request.subresource, kind.status_keeps_metadata)
    record = cluster.find(kind, request.key) if not request.subresource else cluster.get(kind, request.key)
    live = cluster.view(record, served) if record else None
    entries = live["metadata"].pop("managedFields", []) if live else []
    result, after = managed_fields.after_apply(
        entries, live, config, served.shape, writer(cluster, request), request.flag("force")
    )
    if record is None:
        result["metadata"].pop("uid", None)
        return create_object(cluster, request, result, warnings, after)
    return _Replacement(cluster, request, record).put(result, warnings, after)


def _own_part(config: Json, has_status: bool, subresource: str, metadata_stays: bool) -> Json:
    """The part of an apply configuration that its path may set."""
    if not has_status:
        return config
    if not subresource:
        return {name: value for name, value in config.items() if name != "status"}
    metadata = config["metadata"]
    if metadata_stays:
        metadata = {
            name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion") if name in metadata
        }
    return {"metadata": metadata, **({"status": config["status"]} if "status" in config else {})}


@dataclasses.dataclass
class _Replacement:
    """One object on its way from an old version to a new one."""

    cluster: Cluster
    request: ApiRequest
    record: Record

    def put(self, cleaned: Json, warnings: t.Sequence[str], entries: list[Json] | None = None) -> Answer:
        """Check and store. ``entries`` are the records of field owners when an apply made ``cleaned``."""
        cluster, request, record = self.cluster, self.request, self.record
        served, kind = request.served, request.served.kind
        self._check_preconditions(cleaned["metadata"])
        old = record.object()
        context = cluster.context(request.user, request.verb, request.namespace)
        given_entries = cleaned["metadata"].get("managedFields")
        stored = self._reset(served.form.write(cleaned, old), old)
        kind.default(stored, context)
        if request.subresource and kind.drop:
            kind.drop(stored, old, context)
        errors = self._errors(stored, old)
        if errors:
            raise invalid_object(kind.kind, kind.group, request.name, errors)
        if kind.generation and stored.get("spec") != old.get("spec"):
            stored["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        if cluster.settings.managed_fields:
            self._own(stored, old, given_entries, entries)
        if stored == old:
            return cluster.answer(record, served, 200, warnings)
        if request.dry_run:
            return cluster.answer_of(stored, served, 200, warnings)
        if self._is_last_step(stored):
            cluster.store.remove(cluster.collection(kind), record.key)
            return cluster.answer_of(stored, served, 200, warnings)
        made = cluster.store.put(cluster.collection(kind), record.key, stored)
        return cluster.answer(made, served, 200, warnings)

    def _check_preconditions(self, metadata: Json) -> None:
        kind, record = self.request.served.kind, self.record
        version = metadata.get("resourceVersion")
        if version and version != str(record.version):
            raise conflict(kind.group, kind.plural, record.name, MODIFIED)
        uid = metadata.get("uid")
        if uid and uid != record.uid:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {record.uid}"
            raise conflict(kind.group, kind.plural, record.name, why)

    def _reset(self, stored: Json, old: Json) -> Json:
        """Put back what this path must not change."""
        kind, status = self.request.served.kind, bool(self.request.subresource)
        before = old["metadata"]
        if status:
            new_status = stored.get("status")
            metadata = before if kind.status_keeps_metadata else stored["metadata"]
            stored = {**old, "metadata": dict(metadata)}
            if new_status is not None:
                stored["status"] = new_status
            else:
                stored.pop("status", None)
        elif kind.status:
            if "status" in old:
                stored["status"] = old["status"]
            else:
                stored.pop("status", None)
        metadata = stored["metadata"]
        for name in (*_KEPT, "resourceVersion", "managedFields"):
            if name in before:
                metadata[name] = before[name]
            else:
                metadata.pop(name, None)
        if status and not kind.status_keeps_metadata:
            for name in ("ownerReferences", "finalizers"):
                metadata.pop(name, None)
                if name in before:
                    metadata[name] = before[name]
        return stored

    def _errors(self, stored: Json, old: Json) -> list[FieldError]:
        kind, request = self.request.served.kind, self.request
        context = self.cluster.context(request.user, request.verb, request.namespace)
        metadata, before = stored["metadata"], old["metadata"]
        if request.subresource:
            return kind.compare_status(stored, old, context)
        errors = metadata_errors(metadata, kind.namespaced, kind.label_name) + immutable_errors(metadata, before)
        if "deletionTimestamp" in before:
            known = before.get("finalizers") or []
            added = [name for name in metadata.get("finalizers") or () if name not in known]
            if added:
                shown = "[]string{" + ", ".join(f'"{name}"' for name in added) + "}"
                text = f"no new finalizers can be added if the object is being deleted, found new finalizers {shown}"
                errors.append(forbidden("metadata.finalizers", text))
        errors += kind.compare(stored, old, context)
        if not errors and {**stored, "metadata": None} != {**old, "metadata": None}:
            errors += kind.validate(stored, context)
        return errors

    def _own(self, stored: Json, old: Json, given: t.Any, entries: list[Json] | None) -> None:
        """Write down who owns what now."""
        cluster, served = self.cluster, self.request.served
        metadata = stored["metadata"]
        before = metadata.get("managedFields") or []
        if entries is None:
            if given is not None and all(not entry for entry in given):
                before = []  # An empty list is how clients forget all owners.
            view = cluster.view_of(stored, served)
            old_view = old if served.form.is_stored else cluster.view(self.record, served)
            entries = managed_fields.after_update(before, old_view, view, served.shape, writer(cluster, self.request))
        if entries:
            metadata["managedFields"] = entries
        else:
            metadata.pop("managedFields", None)

    @staticmethod
    def _is_last_step(stored: Json) -> bool:
        """Whether an object that is being deleted has nothing left to wait for."""
        metadata = stored["metadata"]
        if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
            return False
        return not metadata.get("deletionGracePeriodSeconds") and not stored.get("spec", {}).get("finalizers")
