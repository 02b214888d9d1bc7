# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Builders of API objects for the tests of this layer, in the forms of every generation."""

from __future__ import annotations

import copy
import typing as t

Json = dict[str, t.Any]


def pod(name: str = "p-1", uid: str = "u-p1", *, claims: t.Sequence[Json] = (), **parts: t.Any) -> Json:
    """A pod in team-a; ``parts`` are deep-merged (spec=..., status=..., metadata=...)."""
    base: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team-a", "uid": uid},
        "spec": {"resourceClaims": list(claims), "containers": []},
        "status": {},
    }
    return merged(base, parts)


def claim(name: str = "c1", uid: str = "u-1", **parts: t.Any) -> Json:
    """A v1 claim in team-a without allocation."""
    base: Json = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "team-a", "uid": uid, "resourceVersion": "7"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.test.example"}}]}},
        "status": {},
    }
    return merged(base, parts)


def classic_claim(name: str = "c1", uid: str = "u-1", **parts: t.Any) -> Json:
    """A v1alpha2 claim in team-a without allocation."""
    base: Json = {
        "apiVersion": "resource.k8s.io/v1alpha2",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "team-a", "uid": uid, "resourceVersion": "7"},
        "spec": {"resourceClassName": "gpu", "allocationMode": "WaitForFirstConsumer"},
        "status": {},
    }
    return merged(base, parts)


def result(driver: str = "gpu.test.example", pool: str = "pool-0", device: str = "dev-0", **fields: t.Any) -> Json:
    """One entry of allocation.devices.results."""
    return {"request": "gpu", "driver": driver, "pool": pool, "device": device, **fields}


def allocation(*results: Json) -> Json:
    """A structured allocation."""
    return {"devices": {"results": list(results or (result(),))}}


def pod_entry(name: str = "p-1", uid: str = "u-p1") -> Json:
    """A reservation for a pod."""
    return {"resource": "pods", "name": name, "uid": uid}


def group_entry(name: str = "pg", uid: str = "u-pg") -> Json:
    """A reservation for a PodGroup."""
    return {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": name, "uid": uid}


def pod_owner(name: str = "p-1", uid: str = "u-p1") -> Json:
    """The controlling owner reference to a pod."""
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}


def template(name: str = "t1", **spec: t.Any) -> Json:
    """A claim template in team-a."""
    base: Json = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "team-a", "uid": "u-t1"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "x"}}]}}},
    }
    return merged(base, {"spec": spec})


def pod_group(name: str = "pg", uid: str = "u-pg", *, claims: t.Sequence[Json] = (), **parts: t.Any) -> Json:
    """A PodGroup in team-a."""
    base: Json = {
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "team-a", "uid": uid},
        "spec": {"resourceClaims": list(claims)},
        "status": {},
    }
    return merged(base, parts)


def merged(base: Json, parts: t.Mapping[str, t.Any]) -> Json:
    """``base`` with ``parts`` merged in; None removes a key."""
    out = copy.deepcopy(base)
    for key, value in parts.items():
        if isinstance(value, dict) and isinstance(out.get(key), dict):
            out[key] = merged(out[key], value)
        elif value is None:
            out.pop(key, None)
        else:
            out[key] = copy.deepcopy(value)
    return out
