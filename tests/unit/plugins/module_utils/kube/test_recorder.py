# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Events: counted, combined, held back, and never in the way of the work."""

from __future__ import annotations

import asyncio
import contextlib
import typing as t

import pytest
from aiohttp import web
from ansible_collections.nodeops.dra.plugins.module_utils.kube.event_series import ObjectReference
from ansible_collections.nodeops.dra.plugins.module_utils.kube.fence import Fence
from ansible_collections.nodeops.dra.plugins.module_utils.kube.recorder import NORMAL, WARNING, EventRecorder

from .stub_api import StubApi, connected, failure

pytestmark = [pytest.mark.looptime, pytest.mark.asyncio]

POD = ObjectReference("v1", "Pod", "p1", "team-a", "u-1")
START = 1_800_000_000.0


def other(number: int) -> ObjectReference:
    """Another pod."""
    return ObjectReference("v1", "Pod", f"q{number}", "team-a", f"u-q{number}")


@contextlib.asynccontextmanager
async def recording(**settings: t.Any) -> t.AsyncIterator[tuple[StubApi, EventRecorder]]:
    """A recorder at work; wall time goes with the loop's clock."""
    fence = settings.pop("fence", None)
    async with connected(rand=lambda: 0.0, tries=1) as (api, client):

        async def fine(request: web.Request) -> web.StreamResponse:
            return web.json_response({"metadata": {}}, status=201)

        api.otherwise = fine
        if fence is not None:
            client = client.with_fence(fence)
        loop = asyncio.get_running_loop()
        origin = loop.time()
        recorder = EventRecorder(client, "resource_claim", now=lambda: START + loop.time() - origin, **settings)
        task = asyncio.ensure_future(recorder.run())
        try:
            yield api, recorder
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def test_an_event_as_kubectl_describe_shows_it() -> None:
    async with recording(host="node-1") as (api, recorder):
        recorder.event(POD, WARNING, "FailedResourceClaimCreation", "PodResourceClaim gpu: no template")
        assert await recorder.flushed(10)
    assert api.requests == ["POST /api/v1/namespaces/team-a/events"]
    body = api.bodies[0]
    assert body["metadata"].pop("name").startswith("p1.")
    assert body == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "team-a"},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "p1", "namespace": "team-a", "uid": "u-1"},
        "reason": "FailedResourceClaimCreation",
        "message": "PodResourceClaim gpu: no template",
        "type": "Warning",
        "source": {"component": "resource_claim", "host": "node-1"},
        "firstTimestamp": "2027-01-15T08:00:00Z",
        "lastTimestamp": "2027-01-15T08:00:00Z",
        "count": 1,
        "reportingComponent": "resource_claim",
        "reportingInstance": "node-1",
    }


async def test_repetitions_count_up_one_object() -> None:
    async with recording() as (api, recorder):
        for _unused in range(3):
            recorder.event(POD, WARNING, "Failed", "no template")
        assert await recorder.flushed(10)
        await asyncio.sleep(60)
        recorder.event(POD, WARNING, "Failed", "no template")
        assert await recorder.flushed(10)
    assert api.bodies[0]["count"] == 3
    name = api.bodies[0]["metadata"]["name"]
    assert api.requests[1] == f"PATCH /api/v1/namespaces/team-a/events/{name}"
    assert api.bodies[1] == {"count": 4, "lastTimestamp": "2027-01-15T08:01:00Z", "message": "no template"}


async def test_a_counted_event_that_has_aged_away_is_made_anew() -> None:
    async with recording() as (api, recorder):
        recorder.event(POD, WARNING, "Failed", "no template")
        assert await recorder.flushed(10)
        api.script = [lambda request: _gone()]
        recorder.event(POD, WARNING, "Failed", "no template")
        assert await recorder.flushed(10)
    assert [text.split()[0] for text in api.requests] == ["POST", "PATCH", "POST"]


