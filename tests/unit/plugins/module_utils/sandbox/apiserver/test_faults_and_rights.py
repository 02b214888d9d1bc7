# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The switches: faults, rights, the recorder, and the remote control of all three."""

from __future__ import annotations

import asyncio
import typing as t

import aiohttp
import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.faults import parse_fault
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.rights import ADMIN, Rule, User

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
MERGE = "application/merge-patch+json"
GROUP = "resource.k8s.io"
ALLOCATION = {"devices": {"results": [{"request": "gpu", "driver": "gpu.test.example", "pool": "p", "device": "d"}]}}


def claim(name: str = "c1") -> dict[str, t.Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.test.example"}}
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fault", "code", "reason"),
    [
        pytest.param("error:code=503,text=later", 503, "ServiceUnavailable", id="error"),
        pytest.param("error_after:code=504", 504, "Timeout", id="error-after"),
        pytest.param("throttle:seconds=3", 429, "TooManyRequests", id="throttle"),
        pytest.param("conflict:verb=create", 409, "Conflict", id="conflict"),
        pytest.param("read_only", 503, "ServiceUnavailable", id="read-only"),
    ],
)
async def test_answers_of_faults(client: t.Any, fault: str, code: int, reason: str) -> None:
    with client.server.fault(fault):
        status, answer = await client.ask("POST", CLAIMS, claim())
        assert (status, answer["reason"]) == (code, reason)
    stored = (await client.ask("GET", f"{CLAIMS}/c1"))[0] == 200
    assert stored == (fault.startswith("error_after"))


@pytest.mark.asyncio
async def test_throttling_says_how_long(client: t.Any) -> None:
    client.server.add_fault("throttle:seconds=3")
    _status, _data, headers = await client.raw("GET", CLAIMS)
    assert headers["Retry-After"] == "3"


@pytest.mark.asyncio
@pytest.mark.parametrize(("fault", "done"), [("close:verb=create", False), ("close_after:verb=create", True)])
async def test_connections_that_break(client: t.Any, fault: str, done: bool) -> None:
    client.server.add_fault(fault)
    with pytest.raises(aiohttp.ClientError):
        await client.ask("POST", CLAIMS, claim())
    assert ((await client.ask("GET", f"{CLAIMS}/c1"))[0] == 200) is done


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_latency_and_hanging(client: t.Any) -> None:
    loop = asyncio.get_running_loop()
    client.server.add_fault("latency:seconds=20,times=1")
    before = loop.time()
    await client.must("GET", CLAIMS)
    assert loop.time() - before >= 20
    client.server.add_fault("hang:verb=list")
    with pytest.raises(asyncio.TimeoutError):
        async with asyncio.timeout(60):
            await client.must("GET", CLAIMS)


@pytest.mark.asyncio
async def test_filters_and_counts(client: t.Any) -> None:
    client.server.add_fault("error:verb=get;list,resource=resourceclaims*,skip=1,times=2")
    codes = [(await client.ask("GET", CLAIMS))[0] for _unused in range(4)]
    assert codes == [200, 500, 500, 200]
    client.server.add_fault("error:resource=resourceclaims/status")
    assert (await client.ask("POST", CLAIMS, claim()))[0] == 201
    assert (await client.ask("PATCH", f"{CLAIMS}/c1/status", {}, MERGE))[0] == 500
    client.server.faults.clear()
    client.server.add_fault("error:path=/apis/*/namespaces/default/*,agent=other*")
    assert (await client.ask("GET", CLAIMS))[0] == 200
    client.headers["User-Agent"] = "other/1"
    assert (await client.ask("GET", CLAIMS))[0] == 500


@pytest.mark.asyncio
async def test_discovery_can_fail_too(client: t.Any) -> None:
    with client.server.fault("error:path=/apis*"):
        assert (await client.ask("GET", "/apis"))[0] == 500
    assert (await client.ask("GET", "/apis"))[0] == 200


