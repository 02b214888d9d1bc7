# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""List and watch against servers and networks that do everything they do in the field."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from aiohttp import web
from ansible_collections.nodeops.dra.plugins.module_utils.kube.reflector import ReflectorSettings
from ansible_collections.nodeops.dra.plugins.module_utils.kube.watch import WatchLimits

from .reflecting import LIST, WATCH, reflecting, watching
from .stub_api import StubApi, answers, bookmark, claim, failure, line, page, status


@pytest.mark.asyncio
async def test_pages_then_events() -> None:
    async with reflecting(
        *answers(page([claim("a", 1)], 5, "more"), page([claim("b", 2)], 5)),
        watching(line("ADDED", claim("c", 6)), line("MODIFIED", claim("a", 7)), line("DELETED", claim("b", 8))),
    ) as world:
        await world.heard_of(
            ("added", "a@1"), ("added", "b@2"), ("added", "c@6"), ("updated", "a@7"), ("deleted", "b@8")
        )
        assert world.reflector.synced.is_set()
        assert world.names == ["a", "c"]
        assert world.store.resource_version == "8"
        watch = world.api.seen(WATCH)[0]
    assert "resourceVersion=5" in watch
    assert "allowWatchBookmarks=true" in watch
    assert "timeoutSeconds=300" in watch
    assert world.reflector.stats.lists == 1


@pytest.mark.asyncio
async def test_a_watch_that_ends_goes_on_from_the_last_version_without_a_list() -> None:
    async with reflecting(
        *answers(page([claim("a", 1)], 5)),
        watching(line("MODIFIED", claim("a", 6)), bookmark(9), stay=False),
        watching(line("MODIFIED", claim("a", 12))),
    ) as world:
        await world.heard_of(("added", "a@1"), ("updated", "a@6"), ("updated", "a@12"))
        assert "resourceVersion=9" in world.api.seen(WATCH)[1]
        assert len(world.api.seen(LIST)) == 1


@pytest.mark.report("F069")
@pytest.mark.parametrize("form", ["status", "event", "event-500", "status-500", "status-504"])
@pytest.mark.asyncio
async def test_a_version_that_is_too_old_leads_to_a_list_and_a_diff(form: str) -> None:
    expired = {
        "status": answers(failure(410, "Expired", "too old resource version: 5 (9)"))[0],
        "event": watching(line("ERROR", status(410, "Expired", "too old resource version: 5 (9)")), stay=False),
        "event-500": watching(line("ERROR", status(500, "ResourceExpired", "expired")), stay=False),
        "status-500": answers(failure(500, "ResourceExpired", "expired"))[0],
        "status-504": answers(failure(504, "Timeout", "Timeout: Too large resource version: 5, current: 1"))[0],
    }[form]
    async with reflecting(
        *answers(page([claim("a", 1), claim("b", 2), claim("c", 3)], 5)),
        expired,
        *answers(page([claim("a", 1), claim("c", 8)], 9)),
    ) as world:
        await world.heard_of(
            ("added", "a@1"), ("added", "b@2"), ("added", "c@3"), ("updated", "c@8"), ("deleted", "b@2")
        )
        await world.api.arrived(2, WATCH)
        assert "resourceVersion=9" in world.api.seen(WATCH)[1]
        assert "None" not in "".join(world.api.requests)
    assert world.reflector.stats.vanished == 1
    assert sum(world.reflector.stats.relist_reasons.values()) == 1


@pytest.mark.report("F068")
@pytest.mark.asyncio
async def test_a_watch_without_a_sign_of_life_is_opened_again() -> None:
    settings = ReflectorSettings(limits=WatchLimits(server=300, grace=10, idle=0.2), first_delay=0.01)
    async with reflecting(
        *answers(page([claim("a", 1)], 5)),
        watching(line("MODIFIED", claim("a", 6))),  # then nothing more, the connection stays
        watching(line("MODIFIED", claim("a", 7))),  # this happened meanwhile
        settings=settings,
    ) as world:
        await world.heard_of(("added", "a@1"), ("updated", "a@6"), ("updated", "a@7"))
        assert "resourceVersion=6" in world.api.seen(WATCH)[1]
        assert len(world.api.seen(LIST)) == 1


@pytest.mark.report("F068")
@pytest.mark.looptime
@pytest.mark.asyncio
async def test_the_client_ends_a_watch_that_its_server_forgets_to_end() -> None:
    chunk = bookmark(6)

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while not world.api.over.is_set():
                await response.write(chunk)
                await asyncio.sleep(30)
        return response

    async with reflecting(*answers(page([], 5)), endless) as world:
        loop = asyncio.get_running_loop()
        started = loop.time()
        await world.api.arrived(2, WATCH)
        assert 300 <= loop.time() - started <= 311
        world.api.over.set()


