# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Creating, changing and deleting objects, beyond what the recorded exchanges show."""

from __future__ import annotations

import io
import re
import typing as t

import pytest

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
ALLOCATION = {"devices": {"results": [{"request": "gpu", "driver": "gpu.test.example", "pool": "p", "device": "d"}]}}


def claim(name: str = "c1", **metadata: t.Any) -> dict[str, t.Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.test.example"}}
    return {"metadata": {"name": name, **metadata}, "spec": {"devices": {"requests": [request]}}}


def pod(name: str = "p1", **spec: t.Any) -> dict[str, t.Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x"}], **spec}}


@pytest.mark.asyncio
async def test_generated_names_are_cut_and_use_the_alphabet_of_the_api_server(client: t.Any) -> None:
    made = await client.must("POST", CLAIMS, {**claim(), "metadata": {"generateName": "a" * 70 + "-"}})
    name = made["metadata"]["name"]
    assert re.fullmatch(r"a{58}[bcdfghjklmnpqrstvwxz2456789]{5}", name)
    assert made["metadata"]["generateName"] == "a" * 70 + "-"


@pytest.mark.asyncio
async def test_a_generated_name_that_is_taken_is_made_up_again(serve: t.Any) -> None:
    class Stuck:
        """Gives the same letters twice, then others."""

        def __init__(self) -> None:
            self.calls = 0

        def choice(self, letters: str) -> str:
            self.calls += 1
            return letters[0 if self.calls <= 10 else 1]

        def getrandbits(self, bits: int) -> int:
            self.calls += 0
            return self.calls + (1 << (bits - 1))

    async with serve(random=Stuck()) as client:
        body = {**claim(), "metadata": {"generateName": "x-"}}
        first = await client.must("POST", CLAIMS, body)
        second = await client.must("POST", CLAIMS, body)
    assert (first["metadata"]["name"], second["metadata"]["name"]) == ("x-bbbbb", "x-ccccc")


@pytest.mark.asyncio
async def test_put_with_an_old_version_is_a_conflict(client: t.Any) -> None:
    made = await client.must("POST", CLAIMS, claim())
    made["metadata"]["labels"] = {"a": "1"}
    changed = await client.must("PUT", f"{CLAIMS}/c1", made)
    assert int(changed["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    status, answer = await client.ask("PUT", f"{CLAIMS}/c1", made)
    assert (status, answer["reason"]) == (409, "Conflict")


@pytest.mark.asyncio
async def test_put_without_a_version_overwrites_but_not_for_leases(client: t.Any) -> None:
    await client.must("POST", CLAIMS, claim())
    await client.must("PUT", f"{CLAIMS}/c1", claim(labels={"a": "1"}))
    await client.must("POST", LEASES, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})
    status, answer = await client.ask("PUT", f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {}})
    assert status == 422
    assert "must be specified for an update" in answer["message"]


@pytest.mark.asyncio
async def test_put_with_another_uid_is_a_conflict(client: t.Any) -> None:
    await client.must("POST", CLAIMS, claim())
    status, answer = await client.ask("PUT", f"{CLAIMS}/c1", claim(uid="00000000-0000-0000-0000-000000000000"))
    assert status == 409
    assert "Precondition failed: UID in precondition" in answer["message"]


@pytest.mark.asyncio
async def test_put_under_another_name_is_refused(client: t.Any) -> None:
    await client.must("POST", CLAIMS, claim())
    status, answer = await client.ask("PUT", f"{CLAIMS}/c1", claim("other"))
    assert status == 400
    assert "does not match the name on the URL" in answer["message"]


@pytest.mark.asyncio
async def test_status_path_changes_only_the_status(client: t.Any) -> None:
    made = await client.must("POST", CLAIMS, claim(labels={"a": "1"}))
    made["metadata"]["labels"] = {"a": "2"}
    made["spec"]["devices"]["requests"][0]["name"] = "other"
    made["status"] = {"allocation": ALLOCATION}
    changed = await client.must("PUT", f"{CLAIMS}/c1/status", made)
    assert changed["metadata"]["labels"] == {"a": "1"}
    assert changed["spec"]["devices"]["requests"][0]["name"] == "gpu"
    assert changed["status"]["allocation"] == ALLOCATION


@pytest.mark.asyncio
async def test_a_put_of_the_same_object_changes_nothing(client: t.Any) -> None:
    made = await client.must("POST", PODS, pod())
    again = await client.must("PUT", f"{PODS}/p1", made)
    assert again == made


@pytest.mark.asyncio
async def test_generation_counts_changes_of_the_spec(client: t.Any) -> None:
    await client.must("POST", PODS, pod())
    image = {"spec": {"containers": [{"name": "c", "image": "y"}]}}
    changed = await client.must("PATCH", f"{PODS}/p1", image, STRATEGIC)
    assert changed["metadata"]["generation"] == 2
    labelled = await client.must("PATCH", f"{PODS}/p1", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert labelled["metadata"]["generation"] == 2


@pytest.mark.asyncio
async def test_a_pods_spec_is_fixed_but_for_its_images(client: t.Any) -> None:
    await client.must("POST", PODS, pod())
    status, answer = await client.ask("PATCH", f"{PODS}/p1", {"spec": {"hostNetwork": True}}, MERGE)
    assert (status, answer["reason"]) == (422, "Invalid")
    assert answer["message"].startswith('Pod "p1" is invalid: spec: Forbidden: pod updates may not change fields')


@pytest.mark.asyncio
async def test_missing_namespace_and_dying_namespace(client: t.Any) -> None:
    status, answer = await client.ask("POST", CLAIMS.replace("default", "none"), claim())
    assert (status, answer["message"]) == (404, 'namespaces "none" not found')
    await client.must("POST", "/api/v1/namespaces", {"metadata": {"name": "dying"}})
    inside = CLAIMS.replace("default", "dying")
    await client.must("POST", inside, claim(finalizers=["test.example/keep"]))
    await client.must("DELETE", "/api/v1/namespaces/dying")
    status, answer = await client.ask("POST", inside, claim("c2"))
    assert (status, answer["reason"]) == (403, "Forbidden")
    assert answer["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    await client.must("PATCH", f"{inside}/c1", {"metadata": {"finalizers": None}}, MERGE)
    await client.server.settled()
    status, _answer = await client.ask("GET", "/api/v1/namespaces/dying")
    assert status == 404


@pytest.mark.asyncio
async def test_no_finalizer_can_be_added_while_the_object_is_deleted(client: t.Any) -> None:
    await client.must("POST", CLAIMS, claim(finalizers=["test.example/a"]))
    await client.must("DELETE", f"{CLAIMS}/c1")
    more = {"metadata": {"finalizers": ["test.example/a", "test.example/b"]}}
    status, answer = await client.ask("PATCH", f"{CLAIMS}/c1", more, MERGE)
    assert status == 422
    assert "no new finalizers can be added" in answer["message"]


@pytest.mark.asyncio
async def test_delete_of_an_object_with_finalizer_twice_keeps_the_first_time(client: t.Any) -> None:
    await client.must("POST", CLAIMS, claim(finalizers=["test.example/a"]))
    first = await client.must("DELETE", f"{CLAIMS}/c1")
    second = await client.must("DELETE", f"{CLAIMS}/c1")
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


@pytest.mark.asyncio
async def test_a_kind_that_does_not_return_what_it_deletes(client: t.Any) -> None:
    made = await client.must("POST", LEASES, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})
    answer = await client.must("DELETE", f"{LEASES}/l")
    assert answer["status"] == "Success"
    details = {"name": "l", "group": "coordination.k8s.io", "kind": "leases", "uid": made["metadata"]["uid"]}
    assert answer["details"] == details


@pytest.mark.asyncio
async def test_dry_run_answers_but_stores_nothing(client: t.Any) -> None:
    await client.must("POST", f"{CLAIMS}?dryRun=All", claim())
    assert (await client.ask("GET", f"{CLAIMS}/c1"))[0] == 404
    made = await client.must("POST", CLAIMS, claim())
    changed = await client.must("PATCH", f"{CLAIMS}/c1?dryRun=All", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert changed["metadata"]["labels"] == {"a": "b"}
    await client.must("DELETE", f"{CLAIMS}/c1?dryRun=All")
    assert await client.must("GET", f"{CLAIMS}/c1") == made


@pytest.mark.asyncio
async def test_delete_collection_takes_what_the_selector_leaves(client: t.Any) -> None:
    for number in range(4):
        await client.must("POST", CLAIMS, claim(f"c{number}", labels={"odd": str(number % 2)}))
    answer = await client.must("DELETE", f"{CLAIMS}?labelSelector=odd%3D1")
    assert [item["metadata"]["name"] for item in answer["items"]] == ["c1", "c3"]
    left = await client.must("GET", CLAIMS)
    assert [item["metadata"]["name"] for item in left["items"]] == ["c0", "c2"]


@pytest.mark.asyncio
async def test_grace_of_pods(client: t.Any) -> None:
    await client.must("POST", PODS, pod("unbound"))
    gone = await client.must("DELETE", f"{PODS}/unbound")
    assert gone["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await client.ask("GET", f"{PODS}/unbound"))[0] == 404
    await client.must("POST", PODS, pod("bound", nodeName="n1"))
    marked = await client.must("DELETE", f"{PODS}/bound?gracePeriodSeconds=7")
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 7
    longer = await client.must("DELETE", f"{PODS}/bound?gracePeriodSeconds=60")
    assert longer["metadata"]["resourceVersion"] == marked["metadata"]["resourceVersion"]
    shorter = await client.must("DELETE", f"{PODS}/bound?gracePeriodSeconds=2")
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 2
    await client.must("POST", PODS, pod("done", nodeName="n1"))
    await client.must("PATCH", f"{PODS}/done/status", {"status": {"phase": "Succeeded"}}, MERGE)
    await client.must("DELETE", f"{PODS}/done")
    assert (await client.ask("GET", f"{PODS}/done"))[0] == 404


@pytest.mark.asyncio
async def test_a_pod_is_bound_once(client: t.Any) -> None:
    await client.must("POST", PODS, pod())
    binding = {"target": {"kind": "Node", "name": "n1"}}
    await client.must("POST", f"{PODS}/p1/binding", binding)
    status, answer = await client.ask("POST", f"{PODS}/p1/binding", binding)
    assert status == 409
    assert 'pod p1 is already assigned to node "n1"' in answer["message"]


@pytest.mark.asyncio
async def test_wrong_types_and_wrong_json(client: t.Any) -> None:
    status, answer = await client.ask("POST", CLAIMS, b"{")
    assert (status, answer["reason"]) == (400, "BadRequest")
    status, answer = await client.ask("POST", CLAIMS, {"metadata": {"name": 7}})
    assert status == 400
    assert "json: cannot unmarshal number into Go struct field ResourceClaim.metadata.name" in answer["message"]
    status, answer = await client.ask("POST", CLAIMS, {**claim(), "apiVersion": "resource.k8s.io/v1beta1"})
    assert "does not match the expected API version" in answer["message"]
    status, answer = await client.ask("POST", CLAIMS, [1])
    assert status == 400
    status, _answer = await client.ask("POST", CLAIMS, claim(), "application/vnd.unknown")
    assert status == 415


@pytest.mark.asyncio
async def test_unknown_fields_give_a_warning_header(client: t.Any) -> None:
    body = {**claim(), "future": {"a": 1}}
    _status, _data, headers = await client.raw("POST", CLAIMS, body)
    assert headers["Warning"] == '299 - "unknown field \\"future\\""'
    _status, _data, headers = await client.raw("POST", f"{CLAIMS}?fieldValidation=Ignore", {**body, **claim("c2")})
    assert "Warning" not in headers


@pytest.mark.asyncio
async def test_a_server_newer_than_its_client_keeps_what_the_client_does_not_know(serve: t.Any) -> None:
    async with serve(keep_unknown_fields=True) as client:
        await client.must("POST", CLAIMS, claim())
        status = {"status": {"allocation": ALLOCATION, "futureField": {"a": 1}}}
        await client.must("PATCH", f"{CLAIMS}/c1/status", status, MERGE)
        patched = await client.must("PATCH", f"{CLAIMS}/c1", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert patched["status"]["futureField"] == {"a": 1}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        pytest.param("GET", "/apis/none.example/v1/things", 404, id="group"),
        pytest.param("GET", "/api/v1/namespaces/default/none", 404, id="plural"),
        pytest.param("GET", "/apis/resource.k8s.io/v1/namespaces/default/deviceclasses", 404, id="scope"),
        pytest.param("POST", "/api/v1/pods", 405, id="create-without-namespace"),
        pytest.param("DELETE", "/api/v1/pods", 405, id="delete-everywhere"),
        pytest.param("PATCH", "/api/v1/namespaces/default/pods", 405, id="patch-of-a-collection"),
        pytest.param("DELETE", "/api/v1/namespaces/default/pods/p1/status", 405, id="delete-of-a-status"),
        pytest.param("GET", "/api/v1/namespaces/default/events/e/status", 404, id="no-status"),
        pytest.param("GET", "/", 200, id="root"),
        pytest.param("GET", "/openapi/v3", 200, id="openapi"),
        pytest.param("GET", "/readyz/ping", 200, id="health"),
    ],
)
async def test_paths(client: t.Any, method: str, path: str, code: int) -> None:
    status, data, _headers = await client.raw(method, path)
    assert status == code, data


@pytest.mark.asyncio
async def test_a_body_that_is_too_large(client: t.Any) -> None:
    status, answer = await client.ask("POST", CLAIMS, io.BytesIO(b" " * (3 * 1024 * 1024 + 1)))
    assert (status, answer["reason"]) == (413, "RequestEntityTooLarge")