@pytest.mark.asyncio
async def test_stale_lists(client: t.Any) -> None:
    await client.must("POST", CLAIMS, claim("old"))
    with client.server.fault("stale_list"):
        new = await client.must("POST", CLAIMS, claim("new"))
        listed = await client.must("GET", CLAIMS)
        assert [item["metadata"]["name"] for item in listed["items"]] == ["old"]
        assert int(listed["metadata"]["resourceVersion"]) < int(new["metadata"]["resourceVersion"])
        await client.must("GET", f"{CLAIMS}/new")
    assert len((await client.must("GET", CLAIMS))["items"]) == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("melt", "kind 'melt' is not known"),
        ("error:code", "is not key=value"),
        ("error:code=x", "invalid literal"),
        ("error:colour=red", "unexpected keyword"),
        ("split:size=0", "size must be 1 or more"),
    ],
)
def test_faults_that_cannot_be_read(text: str, why: str) -> None:
    with pytest.raises(DraError, match=why):
        parse_fault(text)


VIEWER = User("viewer", (Rule(("get", "list", "watch"), (GROUP,), ("resourceclaims",)),))
NARROW = User("narrow", (Rule(("get",), ("",), ("pods",), names=("p1",), namespaces=("default",)),))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("user", "method", "path", "message"),
    [
        pytest.param(
            VIEWER,
            "POST",
            CLAIMS,
            'resourceclaims.resource.k8s.io is forbidden: User "viewer" cannot create resource "resourceclaims" in API '
            'group "resource.k8s.io" in the namespace "default"',
            id="namespace",
        ),
        pytest.param(
            VIEWER,
            "GET",
            "/apis/resource.k8s.io/v1/deviceclasses",
            'deviceclasses.resource.k8s.io is forbidden: User "viewer" cannot list resource "deviceclasses" in API '
            'group "resource.k8s.io" at the cluster scope',
            id="cluster",
        ),
        pytest.param(
            NARROW,
            "GET",
            "/api/v1/namespaces/default/pods/p2",
            'pods "p2" is forbidden: User "narrow" cannot get resource "pods" in API group "" in the namespace '
            '"default"',
            id="name",
        ),
        pytest.param(
            ADMIN.without("patch", "resourceclaims/status"),
            "PATCH",
            f"{CLAIMS}/c1/status",
            'resourceclaims.resource.k8s.io "c1" is forbidden: User "sandbox-admin" cannot patch resource '
            '"resourceclaims/status" in API group "resource.k8s.io" in the namespace "default"',
            id="subresource",
        ),
    ],
)
async def test_refusals(client: t.Any, user: User, method: str, path: str, message: str) -> None:
    client.server.settings.tokens["t"] = user
    client.token = "t"
    status, answer = await client.ask(method, path, {} if method != "GET" else None)
    assert (status, answer["reason"], answer["message"]) == (403, "Forbidden", message)


@pytest.mark.asyncio
async def test_access_reviews_tell_the_same(client: t.Any) -> None:
    """F101: a preflight asks before it acts."""
    client.server.settings.tokens["t"] = ADMIN.without("update", "resourceclaims/status")
    client.token = "t"

    async def allowed(verb: str, subresource: str) -> bool:
        attributes = {"verb": verb, "group": GROUP, "resource": "resourceclaims", "subresource": subresource}
        answer = await client.must("POST", REVIEWS, {"spec": {"resourceAttributes": attributes}})
        return bool(answer["status"]["allowed"])

    assert await allowed("update", "") is True
    assert await allowed("patch", "status") is True
    assert await allowed("update", "status") is False


@pytest.mark.asyncio
@pytest.mark.parametrize("release", [(1, 36, 2), (1, 35, 0)])
async def test_changing_an_allocation_needs_a_right_of_its_own_since_1_36(serve: t.Any, release: t.Any) -> None:
    async with serve(release=release) as client:
        await client.must("POST", CLAIMS, claim())
        client.server.settings.tokens["t"] = ADMIN.without("patch", "resourceclaims/binding")
        client.token = "t"
        change = {"status": {"allocation": ALLOCATION}}
        status, answer = await client.ask("PATCH", f"{CLAIMS}/c1/status", change, MERGE)
    if release < (1, 36, 0):
        assert status == 200
    else:
        assert status == 422
        assert 'requires resource="resourceclaims/binding", verb="patch" permission' in answer["message"]


