# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Server-side apply: who owns what, who may change it, and what goes when nobody wants it any more."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver import field_sets as fs
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.shapes_pod import POD

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


def pod(*claims: str) -> dict[str, t.Any]:
    references = [{"name": name, "resourceClaimTemplateName": "t"} for name in claims]
    spec = {"containers": [{"name": "c", "image": "x"}], "resourceClaims": references}
    return {"metadata": {"name": "p"}, "spec": spec}


def statuses(**claims: str) -> dict[str, t.Any]:
    entries = [{"name": name, "resourceClaimName": claim} for name, claim in claims.items()]
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    return {**head, "status": {"resourceClaimStatuses": entries} if entries else {}}


async def apply_status(client: t.Any, manager: str = "m", force: bool = True, **claims: str) -> dict[str, t.Any]:
    path = f"{PODS}/p/status?fieldManager={manager}&force={'true' if force else 'false'}"
    answer = await client.must("PATCH", path, statuses(**claims), APPLY)
    found = answer["status"].get("resourceClaimStatuses", [])
    return {entry["name"]: entry.get("resourceClaimName") for entry in found}


@pytest.mark.asyncio
async def test_entries_that_are_left_out_later_go_away(client: t.Any) -> None:
    """Trap 17: the controller has to list all claims each time."""
    await client.must("POST", PODS, pod("a", "b"))
    assert await apply_status(client, a="c-a", b="c-b") == {"a": "c-a", "b": "c-b"}
    assert await apply_status(client, b="c-b") == {"b": "c-b"}
    assert await apply_status(client) == {}


@pytest.mark.asyncio
async def test_entries_of_another_manager_stay(client: t.Any) -> None:
    await client.must("POST", PODS, pod("a", "b"))
    await apply_status(client, "one", a="c-a")
    assert await apply_status(client, "two", b="c-b") == {"a": "c-a", "b": "c-b"}
    assert await apply_status(client, "two") == {"a": "c-a"}


@pytest.mark.asyncio
async def test_an_entry_that_two_managers_want_stays_until_both_drop_it(client: t.Any) -> None:
    await client.must("POST", PODS, pod("a"))
    await apply_status(client, "one", a="c-a")
    await apply_status(client, "two", a="c-a")
    assert await apply_status(client, "one") == {"a": "c-a"}
    assert await apply_status(client, "two") == {}


@pytest.mark.asyncio
async def test_another_value_is_a_conflict_unless_forced(client: t.Any) -> None:
    await client.must("POST", PODS, pod("a"))
    await apply_status(client, "one", a="c-a")
    path = f"{PODS}/p/status?fieldManager=two"
    status, answer = await client.ask("PATCH", path, statuses(a="other"), APPLY)
    assert (status, answer["reason"]) == (409, "Conflict")
    where = '.status.resourceClaimStatuses[name="a"].resourceClaimName'
    assert answer["message"] == f'Apply failed with 1 conflict: conflict with "one" with subresource "status": {where}'
    cause = {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "one" with subresource "status"',
        "field": where,
    }
    assert answer["details"]["causes"] == [cause]
    assert await apply_status(client, "two", force=True, a="other") == {"a": "other"}
    # "one" has lost the field, but not the entry: it goes when both are done.
    assert await apply_status(client, "two", force=True) == {"a": None}


@pytest.mark.asyncio
async def test_an_update_takes_ownership_and_apply_conflicts_with_it(client: t.Any) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1", "b": "1"}}
    made = await client.must("PATCH", f"{MAPS}/m?fieldManager=one", body, APPLY)
    assert made["metadata"]["managedFields"][0]["operation"] == "Apply"
    edited = await client.must("PATCH", f"{MAPS}/m?fieldManager=editor", {"data": {"a": "2"}}, MERGE)
    fields = {entry["manager"]: entry["fieldsV1"] for entry in edited["metadata"]["managedFields"]}
    assert fields == {"one": {"f:data": {"f:b": {}}}, "editor": {"f:data": {"f:a": {}}}}
    status, answer = await client.ask("PATCH", f"{MAPS}/m?fieldManager=one", body, APPLY)
    assert status == 409
    assert answer["message"] == 'Apply failed with 1 conflict: conflict with "editor" using v1: .data.a'
    del body["data"]["a"]  # type: ignore[attr-defined]
    changed = await client.must("PATCH", f"{MAPS}/m?fieldManager=one", body, APPLY)
    assert changed["data"] == {"a": "2", "b": "1"}


