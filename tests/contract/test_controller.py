# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the ResourceClaim controller counts on."""

from __future__ import annotations

import typing as t

import pytest

from .conftest import ALLOCATION, Api, claim

pytestmark = pytest.mark.asyncio
APPLY = "application/apply-patch+yaml"


async def test_a_claim_with_a_name_keeps_the_base_of_its_name_too(api: Api, name: str) -> None:
    body = claim(f"{name}-bcdfg", generateName=f"{name}-")
    made = await api.must("POST", api.claims, body)
    assert made["metadata"]["name"] == f"{name}-bcdfg"
    assert made["metadata"]["generateName"] == f"{name}-"
    status, answer = await api.ask("POST", api.claims, body)
    assert (status, answer["reason"]) == (409, "AlreadyExists")


async def apply_names(api: Api, name: str, uid: str, names: t.Mapping[str, str]) -> tuple[int, t.Any]:
    """Server-side apply of the names of generated claims, as the controller does it."""
    entries = [{"name": entry, "resourceClaimName": claim_name} for entry, claim_name in names.items()]
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": api.namespace, "uid": uid},
        "status": {"resourceClaimStatuses": entries},
    }
    query = "fieldManager=ResourceClaimController&force=true"
    return await api.ask("PATCH", f"{api.pods}/{name}/status?{query}", body, APPLY)


async def test_names_are_applied_to_this_very_pod(api: Api, name: str) -> None:
    entries = [{"name": entry, "resourceClaimTemplateName": "t"} for entry in ("a", "b")]
    pod = await api.pod(name, resourceClaims=entries)
    names = {"a": f"{name}-a", "b": f"{name}-b"}
    status, answer = await apply_names(api, name, pod["metadata"]["uid"], names)
    assert status == 200, answer
    listed = answer["status"]["resourceClaimStatuses"]
    assert {entry["name"]: entry["resourceClaimName"] for entry in listed} == names
    version = answer["metadata"]["resourceVersion"]
    status, answer = await apply_names(api, name, pod["metadata"]["uid"], names)
    assert (status, answer["metadata"]["resourceVersion"]) == (200, version)
    status, answer = await apply_names(api, name, "00000000-0000-4000-8000-000000000000", {"a": "x"})
    assert status in (409, 422), answer
    kept = (await api.must("GET", f"{api.pods}/{name}"))["status"]["resourceClaimStatuses"]
    assert {entry["name"]: entry["resourceClaimName"] for entry in kept} == names


async def test_a_release_in_three_guarded_requests(api: Api, name: str) -> None:
    made = await api.claim(name, finalizers=["resource.kubernetes.io/delete-protection"])
    entry = {"resource": "pods", "name": "p", "uid": "u-1"}
    old = made["metadata"]["resourceVersion"]
    used = await api.merge(
        f"{api.claims}/{name}/status", {"status": {"allocation": ALLOCATION, "reservedFor": [entry]}}
    )
    status = {"reservedFor": None, "allocation": None}
    answer, _body = await api.ask(
        "PATCH",
        f"{api.claims}/{name}/status",
        {"metadata": {"resourceVersion": old}, "status": status},
        "application/merge-patch+json",
    )
    assert answer == 409
    guard = {"resourceVersion": used["metadata"]["resourceVersion"]}
    free = await api.merge(f"{api.claims}/{name}/status", {"metadata": guard, "status": status})
    assert not free.get("status")
    guard = {"resourceVersion": free["metadata"]["resourceVersion"]}
    bare = await api.merge(f"{api.claims}/{name}", {"metadata": {**guard, "finalizers": None}})
    assert "finalizers" not in bare["metadata"]
    stale = {"preconditions": {"uid": made["metadata"]["uid"], "resourceVersion": old}}
    answer, _body = await api.ask("DELETE", f"{api.claims}/{name}", stale)
    assert answer == 409
    exact = {"preconditions": {"uid": made["metadata"]["uid"], "resourceVersion": bare["metadata"]["resourceVersion"]}}
    await api.must("DELETE", f"{api.claims}/{name}", exact)
    assert (await api.ask("GET", f"{api.claims}/{name}"))[0] == 404
