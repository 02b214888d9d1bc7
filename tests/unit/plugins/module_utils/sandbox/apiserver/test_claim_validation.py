# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the API server refuses in claims, templates, slices and pods."""

from __future__ import annotations

import typing as t

import pytest

BASE = "/apis/resource.k8s.io/v1"
CLAIMS = f"{BASE}/namespaces/default/resourceclaims"
TEMPLATES = f"{BASE}/namespaces/default/resourceclaimtemplates"
SLICES = f"{BASE}/resourceslices"
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
EXACT = {"name": "gpu", "exactly": {"deviceClassName": "gpu.test.example"}}
ALLOCATION = {"devices": {"results": [{"request": "gpu", "driver": "gpu.test.example", "pool": "p", "device": "d"}]}}
SUB = {"name": "s", "deviceClassName": "x"}


def spec(*requests: t.Any, **devices: t.Any) -> dict[str, t.Any]:
    return {"metadata": {"name": "c1"}, "spec": {"devices": {"requests": list(requests), **devices}}}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("body", "field", "reason", "text"),
    [
        pytest.param(spec(EXACT, EXACT), "spec.devices.requests[1]", "FieldValueDuplicate", '"gpu"', id="same-name"),
        pytest.param(
            spec({**EXACT, "name": "A_b"}), "spec.devices.requests[0].name", "FieldValueInvalid", "RFC 1123", id="name"
        ),
        pytest.param(
            spec({**EXACT, "firstAvailable": [SUB]}),
            "spec.devices.requests[0]",
            "FieldValueInvalid",
            "but multiple fields are set",
            id="both-forms",
        ),
        pytest.param(
            spec({"name": "gpu", "exactly": {}}),
            "spec.devices.requests[0].exactly.deviceClassName",
            "FieldValueRequired",
            "Required value",
            id="no-class",
        ),
        pytest.param(
            spec({"name": "gpu", "exactly": {"deviceClassName": "x", "count": -1}}),
            "spec.devices.requests[0].exactly.count",
            "FieldValueInvalid",
            "must be greater than zero",
            id="count",
        ),
        pytest.param(
            spec({"name": "gpu", "exactly": {"deviceClassName": "x", "allocationMode": "Some"}}),
            "spec.devices.requests[0].exactly.allocationMode",
            "FieldValueNotSupported",
            'supported values: "All", "ExactCount"',
            id="mode",
        ),
        pytest.param(
            spec({"name": "gpu", "firstAvailable": [{**SUB, "name": f"s{n}"} for n in range(9)]}),
            "spec.devices.requests[0].firstAvailable",
            "FieldValueTooMany",
            "must have at most 8 items",
            id="sub-requests",
        ),
        pytest.param(
            spec(*({**EXACT, "name": f"r{n}"} for n in range(33))),
            "spec.devices.requests",
            "FieldValueTooMany",
            "Too many: 33: must have at most 32 items",
            id="requests",
        ),
        pytest.param(
            spec(EXACT, constraints=[{"requests": ["none"], "matchAttribute": "a/b"}]),
            "spec.devices.constraints[0].requests[0]",
            "FieldValueInvalid",
            "must be the name of a request",
            id="constraint",
        ),
        pytest.param(
            spec(EXACT, config=[{"opaque": {"parameters": {}}}]),
            "spec.devices.config[0].opaque.driver",
            "FieldValueRequired",
            "Required value",
            id="config",
        ),
        pytest.param(
            spec({"name": "gpu", "exactly": {"deviceClassName": "x", "adminAccess": True}}),
            "spec.devices.requests[0].adminAccess",
            "FieldValueForbidden",
            "`resource.kubernetes.io/admin-access: true` label",
            id="admin-access",
        ),
    ],
)
async def test_claims(client: t.Any, body: t.Any, field: str, reason: str, text: str) -> None:
    status, answer = await client.ask("POST", CLAIMS, body)
    assert (status, answer["reason"]) == (422, "Invalid")
    cause = answer["details"]["causes"][0]
    assert (cause["field"], cause["reason"]) == (field, reason)
    assert text in cause["message"]
    template = {"metadata": {"name": "t"}, "spec": {"spec": body["spec"]}}
    status, answer = await client.ask("POST", TEMPLATES, template)
    assert (status, answer["details"]["causes"][0]["field"]) == (422, f"spec.{field}")