async def _gone() -> web.StreamResponse:
    return failure(404, "NotFound", "events not found", name="p1.1")


async def test_events_that_differ_only_in_their_message_are_combined() -> None:
    async with recording() as (api, recorder):
        for number in range(15):
            recorder.event(POD, WARNING, "Failed", f"attempt {number}")
        assert await recorder.flushed(60)
    messages = [body["message"] for body in api.bodies]
    assert len(messages) == 11
    assert messages[-1] == "(combined from similar events): attempt 14"
    assert api.bodies[-1]["count"] == 5


async def test_a_talkative_object_is_held_back_and_others_are_not() -> None:
    async with recording() as (api, recorder):
        for number in range(100):
            recorder.event(POD, NORMAL, f"Reason{number}", "m")
        recorder.event(other(1), NORMAL, "Reason", "m")
        assert await recorder.flushed(60)
        assert len(api.requests) == 26
        assert recorder.stats.held_back == 75
        await asyncio.sleep(301)
        recorder.event(POD, NORMAL, "Later", "m")
        assert await recorder.flushed(60)
    assert len(api.requests) == 27


async def test_reporting_never_waits_even_when_the_server_is_gone() -> None:
    async with recording(capacity=50) as (api, recorder):

        async def busy(request: web.Request) -> web.StreamResponse:
            return failure(503, "ServiceUnavailable")

        api.otherwise = busy
        started = asyncio.get_running_loop().time()
        for number in range(500):
            recorder.event(other(number), NORMAL, "Reason", "m")
        assert asyncio.get_running_loop().time() == started
        assert recorder.stats.held_back == 450
        assert not await recorder.flushed(1)


async def test_a_passing_failure_is_waited_out_under_the_same_name() -> None:
    async with recording() as (api, recorder):
        fine = api.otherwise

        async def busy(request: web.Request) -> web.StreamResponse:
            return failure(503, "ServiceUnavailable")

        async def exists(request: web.Request) -> web.StreamResponse:
            return failure(409, "AlreadyExists", name="x")

        api.script = [busy, busy, exists]
        recorder.event(POD, NORMAL, "Reason", "m")
        assert await recorder.flushed(60)
        assert api.otherwise is fine
    assert len({body["metadata"]["name"] for body in api.bodies}) == 1
    assert recorder.stats.written == 1


async def test_what_will_never_be_written_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    async with recording() as (api, recorder):

        async def terminating(request: web.Request) -> web.StreamResponse:
            return failure(403, "Forbidden", "namespace is being terminated")

        api.script = [terminating]
        recorder.event(POD, NORMAL, "Reason", "m")
        recorder.event(other(1), NORMAL, "Reason", "m")
        assert await recorder.flushed(60)
    assert (recorder.stats.lost, recorder.stats.written) == (1, 1)
    assert "event was not written reason=Reason" in caplog.text


async def test_writing_is_limited() -> None:
    async with recording(qps=10, burst=5) as (_api, recorder):
        started = asyncio.get_running_loop().time()
        for number in range(45):
            recorder.event(other(number), NORMAL, "Reason", "m")
        assert await recorder.flushed(60)
        assert asyncio.get_running_loop().time() - started == pytest.approx(4, abs=0.5)


async def test_a_shut_fence_ends_the_recorder() -> None:
    async with recording(fence=Fence(float("-inf"))) as (api, recorder):
        recorder.event(POD, NORMAL, "Reason", "m")
        assert await recorder.flushed(10)
    assert api.requests == []


async def test_an_event_about_a_node_goes_to_the_default_namespace() -> None:
    async with recording() as (api, recorder):
        recorder.event(ObjectReference("v1", "Node", "node-1"), NORMAL, "Reason", "x" * 2000)
        assert await recorder.flushed(10)
    assert api.requests == ["POST /api/v1/namespaces/default/events"]
    assert len(api.bodies[0]["message"]) == 1024
