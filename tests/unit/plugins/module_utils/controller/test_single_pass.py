# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One pass over some objects: the plan of check mode, the same carried out, and then nothing more to do."""

# Pylint takes the second context of one "async with" for evaluated before the first.
# pylint: disable=used-before-assignment

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.controller.plan import describe
from ansible_collections.nodeops.dra.plugins.module_utils.controller.rehearsal import merged
from ansible_collections.nodeops.dra.plugins.module_utils.controller.settings import ControllerSettings, Switches
from ansible_collections.nodeops.dra.plugins.module_utils.controller.single_pass import (
    PassResult,
    Selection,
    run_pass,
)
from ansible_collections.nodeops.dra.plugins.module_utils.kube import errors

from .world import GENERATIONS, NS, TOKEN, World, world

Json = dict[str, t.Any]


def shown(result: PassResult) -> list[str]:
    """Verb, resource and name of each request, generated suffixes and all."""
    return [f"{step.use.verb} {step.use.resource} {step.name}" for step in result.steps]


async def check_run_again(cluster: World, selection: Selection, **changed: t.Any) -> list[str]:
    """Check, run, run again, check again, as with any module; gives what was done."""
    await cluster.grant()
    settings = ControllerSettings(**changed)
    async with cluster.connection(TOKEN) as client:
        before = cluster.server.cluster.store.version
        planned = await run_pass(client, selection, settings, perform=False)
        assert cluster.server.cluster.store.version == before
        done = await run_pass(client, selection, settings)
        assert shown(done) == shown(planned)
        assert [step.reason for step in done.steps] == [step.reason for step in planned.steps]
        assert [result.error for result in done.results if result.error] == []
        for perform in (True, False):
            assert shown(await run_pass(client, selection, settings, perform=perform)) == []
    return shown(done)


@pytest.mark.asyncio
@pytest.mark.parametrize("version", GENERATIONS)
async def test_check_run_run_again_check_again(version: str) -> None:
    async with world(version) as cluster:
        await cluster.template()
        await cluster.claim("c1")
        await cluster.claim("c2")
        finished = await cluster.pod("p-0", claims={"a": "c1"})
        await cluster.allocate("c1", finished)
        await cluster.finish("p-0")
        await cluster.allocate("c2")
        await cluster.pod("p-1", templates={"gpu": "t1"}, claims={"b": "c2"}, node="node-1")
        done = await check_run_again(cluster, Selection(namespaces=(NS,)))
        (generated,) = [name for name in cluster.names("p-1").values() if name]
        wanted = [
            f"create resourceclaims {generated}",
            "patch pods/status p-1",
            "patch resourceclaims/status c2",
            *(["create podschedulingcontexts p-1"] if version == "v1alpha2" else []),
            "patch resourceclaims/status c1",
            "patch resourceclaims c1",
        ]
        assert done == wanted


@pytest.mark.asyncio
async def test_check_mode_sees_what_follows_from_each_request() -> None:
    async with world() as cluster:
        await cluster.template()
        spec = {
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t1"}],
            "schedulingPolicy": {"basic": {}},
        }
        await cluster.create("PodGroup", {"metadata": {"name": "pg"}, "spec": spec})
        await cluster.pod("p-1", schedulingGroup={"podGroupName": "pg"})
        finished = await cluster.pod("p-0")
        done = await check_run_again(cluster, Selection(pods=((NS, "p-1"),)))
        assert [line.rsplit(" ", 1)[0] for line in done] == [
            "create resourceclaims",
            "patch podgroups/status",
            "patch pods/status",
        ]
        assert finished["metadata"]["name"] == "p-0"
        assert cluster.names("p-0") == {}


@pytest.mark.asyncio
async def test_a_finished_pod_brings_its_claims_along() -> None:
    async with world() as cluster:
        await cluster.template()
        pod = await cluster.pod()
        await check_run_again(cluster, Selection(pods=((NS, "p-1"),)))
        name = str(cluster.names("p-1")["gpu"])
        await cluster.allocate(name, pod)
        await cluster.finish("p-1")
        assert await check_run_again(cluster, Selection(pods=((NS, "p-1"),))) == [
            f"patch resourceclaims/status {name}",
            f"patch resourceclaims {name}",
            f"delete resourceclaims {name}",
        ]
        assert cluster.stored("ResourceClaim") == []


@pytest.mark.asyncio
async def test_a_deleted_claim_and_consumers_that_have_to_be_asked_for() -> None:
    async with world() as cluster:
        await cluster.claim("c1")
        await cluster.claim("c2")
        gone = {"resource": "pods", "name": "p-9", "uid": "u-9"}
        await cluster.allocate("c1", consumers=[gone])
        await cluster.allocate("c2", consumers=[gone])
        await cluster.delete("ResourceClaim", "c1")
        done = await check_run_again(cluster, Selection(claims=((NS, "c1"),)))
        assert done == ["patch resourceclaims/status c1", "patch resourceclaims c1"]
        (left,) = cluster.stored("ResourceClaim")
        assert left["status"]["reservedFor"] == [gone]


@pytest.mark.asyncio
async def test_what_is_missing_and_what_is_wrong_is_told() -> None:
    async with world() as cluster:
        await cluster.grant()
        await cluster.template(name="choice")
        await cluster.pod("p-1", templates={"a": "absent"})
        await cluster.pod("p-2", templates={"a": "choice"})
        selection = Selection(pods=((NS, "p-1"), (NS, "p-8")), claims=((NS, "c-8"),))
        result = await run_pass(cluster.client, selection, perform=False)
        assert [str(key) for key in result.missing] == [f"pod:{NS}/p-8", f"claim:{NS}/c-8"]
        (wrong,) = result.results
        assert 'resource claim template "absent"' in wrong.problems[0].message
        with cluster.server.fault("error:verb=create,resource=resourceclaims,code=500"):
            result = await run_pass(cluster.client, Selection(pods=((NS, "p-2"),)))
        (wrong,) = result.results
        assert isinstance(wrong.error, errors.ServerFailureError)
        assert wrong.steps == ()
        assert cluster.names("p-2") == {}
        result = await run_pass(cluster.client, Selection(), ControllerSettings(switches=Switches(False, False)))
        assert len(cluster.names("p-2")) == 1


@pytest.mark.asyncio
async def test_a_plan_as_data() -> None:
    async with world() as cluster:
        await cluster.template()
        await cluster.pod()
        result = await run_pass(cluster.client, Selection(namespaces=(NS,)), perform=False)
        first, second = (describe(step) for step in result.steps)
        assert first["verb"] == "create"
        assert first["resource"] == "resourceclaims.resource.k8s.io"
        assert first["namespace"] == NS
        assert first["reason"] == "Pod team-a/p-1 needs a claim for gpu, from ResourceClaimTemplate t1"
        assert first["body"]["metadata"]["name"] == first["name"]
        assert second["resource"] == "pods/status"
        assert second["reason"] == "the status of Pod team-a/p-1 has to name all its generated claims"
        assert (result.looked_at, result.target.version.name) == (1, "v1")


def test_a_merge_patch_changes_neither_side() -> None:
    value: Json = {"a": {"b": 1, "c": [1]}, "d": 2}
    patch: Json = {"a": {"b": None, "e": {"f": 3}}, "d": None, "g": 4}
    assert merged(value, patch) == {"a": {"c": [1], "e": {"f": 3}}, "g": 4}
    assert value == {"a": {"b": 1, "c": [1]}, "d": 2}
    assert patch == {"a": {"b": None, "e": {"f": 3}}, "d": None, "g": 4}
