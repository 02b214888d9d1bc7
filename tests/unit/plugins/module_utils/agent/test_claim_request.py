# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What is asked for, and which objects are missing for it."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.claim_request import (
    DEFAULT_HOLDER,
    ClaimRequest,
    complete,
    identity,
    plan,
)
from ansible_collections.nodeops.dra.plugins.module_utils.agent.claim_task import needs_api
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import Json
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim, device, pod

NAMED: Json = {"metadata": {"namespace": "team-a", "name": "c1"}}


class Api:
    """Gives objects by kind and name, and notes what was asked."""

    def __init__(self, *objects: tuple[str, Json]) -> None:
        self.objects = {(kind, one["metadata"]["namespace"], one["metadata"]["name"]): one for kind, one in objects}
        self.asked: list[str] = []

    async def fetch(self, kind: str, namespace: str, name: str) -> Json:
        self.asked.append(f"{kind} {namespace}/{name}")
        return self.objects[kind, namespace, name]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(ClaimRequest("prepared", claims=[claim()]), False, id="claim given whole"),
        pytest.param(ClaimRequest("prepared", claims=[claim(), NAMED]), True, id="one of two claims by name"),
        pytest.param(ClaimRequest("prepared", pod=pod()), True, id="pod without its claims"),
        pytest.param(ClaimRequest("prepared", pod=pod(), claims=[claim()]), False, id="pod with its claims"),
        pytest.param(ClaimRequest("prepared", pod=NAMED, claims=[claim()]), True, id="pod by name"),
        pytest.param(ClaimRequest("checked", claims=[NAMED]), True, id="check of a claim by name"),
        pytest.param(ClaimRequest("unprepared", claims=[NAMED]), False, id="unprepare by name"),
        pytest.param(ClaimRequest("forgotten", pod=NAMED), False, id="forget the claims of a pod"),
    ],
)
def test_the_api_is_asked_only_for_what_has_to_be_prepared(request_: ClaimRequest, expected: bool) -> None:
    assert needs_api(request_) is expected


@pytest.mark.asyncio
async def test_claims_without_a_pod_are_one_transaction_of_one_holder() -> None:
    api = Api(("ResourceClaim", claim()))
    two = [NAMED, claim("c2", "u-2", device("dev-1"))]
    wanted = await plan(ClaimRequest("prepared", claims=two), api.fetch)
    assert [one.full_name for one in wanted.plans] == ["team-a/c1", "team-a/c2"]
    assert (wanted.holder.uid, wanted.holder.is_pod) == (f"holder:{DEFAULT_HOLDER}", False)
    assert wanted.holder.label == "holder nodeops.dra"
    assert api.asked == ["ResourceClaim team-a/c1"]


@pytest.mark.asyncio
async def test_a_pod_brings_its_claims() -> None:
    both = [claim(), claim("c2", "u-2", device("dev-1"))]
    api = Api(("Pod", pod("p-1", "c1", "c2")), *(("ResourceClaim", one) for one in both))
    asked = {"metadata": {"namespace": "team-a", "name": "name-of-p-1"}}
    wanted = await plan(ClaimRequest("prepared", pod=asked, claims=[both[1]]), api.fetch)
    assert [one.uid for one in wanted.plans] == ["u-1", "u-2"]
    assert wanted.holder.label == "pod team-a/name-of-p-1 (p-1)"
    assert api.asked == ["Pod team-a/name-of-p-1", "ResourceClaim team-a/c1"]


@pytest.mark.report("F092")
@pytest.mark.asyncio
async def test_an_object_that_was_made_anew_is_not_taken_for_the_old_one() -> None:
    api = Api(("ResourceClaim", claim("c1", "u-2")))
    asked = {"metadata": {**NAMED["metadata"], "uid": "u-1"}}
    with pytest.raises(DraError, match="UID u-2 in the API, UID u-1 was asked for") as failed:
        await complete("ResourceClaim", asked, api.fetch, "status")
    assert (failed.value.facts["expected"], failed.value.facts["found"]) == ("u-1", "u-2")


@pytest.mark.parametrize(
    "thing", [{}, {"metadata": None}, {"metadata": "c1"}, {"metadata": {"uid": 7, "name": None, "namespace": ["a"]}}]
)
def test_what_is_no_name_is_none(thing: dict[str, t.Any]) -> None:
    assert identity(thing) == ("", "", "")
