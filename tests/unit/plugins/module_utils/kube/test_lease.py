# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Leader election: who leads when, what ends it, and that at most one writes."""

from __future__ import annotations

import asyncio
import contextlib
import random
import typing as t

import pytest
from aiohttp import web
from ansible_collections.nodeops.dra.plugins.module_utils.kube import errors
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.fence import Fence
from ansible_collections.nodeops.dra.plugins.module_utils.kube.lease import Lease, LeaseSettings
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of

from .lease_api import LeaseApi, client_of, lease_api
from .stub_api import failure

CLAIMS = resource_of("ResourceClaim")
pytestmark = [pytest.mark.report("F070"), pytest.mark.looptime, pytest.mark.asyncio]


def now() -> float:
    """The loop's clock."""
    return asyncio.get_running_loop().time()


def lease(client: KubeClient, identity: str, **more: t.Any) -> Lease:
    """A candidate whose clock is the loop's."""
    return Lease(client, "team-a", "ctl", identity=identity, clock=now, rand=lambda: 0.0, **more)


async def forever(fence: Fence) -> None:
    """Work without end."""
    await asyncio.Event().wait()


def renewals(api: LeaseApi) -> int:
    """Writes to the lease."""
    return len(api.seen("PATCH /apis/coordination"))


async def test_the_lease_is_made_held_renewed_and_given_up() -> None:
    async with lease_api() as api, client_of(api) as client:

        async def work(fence: Fence) -> None:
            await asyncio.sleep(21)
            assert api.holder == "a"
            assert fence.is_open
            assert fence.remaining() > 7

        await lease(client, "a").run(work)
        assert api.holder == ""
        assert api.lease is not None
        assert api.lease["spec"]["leaseTransitions"] == 0
        assert 10 <= renewals(api) <= 12
        assert len(api.seen("GET /apis/coordination")) == 1  # a renewal is one request


async def test_a_failing_worker_ends_the_renewal_and_the_other_one_leads() -> None:
    async with lease_api() as api, client_of(api) as first, client_of(api) as second:
        led = asyncio.Event()

        async def fail(fence: Fence) -> None:
            await asyncio.sleep(30)
            raise RuntimeError("the worker died")

        async def lead(fence: Fence) -> None:
            led.set()

        one = asyncio.ensure_future(lease(first, "a").run(fail))
        await asyncio.sleep(1)
        two = asyncio.ensure_future(lease(second, "b").run(lead))
        with pytest.raises(RuntimeError, match="the worker died"):
            await one
        died = now()
        await led.wait()
        assert now() - died < 3  # released, so nobody has to wait for its end
        await two


async def test_a_dead_holder_is_followed_after_the_lease_time_whatever_its_clock_said() -> None:
    async with lease_api() as api, client_of(api) as client:
        api.hold("dead", duration=15, renewTime="2099-01-01T00:00:00.000000Z", acquireTime="x", leaseTransitions=4)
        started = now()
        got: list[float] = []

        async def work(fence: Fence) -> None:
            got.append(now() - started)

        await lease(client, "a").run(work)
        assert 15 <= got[0] <= 18
        assert api.lease is not None
        assert api.lease["spec"]["leaseTransitions"] == 5


async def test_a_holder_that_renews_is_not_followed() -> None:
    async with lease_api() as api, client_of(api) as client:
        api.hold("other")
        task = asyncio.ensure_future(lease(client, "a").run(forever))
        for _unused in range(20):
            await asyncio.sleep(5)
            api.hold("other")
        assert api.holder == "other"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_work_stops_before_others_may_take_over_when_renewal_fails() -> None:
    async with lease_api() as api, client_of(api) as client:
        stopped: list[float] = []
        last_renewal = 0.0

        async def work(fence: Fence) -> None:
            nonlocal last_renewal
            await asyncio.sleep(20.5)
            last_renewal = now()
            api.before = lambda request: failure(500, "InternalError", "etcd is down")
            try:
                await asyncio.Event().wait()
            finally:
                stopped.append(now())
                assert not fence.is_open

        with pytest.raises(errors.LeaseLostError, match="etcd is down") as caught:
            await lease(client, "a").run(work)
        assert stopped[0] - last_renewal <= 10.1
        assert caught.value.facts["identity"] == "a"
        assert "start it again" in caught.value.hint


async def test_a_lease_that_somebody_else_took_is_lost_at_the_next_renewal() -> None:
    async with lease_api() as api, client_of(api) as client:
        task = asyncio.ensure_future(lease(client, "a").run(forever))
        await asyncio.sleep(5)
        api.hold("thief")
        with pytest.raises(errors.LeaseLostError, match="thief holds it"):
            await task
        assert api.holder == "thief"  # not given up: it is not ours


