# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One pass as the module claim_sync makes it: what is shown, what is done, what is refused."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.controller.sync import IncompletePassError, shown, sync
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.rights import user_from

from .world import GENERATIONS, NS, Json, World, world


def options(there: World, token: str = "", **changed: t.Any) -> Json:
    """The options of a task."""
    given = {"admin_access": True, "prioritized_list": True, "timeout": 60.0, **changed}
    return {"kubeconfig": there.server.kubeconfig(token), **given}


def told(result: Json) -> list[str]:
    """The requests of a result, in short."""
    return [f"{one['verb']} {one['resource'].partition('.')[0]} {one['name']}" for one in result["requests"]]


@pytest.mark.asyncio
@pytest.mark.parametrize("version", GENERATIONS)
async def test_a_plan_writes_nothing_and_comes_true(version: str) -> None:
    async with world(version) as there:
        await there.template()
        await there.pod("p-1")
        before = there.writes()
        plan = await sync(options(there, namespaces=[NS]), perform=False)
        assert there.writes() == before
        assert plan["changed"]
        assert plan["api_version"] == f"resource.k8s.io/{version}"

        done = await sync(options(there, namespaces=[NS]), perform=True)
        shape = [(one["verb"], one["resource"], one["reason"]) for one in plan["requests"]]
        assert [(one["verb"], one["resource"], one["reason"]) for one in done["requests"]] == shape
        assert [one["verb"] for one in done["requests"]] == ["create", "patch"]
        (claim,) = await there.all("ResourceClaim")
        assert there.names("p-1") == {"gpu": claim["metadata"]["name"]}

        again = await sync(options(there, namespaces=[NS]), perform=True)
        assert not again["changed"]
        assert again["requests"] == []
        json.dumps([plan, done, again])


@pytest.mark.asyncio
async def test_a_finished_pod_lets_go_of_its_claim() -> None:
    async with world() as there:
        await there.template()
        pod = await there.pod("p-1")
        await sync(options(there, pods=[f"{NS}/p-1"]), perform=True)
        (claim,) = await there.all("ResourceClaim")
        name = claim["metadata"]["name"]
        await there.allocate(name, pod)
        await there.finish("p-1")

        plan = await sync(options(there, claims=[f"{NS}/{name}"]), perform=False)
        done = await sync(options(there, claims=[f"{NS}/{name}"]), perform=True)
        expected = ["patch resourceclaims/status", "patch resourceclaims", "delete resourceclaims"]
        assert told(plan) == told(done) == [f"{what} {name}" for what in expected]
        assert await there.all("ResourceClaim") == []
        assert shown(done["requests"]).count(f"{NS}/{name}: ") == 3


@pytest.mark.asyncio
async def test_only_what_is_selected_is_touched() -> None:
    async with world() as there:
        await there.template()
        for name in ("p-1", "p-2"):
            await there.pod(name)
        done = await sync(options(there, pods=[f"{NS}/p-2", f"{NS}/gone"]), perform=True)
        assert done["missing"] == [{"kind": "Pod", "namespace": NS, "name": "gone"}]
        assert there.names("p-1") == {}
        assert list(there.names("p-2")) == ["gpu"]
        everything = await sync(options(there), perform=False)
        assert [one["name"] for one in everything["requests"] if one["verb"] == "patch"] == ["p-1"]


@pytest.mark.asyncio
async def test_what_no_request_can_mend_is_a_problem() -> None:
    async with world() as there:
        await there.pod("p-1", templates={"gpu": "nowhere"})
        done = await sync(options(there, namespaces=[NS]), perform=True)
        assert not done["changed"]
        (problem,) = done["problems"]
        assert (problem["kind"], problem["name"], problem["reason"]) == ("Pod", "p-1", "FailedResourceClaimCreation")
        assert '"nowhere" not found' in problem["message"]


@pytest.mark.asyncio
async def test_switches_are_obeyed() -> None:
    async with world() as there:
        await there.client.patch(
            there.target.resource("Namespace"),
            {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}},
            NS,
        )
        await there.template(adminAccess=True)
        await there.pod("p-1")
        refused = await sync(options(there, admin_access=False), perform=False)
        assert "the feature is disabled" in refused["problems"][0]["message"]
        allowed = await sync(options(there), perform=False)
        assert allowed["problems"] == []
        assert [one["verb"] for one in allowed["requests"]] == ["create", "patch"]


@pytest.mark.asyncio
async def test_a_failure_with_one_object_does_not_stop_the_others() -> None:
    async with world() as there:
        await there.template()
        for name in ("p-1", "p-2"):
            await there.pod(name)
        there.server.faults.add("error:code=403,verb=create,resource=resourceclaims,times=1")
        with pytest.raises(IncompletePassError) as raised:
            await sync(options(there, namespaces=[NS]), perform=True)
        facts = raised.value.to_dict()
        (failure,) = facts["failures"]
        assert failure["kind"] == "Pod"
        assert failure["name"] in raised.value.message
        assert [one["verb"] for one in facts["requests"]] == ["create", "patch"]
        await sync(options(there, namespaces=[NS]), perform=True)
        assert len(await there.all("ResourceClaim")) == 2


@pytest.mark.asyncio
async def test_missing_rights_are_named_before_anything_is_written() -> None:
    async with world() as there:
        await there.template()
        await there.pod("p-1")
        readers = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
        there.server.settings.tokens["reader"] = user_from({"name": "reader", "rules": [readers]})
        before = there.writes()
        with pytest.raises(DraError, match="create resourceclaims") as raised:
            await sync(options(there, "reader", namespaces=[NS]), perform=True)
        assert there.writes() == before
        assert raised.value.hint


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["training", "team-a/", "/training", "team-a/x/y", ""])
async def test_a_name_without_its_namespace_is_refused(name: str) -> None:
    async with world() as there:
        with pytest.raises(DraError, match="expected a namespace and a name"):
            await sync(options(there, pods=[name]), perform=True)
        assert there.writes() == {}


@pytest.mark.asyncio
async def test_a_server_that_cannot_be_reached_is_told_with_its_url() -> None:
    given = {"admin_access": True, "prioritized_list": True, "timeout": 30.0, "host": "http://127.0.0.1:1"}
    with pytest.raises(DraError, match=r"127\.0\.0\.1:1"):
        await sync(given, perform=False)


@pytest.mark.asyncio
async def test_a_pass_that_takes_too_long_ends_with_what_to_do() -> None:
    async with world() as there:
        there.server.faults.add("latency:seconds=30,verb=list")
        with pytest.raises(DraError, match=r"not done after 0\.5 seconds") as raised:
            await sync(options(there, timeout=0.5), perform=True)
        assert "longer timeout" in raised.value.hint