@pytest.mark.asyncio
async def test_admin_access_in_a_labelled_namespace(client: t.Any) -> None:
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    await client.must("PATCH", "/api/v1/namespaces/default", label, MERGE)
    await client.must("POST", CLAIMS, spec({"name": "gpu", "exactly": {"deviceClassName": "x", "adminAccess": True}}))


@pytest.mark.asyncio
async def test_templates_cannot_change(client: t.Any) -> None:
    await client.must("POST", TEMPLATES, {"metadata": {"name": "t"}, "spec": {"spec": spec(EXACT)["spec"]}})
    change = {"spec": {"metadata": {"labels": {"a": "b"}}}}
    status, answer = await client.ask("PATCH", f"{TEMPLATES}/t", change, MERGE)
    assert status == 422
    assert answer["details"]["causes"][0]["field"] == "spec"
    assert answer["message"].endswith(": field is immutable")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("status_part", "field", "text"),
    [
        pytest.param(
            {"allocation": {"devices": {"results": [{**ALLOCATION["devices"]["results"][0], "device": "other"}]}}},
            "status.allocation",
            "field is immutable",
            id="another-allocation",
        ),
        pytest.param(
            {"reservedFor": [{"resource": "pods", "name": "p"}]},
            "status.reservedFor[0].uid",
            "Required value",
            id="no-uid",
        ),
        pytest.param(
            {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}] * 2},
            "status.reservedFor[1]",
            "Duplicate value",
            id="same-consumer",
        ),
        pytest.param(
            {"devices": [{"driver": "gpu.test.example", "pool": "p", "device": "none"}]},
            "status.devices[0]",
            "must be an allocated device in the claim",
            id="device",
        ),
    ],
)
async def test_status_of_an_allocated_claim(client: t.Any, status_part: t.Any, field: str, text: str) -> None:
    await client.must("POST", CLAIMS, spec(EXACT))
    await client.must("PATCH", f"{CLAIMS}/c1/status", {"status": {"allocation": ALLOCATION}}, MERGE)
    status, answer = await client.ask("PATCH", f"{CLAIMS}/c1/status", {"status": status_part}, MERGE)
    assert status == 422
    causes = {cause["field"]: cause["message"] for cause in answer["details"]["causes"]}
    assert text in causes[field]


@pytest.mark.asyncio
async def test_allocation_must_name_a_request(client: t.Any) -> None:
    await client.must("POST", CLAIMS, spec(EXACT))
    result = {**ALLOCATION["devices"]["results"][0], "request": "none"}
    change = {"status": {"allocation": {"devices": {"results": [result]}}}}
    status, answer = await client.ask("PATCH", f"{CLAIMS}/c1/status", change, MERGE)
    assert status == 422
    assert answer["details"]["causes"][0]["field"] == "status.allocation.devices.results[0].request"


@pytest.mark.asyncio
async def test_nobody_new_while_the_claim_is_deleted(client: t.Any) -> None:
    body = spec(EXACT)
    body["metadata"]["finalizers"] = ["test.example/a"]
    await client.must("POST", CLAIMS, body)
    old = {"resource": "pods", "name": "p", "uid": "u"}
    allocated = {"status": {"allocation": ALLOCATION, "reservedFor": [old]}}
    await client.must("PATCH", f"{CLAIMS}/c1/status", allocated, MERGE)
    await client.must("DELETE", f"{CLAIMS}/c1")
    more = {"status": {"reservedFor": [old, {"resource": "pods", "name": "q", "uid": "v"}]}}
    status, answer = await client.ask("PATCH", f"{CLAIMS}/c1/status", more, MERGE)
    assert status == 422
    assert "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set" in str(answer)
    await client.must("PATCH", f"{CLAIMS}/c1/status", {"status": {"reservedFor": None}}, MERGE)


