# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""resource.k8s.io in any set of versions, and one object seen through several of them."""

from __future__ import annotations

import itertools
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.settings import VERSIONS, ServerSettings

MERGE = "application/merge-patch+json"
REQUEST = {"name": "gpu", "deviceClassName": "g", "allocationMode": "ExactCount", "count": 2, "adminAccess": False}


def base(version: str, plural: str = "resourceclaims", namespace: str = "namespaces/default/") -> str:
    return f"/apis/resource.k8s.io/{version}/{namespace}{plural}"


def flat() -> dict[str, t.Any]:
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [dict(REQUEST)]}}}


def nested() -> dict[str, t.Any]:
    exactly = {name: value for name, value in REQUEST.items() if name != "name"}
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}


@pytest.mark.asyncio
@pytest.mark.parametrize("versions", [*itertools.combinations(VERSIONS, 1), *itertools.combinations(VERSIONS, 2)])
async def test_any_set_of_versions_is_served_and_told(serve: t.Any, versions: tuple[str, ...]) -> None:
    async with serve(versions=versions[::-1]) as client:
        group = await client.must("GET", "/apis/resource.k8s.io")
        assert [entry["version"] for entry in group["versions"]] == list(versions)
        for version in VERSIONS:
            status, answer = await client.ask("GET", f"/apis/resource.k8s.io/{version}")
            assert status == (200 if version in versions else 404)
            if status == 200:
                names = [entry["name"] for entry in answer["resources"]]
                assert "resourceclaims/status" in names
                assert ("resourceclasses" in names) == (version == "v1alpha2")
                assert ("podschedulingcontexts" in names) == (
                    version == "v1alpha2" or (version == "v1alpha3" and versions[0] == "v1alpha3")
                )


def test_a_version_that_does_not_exist() -> None:
    with pytest.raises(DraError, match=r"v9 of resource\.k8s\.io cannot be served"):
        ServerSettings(versions=("v9",))


@pytest.mark.asyncio
@pytest.mark.parametrize(("written", "body"), [("v1", nested()), ("v1beta2", nested()), ("v1beta1", flat())])
async def test_one_claim_in_the_form_of_each_version(serve: t.Any, written: str, body: t.Any) -> None:
    async with serve(versions=("v1", "v1beta2", "v1beta1")) as client:
        await client.must("POST", base(written), body)
        for version, wanted in (("v1", nested()), ("v1beta2", nested()), ("v1beta1", flat())):
            found = await client.must("GET", f"{base(version)}/c")
            assert found["apiVersion"] == f"resource.k8s.io/{version}"
            assert found["spec"] == wanted["spec"]
            listed = await client.must("GET", base(version))
            assert listed["items"][0]["spec"] == wanted["spec"]
        events = await client.watch(f"{base('v1beta1')}?watch=1", 1)
        assert events[0]["object"]["spec"] == flat()["spec"]


@pytest.mark.asyncio
async def test_a_change_through_the_old_form_keeps_the_spec(serve: t.Any) -> None:
    async with serve(versions=("v1", "v1beta1")) as client:
        await client.must("POST", base("v1"), nested())
        found = await client.must("GET", f"{base('v1beta1')}/c")
        found["metadata"]["labels"] = {"a": "b"}
        await client.must("PUT", f"{base('v1beta1')}/c", found)
        assert (await client.must("GET", f"{base('v1')}/c"))["spec"] == nested()["spec"]


@pytest.mark.asyncio
async def test_slices_with_and_without_basic(serve: t.Any) -> None:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    device = {"name": "d", "attributes": {"model": {"string": "x"}}, "capacity": {"memory": {"value": "1Gi"}}}
    spec = {"driver": "d.example", "pool": pool, "nodeName": "n", "devices": [device]}
    async with serve(versions=("v1", "v1beta1", "v1alpha3")) as client:
        await client.must("POST", base("v1", "resourceslices", ""), {"metadata": {"name": "s"}, "spec": spec})
        old = await client.must("GET", base("v1beta1", "resourceslices", "") + "/s")
        basic = {name: part for name, part in device.items() if name != "name"}
        assert old["spec"]["devices"] == [{"name": "d", "basic": basic}]
        oldest = await client.must("GET", base("v1alpha3", "resourceslices", "") + "/s")
        assert oldest["spec"]["devices"][0]["basic"]["capacity"] == {"memory": "1Gi"}
        oldest["metadata"]["labels"] = {"a": "b"}
        await client.must("PUT", base("v1alpha3", "resourceslices", "") + "/s", oldest)
        assert (await client.must("GET", base("v1", "resourceslices", "") + "/s"))["spec"] == spec