@pytest.mark.asyncio
async def test_apply_creates_with_201_and_then_answers_200(client: t.Any) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}}
    assert (await client.ask("PATCH", f"{MAPS}/m?fieldManager=one", body, APPLY))[0] == 201
    assert (await client.ask("PATCH", f"{MAPS}/m?fieldManager=one", body, APPLY))[0] == 200


@pytest.mark.asyncio
async def test_status_cannot_be_applied_through_the_main_path(client: t.Any) -> None:
    await client.must("POST", PODS, pod("a"))
    answer = await client.must("PATCH", f"{PODS}/p?fieldManager=m", statuses(a="c-a"), APPLY)
    assert "resourceClaimStatuses" not in answer["status"]
    assert "m" not in [entry["manager"] for entry in answer["metadata"]["managedFields"]]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("query", "change", "code", "text"),
    [
        pytest.param("", {}, 422, "fieldManager: Required value: is required for apply patch", id="no-manager"),
        pytest.param("?fieldManager=m", {"metadata": {"managedFields": [{}]}}, 400, "must be nil", id="managed-fields"),
        pytest.param("?fieldManager=m", {"apiVersion": "v2"}, 400, "does not match", id="version"),
        pytest.param("?fieldManager=m", {"metadata": {"name": "x"}}, 400, "does not match the name", id="name"),
        pytest.param("?fieldManager=m", b"a: [", 400, "error decoding YAML", id="yaml"),
    ],
)
async def test_configurations_that_are_refused(client: t.Any, query: str, change: t.Any, code: int, text: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}
    sent = change if isinstance(change, bytes) else {**body, **change}
    status, answer = await client.ask("PATCH", f"{MAPS}/m{query}", sent, APPLY)
    assert status == code, answer
    assert text in answer["message"]


@pytest.mark.asyncio
async def test_a_list_item_without_its_key(client: t.Any) -> None:
    await client.must("POST", PODS, pod("a"))
    body = {**statuses(), "status": {"resourceClaimStatuses": [{"resourceClaimName": "x"}]}}
    status, answer = await client.ask("PATCH", f"{PODS}/p/status?fieldManager=m", body, APPLY)
    assert status == 400
    assert 'omits key field "name"' in answer["message"]


@pytest.mark.asyncio
async def test_status_may_not_be_applied_to_a_pod_that_does_not_exist(client: t.Any) -> None:
    status, answer = await client.ask("PATCH", f"{PODS}/p/status?fieldManager=m", statuses(a="c"), APPLY)
    assert (status, answer["reason"]) == (404, "NotFound")


@pytest.mark.asyncio
async def test_an_empty_list_forgets_all_owners(client: t.Any) -> None:
    await client.must("POST", MAPS, {"metadata": {"name": "m"}, "data": {"a": "1"}})
    answer = await client.must("PATCH", f"{MAPS}/m", {"metadata": {"managedFields": [{}]}}, MERGE)
    assert "managedFields" not in answer["metadata"]


def test_sets_of_fields() -> None:
    old = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}}
    new = {"spec": {"containers": [{"name": "a", "image": "2"}]}}
    changed, removed = fs.changes(old, new, POD)
    assert changed == {"f:spec": {"f:containers": {'k:{"name":"a"}': {"f:image": {}}}}}
    gone = {".": {}, "f:name": {}, "f:image": {}}
    assert removed == {"f:spec": {"f:containers": {'k:{"name":"b"}': gone}}}
    both = fs.merge(changed, removed)
    assert fs.without(both, changed) == removed
    assert fs.cut(both, removed) == changed
    assert fs.intersection(both, changed) == changed
    assert [fs.text_of(path) for path in fs.leaves(changed)] == ['.spec.containers[name="a"].image']


def test_a_leaf_and_what_is_below_it_are_different_members() -> None:
    assert fs.union({}, {"f:a": {}}) == {".": {}, "f:a": {}}
    assert fs.difference({".": {}, "f:a": {}}, {}) == {"f:a": {}}
    assert fs.difference({".": {}, "f:a": {}}, {"f:a": {}}) == {}
    assert fs.difference({"f:a": {}}, {"f:a": {}}) is None