@pytest.mark.asyncio
async def test_status_of_a_device_goes_with_its_allocation(client: t.Any) -> None:
    await client.must("POST", CLAIMS, spec(EXACT))
    device = {"driver": "gpu.test.example", "pool": "p", "device": "d"}
    with_device = {"status": {"allocation": ALLOCATION, "devices": [device]}}
    assert (await client.must("PATCH", f"{CLAIMS}/c1/status", with_device, MERGE))["status"]["devices"] == [device]
    assert (await client.must("PATCH", f"{CLAIMS}/c1/status", {"status": {"allocation": None}}, MERGE))["status"] == {}


@pytest.mark.asyncio
@pytest.mark.parametrize(("release", "limit"), [((1, 32, 0), 32), ((1, 32, 1), 256), ((1, 36, 2), 256)])
async def test_limit_of_reservations(serve: t.Any, release: t.Any, limit: int) -> None:
    async with serve(release=release) as client:
        await client.must("POST", CLAIMS, spec(EXACT))
        full = [{"resource": "pods", "name": f"p{n}", "uid": f"u{n}"} for n in range(limit)]
        await client.must(
            "PATCH", f"{CLAIMS}/c1/status", {"status": {"allocation": ALLOCATION, "reservedFor": full}}, MERGE
        )
        full.append({"resource": "pods", "name": "p", "uid": "u"})
        status, answer = await client.ask("PATCH", f"{CLAIMS}/c1/status", {"status": {"reservedFor": full}}, MERGE)
    assert status == 422
    assert f"Too many: {limit + 1}: must have at most {limit} items" in answer["message"]


def resource_slice(**changes: t.Any) -> dict[str, t.Any]:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    body = {"driver": "gpu.test.example", "pool": pool, "nodeName": "n1", "devices": [{"name": "d0"}], **changes}
    return {"metadata": {"name": "s"}, "spec": body}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param(resource_slice(driver=""), "spec.driver", id="driver"),
        pytest.param(resource_slice(allNodes=True), "spec", id="two-places"),
        pytest.param(resource_slice(nodeName=""), "spec", id="no-place"),
        pytest.param(resource_slice(pool={"name": "p"}), "spec.pool.resourceSliceCount", id="count"),
        pytest.param(resource_slice(devices=[{"name": f"d{n}"} for n in range(129)]), "spec.devices", id="devices"),
        pytest.param(resource_slice(devices=[{"name": "d"}, {"name": "d"}]), "spec.devices[1]", id="same-device"),
    ],
)
async def test_slices(client: t.Any, body: t.Any, field: str) -> None:
    status, answer = await client.ask("POST", SLICES, body)
    assert status == 422
    assert field in [cause["field"] for cause in answer["details"]["causes"]]


@pytest.mark.asyncio
async def test_a_slice_stays_with_its_driver(client: t.Any) -> None:
    await client.must("POST", SLICES, resource_slice())
    status, answer = await client.ask("PATCH", f"{SLICES}/s", {"spec": {"driver": "b.example"}}, MERGE)
    assert (status, answer["details"]["causes"][0]["field"]) == (422, "spec.driver")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("changes", "field"),
    [
        pytest.param({"resourceClaims": [{"name": "a"}]}, "spec.resourceClaims[0]", id="no-source"),
        pytest.param(
            {"resourceClaims": [{"name": "a", "resourceClaimName": "x", "resourceClaimTemplateName": "y"}]},
            "spec.resourceClaims[0]",
            id="two-sources",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "a", "resourceClaimName": "x"}] * 2},
            "spec.resourceClaims[1].name",
            id="same-name",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "x", "resources": {"claims": [{"name": "b"}]}}]},
            "spec.containers[0].resources.claims[0].name",
            id="unknown-claim",
        ),
        pytest.param({"containers": []}, "spec.containers", id="no-container"),
    ],
)
async def test_pods(client: t.Any, changes: t.Any, field: str) -> None:
    body = {"metadata": {"name": "p1"}, "spec": {"containers": [{"name": "c", "image": "x"}], **changes}}
    status, answer = await client.ask("POST", PODS, body)
    assert status == 422
    assert field in [cause["field"] for cause in answer["details"]["causes"]]
