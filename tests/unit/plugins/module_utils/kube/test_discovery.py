# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which versions a server serves, which one is used, and which rights we have there."""

from __future__ import annotations

import typing as t

import pytest
from aiohttp import web
from ansible_collections.nodeops.dra.plugins.module_utils.kube import errors
from ansible_collections.nodeops.dra.plugins.module_utils.kube.discovery import discover, served_group, server_release
from ansible_collections.nodeops.dra.plugins.module_utils.kube.rights import Right, review
from ansible_collections.nodeops.dra.plugins.module_utils.resource.versions import NoUsableVersionError

from .stub_api import StubApi, connected, failure, status

pytestmark = pytest.mark.asyncio

CLAIM_RESOURCES = ("resourceclaims", "resourceclaims/status", "resourceclaimtemplates")


def serve(api: StubApi, groups: t.Mapping[str, t.Mapping[str, t.Sequence[str]]]) -> None:
    """Let a stub serve these groups: group to version to resources."""

    async def route(request: web.Request) -> web.StreamResponse:
        _unused, _apis, group, *version = request.path.split("/")
        versions = groups.get(group)
        if versions is None:
            return web.Response(status=404, text="404 page not found\n")
        if not version:
            entries = [{"groupVersion": f"{group}/{name}", "version": name} for name in versions]
            return web.json_response({"kind": "APIGroup", "name": group, "versions": entries})
        if version[0] not in versions:
            return failure(404, "NotFound", "the server could not find the requested resource")
        resources = [{"name": name, "namespaced": True, "kind": "X", "verbs": []} for name in versions[version[0]]]
        return web.json_response({"kind": "APIResourceList", "resources": resources})

    api.otherwise = route


@pytest.mark.report("F067")
@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        pytest.param({"v1beta1": CLAIM_RESOURCES}, "v1beta1", id="beta-only"),
        pytest.param({"v1": CLAIM_RESOURCES}, "v1", id="v1-only"),
        pytest.param({"v1beta1": CLAIM_RESOURCES, "v1": CLAIM_RESOURCES, "v1beta2": CLAIM_RESOURCES}, "v1", id="best"),
        pytest.param({"v1alpha3": ("devicetaintrules",), "v1beta1": CLAIM_RESOURCES}, "v1beta1", id="alpha-no-claims"),
        pytest.param({"v1alpha2": (*CLAIM_RESOURCES, "podschedulingcontexts")}, "v1alpha2", id="classic"),
    ],
)
async def test_the_best_version_with_claims_is_used(versions: t.Mapping[str, t.Sequence[str]], expected: str) -> None:
    async with connected() as (api, client):
        serve(api, {"resource.k8s.io": versions})
        found = await discover(client)
    assert found.claims.name == expected
    assert found.resource("ResourceClaim").collection("team-a") == (
        f"/apis/resource.k8s.io/{expected}/namespaces/team-a/resourceclaims"
    )
    assert found.pod_groups is None
    assert found.has("podschedulingcontexts") == (expected == "v1alpha2")


@pytest.mark.report("F067")
@pytest.mark.parametrize(
    ("groups", "text"),
    [
        pytest.param({}, r"does not serve resource\.k8s\.io", id="none"),
        pytest.param({"resource.k8s.io": {"v1alpha3": CLAIM_RESOURCES}}, "only in v1alpha3", id="alpha-only"),
    ],
)
async def test_no_usable_version_is_refused_in_words(groups: dict[str, t.Any], text: str) -> None:
    async with connected() as (api, client):
        serve(api, groups)
        with pytest.raises(NoUsableVersionError, match=text):
            await discover(client, allow_alpha=False)


@pytest.mark.report("F067")
async def test_a_cluster_that_changes_its_versions_is_discovered_again() -> None:
    async with connected() as (api, client):
        serve(api, {"resource.k8s.io": {"v1beta1": CLAIM_RESOURCES}})
        before = await discover(client)
        serve(api, {"resource.k8s.io": {"v1": CLAIM_RESOURCES}})
        with pytest.raises(errors.NotServedError):
            await client.get(before.resource("ResourceClaim"), "c1", "team-a")
        assert (await discover(client)).claims.name == "v1"


async def test_pod_groups_are_used_where_they_are_served() -> None:
    scheduling = {"v1": ("priorityclasses",), "v1alpha2": ("podgroups", "workloads")}
    async with connected() as (api, client):
        serve(api, {"resource.k8s.io": {"v1": CLAIM_RESOURCES}, "scheduling.k8s.io": scheduling})
        found = await discover(client)
        assert found.pod_groups == "v1alpha2"
        assert found.resource("PodGroup").api_version == "scheduling.k8s.io/v1alpha2"
        assert (await discover(client, pod_groups=False)).pod_groups is None


async def test_a_version_that_goes_between_two_questions() -> None:
    async with connected() as (api, client):
        serve(api, {"resource.k8s.io": {"v1": CLAIM_RESOURCES}})
        group = {"kind": "APIGroup", "versions": [{"version": "v1"}, {"version": "v1beta1"}]}
        first = web.json_response(group)

        async def once(request: web.Request) -> web.StreamResponse:
            return first

        api.script = [once]
        assert list((await served_group(client, "resource.k8s.io")).versions) == ["v1"]


@pytest.mark.parametrize(("text", "expected"), [("v1.36.2", "1.36.2"), ("v1.32.1-eks-abc", "1.32.1"), ("dev", "None")])
async def test_the_release_of_the_server(text: str, expected: str) -> None:
    async with connected() as (api, client):

        async def route(request: web.Request) -> web.StreamResponse:
            return web.json_response({"gitVersion": text})

        api.otherwise = route
        assert str(await server_release(client)) == expected


@pytest.mark.report("F101")
async def test_rights_are_asked_for_one_by_one() -> None:
    async with connected() as (api, client):

        async def route(request: web.Request) -> web.StreamResponse:
            asked = (await request.json())["spec"]["resourceAttributes"]
            if asked.get("subresource") == "status":
                return web.json_response({"status": {"allowed": False, "reason": "no RBAC policy matched"}}, status=201)
            return web.json_response({"status": {"allowed": True}}, status=201)

        api.otherwise = route
        rights = [
            Right("list", "resourceclaims", "resource.k8s.io"),
            Right("patch", "resourceclaims/status", "resource.k8s.io", "team-a"),
        ]
        found = await review(client, rights)
    assert [(str(entry.right), entry.allowed, entry.reason) for entry in found] == [
        ("list resourceclaims.resource.k8s.io", True, ""),
        ("patch resourceclaims/status.resource.k8s.io in team-a", False, "no RBAC policy matched"),
    ]
    assert api.requests == ["POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"] * 2
    assert api.bodies[1]["spec"]["resourceAttributes"] == {
        "verb": "patch",
        "group": "resource.k8s.io",
        "resource": "resourceclaims",
        "subresource": "status",
        "namespace": "team-a",
    }


async def test_a_server_that_may_not_be_asked_says_so() -> None:
    async with connected() as (api, client):

        async def route(request: web.Request) -> web.StreamResponse:
            return web.json_response(status(403, "Forbidden", "no discovery"), status=403)

        api.otherwise = route
        with pytest.raises(errors.ForbiddenError, match=r"GET .*/apis/resource\.k8s\.io was answered with 403"):
            await discover(client)
