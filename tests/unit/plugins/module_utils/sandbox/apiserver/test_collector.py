# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Garbage collection by owner references, in each propagation mode."""

from __future__ import annotations

import typing as t

import pytest

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


async def owner(client: t.Any, name: str = "p1") -> dict[str, t.Any]:
    spec = {"containers": [{"name": "c", "image": "x"}]}
    made = await client.must("POST", PODS, {"metadata": {"name": name}, "spec": spec})
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": made["metadata"]["uid"], "controller": True}


async def owned(client: t.Any, *owners: t.Any, name: str = "c1", **metadata: t.Any) -> None:
    request = {"name": "gpu", "exactly": {"deviceClassName": "g"}}
    body = {"name": name, "ownerReferences": list(owners), **metadata}
    await client.must("POST", CLAIMS, {"metadata": body, "spec": {"devices": {"requests": [request]}}})


async def left(client: t.Any) -> list[str]:
    await client.server.settled()
    return [item["metadata"]["name"] for item in (await client.must("GET", CLAIMS))["items"]]


@pytest.mark.asyncio
async def test_what_is_owned_goes_after_its_owner(client: t.Any) -> None:
    await owned(client, await owner(client))
    assert await left(client) == ["c1"]
    await client.must("DELETE", f"{PODS}/p1")
    assert await left(client) == []


@pytest.mark.asyncio
async def test_one_of_two_owners_is_enough(client: t.Any) -> None:
    first, second = await owner(client, "p1"), await owner(client, "p2")
    await owned(client, first, {**second, "controller": False})
    await client.must("DELETE", f"{PODS}/p1")
    assert await left(client) == ["c1"]
    kept = (await client.must("GET", f"{CLAIMS}/c1"))["metadata"]["ownerReferences"]
    assert [reference["name"] for reference in kept] == ["p2"]
    await client.must("DELETE", f"{PODS}/p2")
    assert await left(client) == []


@pytest.mark.asyncio
async def test_an_owner_that_never_was(client: t.Any) -> None:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p1", "uid": "none"}
    await owned(client, reference)
    assert await left(client) == []


@pytest.mark.asyncio
async def test_owners_of_kinds_that_are_not_served_are_believed(client: t.Any) -> None:
    await owned(client, {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "none"})
    assert await left(client) == ["c1"]


@pytest.mark.asyncio
async def test_orphans(client: t.Any) -> None:
    await owned(client, await owner(client))
    await client.must("DELETE", f"{PODS}/p1", {"propagationPolicy": "Orphan"})
    assert await left(client) == ["c1"]
    assert "ownerReferences" not in (await client.must("GET", f"{CLAIMS}/c1"))["metadata"]
    assert (await client.ask("GET", f"{PODS}/p1"))[0] == 404


@pytest.mark.asyncio
async def test_foreground_waits_for_what_blocks(client: t.Any) -> None:
    reference = {**await owner(client), "blockOwnerDeletion": True}
    await owned(client, reference, finalizers=["test.example/keep"])
    marked = await client.must("DELETE", f"{PODS}/p1", {"propagationPolicy": "Foreground"})
    assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert await left(client) == ["c1"]
    assert (await client.ask("GET", f"{PODS}/p1"))[0] == 200
    await client.must("PATCH", f"{CLAIMS}/c1", {"metadata": {"finalizers": None}}, MERGE)
    assert await left(client) == []
    assert (await client.ask("GET", f"{PODS}/p1"))[0] == 404


@pytest.mark.asyncio
async def test_without_collection_dependents_stay(serve: t.Any) -> None:
    async with serve(garbage_collection=False) as client:
        await owned(client, await owner(client))
        await client.must("DELETE", f"{PODS}/p1")
        assert await left(client) == ["c1"]


@pytest.mark.asyncio
async def test_a_namespace_goes_with_everything_in_it(client: t.Any) -> None:
    await client.must("POST", "/api/v1/namespaces", {"metadata": {"name": "team-a"}})
    spec = {"containers": [{"name": "c", "image": "x"}], "nodeName": "n1"}
    pods = PODS.replace("default", "team-a")
    await client.must("POST", pods, {"metadata": {"name": "p"}, "spec": spec})
    await client.must("POST", "/api/v1/namespaces/team-a/configmaps", {"metadata": {"name": "m"}})
    await client.must("DELETE", "/api/v1/namespaces/team-a")
    await client.server.settled()
    assert (await client.ask("GET", "/api/v1/namespaces/team-a"))[0] == 404
    assert (await client.must("GET", pods))["items"] == []
