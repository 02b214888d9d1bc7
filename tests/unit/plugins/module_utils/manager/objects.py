# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Pods and claims as the API server gives them, as small as the manager takes them."""

from __future__ import annotations

import typing as t

Json = dict[str, t.Any]

GPU = "gpu.test.example"
NIC = "nic.test.example"


def device(name: str = "dev-0", driver: str = GPU, *, request: str = "r0", **fields: t.Any) -> Json:
    """One allocation result."""
    return {"request": request, "driver": driver, "pool": "pool-0", "device": name, **fields}


def claim(
    name: str = "c1", uid: str = "u-1", *devices: Json, pods: t.Sequence[str] = ("p-1",), **status: t.Any
) -> Json:
    """An allocated claim of v1, reserved for pods that are named after their UIDs."""
    results = list(devices) or [device()]
    requests = list(dict.fromkeys(one["request"].partition("/")[0] for one in results))
    return {
        "metadata": {"namespace": "team-a", "name": name, "uid": uid},
        "spec": {"devices": {"requests": [{"name": one, "exactly": {"deviceClassName": "any"}} for one in requests]}},
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"resource": "pods", "name": f"name-of-{uid}", "uid": uid} for uid in pods],
            **status,
        },
    }


def pod(uid: str = "p-1", *claims: str, containers: t.Sequence[Json] = ()) -> Json:
    """A pod that uses claims by name; without ``containers`` one container uses all of them."""
    names = claims or ("c1",)
    every = {"name": "main", "resources": {"claims": [{"name": f"ref-{one}"} for one in names]}}
    return {
        "metadata": {"namespace": "team-a", "name": f"name-of-{uid}", "uid": uid},
        "spec": {
            "resourceClaims": [{"name": f"ref-{one}", "resourceClaimName": one} for one in names],
            "containers": list(containers) or [every],
        },
    }