@pytest.mark.asyncio
async def test_classic_claims(serve: t.Any) -> None:
    async with serve(versions=("v1alpha2",)) as client:
        body = {"metadata": {"name": "c"}, "spec": {"resourceClassName": "gpu"}}
        made = await client.must("POST", base("v1alpha2"), body)
        assert made["spec"] == {"resourceClassName": "gpu", "allocationMode": "WaitForFirstConsumer"}
        handle = {"driverName": "d.example", "data": "x"}
        allocated = {"driverName": "d.example", "allocation": {"resourceHandles": [handle]}}
        consumers = [{"resource": "pods", "name": "p", "uid": "u"}]
        path = f"{base('v1alpha2')}/c/status"
        await client.must("PATCH", path, {"status": {**allocated, "reservedFor": consumers}}, MERGE)
        two = [*consumers, {"resource": "pods", "name": "q", "uid": "v"}]
        status, answer = await client.ask("PATCH", path, {"status": {"reservedFor": two}}, MERGE)
        assert (status, answer["reason"]) == (422, "Invalid")
        answer = await client.must("PATCH", path, {"status": {"deallocationRequested": True}}, MERGE)
        assert answer["status"]["deallocationRequested"] is True
        status, answer = await client.ask("POST", base("v1alpha2"), {"metadata": {"name": "d"}, "spec": {}})
        assert answer["details"]["causes"][0]["field"] == "spec.resourceClassName"


@pytest.mark.asyncio
async def test_classic_pods_and_their_sources(serve: t.Any) -> None:
    reference = {"name": "gpu", "source": {"resourceClaimTemplateName": "t"}}
    spec = {"containers": [{"name": "c", "image": "x"}], "resourceClaims": [reference]}
    body = {"metadata": {"name": "p"}, "spec": spec}
    async with serve(versions=("v1alpha2",)) as client:
        made = await client.must("POST", "/api/v1/namespaces/default/pods", body)
        assert made["spec"]["resourceClaims"] == [reference]
    async with serve() as client:
        status, answer = await client.ask("POST", "/api/v1/namespaces/default/pods", body)
        assert (status, answer["details"]["causes"][0]["reason"]) == (422, "FieldValueRequired")


@pytest.mark.asyncio
async def test_what_one_generation_cannot_say_survives_a_write_by_it(serve: t.Any) -> None:
    async with serve(versions=("v1", "v1alpha2"), release=(1, 30, 0)) as client:
        await client.must("POST", base("v1"), nested())
        old = await client.must("GET", f"{base('v1alpha2')}/c")
        assert "devices" not in old["spec"]
        await client.must("PATCH", f"{base('v1alpha2')}/c", {"metadata": {"labels": {"a": "b"}}}, MERGE)
        assert (await client.must("GET", f"{base('v1')}/c"))["spec"] == nested()["spec"]


@pytest.mark.asyncio
async def test_pod_groups_since_1_36(serve: t.Any) -> None:
    path = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
    entry = {"name": "gpu", "resourceClaimTemplateName": "t"}
    async with serve() as client:
        await client.must("POST", path, {"metadata": {"name": "g"}, "spec": {"resourceClaims": [entry]}})
        status = {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "g-gpu-x"}]}}
        answer = await client.must("PATCH", f"{path}/g/status", status, MERGE)
        assert answer["status"] == status["status"]
    async with serve(release=(1, 35, 0)) as client:
        assert (await client.ask("GET", path))[0] == 404


@pytest.mark.asyncio
async def test_one_event_under_two_groups(client: t.Any) -> None:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    body = {
        "metadata": {"name": "e"},
        "regarding": about,
        "note": "n",
        "reason": "R",
        "type": "Warning",
        "action": "A",
        "eventTime": "2026-11-30T12:00:00.000000Z",
        "reportingController": "c",
        "reportingInstance": "i",
    }
    await client.must("POST", "/apis/events.k8s.io/v1/namespaces/default/events", body)
    core = await client.must("GET", "/api/v1/namespaces/default/events/e")
    assert (core["message"], core["involvedObject"], core["reportingComponent"]) == ("n", about, "c")
    again = await client.must("GET", "/apis/events.k8s.io/v1/namespaces/default/events/e")
    assert (again["note"], again["regarding"]) == ("n", about)
