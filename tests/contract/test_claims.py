# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Contract: what the API server enforces for claims, and server-side apply of pod status."""

from __future__ import annotations

import typing as t

import pytest

RESULT = {"request": "gpu", "driver": "contract.test.example", "pool": "pool-0", "device": "dev-0"}
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
KEEP = "contract.test.example/keep"


def consumer(number: int) -> dict[str, str]:
    """A consumer of a kind that no controller knows."""
    return {"apiGroup": "contract.test.example", "resource": "jobs", "name": f"j{number}", "uid": f"u{number}"}


def causes(answer: t.Any) -> dict[str, tuple[str, str]]:
    return {cause["field"]: (cause["reason"], cause["message"]) for cause in answer["details"]["causes"]}


async def refused(api: t.Any, path: str, change: t.Any) -> dict[str, tuple[str, str]]:
    status, answer = await api.ask("PATCH", path, change, MERGE)
    assert (status, answer["reason"]) == (422, "Invalid"), answer
    return causes(answer)


@pytest.mark.asyncio
async def test_the_spec_of_a_claim_never_changes(api: t.Any, name: str) -> None:
    await api.claim(name)
    other = {"spec": {"devices": {"requests": [{"name": "other", "exactly": {"deviceClassName": "x"}}]}}}
    found = await refused(api, f"{api.claims}/{name}", other)
    assert found["spec"][0] == "FieldValueInvalid"
    assert found["spec"][1].endswith("field is immutable")


@pytest.mark.asyncio
async def test_the_spec_of_a_template_never_changes(api: t.Any, name: str) -> None:
    request = {"name": "gpu", "exactly": {"deviceClassName": "contract.test.example"}}
    spec = {"metadata": {"annotations": {"a": "b"}}, "spec": {"devices": {"requests": [request]}}}
    await api.must("POST", api.templates, {"metadata": {"name": name}, "spec": spec})
    found = await refused(api, f"{api.templates}/{name}", {"spec": {"metadata": {"annotations": {"a": "c"}}}})
    assert found["spec"][1].endswith("field is immutable")


@pytest.mark.asyncio
async def test_reservations_need_an_allocation(api: t.Any, name: str) -> None:
    await api.claim(name)
    found = await refused(api, f"{api.claims}/{name}/status", {"status": {"reservedFor": [consumer(0)]}})
    text = "Forbidden: may not be specified when `allocated` is not set"
    assert found["status.reservedFor"] == ("FieldValueForbidden", text)


@pytest.mark.asyncio
async def test_256_consumers_and_no_more(api: t.Any, name: str) -> None:
    await api.allocated(name)
    path = f"{api.claims}/{name}/status"
    await api.merge(path, {"status": {"reservedFor": [consumer(number) for number in range(256)]}})
    found = await refused(api, path, {"status": {"reservedFor": [consumer(number) for number in range(257)]}})
    assert found["status.reservedFor"] == ("FieldValueTooMany", "Too many: 257: must have at most 256 items")


@pytest.mark.asyncio
async def test_consumers_are_told_apart_by_uid(api: t.Any, name: str) -> None:
    await api.allocated(name)
    found = await refused(api, f"{api.claims}/{name}/status", {"status": {"reservedFor": [consumer(0)] * 2}})
    assert found["status.reservedFor[1]"][0] == "FieldValueDuplicate"


@pytest.mark.asyncio
async def test_an_allocation_can_go_but_not_change(api: t.Any, name: str) -> None:
    await api.allocated(name)
    path = f"{api.claims}/{name}/status"
    other = {"status": {"allocation": {"devices": {"results": [{**RESULT, "device": "dev-1"}]}}}}
    found = await refused(api, path, other)
    assert found["status.allocation"][1].endswith("field is immutable")
    gone = await api.merge(path, {"status": {"allocation": None}})
    assert gone["status"] == {}


@pytest.mark.asyncio
async def test_an_allocation_names_requests_of_the_claim(api: t.Any, name: str) -> None:
    await api.claim(name)
    wrong = {"status": {"allocation": {"devices": {"results": [{**RESULT, "request": "none"}]}}}}
    found = await refused(api, f"{api.claims}/{name}/status", wrong)
    assert "status.allocation.devices.results[0].request" in found


@pytest.mark.asyncio
async def test_no_new_consumers_while_the_claim_is_deleted(api: t.Any, name: str) -> None:
    await api.allocated(name, finalizers=[KEEP])
    path = f"{api.claims}/{name}/status"
    await api.merge(path, {"status": {"reservedFor": [consumer(0)]}})
    await api.must("DELETE", f"{api.claims}/{name}")
    found = await refused(api, path, {"status": {"reservedFor": [consumer(0), consumer(1)]}})
    assert found["status.reservedFor"][0] == "FieldValueForbidden"
    released = await api.merge(path, {"status": {"reservedFor": None}})
    assert "reservedFor" not in released["status"]


@pytest.mark.asyncio
async def test_device_status_is_for_allocated_devices_and_goes_with_them(api: t.Any, name: str) -> None:
    await api.allocated(name)
    path = f"{api.claims}/{name}/status"
    device = {key: RESULT[key] for key in ("driver", "pool", "device")}
    found = await refused(api, path, {"status": {"devices": [{**device, "device": "dev-9"}]}})
    assert "must be an allocated device in the claim" in found["status.devices[0]"][1]
    with_device = await api.merge(path, {"status": {"devices": [device]}})
    assert with_device["status"]["devices"] == [device]
    assert (await api.merge(path, {"status": {"allocation": None}}))["status"] == {}


