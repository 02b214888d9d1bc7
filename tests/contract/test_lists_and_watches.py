# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Contract: lists, pages, selectors and watches."""

from __future__ import annotations

import asyncio
import typing as t
import urllib.parse

import pytest


def names(listed: t.Any) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


def told(events: t.Any) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


async def fill(api: t.Any, name: str, count: int) -> str:
    """Claims ``name-0`` and so on; the selector that finds them."""
    for number in range(count):
        await api.claim(f"{name}-{number}", labels={"part": name, "odd": str(number % 2)})
    return f"labelSelector=part%3D{name}"


@pytest.mark.asyncio
async def test_items_of_a_list_have_no_type(api: t.Any, name: str) -> None:
    selector = await fill(api, name, 1)
    listed = await api.must("GET", f"{api.claims}?{selector}")
    assert (listed["kind"], listed["apiVersion"]) == ("ResourceClaimList", "resource.k8s.io/v1")
    assert "kind" not in listed["items"][0]


@pytest.mark.asyncio
async def test_pages_show_one_moment(api: t.Any, name: str) -> None:
    namespace = f"{api.maps}?limit=2"
    for number in range(5):
        await api.must("POST", api.maps, {"metadata": {"name": f"{name}-{number}"}})
    whole = names(await api.must("GET", api.maps))
    first = await api.must("GET", namespace)
    found = names(first)
    await api.must("DELETE", f"{api.maps}/{name}-4")
    await api.must("POST", api.maps, {"metadata": {"name": f"{name}-5"}})
    following = first["metadata"]["continue"]
    assert first["metadata"]["remainingItemCount"] == len(whole) - 2
    versions = {first["metadata"]["resourceVersion"]}
    while following:
        page = await api.must("GET", f"{namespace}&continue={urllib.parse.quote(following)}")
        found += names(page)
        versions.add(page["metadata"]["resourceVersion"])
        following = page["metadata"].get("continue")
    assert found == whole
    assert len(versions) == 1


@pytest.mark.asyncio
async def test_a_continue_token_that_is_none(api: t.Any) -> None:
    status, answer = await api.ask("GET", f"{api.claims}?limit=3&continue=xyz")
    assert (status, answer["reason"]) == (400, "BadRequest")
    assert "continue key is not valid" in answer["message"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("condition", "numbers"),
    [
        ("odd=1", [1]),
        ("odd!=1", [0, 2]),
        ("odd in (1,2)", [1]),
        ("odd notin (0)", [1]),
        ("!odd", []),
        ("odd,odd>0", [1]),
    ],
)
async def test_label_selectors(api: t.Any, name: str, condition: str, numbers: list[int]) -> None:
    selector = await fill(api, name, 3)
    listed = await api.must("GET", f"{api.claims}?{selector},{urllib.parse.quote(condition)}")
    assert names(listed) == [f"{name}-{number}" for number in numbers]


@pytest.mark.asyncio
async def test_field_selectors(api: t.Any, name: str) -> None:
    await api.claim(name)
    listed = await api.must("GET", f"{api.claims}?fieldSelector=metadata.name%3D{name}")
    assert names(listed) == [name]
    await api.pod(name)
    listed = await api.must("GET", f"{api.pods}?fieldSelector=spec.nodeName%3D,metadata.name%3D{name}")
    assert names(listed) == [name]
    listed = await api.must("GET", f"{api.pods}?fieldSelector=status.phase!%3DPending,metadata.name%3D{name}")
    assert names(listed) == []
    status, answer = await api.ask("GET", f"{api.claims}?fieldSelector=spec.x%3D1")
    assert (status, answer["reason"]) == (400, "BadRequest")


@pytest.mark.asyncio
async def test_versions_of_lists(api: t.Any, name: str) -> None:
    selector = await fill(api, name, 1)
    version = await api.version()
    await api.claim(f"{name}-9", labels={"part": name})
    exact = f"resourceVersion={version}&resourceVersionMatch=Exact"
    assert names(await api.must("GET", f"{api.claims}?{selector}&{exact}")) == [f"{name}-0"]
    newer = f"resourceVersion={version}&resourceVersionMatch=NotOlderThan"
    listed = await api.must("GET", f"{api.claims}?{selector}&{newer}")
    assert int(listed["metadata"]["resourceVersion"]) >= int(version)