async def test_somebody_who_only_touched_the_record_takes_nothing() -> None:
    async with lease_api() as api, client_of(api) as client:
        task = asyncio.ensure_future(lease(client, "a").run(forever))
        await asyncio.sleep(5)
        assert api.lease is not None
        api.lease["metadata"]["resourceVersion"] = "999"
        await asyncio.sleep(30)
        assert api.holder == "a"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_lost_answer_to_the_acquiring_write_costs_one_more_turn() -> None:
    async with lease_api() as api, client_of(api) as client:
        api.hold("")

        async def drop_once(request: web.Request) -> None:
            if request.method == "PATCH":
                api.after = nothing
                assert request.transport is not None
                request.transport.abort()

        async def nothing(request: web.Request) -> None:
            return None

        api.after = drop_once

        async def work(fence: Fence) -> None:
            assert api.holder == "a"

        await lease(client, "a").run(work)
        assert api.holder == ""


async def test_an_unhealthy_worker_is_not_kept_in_office() -> None:
    async with lease_api() as api, client_of(api) as client:
        well = True
        task = asyncio.ensure_future(lease(client, "a").run(forever, healthy=lambda: well))
        await asyncio.sleep(30)
        assert api.holder == "a"
        well = False
        ill = now()
        with pytest.raises(errors.LeaseLostError, match="not healthy"):
            await task
        assert now() - ill <= 10.1


async def test_sigterm_gives_the_lease_up_after_the_last_answer() -> None:
    async with lease_api() as api, client_of(api) as client:
        order: list[str] = []

        async def slow(request: web.Request) -> None:
            if "/leases/" in request.path:
                order.append("lease")
                return
            await asyncio.sleep(1)
            order.append("claim")

        async def work(fence: Fence) -> None:
            fenced = client.with_fence(fence)
            write = asyncio.ensure_future(fenced.patch(CLAIMS, {"writer": "a"}, "c1", "team-a"))
            try:
                await asyncio.Event().wait()
            finally:
                await write  # what is on its way gets its answer

        task = asyncio.ensure_future(lease(client, "a").run(work))
        await api.arrived(1, "/resourceclaims/")
        api.after = slow
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert api.holder == ""
        assert order[-1] == "lease"
        assert len(api.writes) == 1


async def test_fields_that_nobody_here_knows_stay_in_the_record() -> None:
    async with lease_api() as api, client_of(api) as client:
        api.hold("", strategy="OldestEmulationVersion")

        async def work(fence: Fence) -> None:
            await asyncio.sleep(5)

        await lease(client, "a").run(work)
        assert api.lease is not None
        assert api.lease["spec"]["strategy"] == "OldestEmulationVersion"


async def test_a_missing_right_is_told_and_waited_out(caplog: pytest.LogCaptureFixture) -> None:
    async with lease_api() as api, client_of(api) as client:
        api.before = lambda request: failure(403, "Forbidden", "leases is forbidden")
        task = asyncio.ensure_future(lease(client, "a").run(forever))
        await asyncio.sleep(20)
        assert caplog.text.count("lease cannot be had") == 1
        assert 'Grant verb "get" on "leases" in API group "coordination.k8s.io"' in caplog.text
        api.before = lambda request: None
        await asyncio.sleep(5)
        assert api.holder == "a"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("seed", range(2))
async def test_of_two_candidates_at_most_one_writes(seed: int) -> None:
    """Servers that fail, answers that get lost, writes that hang: whoever writes holds the lease at that moment."""
    chance = random.Random(seed)
    async with lease_api() as api:

        def trouble(request: web.Request) -> web.StreamResponse | None:
            return failure(500, "InternalError", "trouble") if chance.random() < mood else None

        async def lose(request: web.Request) -> None:
            if chance.random() < mood / 3:
                assert request.transport is not None
                request.transport.abort()

        async def life(identity: str) -> None:
            async with client_of(api, tries=1) as client:

                async def work(fence: Fence) -> None:
                    fenced = client.with_fence(fence)
                    end = now() + chance.uniform(5, 60)
                    while now() < end:
                        with contextlib.suppress(errors.ApiStatusError, errors.UnreachableError):
                            await fenced.patch(CLAIMS, {"writer": identity}, "c1", "team-a")
                        await asyncio.sleep(1)

                while now() < stop:
                    with contextlib.suppress(errors.LeaseLostError, errors.FenceLostError):
                        await lease(client, identity).run(work)

        mood = 0.0
        stop = now() + 200
        api.before, api.after = trouble, lose
        lives = [asyncio.ensure_future(life(identity)) for identity in ("a", "b")]
        while now() < stop:
            await asyncio.sleep(10)
            mood = chance.choice([0.0, 0.0, 0.3, 0.95])
        mood = 0.0
        await asyncio.gather(*lives)
    assert len(api.writes_of("a"))
    assert len(api.writes_of("b"))
    assert [write for write in api.writes if write.writer != write.holder] == []


@pytest.mark.parametrize("times", [(15, 15, 2), (15, 10, 10), (0.5, 0.4, 0.1), (15, 10, 0)])
async def test_times_that_cannot_work_are_refused(times: tuple[float, float, float]) -> None:
    with pytest.raises(errors.ConfigurationError, match="cannot work"):
        LeaseSettings(*times)
