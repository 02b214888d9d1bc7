# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The controller in a cluster: every object that it takes, as plain data in the order of their making."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing as t

from .daemon_settings import HTTP_PORT
from .rights import account_rights, roles
from .target import Target

Json = dict[str, t.Any]

NAME = "nodeops-dra-controller"
FIELD_MANAGER = "nodeops.dra"
_MODULE = "ansible_collections.nodeops.dra.plugins.module_utils.controller"
_CONFIG = "controller.yml"
_CONFIG_FOLDER, _RUN_FOLDER = "/etc/nodeops-dra", "/run/nodeops-dra"
_SELECTOR = {"app.kubernetes.io/name": NAME}
_LABELS = {**_SELECTOR, "app.kubernetes.io/managed-by": FIELD_MANAGER}
#: Nobody in particular; the image needs no user of this number.
_USER = 65532


@dataclasses.dataclass(frozen=True)
class Deployment:
    """What may be chosen. ``settings`` are those of the daemon; what depends on the pod is set from here."""

    image: str
    namespace: str = "nodeops-dra"
    replicas: int = 2
    settings: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    resources: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    pull_secrets: tuple[str, ...] = ()
    node_selector: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    tolerations: tuple[t.Mapping[str, t.Any], ...] = ()
    priority_class: str = ""
    api_ports: tuple[int, ...] = (443, 6443)

    @property
    def lease(self) -> tuple[str, str]:
        """Namespace and name of the Lease."""
        chosen = self.settings.get("lease") or {}
        return chosen.get("namespace", self.namespace), chosen.get("name", NAME)

    @property
    def daemon_settings(self) -> Json:
        """The content of the settings file."""
        own: dict[str, Json] = {
            "lease": {"namespace": self.lease[0]},
            "http": {"address": "0.0.0.0", "port": HTTP_PORT},  # noqa: S104 - the kubelet probes it from outside
            "life": {"run_directory": _RUN_FOLDER},
        }
        sections = {name: dict(values or {}) for name, values in self.settings.items()}
        for name, values in own.items():
            sections[name] = {**sections.get(name, {}), **values}
        sections.setdefault("log", {}).setdefault("format", "json")
        return sections


def manifests(chosen: Deployment, targets: t.Sequence[Target]) -> list[Json]:
    """All objects, with the rights for clusters like ``targets``. The same choice gives the same objects."""
    text = json.dumps(chosen.daemon_settings, indent=2, sort_keys=True) + "\n"
    where = chosen.namespace
    found = [
        _object("v1", "Namespace", where, labels={"pod-security.kubernetes.io/enforce": "restricted"}),
        _object("v1", "ServiceAccount", NAME, where, automountServiceAccountToken=False),
    ]
    namespaces = tuple((chosen.settings.get("controller") or {}).get("namespaces") or ())
    for namespace, rules in roles(account_rights(targets, chosen.lease, namespaces)).items():
        found += _granted(namespace, rules, where)
    return [
        *found,
        _object("v1", "ConfigMap", NAME, where, data={_CONFIG: text}),
        _object("apps/v1", "Deployment", NAME, where, spec=_deployment(chosen, text)),
        _object(
            "policy/v1", "PodDisruptionBudget", NAME, where,
            # One at a time may go, also where there is only one: it never stands against a drain.
            spec={"maxUnavailable": 1, "selector": {"matchLabels": _SELECTOR}},
        ),
        _object("networking.k8s.io/v1", "NetworkPolicy", NAME, where, spec=_network(chosen)),
    ]  # fmt: skip


def _object(
    version: str, kind: str, name: str, namespace: str = "", labels: t.Mapping[str, str] | None = None, **parts: t.Any
) -> Json:
    meta: Json = {"name": name, "labels": {**_LABELS, **(labels or {})}}
    if namespace:
        meta["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": meta, **parts}


def _granted(namespace: str, rules: t.Sequence[Json], home: str) -> list[Json]:
    version, group = "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
    kind = "Role" if namespace else "ClusterRole"
    # In kube-system and in the cluster as a whole a name has to be nobody else's.
    name = NAME if namespace == home else f"{NAME}.{home}"
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": home}
    role = {"apiGroup": group, "kind": kind, "name": name}
    return [
        _object(version, kind, name, namespace, rules=list(rules)),
        _object(version, f"{kind}Binding", name, namespace, roleRef=role, subjects=[subject]),
    ]


def _deployment(chosen: Deployment, text: str) -> Json:
    pod: Json = {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": 60,
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 100,
                        "podAffinityTerm": {
                            "topologyKey": "kubernetes.io/hostname",
                            "labelSelector": {"matchLabels": _SELECTOR},
                        },
                    }
                ]
            }
        },
        "containers": [_container(chosen)],
        "volumes": [
            {"name": "config", "configMap": {"name": NAME}},
            {"name": "run", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        ],
    }
    optional = {
        "imagePullSecrets": [{"name": name} for name in chosen.pull_secrets],
        "nodeSelector": dict(chosen.node_selector),
        "tolerations": [dict(one) for one in chosen.tolerations],
        "priorityClassName": chosen.priority_class,
    }
    pod.update({name: value for name, value in optional.items() if value})
    # A change of the settings that takes a restart is one of the pod too.
    annotations = {"nodeops.dra/settings": hashlib.sha256(text.encode()).hexdigest()}
    return {
        "replicas": chosen.replicas,
        "selector": {"matchLabels": _SELECTOR},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "template": {"metadata": {"labels": _LABELS, "annotations": annotations}, "spec": pod},
    }


def _container(chosen: Deployment) -> Json:
    def probe(path: str, period: int, failures: int) -> Json:
        return {
            "httpGet": {"path": path, "port": "http"},
            "periodSeconds": period,
            "timeoutSeconds": 5,
            "failureThreshold": failures,
        }

    return {
        "name": "controller",
        "image": chosen.image,
        "command": ["python", "-m", _MODULE],
        "args": ["--config", f"{_CONFIG_FOLDER}/{_CONFIG}"],
        "ports": [{"name": "http", "containerPort": HTTP_PORT, "protocol": "TCP"}],
        # A start may take minutes on a large cluster; only then the liveness probe begins.
        "startupProbe": probe("/healthz", 5, 60),
        "livenessProbe": probe("/healthz", 20, 3),
        "readinessProbe": probe("/readyz", 10, 3),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "privileged": False,
            "readOnlyRootFilesystem": True,
        },
        "resources": dict(chosen.resources)
        or {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "volumeMounts": [
            {"name": "config", "mountPath": _CONFIG_FOLDER, "readOnly": True},
            {"name": "run", "mountPath": _RUN_FOLDER},
        ],
    }


def _network(chosen: Deployment) -> Json:
    names = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    api = [{"protocol": "TCP", "port": port} for port in chosen.api_ports]
    return {
        "podSelector": {"matchLabels": _SELECTOR},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"ports": [{"protocol": "TCP", "port": HTTP_PORT}]}],
        "egress": [{"ports": [*names, *api]}],
    }
