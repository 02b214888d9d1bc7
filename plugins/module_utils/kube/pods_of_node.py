# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which pods of a node a drain evicts, which it leaves, and which it must not touch without being told so. Pure."""

from __future__ import annotations

import dataclasses
import typing as t

Json = t.Mapping[str, t.Any]

MIRROR = "kubernetes.io/config.mirror"
"""Annotation of the API's image of a static pod, which only its kubelet can end."""


@dataclasses.dataclass(frozen=True)
class DrainRules:
    """What may be evicted: with ``claims_only`` only pods that use ResourceClaims; with ``force`` also pods that no
    controller makes again; with ``delete_emptydir_data`` also pods that would lose an emptyDir."""

    claims_only: bool = False
    force: bool = False
    delete_emptydir_data: bool = False


@dataclasses.dataclass(frozen=True)
class NodePod:
    """A pod on the node. ``reason`` says why it is left or refused, empty where it is evicted."""

    namespace: str
    name: str
    uid: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def to_dict(self) -> dict[str, str]:
        """As a module returns it."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class DrainPlan:
    """Each list sorted by namespace and name. Where ``refused`` is not empty, nothing may be evicted."""

    evict: tuple[NodePod, ...]
    left: tuple[NodePod, ...]
    refused: tuple[NodePod, ...]


def plan_drain(pods: t.Iterable[Json], rules: DrainRules) -> DrainPlan:
    """What to do with each pod of a node, by the rules of ``kubectl drain --ignore-daemonsets``."""
    evict: list[NodePod] = []
    left: list[NodePod] = []
    refused: list[NodePod] = []
    for pod in sorted(pods, key=lambda one: (_meta(one).get("namespace", ""), _meta(one).get("name", ""))):
        stays, needs = _stays(pod, rules), _needs(pod, rules)
        chosen, reason = (left, stays) if stays else (refused, needs) if needs else (evict, "")
        meta = _meta(pod)
        chosen.append(NodePod(meta.get("namespace", ""), meta.get("name", ""), meta.get("uid", ""), reason))
    return DrainPlan(tuple(evict), tuple(left), tuple(refused))


def _stays(pod: Json, rules: DrainRules) -> str:
    if MIRROR in (_meta(pod).get("annotations") or {}):
        return "static pod"
    if any(owner.get("kind") == "DaemonSet" for owner in _controllers(pod)):
        return "pod of a DaemonSet"
    if rules.claims_only and not uses_claims(pod):
        return "uses no claims"
    return ""


def _needs(pod: Json, rules: DrainRules) -> str:
    """Which option would have to be set to evict the pod, with the reason."""
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return ""
    if not rules.force and not _controllers(pod):
        return "nobody makes it again (force)"
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    if not rules.delete_emptydir_data and any("emptyDir" in volume for volume in volumes):
        return "it would lose its emptyDir (delete_emptydir_data)"
    return ""


def uses_claims(pod: Json) -> bool:
    """Whether the pod has ResourceClaims, of its own or for extended resources."""
    if (pod.get("spec") or {}).get("resourceClaims"):
        return True
    return bool((pod.get("status") or {}).get("extendedResourceClaimStatus"))


def _controllers(pod: Json) -> list[Json]:
    return [owner for owner in _meta(pod).get("ownerReferences") or () if owner.get("controller")]


def _meta(pod: Json) -> Json:
    return t.cast("Json", pod.get("metadata") or {})