@pytest.mark.asyncio
async def test_each_request_is_exactly_one_of_two_forms(api: t.Any) -> None:
    body = {"metadata": {"name": "Bad_Name"}, "spec": {"devices": {"requests": [{"name": "gpu"}]}}}
    status, answer = await api.ask("POST", api.claims, body)
    assert (status, answer["reason"]) == (422, "Invalid")
    found = causes(answer)
    assert found["metadata.name"][0] == "FieldValueInvalid"
    text = "Required value: exactly one of `exactly` or `firstAvailable` is required"
    assert found["spec.devices.requests[0]"] == ("FieldValueRequired", text)


@pytest.mark.asyncio
async def test_admin_access_needs_a_label_on_the_namespace(api: t.Any, name: str) -> None:
    request = {"name": "gpu", "exactly": {"deviceClassName": "contract.test.example", "adminAccess": True}}
    body = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
    status, answer = await api.ask("POST", api.claims, body)
    assert status == 422
    assert "`resource.kubernetes.io/admin-access: true` label on the containing namespace" in answer["message"]


def applied(pod: str, **claims: str) -> dict[str, t.Any]:
    entries = [{"name": claim, "resourceClaimName": target} for claim, target in claims.items()]
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod}}
    return {**head, "status": {"resourceClaimStatuses": entries} if entries else {}}


async def apply(api: t.Any, pod: str, manager: str, **claims: str) -> dict[str, str]:
    path = f"{api.pods}/{pod}/status?fieldManager={manager}&force=true"
    answer = await api.must("PATCH", path, applied(pod, **claims), APPLY)
    return {
        entry["name"]: entry.get("resourceClaimName", "") for entry in answer["status"].get("resourceClaimStatuses", ())
    }


def references(*names: str) -> list[dict[str, str]]:
    """Claims from templates that do not exist, so that no controller acts on them."""
    return [{"name": name, "resourceClaimTemplateName": "contract-none"} for name in names]


@pytest.mark.asyncio
async def test_applying_less_removes_the_rest_of_ones_own(api: t.Any, name: str) -> None:
    await api.pod(name, resourceClaims=references("a", "b"))
    assert await apply(api, name, "contract", a="x-a", b="x-b") == {"a": "x-a", "b": "x-b"}
    assert await apply(api, name, "contract", b="x-b") == {"b": "x-b"}
    assert await apply(api, name, "contract") == {}


@pytest.mark.asyncio
async def test_applying_leaves_what_others_own(api: t.Any, name: str) -> None:
    await api.pod(name, resourceClaims=references("a", "b"))
    await apply(api, name, "contract-one", a="x-a")
    assert await apply(api, name, "contract-two", b="x-b") == {"a": "x-a", "b": "x-b"}
    assert await apply(api, name, "contract-two") == {"a": "x-a"}


@pytest.mark.asyncio
async def test_applying_the_same_again_changes_nothing(api: t.Any, name: str) -> None:
    await api.pod(name, resourceClaims=references("a"))
    path = f"{api.pods}/{name}/status?fieldManager=contract&force=true"
    first = await api.must("PATCH", path, applied(name, a="x-a"), APPLY)
    second = await api.must("PATCH", path, applied(name, a="x-a"), APPLY)
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


@pytest.mark.asyncio
async def test_applying_another_value_is_a_conflict_unless_forced(api: t.Any, name: str) -> None:
    await api.pod(name, resourceClaims=references("a"))
    await apply(api, name, "contract-one", a="x-a")
    path = f"{api.pods}/{name}/status?fieldManager=contract-two"
    status, answer = await api.ask("PATCH", path, applied(name, a="other"), APPLY)
    assert (status, answer["reason"]) == (409, "Conflict")
    cause = answer["details"]["causes"][0]
    assert cause["reason"] == "FieldManagerConflict"
    assert cause["field"] == '.status.resourceClaimStatuses[name="a"].resourceClaimName'
    assert await apply(api, name, "contract-two", a="other") == {"a": "other"}


@pytest.mark.asyncio
async def test_a_claim_status_needs_an_entry_in_the_spec(api: t.Any, name: str) -> None:
    await api.pod(name, resourceClaims=references("a"))
    path = f"{api.pods}/{name}/status?fieldManager=contract&force=true"
    status, answer = await api.ask("PATCH", path, applied(name, none="x"), APPLY)
    assert status == 422
    reason, text = causes(answer)["status.resourceClaimStatuses[0].name"]
    assert reason == "FieldValueInvalid"
    assert text.endswith("must match the name of an entry in `spec.resourceClaims`")


@pytest.mark.asyncio
async def test_apply_needs_a_manager(api: t.Any, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    status, answer = await api.ask("PATCH", f"{api.maps}/{name}", body, APPLY)
    assert status == 422
    assert "is required for apply patch" in answer["message"]


@pytest.mark.asyncio
async def test_apply_creates(api: t.Any, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}}
    path = f"{api.maps}/{name}?fieldManager=contract"
    assert (await api.ask("PATCH", path, body, APPLY))[0] == 201
    assert (await api.ask("PATCH", path, body, APPLY))[0] == 200


@pytest.mark.asyncio
async def test_the_spec_of_a_pod_is_fixed(api: t.Any, name: str) -> None:
    await api.pod(name)
    found = await refused(api, f"{api.pods}/{name}", {"spec": {"hostNetwork": True}})
    assert found["spec"][0] == "FieldValueForbidden"
