# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Watches: from a version, from nothing, with selectors, bookmarks, compaction, and what goes wrong on purpose."""

from __future__ import annotations

import asyncio
import json
import typing as t

import aiohttp
import pytest

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
MERGE = "application/merge-patch+json"


def claim(name: str, **metadata: t.Any) -> dict[str, t.Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.test.example"}}
    return {"metadata": {"name": name, **metadata}, "spec": {"devices": {"requests": [request]}}}


def seed(client: t.Any, name: str, **metadata: t.Any) -> t.Any:
    return client.server.seed("resource.k8s.io/v1", "resourceclaims", claim(name, **metadata), "default")


def told(events: t.Sequence[t.Any]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def now(client: t.Any) -> int:
    return int(client.server.cluster.store.version)


@pytest.mark.asyncio
async def test_a_watch_goes_on_where_a_list_ended(client: t.Any) -> None:
    seed(client, "a")
    listed = await client.must("GET", CLAIMS)
    seed(client, "b")
    await client.must("DELETE", f"{CLAIMS}/a")
    events = await client.watch(f"{CLAIMS}?watch=1&resourceVersion={listed['metadata']['resourceVersion']}", 2)
    assert told(events) == [("ADDED", "b"), ("DELETED", "a")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == [now(client) - 1, now(client)]


@pytest.mark.asyncio
async def test_watchers_see_changes_as_they_happen(client: t.Any) -> None:
    async with client.stream(f"{CLAIMS}?watch=1&resourceVersion={now(client)}") as lines:
        seed(client, "a")
        assert json.loads(await lines.readline())["type"] == "ADDED"
        await client.must("PATCH", f"{CLAIMS}/a", {"metadata": {"labels": {"x": "y"}}}, MERGE)
        assert json.loads(await lines.readline())["object"]["metadata"]["labels"] == {"x": "y"}


@pytest.mark.asyncio
async def test_what_leaves_the_selection_is_deleted_and_what_enters_is_added(client: t.Any) -> None:
    seed(client, "a", labels={"k": "1"})
    seed(client, "b", labels={"k": "0"})
    start = now(client)
    for name, value in (("a", "0"), ("b", "1"), ("b", "1")):
        await client.must(
            "PATCH", f"{CLAIMS}/{name}", {"metadata": {"labels": {"k": value, "n": str(now(client))}}}, MERGE
        )
    events = await client.watch(f"{CLAIMS}?watch=1&resourceVersion={start}&labelSelector=k%3D1", 3)
    assert told(events) == [("DELETED", "a"), ("ADDED", "b"), ("MODIFIED", "b")]
    assert events[0]["object"]["metadata"]["labels"] == {"k": "1"}
    assert events[0]["object"]["metadata"]["resourceVersion"] == str(start + 1)


@pytest.mark.asyncio
async def test_a_watch_of_one_object(client: t.Any) -> None:
    seed(client, "a")
    seed(client, "b")
    events = await client.watch(f"{CLAIMS}?watch=1&fieldSelector=metadata.name%3Db&timeoutSeconds=1", 1)
    assert told(events) == [("ADDED", "b")]


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_bookmarks_tell_the_version_while_nothing_happens(client: t.Any) -> None:
    start = now(client)
    watching = asyncio.ensure_future(
        client.watch(f"{CLAIMS}?watch=1&allowWatchBookmarks=true&resourceVersion={start}&timeoutSeconds=130")
    )
    await asyncio.sleep(30)
    client.server.cluster.make_namespace("other")
    events = await watching
    assert [event["type"] for event in events] == ["BOOKMARK"] * 4
    assert events[0]["object"]["metadata"] == {"resourceVersion": str(start + 1)}


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_no_bookmarks_unless_asked(client: t.Any) -> None:
    assert await client.watch(f"{CLAIMS}?watch=1&resourceVersion={now(client)}&timeoutSeconds=130") == []


@pytest.mark.asyncio
async def test_watch_list_without_objects_ends_with_its_bookmark(client: t.Any) -> None:
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    events = await client.watch(f"{CLAIMS}?{query}", 1)
    assert events[0]["type"] == "BOOKMARK"
    assert events[0]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "query",
    [
        "sendInitialEvents=true",
        "resourceVersionMatch=NotOlderThan",
        "sendInitialEvents=true&resourceVersionMatch=Exact",
        "resourceVersion=x",
        "timeoutSeconds=x",
        "allowWatchBookmarks=maybe",
    ],
)
async def test_watches_that_are_refused(client: t.Any, query: str) -> None:
    status, answer = await client.ask("GET", f"{CLAIMS}?watch=1&{query}")
    assert (status, answer["reason"]) == (400, "BadRequest"), answer


@pytest.mark.asyncio
async def test_compaction_ends_watches_from_before(client: t.Any) -> None:
    seed(client, "a")
    client.server.cluster.store.compact()
    seed(client, "b")
    events = await client.watch(f"{CLAIMS}?watch=1&resourceVersion={now(client) - 2}")
    assert [event["object"]["code"] for event in events] == [410]
    assert events[0]["object"]["reason"] == "Expired"
    events = await client.watch(f"{CLAIMS}?watch=1&resourceVersion={now(client) - 1}", 1)
    assert told(events) == [("ADDED", "b")]


@pytest.mark.asyncio
async def test_history_is_limited(serve: t.Any) -> None:
    async with serve(history_limit=10) as client:
        start = now(client)
        for number in range(20):
            seed(client, f"c{number}")
        events = await client.watch(f"{CLAIMS}?watch=1&resourceVersion={start}")
        assert events[-1]["object"]["code"] == 410
        assert len(await client.watch(f"{CLAIMS}?watch=1&resourceVersion={now(client) - 9}", 9)) == 9


@pytest.mark.asyncio
async def test_a_client_that_goes_leaves_no_watcher_behind(client: t.Any) -> None:
    collection = client.server.cluster.store.collection("resourceclaims.resource.k8s.io")
    async with client.stream(f"{CLAIMS}?watch=1&resourceVersion={now(client)}"):
        assert len(collection.wakers) == 1
    async with asyncio.timeout(5):
        while collection.wakers:  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_text_survives_any_chunks(client: t.Any) -> None:
    seed(client, "a", annotations={"note": "äöü € 𝄞"})
    client.server.add_fault("split:size=1")
    events = await client.watch(f"{CLAIMS}?watch=1", 1)
    assert events[0]["object"]["metadata"]["annotations"]["note"] == "äöü € 𝄞"


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_silent_watch(client: t.Any) -> None:
    client.server.add_fault("silent_watch:after=1")
    seed(client, "a")
    seed(client, "b")
    async with client.stream(f"{CLAIMS}?watch=1&timeoutSeconds=5") as lines:
        assert json.loads(await lines.readline())["type"] == "ADDED"
        with pytest.raises(asyncio.TimeoutError):
            async with asyncio.timeout(100):
                await lines.readline()


@pytest.mark.asyncio
async def test_dropped_watch(client: t.Any) -> None:
    for name in ("a", "b", "c"):
        seed(client, name)
    client.server.add_fault("drop_watch:after=2,times=1")
    assert told(await client.watch(f"{CLAIMS}?watch=1")) == [("ADDED", "a"), ("ADDED", "b")]
    client.server.add_fault("drop_watch:times=1")
    assert await client.watch(f"{CLAIMS}?watch=1") == []
    client.server.add_fault("drop_watch:after=1,cut=true,times=1")
    with pytest.raises((aiohttp.ClientPayloadError, json.JSONDecodeError)):
        await client.watch(f"{CLAIMS}?watch=1")


@pytest.mark.asyncio
async def test_both_forms_of_an_expired_watch(client: t.Any) -> None:
    with client.server.fault("gone"):
        status, answer = await client.ask("GET", f"{CLAIMS}?watch=1&resourceVersion=5")
        assert (status, answer["reason"]) == (410, "Expired")
    with client.server.fault("expired"):
        events = await client.watch(f"{CLAIMS}?watch=1&resourceVersion=5")
    assert [(event["type"], event["object"]["code"]) for event in events] == [("ERROR", 410)]


@pytest.mark.asyncio
async def test_watch_as_table(client: t.Any) -> None:
    seed(client, "a")
    client.headers["Accept"] = "application/json;as=Table;v=v1;g=meta.k8s.io"
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    first, last = await client.watch(f"{CLAIMS}?{query}", 2)
    assert first["object"]["rows"][0]["cells"][0] == "a"
    assert last["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
