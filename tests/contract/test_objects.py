# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Contract: creating, reading, changing and deleting objects."""

from __future__ import annotations

import re
import typing as t

import pytest

ALLOCATION = {
    "devices": {"results": [{"request": "gpu", "driver": "contract.test.example", "pool": "pool-0", "device": "dev-0"}]}
}
KEEP = "contract.test.example/keep"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def claim(name: str, **metadata: t.Any) -> dict[str, t.Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "contract.test.example"}}
    return {"metadata": {"name": name, **metadata}, "spec": {"devices": {"requests": [request]}}}


@pytest.mark.asyncio
async def test_discovery_lists_the_kinds_of_v1(api: t.Any) -> None:
    listed = await api.must("GET", "/apis/resource.k8s.io/v1")
    names = {entry["name"]: entry for entry in listed["resources"]}
    assert {"resourceclaims", "resourceclaims/status", "resourceclaimtemplates", "deviceclasses"} <= names.keys()
    assert names["resourceclaims"]["namespaced"] is True
    assert "watch" in names["resourceclaims"]["verbs"]
    assert names["resourceclaims/status"]["verbs"] == ["get", "patch", "update"]


@pytest.mark.asyncio
async def test_a_group_version_that_is_not_served(api: t.Any) -> None:
    status, answer = await api.ask("GET", "/apis/resource.k8s.io/v0")
    assert (status, answer["reason"]) == (404, "NotFound")
    assert answer["message"] == "the server could not find the requested resource"


@pytest.mark.asyncio
async def test_requests_without_credentials_are_refused(api: t.Any) -> None:
    url = api.target.url + api.claims
    async with api.session.get(url, ssl=api.target.ssl or True) as answer:
        assert answer.status in (401, 403)


@pytest.mark.asyncio
async def test_what_the_server_adds_to_a_new_claim(api: t.Any, name: str) -> None:
    made = await api.claim(name)
    assert made["apiVersion"] == "resource.k8s.io/v1"
    assert made["metadata"]["namespace"] == api.namespace
    assert made["metadata"]["uid"]
    assert made["metadata"]["creationTimestamp"].endswith("Z")
    assert "generation" not in made["metadata"]
    exactly = {"deviceClassName": "contract.test.example", "allocationMode": "ExactCount", "count": 1}
    assert made["spec"]["devices"]["requests"] == [{"name": "gpu", "exactly": exactly}]
    assert await api.must("GET", f"{api.claims}/{name}") == made


@pytest.mark.asyncio
async def test_status_of_a_new_object_is_not_the_clients(api: t.Any, name: str) -> None:
    made = await api.must("POST", api.claims, {**claim(name), "status": {"allocation": ALLOCATION}})
    assert made["status"] == {}


@pytest.mark.asyncio
async def test_generated_names(api: t.Any) -> None:
    made = await api.must("POST", api.claims, {**claim(""), "metadata": {"generateName": "p1-gpu-"}})
    assert re.fullmatch(r"p1-gpu-[bcdfghjklmnpqrstvwxz2456789]{5}", made["metadata"]["name"])
    long = await api.must("POST", api.claims, {**claim(""), "metadata": {"generateName": "a" * 70}})
    assert re.fullmatch(r"a{58}[bcdfghjklmnpqrstvwxz2456789]{5}", long["metadata"]["name"])


@pytest.mark.asyncio
async def test_a_name_is_taken_once(api: t.Any, name: str) -> None:
    await api.claim(name)
    status, answer = await api.ask("POST", api.claims, claim(name))
    assert (status, answer["reason"]) == (409, "AlreadyExists")
    assert answer["message"] == f'resourceclaims.resource.k8s.io "{name}" already exists'


@pytest.mark.asyncio
async def test_what_is_not_there(api: t.Any) -> None:
    status, answer = await api.ask("GET", f"{api.claims}/none")
    assert (status, answer["reason"]) == (404, "NotFound")
    assert answer["details"] == {"name": "none", "group": "resource.k8s.io", "kind": "resourceclaims"}
    status, answer = await api.ask("GET", f"{api.pods}/none")
    assert answer["message"] == 'pods "none" not found'


@pytest.mark.asyncio
async def test_an_update_with_an_old_version_is_a_conflict(api: t.Any, name: str) -> None:
    made = await api.claim(name)
    await api.merge(f"{api.claims}/{name}", {"metadata": {"labels": {"a": "1"}}})
    status, answer = await api.ask("PUT", f"{api.claims}/{name}", made)
    assert (status, answer["reason"]) == (409, "Conflict")
    assert answer["message"].endswith("please apply your changes to the latest version and try again")
    old = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "status": {"reservedFor": None}}
    status, answer = await api.ask("PATCH", f"{api.claims}/{name}/status", old, MERGE)
    assert (status, answer["reason"]) == (409, "Conflict")