@pytest.mark.report("F068")
@pytest.mark.looptime
@pytest.mark.asyncio
async def test_lag_is_the_time_since_the_last_sign_of_life() -> None:
    async with reflecting(*answers(page([], 5)), watching(bookmark(6))) as world:
        await world.api.arrived(1, WATCH)
        await asyncio.sleep(40)
        assert world.reflector.lag() == pytest.approx(40, abs=1)
        await world.api.arrived(2, WATCH)  # after 90 idle seconds
        assert world.reflector.lag() == pytest.approx(90, abs=2)


@pytest.mark.asyncio
async def test_texts_cut_inside_a_character_and_events_cut_into_pieces() -> None:
    text = "grün € 🚀"
    raw = line("ADDED", claim("a", 6, note=text)) + line("ADDED", claim("b", 7)) + b"\n" + line("ADDED", claim("c", 8))
    pieces = [raw[start : start + 3] for start in range(0, len(raw), 3)]
    async with reflecting(*answers(page([], 5)), watching(*pieces)) as world:
        await world.heard_of(("added", "a@6"), ("added", "b@7"), ("added", "c@8"))
        found = world.store.get("a", "team-a")
        assert found is not None
        assert found["note"] == text


@pytest.mark.asyncio
async def test_an_event_of_megabytes() -> None:
    big = claim("a", 6, note="x" * (5 << 20))
    async with reflecting(*answers(page([], 5)), watching(line("ADDED", big), line("ADDED", claim("b", 7)))) as world:
        await world.heard_of(("added", "a@6"), ("added", "b@7"))


@pytest.mark.asyncio
async def test_a_broken_line_is_no_end() -> None:
    async with reflecting(
        *answers(page([], 5)),
        watching(line("ADDED", claim("a", 6)), b'{"type":"ADDED","obj\n', stay=False),
        watching(line("ADDED", claim("b", 7))),
    ) as world:
        await world.heard_of(("added", "a@6"), ("added", "b@7"))
        assert "resourceVersion=6" in world.api.seen(WATCH)[1]


@pytest.mark.asyncio
async def test_a_connection_that_breaks_in_the_middle_of_an_event() -> None:
    async def broken(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(line("ADDED", claim("a", 6)) + line("ADDED", claim("b", 7))[:20])
        await asyncio.sleep(0.05)
        assert request.transport is not None
        request.transport.abort()
        return response

    async with reflecting(*answers(page([], 5)), broken, watching(line("ADDED", claim("b", 7)))) as world:
        await world.heard_of(("added", "a@6"), ("added", "b@7"))
        assert len(world.api.seen(LIST)) == 1


@pytest.mark.looptime
@pytest.mark.asyncio
async def test_a_refused_watch_is_not_asked_in_a_tight_loop() -> None:
    settings = ReflectorSettings()

    def refuse(api: StubApi) -> None:
        async def route(request: web.Request) -> web.StreamResponse:
            return failure(503, "ServiceUnavailable") if "watch=1" in request.path_qs else page([], 5)

        api.otherwise = route

    async with reflecting(prepare=refuse, settings=settings) as world:
        await asyncio.sleep(120)
        assert 8 <= len(world.api.requests) <= 30


@pytest.mark.looptime
@pytest.mark.asyncio
async def test_watches_that_end_at_once_are_not_opened_in_a_tight_loop() -> None:
    def end_at_once(api: StubApi) -> None:
        async def route(request: web.Request) -> web.StreamResponse:
            return web.Response() if "watch=1" in request.path_qs else page([], 5)

        api.otherwise = route

    async with reflecting(prepare=end_at_once, settings=ReflectorSettings()) as world:
        await asyncio.sleep(120)
        assert len(world.api.requests) <= 30
        assert len(world.api.seen(LIST)) == 1


@pytest.mark.looptime
@pytest.mark.asyncio
async def test_too_many_requests_waits_as_told_and_does_not_list_again() -> None:
    async with reflecting(
        *answers(page([], 5), failure(429, retry_after="20")), watching(line("ADDED", claim("a", 6)))
    ) as world:
        loop = asyncio.get_running_loop()
        started = loop.time()
        await world.api.arrived(2, WATCH)
        assert 20 <= loop.time() - started <= 26
        assert len(world.api.seen(LIST)) == 1
