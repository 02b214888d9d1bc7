# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Defaults, admission and validation of pods and pod groups, as far as claims and their life cycle need it."""

from __future__ import annotations

import typing as t

from . import field_errors as fe
from .container_status_rules import default_container_statuses, health_errors
from .json_text import Json
from .names import label_errors, subdomain_errors
from .write_context import WriteContext

_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_TOLERATED = ("not-ready", "unreachable")
_MUTABLE_SPEC = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates", "nodeName")
_UPDATE_TEXT = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)


def default_pod(pod: Json, _context: WriteContext) -> None:
    spec = pod.setdefault("spec", {})
    for name in _CONTAINER_LISTS:
        for container in spec.get(name) or ():
            _default_container(container)
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("enableServiceLinks", True)
    status = pod.setdefault("status", {})
    for condition in status.get("conditions", ()):
        condition.setdefault("lastProbeTime", None)
    default_container_statuses(status)


def _default_container(container: Json) -> None:
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    last = container.get("image", "").rpartition("/")[2]
    tag = last.partition(":")[2]
    newest = "@" not in last and tag in ("", "latest")
    container.setdefault("imagePullPolicy", "Always" if newest else "IfNotPresent")
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")


def admit_pod(pod: Json, _context: WriteContext) -> None:
    """What admission adds to a new pod, and its first status."""
    spec = pod["spec"]
    tolerations = spec.setdefault("tolerations", [])
    for name in _TOLERATED:
        key = f"node.kubernetes.io/{name}"
        if not any(toleration.get("key") in (key, None) for toleration in tolerations):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    pod["status"] = {"phase": "Pending", "qosClass": _quality(spec)}


def _quality(spec: Json) -> str:
    resources = [container.get("resources", {}) for name in _CONTAINER_LISTS for container in spec.get(name) or ()]
    if not any(part.get("requests") or part.get("limits") for part in resources):
        return "BestEffort"
    wanted = ("cpu", "memory")
    for part in resources:
        limits = part.get("limits") or {}
        requests = {**limits, **(part.get("requests") or {})}
        if any(name not in limits or requests.get(name) != limits[name] for name in wanted):
            return "Burstable"
    return "Guaranteed"


def claim_source(reference: Json) -> Json:
    """Where the names of claim and template stand, in either generation of pods."""
    return t.cast(Json, reference.get("source") or {}) if "source" in reference else reference


def validate_pod(pod: Json, _context: WriteContext) -> list[fe.FieldError]:
    spec = pod["spec"]
    errors = _reference_errors("spec.resourceClaims", spec.get("resourceClaims", ()))
    claims = {reference.get("name") for reference in spec.get("resourceClaims", ())}
    if not spec.get("containers"):
        errors.append(fe.required("spec.containers"))
    seen: set[str] = set()
    for name in _CONTAINER_LISTS:
        for index, container in enumerate(spec.get(name) or ()):
            errors += _container_errors(f"spec.{name}[{index}]", container, claims, seen)
    return errors


def _reference_errors(field: str, references: t.Sequence[Json]) -> list[fe.FieldError]:
    errors: list[fe.FieldError] = []
    seen: set[str] = set()
    for index, reference in enumerate(references):
        here = f"{field}[{index}]"
        name = reference.get("name", "")
        if not name:
            errors.append(fe.required(f"{here}.name"))
        elif name in seen:
            errors.append(fe.duplicate(f"{here}.name", name))
        else:
            errors += label_errors(f"{here}.name", name)
        seen.add(name)
        source = claim_source(reference)
        by_name, by_template = source.get("resourceClaimName"), source.get("resourceClaimTemplateName")
        if by_name and by_template:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(fe.invalid(here, reference, detail))
        elif not by_name and not by_template:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(fe.required(here, detail))
    return errors


def _container_errors(
    field: str, container: Json, claims: t.Container[str | None], seen: set[str]
) -> list[fe.FieldError]:
    errors = []
    name = container.get("name", "")
    if not name:
        errors.append(fe.required(f"{field}.name"))
    elif name in seen:
        errors.append(fe.duplicate(f"{field}.name", name))
    else:
        errors += label_errors(f"{field}.name", name)
    seen.add(name)
    if not container.get("image"):
        errors.append(fe.required(f"{field}.image"))
    for index, claim in enumerate(container.get("resources", {}).get("claims", ())):
        if claim.get("name") not in claims:
            where = f"{field}.resources.claims[{index}].name"
            errors.append(fe.FieldError(where, "FieldValueNotFound", f"Not found: {fe.shown(claim.get('name', ''))}"))
    return errors


def pod_update_errors(new: Json, old: Json, _context: WriteContext) -> list[fe.FieldError]:
    return [] if _fixed_part(new) == _fixed_part(old) else [fe.forbidden("spec", _UPDATE_TEXT)]


def _fixed_part(pod: Json) -> Json:
    spec = {name: value for name, value in pod["spec"].items() if name not in _MUTABLE_SPEC}
    for name in _CONTAINER_LISTS:
        if name in spec:
            spec[name] = [{**container, "image": ""} for container in spec[name]]
    return spec


def pod_status_errors(new: Json, _old: Json, _context: WriteContext) -> list[fe.FieldError]:
    claims = {reference.get("name") for reference in new["spec"].get("resourceClaims", ())}
    return _claim_status_errors(new.get("status", {}), claims) + health_errors(new)


def _claim_status_errors(status: Json, claims: t.Container[str | None]) -> list[fe.FieldError]:
    errors = []
    for index, entry in enumerate(status.get("resourceClaimStatuses", ())):
        field = f"status.resourceClaimStatuses[{index}]"
        if entry.get("name", "") not in claims:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(fe.invalid(f"{field}.name", entry.get("name", ""), detail))
        if entry.get("resourceClaimName"):
            errors += subdomain_errors(f"{field}.resourceClaimName", entry["resourceClaimName"])
    return errors


def pod_group_defaults(group: Json, _context: WriteContext) -> None:
    group.setdefault("spec", {})
    group.setdefault("status", {})


def validate_pod_group(group: Json, _context: WriteContext) -> list[fe.FieldError]:
    references = group["spec"].get("resourceClaims", ())
    errors = [fe.too_many("spec.resourceClaims", len(references), 4)] if len(references) > 4 else []
    return errors + _reference_errors("spec.resourceClaims", references)


def pod_group_status_errors(new: Json, _old: Json, _context: WriteContext) -> list[fe.FieldError]:
    claims = {reference.get("name") for reference in new["spec"].get("resourceClaims", ())}
    return _claim_status_errors(new.get("status", {}), claims)