@pytest.mark.asyncio
async def test_a_write_that_changes_nothing_keeps_the_version(api: t.Any, name: str) -> None:
    made = await api.claim(name, labels={"a": "1"})
    same = await api.merge(f"{api.claims}/{name}", {"metadata": {"labels": {"a": "1"}}})
    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@pytest.mark.asyncio
async def test_status_and_main_resource_are_apart(api: t.Any, name: str) -> None:
    await api.allocated(name, labels={"a": "1"})
    through_main = await api.merge(f"{api.claims}/{name}", {"status": {"allocation": None}})
    assert through_main["status"]["allocation"] == ALLOCATION
    change = {"metadata": {"labels": {"a": "2"}}, "status": {"reservedFor": None}}
    through_status = await api.merge(f"{api.claims}/{name}/status", change)
    assert through_status["metadata"]["labels"] == {"a": "1"}


@pytest.mark.asyncio
async def test_json_patch(api: t.Any, name: str) -> None:
    made = await api.claim(name, finalizers=[KEEP])
    path = f"{api.claims}/{name}"
    guard = {"op": "test", "path": "/metadata/resourceVersion", "value": "1"}
    status, answer = await api.ask("PATCH", path, [guard], JSON_PATCH)
    assert (status, answer["reason"]) == (422, "Invalid")
    guard["value"] = made["metadata"]["resourceVersion"]
    patched = await api.must("PATCH", path, [guard, {"op": "remove", "path": "/metadata/finalizers/0"}], JSON_PATCH)
    assert "finalizers" not in patched["metadata"]


@pytest.mark.asyncio
async def test_strategic_merge_patch_merges_lists_by_key(api: t.Any, name: str) -> None:
    await api.pod(name)
    for kind in ("Ready", "Initialized"):
        change = {"status": {"conditions": [{"type": kind, "status": "True"}]}}
        answer = await api.must("PATCH", f"{api.pods}/{name}/status", change, STRATEGIC)
    assert {"Ready", "Initialized"} <= {condition["type"] for condition in answer["status"]["conditions"]}


@pytest.mark.asyncio
async def test_patch_types_that_do_not_exist(api: t.Any, name: str) -> None:
    await api.claim(name)
    status, answer = await api.ask("PATCH", f"{api.claims}/{name}", {}, "application/json")
    assert (status, answer["reason"]) == (415, "UnsupportedMediaType")


@pytest.mark.asyncio
async def test_unknown_fields(api: t.Any, name: str) -> None:
    body = claim(name)
    body["spec"]["devices"]["requests"][0]["future"] = 1
    status, answer = await api.ask("POST", f"{api.claims}?fieldValidation=Strict", body)
    assert (status, answer["reason"]) == (400, "BadRequest")
    assert 'strict decoding error: unknown field "spec.devices.requests[0].future"' in answer["message"]
    _status, _data, headers = await api.raw("POST", f"{api.claims}?fieldValidation=Warn", body)
    assert 'unknown field \\"spec.devices.requests[0].future\\"' in headers["Warning"]
    made = await api.must("GET", f"{api.claims}/{name}")
    assert "future" not in made["spec"]["devices"]["requests"][0]


@pytest.mark.asyncio
async def test_dry_run_stores_nothing(api: t.Any, name: str) -> None:
    await api.must("POST", f"{api.claims}?dryRun=All", claim(name))
    assert (await api.ask("GET", f"{api.claims}/{name}"))[0] == 404


@pytest.mark.asyncio
async def test_deletion_waits_for_finalizers(api: t.Any, name: str) -> None:
    path = f"{api.claims}/{name}"
    await api.claim(name, finalizers=[KEEP])
    marked = await api.must("DELETE", path)
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await api.must("GET", path))["metadata"]["uid"] == marked["metadata"]["uid"]
    status, _answer = await api.ask("PATCH", path, {"metadata": {"finalizers": [KEEP, f"{KEEP}-2"]}}, MERGE)
    assert status == 422
    await api.merge(path, {"metadata": {"finalizers": None}})
    assert (await api.ask("GET", path))[0] == 404
    assert (await api.ask("DELETE", path))[0] == 404


