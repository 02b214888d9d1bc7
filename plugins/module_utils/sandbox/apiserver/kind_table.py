# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The kinds that the embedded API server knows, and which of them it serves for given settings."""

from __future__ import annotations

import typing as t

from . import (
    claim_rules,
    claim_status_rules,
    container_status_rules,
    conversion,
    plain_rules,
    pod_rules,
    shapes_core,
    shapes_pod,
    slice_rules,
)
from . import shapes_resource as resource_shapes
from .conversion import Form
from .json_text import Json
from .kinds import Kind
from .settings import ServerSettings
from .table_columns import COLUMNS

RESOURCE_GROUP = "resource.k8s.io"
_ZERO_CLAIM = {"spec": {"devices": {"requests": None}}, "status": {}}


def _text(*path: str) -> t.Callable[[Json], str]:
    """A function that finds the text at a path; "" when there is none."""

    def find(body: Json) -> str:
        value: t.Any = body
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, bool):
            return "true" if value else "false"
        return "" if value is None else str(value)

    return find


def _texts(*paths: str) -> dict[str, t.Callable[[Json], str]]:
    return {path: _text(*path.split(".")) for path in paths}


_POD_FIELDS = {
    **_texts(
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "spec.hostNetwork": lambda body: "true" if body.get("spec", {}).get("hostNetwork") else "false",
}
_EVENT_PARTS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_FIELDS = {
    **_texts(*(f"involvedObject.{part}" for part in _EVENT_PARTS), "reason", "reportingComponent", "type"),
    "source": lambda body: _text("source", "component")(body) or _text("reportingComponent")(body),
}
_NEW_EVENT_FIELDS = {
    **{f"regarding.{part}": _text("involvedObject", part) for part in _EVENT_PARTS},
    **_EVENT_FIELDS,
    "reportingController": _text("reportingComponent"),
}
_NOT_SUPPORTED = "field label not supported: {}"


def _core_kinds(classic_pods: bool) -> list[Kind]:
    pod_shape = shapes_pod.CLASSIC_POD if classic_pods else shapes_pod.POD
    return [
        Kind(
            "", "Namespace", "namespaces", {"v1": shapes_core.NAMESPACE}, namespaced=False, short_names=("ns",),
            status=True, label_name=True, returns_deleted=True, default=plain_rules.default_namespace,
            verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
            fields=_texts("status.phase"), zero={"spec": {}, "status": {}},
        ),
        Kind(
            "", "Node", "nodes", {"v1": shapes_core.NODE}, namespaced=False, short_names=("no",), status=True,
            created_with_status=True,
            default=plain_rules.default_node, fields=_texts("spec.unschedulable"), zero={"spec": {}, "status": {}},
            field_fault=_NOT_SUPPORTED,
        ),
        Kind(
            "", "Pod", "pods", {"v1": pod_shape}, short_names=("po",), categories=("all",), status=True,
            generation=True, returns_deleted=True, status_keeps_metadata=False, default=pod_rules.default_pod,
            admit=pod_rules.admit_pod, validate=pod_rules.validate_pod, compare=pod_rules.pod_update_errors,
            compare_status=pod_rules.pod_status_errors, drop=container_status_rules.drop_health, fields=_POD_FIELDS,
            field_fault=_NOT_SUPPORTED,
            zero={"spec": {"containers": None}, "status": {}},
        ),
        Kind(
            "", "Event", "events", {"v1": shapes_core.CORE_EVENT}, short_names=("ev",), storage="events",
            create_on_update=True, default=plain_rules.default_event, validate=plain_rules.validate_event,
            fields=_EVENT_FIELDS, field_fault=_NOT_SUPPORTED,
            zero={
                "involvedObject": {}, "source": {}, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None,
                "reportingComponent": "", "reportingInstance": "",
            },
        ),
        Kind(
            "", "ConfigMap", "configmaps", {"v1": shapes_core.CONFIG_MAP}, short_names=("cm",),
            compare=plain_rules.config_map_update_errors,
        ),
        Kind(
            "", "ServiceAccount", "serviceaccounts", {"v1": shapes_core.SERVICE_ACCOUNT}, short_names=("sa",),
            returns_deleted=True,
        ),
    ]  # fmt: skip


def _other_kinds(settings: ServerSettings) -> list[Kind]:
    found = [
        Kind(
            "events.k8s.io", "Event", "events", {"v1": shapes_core.NEW_EVENT}, {"v1": conversion.NEW_EVENT_FORM},
            short_names=("ev",), storage="events", create_on_update=True, default=plain_rules.default_event,
            validate=plain_rules.validate_event, fields=_NEW_EVENT_FIELDS, field_fault=_NOT_SUPPORTED,
            zero={"involvedObject": {}, "source": {}, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None},
        ),
        Kind(
            "coordination.k8s.io", "Lease", "leases", {"v1": shapes_core.LEASE}, unconditional_update=False,
            create_on_update=True, default=plain_rules.default_spec_only, validate=plain_rules.validate_lease,
            zero={"spec": {}},
        ),
        Kind(
            "authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews",
            {"v1": shapes_core.ACCESS_REVIEW}, namespaced=False, verbs=("create",), zero={"spec": {}, "status": {}},
        ),
    ]  # fmt: skip
    if settings.played_release >= (1, 36, 0):
        found.append(
            Kind(
                "scheduling.k8s.io", "PodGroup", "podgroups", {"v1alpha2": shapes_core.POD_GROUP}, status=True,
                generation=True, returns_deleted=True, default=pod_rules.pod_group_defaults,
                validate=pod_rules.validate_pod_group, compare_status=pod_rules.pod_group_status_errors,
                zero={"spec": {}, "status": {}},
            )
        )  # fmt: skip
    return found


def _deployed_kinds() -> list[Kind]:
    """What a deployment consists of: kept as it was written, without defaults and checks, and nothing comes of it."""
    rbac = "rbac.authorization.k8s.io"
    rules = {"v1": shapes_core.RBAC_ROLE}
    bindings = {"v1": shapes_core.RBAC_BINDING}
    spec = {"v1": shapes_core.FREE_SPEC}
    return [
        Kind("apps", "Deployment", "deployments", spec, short_names=("deploy",), status=True, generation=True),
        Kind("policy", "PodDisruptionBudget", "poddisruptionbudgets", spec, short_names=("pdb",), status=True),
        Kind("networking.k8s.io", "NetworkPolicy", "networkpolicies", spec, short_names=("netpol",)),
        Kind(rbac, "Role", "roles", rules),
        Kind(rbac, "RoleBinding", "rolebindings", bindings),
        Kind(rbac, "ClusterRole", "clusterroles", rules, namespaced=False),
        Kind(rbac, "ClusterRoleBinding", "clusterrolebindings", bindings, namespaced=False),
    ]


def _structured_kinds() -> list[Kind]:
    return [
        Kind(
            RESOURCE_GROUP, "ResourceClaim", "resourceclaims", resource_shapes.CLAIM, conversion.CLAIM_FORMS,
            status=True, returns_deleted=True, default=claim_rules.default_claim, validate=claim_rules.validate_claim,
            compare=claim_status_rules.claim_update_errors, compare_status=claim_status_rules.claim_status_errors,
            drop=claim_status_rules.drop_deallocated_devices, zero=_ZERO_CLAIM,
        ),
        Kind(
            RESOURCE_GROUP, "ResourceClaimTemplate", "resourceclaimtemplates", resource_shapes.TEMPLATE,
            conversion.TEMPLATE_FORMS, returns_deleted=True, default=claim_rules.default_template,
            validate=claim_rules.validate_template, compare=claim_status_rules.template_update_errors,
            zero={"spec": {"metadata": {}, "spec": {"devices": {"requests": None}}}},
        ),
        Kind(
            RESOURCE_GROUP, "DeviceClass", "deviceclasses", resource_shapes.DEVICE_CLASS, conversion.CLASS_FORMS,
            namespaced=False, generation=True, returns_deleted=True, default=claim_rules.default_device_class,
            validate=claim_rules.validate_device_class, zero={"spec": {}},
        ),
        Kind(
            RESOURCE_GROUP, "ResourceSlice", "resourceslices", resource_shapes.SLICE, conversion.SLICE_FORMS,
            namespaced=False, generation=True, returns_deleted=True, validate=slice_rules.validate_slice,
            compare=slice_rules.slice_update_errors, fields=_texts("spec.nodeName", "spec.driver"),
            zero={"spec": {"driver": "", "pool": {}}}, default=plain_rules.default_spec_only,
            field_fault=_NOT_SUPPORTED,
        ),
    ]  # fmt: skip


def _classic_kinds() -> list[Kind]:
    old = {"v1alpha2": resource_shapes.OPAQUE_PARAMETERS}
    return [
        Kind(
            RESOURCE_GROUP, "PodSchedulingContext", "podschedulingcontexts",
            dict.fromkeys(("v1alpha3", "v1alpha2"), resource_shapes.SCHEDULING_CONTEXT), status=True,
            returns_deleted=True, default=plain_rules.default_node, zero={"spec": {}, "status": {}},
            validate=slice_rules.validate_scheduling_context, compare_status=slice_rules.scheduling_status_errors,
        ),
        Kind(
            RESOURCE_GROUP, "ResourceClass", "resourceclasses", {"v1alpha2": resource_shapes.RESOURCE_CLASS},
            namespaced=False, returns_deleted=True,
        ),
        Kind(
            RESOURCE_GROUP, "ResourceSlice", "resourceslices", {"v1alpha2": resource_shapes.CLASSIC_SLICE},
            namespaced=False, storage="resourceslices.v1alpha2", returns_deleted=True,
            fields={"nodeName": _text("nodeName"), "driverName": _text("driverName")},
        ),
        Kind(RESOURCE_GROUP, "ResourceClaimParameters", "resourceclaimparameters", old),
        Kind(RESOURCE_GROUP, "ResourceClassParameters", "resourceclassparameters", old),
    ]  # fmt: skip


class Served:
    """One kind in one version."""

    __slots__ = ("form", "group", "head", "kind", "list_head", "shape", "version", "version_name")

    def __init__(self, kind: Kind, version: str, form: Form) -> None:
        self.kind = kind
        self.form = form
        self.group = kind.group
        self.version = version
        self.version_name = f"{kind.group}/{version}" if kind.group else version
        self.shape = kind.shapes[version]
        self.head = f'{{"kind":"{kind.kind}","apiVersion":"{self.version_name}",'.encode()
        self.list_head = f'{{"kind":"{kind.kind}List","apiVersion":"{self.version_name}","metadata":'.encode()

    def __repr__(self) -> str:
        return f"{self.kind.plural}.{self.version_name}"


class KindTable:
    """What is served: group, version and plural name to kind."""

    def __init__(self, settings: ServerSettings) -> None:
        self.by_path: dict[tuple[str, str, str], Served] = {}
        #: Versions of each group, best first.
        self.groups: dict[str, list[str]] = {}
        self.kinds: list[Kind] = []
        for kind in [*_core_kinds(settings.classic_pods), *_other_kinds(settings), *_deployed_kinds()]:
            self._serve(kind, tuple(kind.shapes))
        for kind in [*_structured_kinds(), *_classic_kinds()]:
            self._serve(kind, tuple(version for version in settings.versions if _is_served(kind, version, settings)))
        if RESOURCE_GROUP in self.groups:
            self.groups[RESOURCE_GROUP].sort(key=settings.versions.index)

    def _serve(self, kind: Kind, versions: t.Sequence[str]) -> None:
        columns = COLUMNS.get(kind.kind)
        if columns:
            object.__setattr__(kind, "columns", columns)
        # Only the old generations write fields that others must not show; without them nothing has to be hidden.
        mixed = len(versions) > 1 and any(version in ("v1alpha3", "v1alpha2") for version in versions)
        for version in versions:
            form = kind.form(version) if mixed else kind.form(version).alone()
            self.by_path[kind.group, version, kind.plural] = Served(kind, version, form)
            known = self.groups.setdefault(kind.group, [])
            if version not in known:
                known.append(version)
        if versions:
            self.kinds.append(kind)

    def served(self, group: str, version: str) -> list[Served]:
        """Everything that one group version holds, by name."""
        found = [served for (g, v, _plural), served in self.by_path.items() if (g, v) == (group, version)]
        return sorted(found, key=lambda served: served.kind.plural)

    def owner(self, api_version: str, kind_name: str) -> Kind | None:
        """The kind that an owner reference names, in any version."""
        group = api_version.rpartition("/")[0]
        return next((kind for kind in self.kinds if kind.group == group and kind.kind == kind_name), None)


def _is_served(kind: Kind, version: str, settings: ServerSettings) -> bool:
    """PodSchedulingContext was in v1alpha3 only in 1.31."""
    if version not in kind.shapes:
        return False
    if kind.kind == "PodSchedulingContext" and version == "v1alpha3":
        return settings.played_release < (1, 32, 0)
    return True
