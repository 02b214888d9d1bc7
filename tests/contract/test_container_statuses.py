# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Contract: the statuses of a pod's containers, and the health of devices in them."""

from __future__ import annotations

import typing as t

import pytest

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
HEALTH = [{"name": "claim:gpu/r0", "resources": [{"resourceID": "a.example/b=c", "health": "Unhealthy"}]}]


async def pod(api: t.Any, name: str) -> t.Any:
    """A pod with two containers, the first of which uses a claim; the API server needs no kubelet for its status."""
    use = {"claims": [{"name": "gpu", "request": "r0"}]}
    containers = [{"name": "main", "image": "x", "resources": use}, {"name": "side", "image": "x"}]
    await api.pod(name, containers=containers, resourceClaims=[{"name": "gpu", "resourceClaimName": name}])
    status = {"containerStatuses": [{"name": "main", "image": "x", "started": True}, {"name": "side", "image": "x"}]}
    return await api.must("PATCH", f"{api.pods}/{name}/status", {"status": status}, MERGE)


def put(value: t.Any, version: str, container: int = 0) -> t.Any:
    path = f"/status/containerStatuses/{container}/allocatedResourcesStatus"
    guard = {"op": "test", "path": "/metadata/resourceVersion", "value": version}
    return [guard, {"op": "add", "path": path, "value": value}]


@pytest.mark.asyncio
async def test_what_is_filled_in(api: t.Any, name: str) -> None:
    side = (await pod(api, name))["status"]["containerStatuses"][1]
    zero = {"ready": False, "restartCount": 0, "imageID": "", "state": {}, "lastState": {}}
    assert side == {"name": "side", "image": "x", **zero}


@pytest.mark.asyncio
async def test_health_of_one_container_is_set_by_a_json_patch(api: t.Any, name: str) -> None:
    version = (await pod(api, name))["metadata"]["resourceVersion"]
    answer = await api.must("PATCH", f"{api.pods}/{name}/status", put(HEALTH, version), JSON_PATCH)
    main, side = answer["status"]["containerStatuses"]
    if "allocatedResourcesStatus" not in main:
        pytest.skip("the gate ResourceHealthStatus is off here")
    assert main["allocatedResourcesStatus"] == HEALTH
    assert (main["started"], side["name"], "allocatedResourcesStatus" in side) == (True, "side", False)
    status, refused = await api.ask("PATCH", f"{api.pods}/{name}/status", put([], version), JSON_PATCH)
    assert (status, refused["reason"]) == (422, "Invalid"), "the pod has another version by now"
    assert " is invalid: " not in refused["message"]


@pytest.mark.asyncio
async def test_health_is_for_what_a_container_asks_for(api: t.Any, name: str) -> None:
    version = (await pod(api, name))["metadata"]["resourceVersion"]
    status, refused = await api.ask("PATCH", f"{api.pods}/{name}/status", put(HEALTH, version, 1), JSON_PATCH)
    if status == 200:
        pytest.skip("the gate ResourceHealthStatus is off here")
    assert (status, refused["reason"]) == (422, "Invalid")
    field = "status.containerStatuses[1].allocatedResourcesStatus[0].name"
    assert refused["message"].startswith(f'Pod "{name}" is invalid: {field}: Invalid value: "claim:gpu/r0": must match')


@pytest.mark.parametrize("kind", [MERGE, STRATEGIC], ids=["merge", "strategic"])
@pytest.mark.asyncio
async def test_other_patches_replace_the_list(api: t.Any, name: str, kind: str) -> None:
    await pod(api, name)
    body = {"status": {"containerStatuses": [{"name": "side", "image": "y"}]}}
    (only,) = (await api.must("PATCH", f"{api.pods}/{name}/status", body, kind))["status"]["containerStatuses"]
    assert (only["name"], only["image"]) == ("side", "y")