@pytest.mark.asyncio
async def test_preconditions_of_a_deletion(api: t.Any, name: str) -> None:
    made = await api.claim(name)
    path = f"{api.claims}/{name}"
    wrong = {"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}}
    status, answer = await api.ask("DELETE", path, wrong)
    assert (status, answer["reason"]) == (409, "Conflict")
    assert "does not match the UID in record" in answer["message"]
    status, answer = await api.ask("DELETE", path, {"preconditions": {"resourceVersion": "1"}})
    assert (status, answer["reason"]) == (409, "Conflict")
    await api.must("DELETE", path, {"preconditions": {"uid": made["metadata"]["uid"]}})


@pytest.mark.asyncio
async def test_grace_of_pods(api: t.Any, name: str) -> None:
    await api.pod(name)
    path = f"{api.pods}/{name}"
    binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "contract-no-such-node"}}
    await api.must("POST", f"{path}/binding", binding)
    status, _answer = await api.ask("POST", f"{path}/binding", binding)
    assert status == 409
    marked = await api.must("DELETE", path)
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    await api.must("DELETE", path, {"gracePeriodSeconds": 0})
    assert (await api.ask("GET", path))[0] == 404


@pytest.mark.asyncio
async def test_a_pod_without_node_goes_at_once(api: t.Any, name: str) -> None:
    await api.pod(name)
    await api.must("DELETE", f"{api.pods}/{name}")
    assert (await api.ask("GET", f"{api.pods}/{name}"))[0] == 404


@pytest.mark.asyncio
async def test_deletion_of_a_collection(api: t.Any, name: str) -> None:
    for number in range(3):
        await api.claim(f"{name}-{number}", labels={"part": name, "odd": str(number % 2)})
    await api.must("DELETE", f"{api.claims}?labelSelector=part%3D{name},odd%3D0")
    left = await api.must("GET", f"{api.claims}?labelSelector=part%3D{name}")
    assert [item["metadata"]["name"] for item in left["items"]] == [f"{name}-1"]


@pytest.mark.asyncio
async def test_leases_are_changed_only_from_their_present_version(api: t.Any, name: str) -> None:
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0}
    made = await api.must("POST", api.leases, {"metadata": {"name": name}, "spec": spec})
    path = f"{api.leases}/{name}"
    status, answer = await api.ask("PUT", path, {"metadata": {"name": name}, "spec": spec})
    assert (status, answer["reason"]) == (422, "Invalid")
    made["spec"]["holderIdentity"] = "b"
    await api.must("PUT", path, made)
    made["spec"]["holderIdentity"] = "c"
    status, answer = await api.ask("PUT", path, made)
    assert (status, answer["reason"]) == (409, "Conflict")
    answer = await api.must("DELETE", path)
    assert answer["status"] == "Success"


@pytest.mark.asyncio
async def test_an_event_must_be_in_the_namespace_of_its_object(api: t.Any) -> None:
    about = {"kind": "Pod", "namespace": "elsewhere", "name": "p", "apiVersion": "v1"}
    body = {"metadata": {"generateName": "p."}, "involvedObject": about, "reason": "R", "message": "m"}
    status, _answer = await api.ask("POST", api.events, body)
    assert status == 422
    about["namespace"] = api.namespace
    made = await api.must("POST", api.events, body)
    assert made["eventTime"] is None


@pytest.mark.asyncio
async def test_the_same_claim_in_older_versions(api: t.Any, name: str) -> None:
    await api.claim(name)
    exactly = {"deviceClassName": "contract.test.example", "allocationMode": "ExactCount", "count": 1}
    wanted = {"v1beta1": {"name": "gpu", **exactly}, "v1beta2": {"name": "gpu", "exactly": exactly}}
    served = [version for version in wanted if await api.serves(f"/apis/resource.k8s.io/{version}")]
    if not served:
        pytest.skip("this server has no older versions of resource.k8s.io")
    for version in served:
        found = await api.must("GET", f"{api.claims.replace('/v1/', f'/{version}/')}/{name}")
        assert found["apiVersion"] == f"resource.k8s.io/{version}"
        assert found["spec"]["devices"]["requests"] == [wanted[version]]


@pytest.mark.asyncio
async def test_access_reviews(api: t.Any) -> None:
    attributes = {"verb": "create", "group": "resource.k8s.io", "resource": "resourceclaims"}
    body = {"spec": {"resourceAttributes": {**attributes, "namespace": api.namespace}}}
    answer = await api.must("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    assert answer["status"]["allowed"] is True


@pytest.mark.asyncio
async def test_nothing_can_be_created_in_a_namespace_that_does_not_exist(api: t.Any, name: str) -> None:
    status, answer = await api.ask("POST", api.claims.replace(api.namespace, "contract-none"), claim(name))
    assert (status, answer["message"]) == (404, 'namespaces "contract-none" not found')