@pytest.mark.asyncio
async def test_device_status_needs_the_drivers_right(client: t.Any) -> None:
    await client.must("POST", CLAIMS, claim())
    await client.must("PATCH", f"{CLAIMS}/c1/status", {"status": {"allocation": ALLOCATION}}, MERGE)
    rules = (
        Rule(("patch",), (GROUP,), ("resourceclaims/status",)),
        Rule(("arbitrary-node:patch",), (GROUP,), ("resourceclaims/driver",), ("other.example",)),
    )
    client.server.settings.tokens["t"] = User("driver", rules)
    client.token = "t"
    device = {"driver": "gpu.test.example", "pool": "p", "device": "d"}
    status, answer = await client.ask("PATCH", f"{CLAIMS}/c1/status", {"status": {"devices": [device]}}, MERGE)
    assert status == 422
    assert 'requires resource="resourceclaims/driver", verb="[arbitrary-node:patch]"' in answer["message"]
    mine = Rule(("arbitrary-node:patch",), (GROUP,), ("resourceclaims/driver",), ("gpu.test.example",))
    client.server.settings.tokens["t"] = User("driver", (*rules, mine))
    await client.must("PATCH", f"{CLAIMS}/c1/status", {"status": {"devices": [device]}}, MERGE)


@pytest.mark.asyncio
async def test_wrong_tokens_and_none(serve: t.Any) -> None:
    async with serve(anonymous=VIEWER) as client:
        client.token = "wrong"
        assert (await client.ask("GET", CLAIMS))[0] == 401
        client.token = ""
        assert (await client.ask("GET", CLAIMS))[0] == 200
        assert (await client.ask("POST", CLAIMS, claim()))[0] == 403


@pytest.mark.asyncio
async def test_health_and_version_are_public(client: t.Any) -> None:
    client.token = ""
    for path in ("/readyz", "/livez", "/healthz", "/version"):
        assert (await client.raw("GET", path))[0] == 200
    assert (await client.raw("GET", "/apis"))[0] == 401
    client.token = "wrong"
    assert (await client.raw("GET", "/readyz"))[0] == 401


@pytest.mark.asyncio
async def test_the_recorder_counts_by_verb_and_resource(client: t.Any) -> None:
    client.headers["User-Agent"] = "controller/1.0"
    await client.must("POST", CLAIMS, claim())
    await client.must("PATCH", f"{CLAIMS}/c1/status", {"status": {"allocation": ALLOCATION}}, MERGE)
    await client.ask("GET", f"{CLAIMS}/none")
    async with client.stream(f"{CLAIMS}?watch=1"):
        assert client.server.recorder.count("watch") == 1
    recorder = client.server.recorder
    assert recorder.count("create", "resourceclaims", "controller") == 1
    assert recorder.count("patch", "resourceclaims/status") == 1
    assert recorder.count(agent="somebody") == 0
    assert [seen.code for seen in recorder.last] == [201, 200, 404, 200]
    recorder.reset()
    assert recorder.count() == 0


@pytest.mark.asyncio
async def test_remote_control(client: t.Any) -> None:
    await client.must("POST", "/sandbox/faults", ["error:verb=list,times=1", {"kind": "latency", "seconds": 0}])
    listed = await client.must("GET", "/sandbox/faults")
    assert listed["faults"][0] == {"kind": "error", "verb": "list", "times": 1}
    assert (await client.ask("GET", CLAIMS))[0] == 500
    assert (await client.must("DELETE", "/sandbox/faults"))["faults"] == []
    assert (await client.must("GET", "/sandbox/requests"))["counts"] == {"list resourceclaims": 1}
    user = {"token": "t2", "name": "u", "rules": [{"verbs": ["list"], "resources": ["resourceclaims"]}]}
    assert (await client.must("POST", "/sandbox/rights", user))["name"] == "u"
    version = (await client.must("GET", "/sandbox/state"))["resourceVersion"]
    assert (await client.must("POST", "/sandbox/compact"))["compacted"] == int(version)
    client.token = "t2"
    assert (await client.ask("GET", CLAIMS))[0] == 200
    assert (await client.ask("GET", "/sandbox/faults"))[0] == 403


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", "/sandbox/faults", "melt", 400),
        ("POST", "/sandbox/faults", [7], 400),
        ("POST", "/sandbox/rights", {"name": "x"}, 400),
        ("PUT", "/sandbox/faults", None, 405),
        ("GET", "/sandbox/none", None, 404),
    ],
)
async def test_remote_control_refuses_nonsense(client: t.Any, method: str, path: str, body: t.Any, code: int) -> None:
    status, answer = await client.ask(method, path, body)
    assert status == code, answer
