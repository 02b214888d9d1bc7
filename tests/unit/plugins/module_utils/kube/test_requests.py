# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The verbs: what goes over the wire, deadlines, and which requests are sent again."""

from __future__ import annotations

import asyncio
import typing as t

import pytest
from aiohttp import web
from ansible_collections.nodeops.dra.plugins.module_utils.kube import errors
from ansible_collections.nodeops.dra.plugins.module_utils.kube.access import ClusterAccess
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import JSON_PATCH, KubeClient, Preconditions
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import Call, resource_of
from ansible_collections.nodeops.dra.plugins.module_utils.kube.throttle import Throttle
from ansible_collections.nodeops.dra.plugins.module_utils.kube.transport import Transport

from .stub_api import answers, claim, connected, failure, page

CLAIMS = resource_of("ResourceClaim")
PODS = resource_of("Pod")
COLLECTION = "/apis/resource.k8s.io/v1/namespaces/team-a/resourceclaims"


class Observer:
    """Keeps the notes of a client."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, int]] = []
        self.throttled_calls = 0

    def requested(self, call: Call, status: int, seconds: float) -> None:
        """An exchange."""
        self.notes.append((call.verb, status))

    def throttled(self, call: Call, seconds: float) -> None:
        """A wait."""
        self.throttled_calls += 1


def always(response: t.Callable[[], web.Response]) -> t.Callable[[web.Request], t.Awaitable[web.StreamResponse]]:
    """A route that answers everything with a new response."""

    async def route(request: web.Request) -> web.StreamResponse:
        return response()

    return route


@pytest.mark.asyncio
async def test_what_each_verb_sends() -> None:
    async with connected() as (api, client):
        api.otherwise = always(lambda: web.json_response(claim("c1", 7)))
        await client.get(CLAIMS, "c1", "team-a")
        await client.create(CLAIMS, {"metadata": {"generateName": "c-"}}, "team-a", field_manager="me", dry_run=True)
        await client.patch(CLAIMS, {"status": None}, "c1", "team-a", subresource="status")
        await client.patch(CLAIMS, [{"op": "remove", "path": "/status"}], "c1", "team-a", kind=JSON_PATCH)
        await client.apply(PODS, {"status": {}}, "p1", "team-a", field_manager="me", subresource="status")
        await client.replace(CLAIMS, claim("c1", 7), "c1", "team-a")
        await client.delete(CLAIMS, "c1", "team-a", preconditions=Preconditions(uid="u-1"), grace_period_seconds=0)
    assert api.requests == [
        f"GET {COLLECTION}/c1",
        f"POST {COLLECTION}?fieldManager=me&dryRun=All",
        f"PATCH {COLLECTION}/c1/status",
        f"PATCH {COLLECTION}/c1",
        "PATCH /api/v1/namespaces/team-a/pods/p1/status?fieldManager=me&force=true",
        f"PUT {COLLECTION}/c1",
        f"DELETE {COLLECTION}/c1",
    ]
    assert [headers.get("Content-Type") for headers in api.headers] == [
        None,
        "application/json",
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/apply-patch+yaml",
        "application/json",
        "application/json",
    ]
    assert api.bodies[1] == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"generateName": "c-"},
    }
    assert api.bodies[2] == {"status": None}
    assert api.bodies[6] == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u-1"},
        "gracePeriodSeconds": 0,
    }


@pytest.mark.asyncio
async def test_a_list_is_fetched_in_pages() -> None:
    async with connected() as (api, client):
        api.script = answers(page([claim("a", 1), claim("b", 2)], 9, "next", 1), page([claim("c", 3)], 9))
        found = await client.list(CLAIMS, "team-a", label_selector="k=1", limit=2)
    assert [obj["metadata"]["name"] for obj in found] == ["a", "b", "c"]
    assert api.requests == [
        f"GET {COLLECTION}?labelSelector=k%3D1&limit=2",
        f"GET {COLLECTION}?labelSelector=k%3D1&limit=2&continue=next",
    ]


@pytest.mark.report("F069")
@pytest.mark.asyncio
async def test_a_list_whose_token_grew_too_old_starts_again() -> None:
    async with connected() as (api, client):
        api.script = answers(
            page([claim("a", 1)], 9, "old"), failure(410, "Expired"), page([claim("a", 1), claim("c", 3)], 12)
        )
        found = await client.list(CLAIMS, "team-a", limit=1)
    assert [obj["metadata"]["name"] for obj in found] == ["a", "c"]


@pytest.mark.report("F071")
@pytest.mark.asyncio
async def test_fields_that_nobody_here_knows_survive_reading_and_patching() -> None:
    patch = {"metadata": {"resourceVersion": "7"}, "status": {"reservedFor": None}}
    async with connected() as (api, client):
        api.otherwise = always(lambda: web.json_response(claim("c1", 7, status={"futureField": {"deep": [1]}})))
        found = await client.get(CLAIMS, "c1", "team-a")
        await client.patch(CLAIMS, patch, "c1", "team-a")
    assert found["status"]["futureField"] == {"deep": [1]}
    assert api.bodies[1] == patch


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
@pytest.mark.looptime
@pytest.mark.asyncio
async def test_reads_are_sent_again(code: int) -> None:
    async with connected(rand=lambda: 0.0) as (api, client):
        api.script = answers(failure(code), failure(code), web.json_response(claim("c1", 7)))
        assert (await client.get(CLAIMS, "c1", "team-a"))["metadata"]["name"] == "c1"
    assert len(api.requests) == 3


@pytest.mark.parametrize(
    ("first", "sent"),
    [
        pytest.param(failure(429, retry_after="1"), 2, id="429"),
        pytest.param(failure(503, retry_after="1"), 2, id="503-with-retry-after"),
        pytest.param(failure(503), 1, id="503-without"),
        pytest.param(failure(500), 1, id="500"),
        pytest.param(failure(504), 1, id="504"),
        pytest.param(failure(409, "Conflict"), 1, id="conflict"),
    ],
)
@pytest.mark.looptime
@pytest.mark.asyncio
async def test_a_create_is_only_sent_again_when_the_server_did_not_take_it(first: web.Response, sent: int) -> None:
    async with connected() as (api, client):
        api.script = answers(first)
        api.otherwise = always(lambda: web.json_response(claim("c1", 7), status=201))
        try:
            await client.create(CLAIMS, {"metadata": {"generateName": "c-"}}, "team-a")
        except errors.ApiStatusError:
            assert sent == 1
    assert len(api.requests) == sent


@pytest.mark.looptime
@pytest.mark.asyncio
async def test_an_apply_is_sent_again_since_it_changes_nothing_twice() -> None:
    async with connected() as (api, client):
        api.script = answers(failure(500), web.json_response(claim("c1", 7)))
        await client.apply(PODS, {}, "p1", "team-a", field_manager="me")
    assert len(api.requests) == 2


@pytest.mark.looptime
@pytest.mark.asyncio
async def test_retry_after_is_kept() -> None:
    async with connected(rand=lambda: 0.0) as (api, client):
        api.script = answers(failure(429, retry_after="7"), web.json_response(claim("c1", 7)))
        started = asyncio.get_running_loop().time()
        await client.get(CLAIMS, "c1", "team-a")
        assert 7 <= asyncio.get_running_loop().time() - started < 9


@pytest.mark.looptime
@pytest.mark.asyncio
async def test_a_wait_that_would_pass_the_deadline_is_not_begun() -> None:
    async with connected() as (api, client):
        api.otherwise = always(lambda: failure(429, "TooManyRequests", "slow down", retry_after="20"))
        started = asyncio.get_running_loop().time()
        with pytest.raises(errors.TooManyRequestsError) as caught:
            await client.get(CLAIMS, "c1", "team-a", timeout=5)
        assert asyncio.get_running_loop().time() - started < 1
    assert caught.value.retry_after == 20
    assert "20 s" in caught.value.hint


async def _drop(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


@pytest.mark.asyncio
async def test_a_write_without_answer_says_that_it_may_have_been_made() -> None:
    async with connected() as (api, client):
        api.otherwise = _drop
        with pytest.raises(errors.UnreachableError) as caught:
            await client.create(CLAIMS, {"metadata": {"name": "c1"}}, "team-a")
    assert caught.value.maybe_applied
    assert len(api.requests) == 1


@pytest.mark.looptime
@pytest.mark.asyncio
async def test_a_delete_by_uid_is_sent_again_after_a_broken_connection() -> None:
    async with connected() as (api, client):
        api.script = [_drop, _drop]
        api.otherwise = always(lambda: failure(404, "NotFound", 'x "c1" not found', name="c1"))
        with pytest.raises(errors.NotFoundError):
            await client.delete(CLAIMS, "c1", "team-a", preconditions=Preconditions(uid="u-1"))


@pytest.mark.looptime
@pytest.mark.asyncio
async def test_a_write_that_never_left_is_tried_until_the_deadline() -> None:
    observer = Observer()
    async with Transport(ClusterAccess("http://127.0.0.1:1", "a test")) as transport:
        client = KubeClient(transport, observer=observer, tries=4)
        with pytest.raises(errors.UnreachableError) as caught:
            await client.create(CLAIMS, {"metadata": {"name": "c1"}}, "team-a")
    assert not caught.value.maybe_applied
    assert observer.notes == [("create", 0)] * 4
    text = str(caught.value)
    for part in (
        "create resourceclaims.resource.k8s.io",
        '"c1"',
        'namespace "team-a"',
        "POST http://127.0.0.1:1/apis/",
    ):
        assert part in text


@pytest.mark.asyncio
async def test_a_deadline_ends_a_request_that_hangs() -> None:
    async with connected() as (api, client):

        async def hang(request: web.Request) -> web.StreamResponse:
            await api.over.wait()
            return web.Response()

        api.otherwise = hang
        with pytest.raises(errors.DeadlineError, match=r"was not answered within 0\.1 s") as caught:
            await client.patch(CLAIMS, {}, "c1", "team-a", timeout=0.1)
        assert caught.value.maybe_applied
        with pytest.raises(errors.DeadlineError) as read:
            await client.get(CLAIMS, "c1", "team-a", timeout=0.1)
        assert not read.value.maybe_applied


@pytest.mark.report("F066")
@pytest.mark.looptime
@pytest.mark.asyncio
async def test_the_rate_limit_is_off_by_default_and_settable() -> None:
    observer = Observer()
    throttle = Throttle(10, 2)
    async with connected(throttle=throttle, observer=observer) as (api, client):
        api.otherwise = always(lambda: web.json_response(claim("c1", 7)))
        loop = asyncio.get_running_loop()
        started = loop.time()
        await asyncio.gather(*(client.get(CLAIMS, "c1", "team-a") for _unused in range(6)))
        assert loop.time() - started == pytest.approx(0.4, abs=0.15)
        assert observer.throttled_calls == 4
        assert throttle.waited_seconds == pytest.approx(0.1 + 0.2 + 0.3 + 0.4, abs=0.1)
        assert throttle.waiting == 0
        free = client.without_limits()
        started = loop.time()
        await asyncio.gather(*(free.get(CLAIMS, "c1", "team-a") for _unused in range(6)))
        assert loop.time() - started < 0.1


@pytest.mark.looptime
@pytest.mark.asyncio
async def test_a_request_that_our_own_limit_holds_back_too_long_is_not_sent() -> None:
    async with connected(throttle=Throttle(0.01, 1)) as (api, client):
        api.otherwise = always(lambda: web.json_response(claim("c1", 7)))
        await client.get(CLAIMS, "c1", "team-a")
        with pytest.raises(errors.DeadlineError, match=r"our own limit of 0\.01 requests a second"):
            await client.get(CLAIMS, "c1", "team-a")
    assert len(api.requests) == 1


@pytest.mark.parametrize(("qps", "burst"), [(0, 1), (5, 0), (-1, 5)])
def test_a_rate_limit_that_lets_nothing_through_is_refused(qps: float, burst: int) -> None:
    with pytest.raises(errors.ConfigurationError, match="lets nothing through"):
        Throttle(qps, burst)


@pytest.mark.asyncio
async def test_an_answer_that_is_no_json_is_told() -> None:
    async with connected() as (api, client):
        api.otherwise = always(lambda: web.Response(text="<html>login</html>"))
        with pytest.raises(errors.MalformedAnswerError, match="answered with something unexpected") as caught:
            await client.get(CLAIMS, "c1", "team-a")
    assert caught.value.facts["resource"] == "resourceclaims"


@pytest.mark.asyncio
async def test_a_redirect_is_not_followed() -> None:
    async with connected() as (api, client):
        api.script = [lambda request: _redirect()]
        with pytest.raises(errors.ApiStatusError, match="302 redirect"):
            await client.get(CLAIMS, "c1", "team-a")
    assert len(api.requests) == 1


async def _redirect() -> web.StreamResponse:
    return web.Response(status=302, headers={"Location": "http://192.0.2.1/steal"})


@pytest.mark.asyncio
async def test_connections_are_used_again() -> None:
    async with connected() as (api, client):
        api.otherwise = always(lambda: web.json_response(claim("c1", 7)))
        for _unused in range(20):
            await client.get(CLAIMS, "c1", "team-a")
        assert api.connections == 1


def test_names_cannot_leave_their_path() -> None:
    for name in ("../pods", "a/b", "a b", ""):
        with pytest.raises(errors.DraError):
            CLAIMS.item(name, "team-a")
