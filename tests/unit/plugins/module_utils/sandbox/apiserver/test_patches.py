# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""JSON patch, merge patch and strategic merge patch as functions, and through the server."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.failures import ApiError
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.patches import json_patch, merge_patch
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.shapes_pod import POD
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.strategic_patch import strategic_patch

PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize(
    ("operations", "result"),
    [
        pytest.param([{"op": "add", "path": "/b", "value": 1}], {"a": [1, 2], "b": 1}, id="add"),
        pytest.param([{"op": "add", "path": "/a/1", "value": 9}], {"a": [1, 9, 2]}, id="insert"),
        pytest.param([{"op": "add", "path": "/a/-", "value": 9}], {"a": [1, 2, 9]}, id="append"),
        pytest.param([{"op": "remove", "path": "/a/0"}], {"a": [2]}, id="remove"),
        pytest.param([{"op": "replace", "path": "/a", "value": None}], {"a": None}, id="replace"),
        pytest.param([{"op": "copy", "from": "/a", "path": "/c/d~1e"}], None, id="no-parent"),
        pytest.param([{"op": "copy", "from": "/a", "path": "/d~1e"}], {"a": [1, 2], "d/e": [1, 2]}, id="escape"),
        pytest.param([{"op": "move", "from": "/a", "path": "/b"}], {"b": [1, 2]}, id="move"),
        pytest.param([{"op": "test", "path": "/a/0", "value": 1}], {"a": [1, 2]}, id="test"),
        pytest.param([{"op": "test", "path": "/a/0", "value": True}], None, id="true-is-not-1"),
        pytest.param([{"op": "test", "path": "/none", "value": None}], {"a": [1, 2]}, id="absent-is-null"),
        pytest.param([{"op": "remove", "path": "/none"}], None, id="remove-nothing"),
        pytest.param([{"op": "replace", "path": "/a/2", "value": 0}], None, id="behind-the-end"),
        pytest.param([{"op": "add", "path": "/a/01", "value": 0}], None, id="leading-zero"),
        pytest.param([{"op": "add", "path": "a", "value": 0}], None, id="no-slash"),
        pytest.param([{"op": "jump", "path": "/a"}], None, id="unknown"),
    ],
)
def test_json_patch(operations: t.Any, result: t.Any) -> None:
    document = {"a": [1, 2]}
    if result is None:
        with pytest.raises(ApiError) as failure:
            json_patch(document, operations)
        assert failure.value.code == 422
    else:
        assert json_patch(document, operations) == result


def test_json_patch_has_a_limit() -> None:
    with pytest.raises(ApiError, match="allowed maximum operations in a JSON patch is 10000, got 10001"):
        json_patch({}, [{}] * 10_001)


def test_merge_patch() -> None:
    before = {"a": {"b": 1, "c": 2}, "d": [1], "e": 1}
    assert merge_patch(before, {"a": {"b": None, "x": 3}, "d": [2], "e": {"f": None}}) == {
        "a": {"c": 2, "x": 3},
        "d": [2],
        "e": {},
    }
    assert before == {"a": {"b": 1, "c": 2}, "d": [1], "e": 1}


CONTAINERS = [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "1"}]


@pytest.mark.parametrize(
    ("patch", "names", "check"),
    [
        pytest.param([{"name": "a", "image": "2"}], ["a", "b"], ("a", "2"), id="one-item"),
        pytest.param([{"name": "c", "image": "3"}], ["a", "b", "c"], ("c", "3"), id="new-item"),
        pytest.param([{"name": "a", "$patch": "delete"}], ["b"], ("b", "1"), id="delete"),
        pytest.param([{"$patch": "replace"}, {"name": "z", "image": "9"}], ["z"], ("z", "9"), id="replace"),
    ],
)
def test_strategic_patch_of_a_list_that_is_a_map(patch: t.Any, names: t.Any, check: t.Any) -> None:
    result = strategic_patch({"spec": {"containers": CONTAINERS}}, {"spec": {"containers": patch}}, POD)
    containers = result["spec"]["containers"]
    assert [container["name"] for container in containers] == names
    assert (check[0], check[1]) in [(container["name"], container["image"]) for container in containers]


def test_strategic_patch_merges_inside_items_and_keeps_the_rest() -> None:
    patch = {"spec": {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}]}}
    result = strategic_patch({"spec": {"containers": CONTAINERS}}, patch, POD)
    assert [entry["name"] for entry in result["spec"]["containers"][0]["env"]] == ["X", "Y"]
    assert result["spec"]["containers"][0]["image"] == "1"


def test_strategic_patch_directives() -> None:
    before = {"metadata": {"finalizers": ["a", "b"]}, "spec": {"tolerations": [{"key": "x"}], "hostNetwork": True}}
    patch = {
        "metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]},
        "spec": {"tolerations": [{"key": "y"}], "$retainKeys": ["tolerations"]},
    }
    result = strategic_patch(before, patch, POD)
    assert result == {"metadata": {"finalizers": ["b", "c"]}, "spec": {"tolerations": [{"key": "y"}]}}


def test_strategic_patch_orders_what_it_names() -> None:
    patch = {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": []}}
    result = strategic_patch({"spec": {"containers": CONTAINERS}}, patch, POD)
    assert [container["name"] for container in result["spec"]["containers"]] == ["b", "a"]


def test_strategic_patch_needs_the_merge_key() -> None:
    with pytest.raises(ApiError, match="does not contain declared merge key: name"):
        strategic_patch({}, {"spec": {"containers": [{"image": "x"}]}}, POD)


@pytest.mark.asyncio
async def test_conditions_of_two_writers_live_together(client: t.Any) -> None:
    await client.must("POST", PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}})
    for kind in ("Ready", "Initialized"):
        change = {"status": {"conditions": [{"type": kind, "status": "True"}]}}
        result = await client.must("PATCH", f"{PODS}/p/status", change, "application/strategic-merge-patch+json")
    assert [condition["type"] for condition in result["status"]["conditions"]] == ["Ready", "Initialized"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("kind", "body", "code"),
    [
        pytest.param("application/json", {}, 415, id="no-patch-type"),
        pytest.param("application/merge-patch+json", [1], 400, id="merge-of-a-list"),
        pytest.param("application/merge-patch+json", b"{", 400, id="no-json"),
        pytest.param("application/json-patch+json", {}, 400, id="json-patch-of-an-object"),
        pytest.param("application/merge-patch+json", {"metadata": {"name": "q"}}, 422, id="rename"),
        pytest.param("application/merge-patch+json", {"metadata": {"uid": "q"}}, 409, id="other-uid"),
    ],
)
async def test_patches_that_are_refused(client: t.Any, kind: str, body: t.Any, code: int) -> None:
    await client.must("POST", PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}})
    status, answer = await client.ask("PATCH", f"{PODS}/p", body, kind)
    assert status == code, answer
