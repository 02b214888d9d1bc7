# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Statuses of containers, and the health of devices in them, through the server."""

from __future__ import annotations

import typing as t

import pytest

from .conftest import Client, serving

PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
HEALTHY = {"resourceID": "vendor.example/gpu=a", "health": "Healthy"}


async def pod(client: Client) -> t.Any:
    """A pod with two containers of which one uses a claim, and its status as a kubelet writes it first."""
    claims = [{"name": "gpu", "request": "r0"}, {"name": "whole"}]
    containers = [{"name": "main", "image": "i", "resources": {"claims": claims}}, {"name": "side", "image": "i"}]
    refs = [{"name": name, "resourceClaimName": name} for name in ("gpu", "whole")]
    spec = {"containers": containers, "resourceClaims": refs}
    await client.must("POST", PODS, {"metadata": {"name": "p1"}, "spec": spec})
    status = {"containerStatuses": [{"name": "main", "image": "i", "ready": True}, {"name": "side", "image": "i"}]}
    return await client.must("PATCH", f"{PODS}/p1/status", {"status": status}, MERGE)


def health(name: str = "claim:gpu/r0", *resources: t.Any) -> t.Any:
    return [{"name": name, "resources": list(resources or (HEALTHY,))}]


def put(value: t.Any, container: int = 0, version: str = "") -> t.Any:
    """A JSON patch that sets the health of one container."""
    path = f"/status/containerStatuses/{container}/allocatedResourcesStatus"
    guard = [{"op": "test", "path": "/metadata/resourceVersion", "value": version}] if version else []
    return [*guard, {"op": "add", "path": path, "value": value}]


def found(answer: t.Any) -> list[t.Any]:
    return [one.get("allocatedResourcesStatus") for one in answer["status"]["containerStatuses"]]


@pytest.mark.asyncio
async def test_what_go_writes_that_was_not_given() -> None:
    async with serving() as client:
        main, side = (await pod(client))["status"]["containerStatuses"]
    assert main == {
        "name": "main",
        "image": "i",
        "ready": True,
        "restartCount": 0,
        "imageID": "",
        "state": {},
        "lastState": {},
    }
    assert side["ready"] is False


@pytest.mark.asyncio
async def test_a_json_patch_sets_health_and_nothing_else() -> None:
    async with serving() as client:
        made = await pod(client)
        version = made["metadata"]["resourceVersion"]
        answer = await client.must("PATCH", f"{PODS}/p1/status", put(health(), version=version), JSON_PATCH)
        assert found(answer) == [health(), None]
        assert answer["status"]["containerStatuses"][0]["ready"] is True
        status, refused = await client.ask("PATCH", f"{PODS}/p1/status", put([], version=version), JSON_PATCH)
    assert (status, refused["reason"]) == (422, "Invalid")


@pytest.mark.parametrize("kind", [MERGE, STRATEGIC, APPLY])
@pytest.mark.asyncio
async def test_all_other_patches_replace_the_list_of_containers(kind: str) -> None:
    """Which is why an agent beside a kubelet must not send one of these."""
    async with serving() as client:
        await pod(client)
        body = {"status": {"containerStatuses": [{"name": "main", "allocatedResourcesStatus": health()}]}}
        query = ""
        if kind == APPLY:
            body, query = {"apiVersion": "v1", "kind": "Pod", **body}, "?fieldManager=m&force=true"
        (only,) = (await client.must("PATCH", f"{PODS}/p1/status{query}", body, kind))["status"]["containerStatuses"]
    assert (only["name"], only["ready"]) == ("main", False)


@pytest.mark.parametrize(
    ("value", "container", "said"),
    [
        pytest.param(health("claim:gpu"), 0, "in a format 'claim:<claimName>/<request>'", id="request-left-out"),
        pytest.param(health(), 1, "must match one of the container's resource claims", id="other-container"),
        pytest.param(health("example.com/dev"), 0, "must match one of the container's resource requests", id="device"),
        pytest.param(health("claim:whole", HEALTHY, HEALTHY), 0, "Duplicate value", id="twice"),
        pytest.param(
            health("claim:whole", {**HEALTHY, "health": "Sick"}), 0, 'Unsupported value: "Sick"', id="other-word"
        ),
    ],
)
@pytest.mark.asyncio
async def test_health_that_is_refused(value: t.Any, container: int, said: str) -> None:
    async with serving() as client:
        await pod(client)
        status, answer = await client.ask("PATCH", f"{PODS}/p1/status", put(value, container), JSON_PATCH)
    assert status == 422
    assert said in answer["message"]
    assert answer["message"].startswith('Pod "p1" is invalid: ')
    field = answer["details"]["causes"][0]["field"]
    assert field.startswith(f"status.containerStatuses[{container}].allocatedResourcesStatus[0].")


@pytest.mark.asyncio
async def test_init_containers_have_no_health() -> None:
    async with serving() as client:
        await pod(client)
        body = {"status": {"initContainerStatuses": [{"name": "i", "allocatedResourcesStatus": health()}]}}
        status, answer = await client.ask("PATCH", f"{PODS}/p1/status", body, MERGE)
    assert (status, answer["details"]["causes"][0]["reason"]) == (422, "FieldValueForbidden")


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        pytest.param({}, True, id="1.36"),
        pytest.param({"release": (1, 35, 0)}, False, id="1.35"),
        pytest.param({"release": (1, 35, 0), "resource_health": True}, True, id="1.35-with-the-gate"),
        pytest.param({"resource_health": False}, False, id="without-the-gate"),
        pytest.param({"versions": ("v1alpha2",)}, False, id="1.30"),
    ],
)
@pytest.mark.asyncio
async def test_the_gate(settings: t.Any, kept: bool) -> None:
    async with serving(**settings) as client:
        if "versions" not in settings:
            await pod(client)
        else:
            await client.must("POST", PODS, {"metadata": {"name": "p1"}, "spec": {"containers": CLASSIC}})
            status = {"status": {"containerStatuses": [{"name": "main"}]}}
            await client.must("PATCH", f"{PODS}/p1/status", status, MERGE)
        told = {**HEALTHY, "message": "fine"}
        answer = await client.must("PATCH", f"{PODS}/p1/status", put(health("claim:whole", told)), JSON_PATCH)
    resource = told if settings.get("release") is None else HEALTHY
    assert found(answer)[0] == (health("claim:whole", resource) if kept else None)


CLASSIC = [{"name": "main", "image": "i"}]


@pytest.mark.asyncio
async def test_health_that_was_there_before_the_gate_went_off_stays() -> None:
    async with serving() as client:
        await pod(client)
        await client.must("PATCH", f"{PODS}/p1/status", put(health()), JSON_PATCH)
        client.server.settings.resource_health = False
        sick = health("claim:gpu/r0", {**HEALTHY, "health": "Unhealthy"})
        answer = await client.must("PATCH", f"{PODS}/p1/status", put(sick), JSON_PATCH)
    assert found(answer)[0] == sick