@pytest.mark.asyncio
async def test_a_list_from_the_future(api: t.Any) -> None:
    query = "resourceVersion=999999999999&resourceVersionMatch=NotOlderThan"
    status, answer = await api.ask("GET", f"{api.claims}?{query}")
    assert (status, answer["reason"]) == (504, "Timeout")
    assert answer["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@pytest.mark.asyncio
async def test_a_watch_goes_on_where_a_list_ended(api: t.Any, name: str) -> None:
    selector = await fill(api, name, 2)
    version = await api.version()
    await api.merge(f"{api.claims}/{name}-0", {"metadata": {"annotations": {"note": "äöü € 𝄞"}}})
    await api.must("DELETE", f"{api.claims}/{name}-1")
    await api.claim(f"{name}-2", labels={"part": name})
    query = f"watch=1&timeoutSeconds=30&resourceVersion={version}&{selector}"
    events = await api.watch(f"{api.claims}?{query}", 3)
    assert told(events) == [("MODIFIED", f"{name}-0"), ("DELETED", f"{name}-1"), ("ADDED", f"{name}-2")]
    assert events[0]["object"]["metadata"]["annotations"]["note"] == "äöü € 𝄞"
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))
    assert versions[0] > int(version)


@pytest.mark.asyncio
async def test_a_watch_without_a_version_starts_with_what_is_there(api: t.Any, name: str) -> None:
    selector = await fill(api, name, 2)
    events = await api.watch(f"{api.claims}?watch=1&timeoutSeconds=30&{selector}", 2)
    assert told(events) == [("ADDED", f"{name}-0"), ("ADDED", f"{name}-1")]


@pytest.mark.asyncio
async def test_what_leaves_the_selection_is_deleted_for_the_watcher(api: t.Any, name: str) -> None:
    selector = await fill(api, name, 1)
    version = await api.version()
    changed = await api.merge(f"{api.claims}/{name}-0", {"metadata": {"labels": {"part": "other"}}})
    await api.merge(f"{api.claims}/{name}-0", {"metadata": {"labels": {"part": name}}})
    query = f"watch=1&timeoutSeconds=30&resourceVersion={version}&{selector}"
    events = await api.watch(f"{api.claims}?{query}", 2)
    assert told(events) == [("DELETED", f"{name}-0"), ("ADDED", f"{name}-0")]
    assert events[0]["object"]["metadata"]["labels"]["part"] == name
    assert events[0]["object"]["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]


@pytest.mark.asyncio
async def test_a_finished_deletion_is_told_with_a_new_version(api: t.Any, name: str) -> None:
    selector = await fill(api, name, 1)
    version = await api.version()
    gone = await api.must("DELETE", f"{api.claims}/{name}-0")
    query = f"watch=1&timeoutSeconds=30&resourceVersion={version}&{selector}"
    events = await api.watch(f"{api.claims}?{query}", 1)
    assert told(events) == [("DELETED", f"{name}-0")]
    assert events[0]["object"]["metadata"]["resourceVersion"] == gone["metadata"]["resourceVersion"]


@pytest.mark.asyncio
async def test_a_watch_ends_when_its_time_is_over_after_a_bookmark(api: t.Any) -> None:
    loop = asyncio.get_running_loop()
    version = await api.version()
    before = loop.time()
    query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion={version}"
    events = await api.watch(f"{api.leases}?{query}&fieldSelector=metadata.name%3Dnone")
    assert 2 <= loop.time() - before < 30
    assert {event["type"] for event in events} <= {"BOOKMARK"}
    for event in events:
        assert event["object"]["kind"] == "Lease"
        assert int(event["object"]["metadata"]["resourceVersion"]) >= int(version)


@pytest.mark.asyncio
async def test_a_watch_from_too_old_a_version_tells_410_as_an_event(api: t.Any) -> None:
    events = await api.watch(f"{api.claims}?watch=1&timeoutSeconds=30&resourceVersion=1", 1)
    assert events[0]["type"] == "ERROR"
    assert (events[0]["object"]["code"], events[0]["object"]["reason"]) == (410, "Expired")
    assert events[0]["object"]["message"].startswith("too old resource version: 1 (")


@pytest.mark.asyncio
async def test_watch_list_marks_the_end_of_what_was_there(api: t.Any, name: str) -> None:
    selector = await fill(api, name, 2)
    query = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    events = await api.watch(f"{api.claims}?{query}&timeoutSeconds=30&{selector}", 3)
    assert told(events) == [("ADDED", f"{name}-0"), ("ADDED", f"{name}-1"), ("BOOKMARK", "")]
    assert events[2]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@pytest.mark.asyncio
async def test_dependents_go_after_their_owner(api: t.Any, name: str) -> None:
    owner = await api.must("POST", api.maps, {"metadata": {"name": name}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner["metadata"]["uid"]}
    await api.claim(name, ownerReferences=[reference])
    version = await api.version()
    await api.must("DELETE", f"{api.maps}/{name}")
    query = f"watch=1&timeoutSeconds=20&resourceVersion={version}&fieldSelector=metadata.name%3D{name}"
    events = await api.watch(f"{api.claims}?{query}", 1)
    if not events:
        pytest.skip("no garbage collector works in this cluster")
    assert told(events) == [("DELETED", name)]
