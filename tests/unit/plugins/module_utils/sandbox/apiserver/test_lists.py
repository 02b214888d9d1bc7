# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Lists: pages of one moment, versions, tables for kubectl."""

from __future__ import annotations

import json
import typing as t
import urllib.parse

import pytest

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
ALL_CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
MERGE = "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def claim(name: str, **metadata: t.Any) -> dict[str, t.Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.test.example"}}
    return {"metadata": {"name": name, **metadata}, "spec": {"devices": {"requests": [request]}}}


def fill(client: t.Any, count: int, namespace: str = "default") -> None:
    for number in range(count):
        client.server.seed("resource.k8s.io/v1", "resourceclaims", claim(f"c{number}"), namespace)


def names(listed: t.Any) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


async def page(client: t.Any, path: str, following: str = "") -> t.Any:
    token = f"&continue={urllib.parse.quote(following)}" if following else ""
    return await client.must("GET", f"{path}{'&' if '?' in path else '?'}limit=2{token}")


@pytest.mark.asyncio
async def test_pages_show_one_moment(client: t.Any) -> None:
    fill(client, 5)
    first = await page(client, CLAIMS)
    await client.must("DELETE", f"{CLAIMS}/c3")
    await client.must("POST", CLAIMS, claim("c9"))
    changed = await client.must("PATCH", f"{CLAIMS}/c4", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    second = await page(client, CLAIMS, first["metadata"]["continue"])
    third = await page(client, CLAIMS, second["metadata"]["continue"])
    assert names(first) + names(second) + names(third) == ["c0", "c1", "c2", "c3", "c4"]
    assert "continue" not in third["metadata"]
    assert {part["metadata"]["resourceVersion"] for part in (first, second, third)} == {
        first["metadata"]["resourceVersion"]
    }
    assert third["items"][0]["metadata"]["resourceVersion"] != changed["metadata"]["resourceVersion"]
    assert names(await client.must("GET", CLAIMS)) == ["c0", "c1", "c2", "c4", "c9"]


@pytest.mark.asyncio
async def test_pages_over_all_namespaces(client: t.Any) -> None:
    fill(client, 2)
    fill(client, 3, "kube-system")
    found, following = [], ""
    while True:
        part = await page(client, ALL_CLAIMS, following)
        found += [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in part["items"]]
        following = part["metadata"].get("continue", "")
        if not following:
            break
    assert found == [("default", "c0"), ("default", "c1"), *(("kube-system", f"c{n}") for n in range(3))]


@pytest.mark.asyncio
async def test_a_namespace_does_not_show_its_neighbour(client: t.Any) -> None:
    for name in ("a", "a-b", "a0"):
        client.server.cluster.make_namespace(name)
        fill(client, 1, name)
    listed = await client.must("GET", CLAIMS.replace("default", "a"))
    assert [item["metadata"]["namespace"] for item in listed["items"]] == ["a"]


@pytest.mark.asyncio
async def test_a_page_after_compaction_is_refused_with_a_way_to_go_on(client: t.Any) -> None:
    fill(client, 5)
    first = await page(client, CLAIMS)
    await client.must("DELETE", f"{CLAIMS}/c3")
    client.server.cluster.store.compact()
    token = urllib.parse.quote(first["metadata"]["continue"])
    status, answer = await client.ask("GET", f"{CLAIMS}?limit=2&continue={token}")
    assert (status, answer["reason"]) == (410, "Expired")
    rest = await page(client, CLAIMS, answer["metadata"]["continue"])
    assert names(rest) == ["c2", "c4"]


@pytest.mark.asyncio
async def test_pages_with_a_selector_do_not_count_the_rest(client: t.Any) -> None:
    for number in range(6):
        labels = {"odd": str(number % 2)}
        client.server.seed("resource.k8s.io/v1", "resourceclaims", claim(f"c{number}", labels=labels), "default")
    first = await page(client, f"{CLAIMS}?labelSelector=odd%3D1")
    assert names(first) == ["c1", "c3"]
    assert "remainingItemCount" not in first["metadata"]
    second = await page(client, f"{CLAIMS}?labelSelector=odd%3D1", first["metadata"]["continue"])
    assert names(second) == ["c5"]
    assert "continue" not in second["metadata"]


@pytest.mark.asyncio
async def test_versions_of_lists(client: t.Any) -> None:
    fill(client, 1)
    before = (await client.must("GET", CLAIMS))["metadata"]["resourceVersion"]
    fill_more = await client.must("POST", CLAIMS, claim("later"))
    exact = await client.must("GET", f"{CLAIMS}?resourceVersion={before}&resourceVersionMatch=Exact")
    assert (names(exact), exact["metadata"]["resourceVersion"]) == (["c0"], before)
    newer = await client.must("GET", f"{CLAIMS}?resourceVersion={before}&resourceVersionMatch=NotOlderThan")
    assert names(newer) == ["c0", "later"]
    anything = await client.must("GET", f"{CLAIMS}?resourceVersion=0")
    assert anything["metadata"]["resourceVersion"] == fill_more["metadata"]["resourceVersion"]
    client.server.cluster.store.compact()
    status, answer = await client.ask("GET", f"{CLAIMS}?resourceVersion={before}&resourceVersionMatch=Exact")
    assert (status, answer["reason"]) == (410, "Expired")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "query",
    [
        "resourceVersion=abc",
        "resourceVersionMatch=Exact",
        "resourceVersion=0&resourceVersionMatch=Exact",
        "resourceVersion=5&resourceVersionMatch=Some",
        "limit=x",
        "continue=%21",
        "continue=e30",
        "labelSelector=a%3D%3D%3D",
    ],
)
async def test_queries_that_are_refused(client: t.Any, query: str) -> None:
    status, answer = await client.ask("GET", f"{CLAIMS}?{query}")
    assert (status, answer["reason"]) == (400, "BadRequest"), answer


@pytest.mark.asyncio
async def test_an_object_from_the_future(client: t.Any) -> None:
    fill(client, 1)
    status, answer = await client.ask("GET", f"{CLAIMS}/c0?resourceVersion=999999")
    assert (status, answer["reason"]) == (504, "Timeout")
    assert (await client.ask("GET", f"{CLAIMS}/c0?resourceVersion=0"))[0] == 200


@pytest.mark.asyncio
async def test_tables_for_kubectl(client: t.Any) -> None:
    fill(client, 2)
    _status, data, _headers = await client.raw("GET", CLAIMS, Accept=TABLE)
    table = json.loads(data)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "State", "Age"]
    assert [row["cells"][:2] for row in table["rows"]] == [["c0", "pending"], ["c1", "pending"]]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


@pytest.mark.asyncio
async def test_metadata_only(client: t.Any) -> None:
    fill(client, 1)
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    _status, data, _headers = await client.raw("GET", CLAIMS, Accept=accept)
    listed = json.loads(data)
    assert listed["kind"] == "PartialObjectMetadataList"
    assert "spec" not in listed["items"][0]


@pytest.mark.asyncio
async def test_a_form_that_nobody_has(client: t.Any) -> None:
    status, data, _headers = await client.raw("GET", CLAIMS, Accept="application/xml")
    assert (status, json.loads(data)["reason"]) == (406, "NotAcceptable")
    mixed = "application/vnd.kubernetes.protobuf,application/json"
    assert (await client.raw("GET", CLAIMS, Accept=mixed))[0] == 200
