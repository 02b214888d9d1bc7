# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""List and watch against servers and networks that do everything they do in the field."""

from __future__ import annotations

import asyncio
import contextlib
import typing as t

import pytest
from aiohttp import web
from ansible_collections.nodeops.dra.plugins.module_utils.kube import errors
from ansible_collections.nodeops.dra.plugins.module_utils.kube.object_index import Codec, codec_for
from ansible_collections.nodeops.dra.plugins.module_utils.kube.reflector import Reflector, ReflectorSettings
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of
from ansible_collections.nodeops.dra.plugins.module_utils.kube.store import Handler, Store
from ansible_collections.nodeops.dra.plugins.module_utils.kube.watch import WatchLimits

from .stub_api import Json, StubApi, answers, bookmark, claim, connected, failure, line, page, status, stream

CLAIMS = resource_of("ResourceClaim")
LIST, WATCH = "resourceclaims?limit", "watch=1"
QUICK = ReflectorSettings(first_delay=0.01, longest_delay=0.05)


class World:
    """A stub, a reflector that works on it, and what its handlers heard."""

    def __init__(self, api: StubApi, reflector: Reflector[Json]) -> None:
        self.api, self.reflector, self.store = api, reflector, reflector.store
        self.heard: list[tuple[str, str]] = []
        self._changed = asyncio.Event()
        self.store.subscribe(
            Handler(
                added=lambda new: self._hear("added", new),
                updated=lambda old, new: self._hear("updated", new),
                deleted=lambda old: self._hear("deleted", old),
            )
        )

    def _hear(self, what: str, obj: Json) -> None:
        self.heard.append((what, f"{obj['metadata']['name']}@{obj['metadata']['resourceVersion']}"))
        self._changed.set()

    async def heard_of(self, *wanted: tuple[str, str]) -> None:
        """Wait until the handlers have heard exactly this."""
        while self.heard != list(wanted):
            self._changed.clear()
            try:
                async with asyncio.timeout(5):
                    await self._changed.wait()
            except TimeoutError:
                assert self.heard == list(wanted)

    @property
    def names(self) -> list[str]:
        """Names in the store."""
        return sorted(key[1] for key in self.store.keys())  # noqa: SIM118 (a store is no dict)


@contextlib.asynccontextmanager
async def reflecting(
    *script: t.Any,
    settings: ReflectorSettings = QUICK,
    codec: Codec[Json] | None = None,
    prepare: t.Callable[[StubApi], None] | None = None,
    **more: t.Any,
) -> t.AsyncIterator[World]:
    """A reflector at work against a stub with this script; an open, silent watch follows when it has run out."""
    async with connected(rand=lambda: 0.0, tries=1) as (api, client):
        api.script = [step(api) if getattr(step, "needs_api", False) else step for step in script]
        api.otherwise = stream(api=api)
        if prepare is not None:
            prepare(api)
        store: Store[Json] = Store(codec or codec_for(t.cast("type[Json]", dict)))
        reflector = Reflector(client, CLAIMS, store, settings=settings, rand=lambda: 0.0, **more)
        world = World(api, reflector)
        task = asyncio.ensure_future(reflector.run())
        try:
            yield world
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def watching(*chunks: bytes, stay: bool = True) -> t.Any:
    """A step that is a watch."""

    def make(api: StubApi) -> t.Any:
        return stream(*chunks, stay=stay, api=api)

    make.needs_api = True  # type: ignore[attr-defined]
    return make


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


@pytest.mark.asyncio
async def test_what_the_codec_drops_costs_nothing_and_is_deleted_when_it_was_there_before() -> None:
    codec = codec_for(t.cast("type[Json]", dict), keep=lambda obj: bool(obj.get("wanted")))
    async with reflecting(
        *answers(page([claim("a", 1, wanted=True), claim("b", 2)], 5)),
        watching(
            line("ADDED", claim("c", 6)),
            line("MODIFIED", claim("a", 7)),
            line("DELETED", claim("c", 8)),
            line("MODIFIED", claim("b", 9, wanted=True)),
        ),
        codec=codec,
    ) as world:
        await world.heard_of(("added", "a@1"), ("deleted", "a@1"), ("added", "b@9"))
    assert world.names == ["b"]
    assert world.reflector.stats.dropped == 4


@pytest.mark.asyncio
async def test_an_object_that_cannot_be_read_stays_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    class Strict(t.TypedDict, total=False):
        metadata: dict[str, str]
        count: int

    async with reflecting(
        *answers(page([claim("a", 1, count=1), claim("b", 2, count=2)], 5)),
        watching(line("MODIFIED", claim("a", 6, count="many")), line("MODIFIED", claim("b", 7, count=3)), stay=False),
        *answers(failure(410, "Expired")),
        *answers(page([claim("a", 6, count="many"), claim("b", 7, count=3)], 9)),
        codec=t.cast("Codec[Json]", codec_for(Strict)),
    ) as world:
        await world.api.arrived(3, WATCH)
        assert world.heard == [("added", "a@1"), ("added", "b@2"), ("updated", "b@7")]
    assert world.reflector.stats.malformed == 2
    assert "name=a" in caplog.text
    assert "count" in caplog.text


@pytest.mark.report("F004")
@pytest.mark.asyncio
async def test_an_object_of_the_same_name_and_another_uid_is_another_one() -> None:
    async with reflecting(
        *answers(page([claim("a", 1)], 5), failure(410, "Expired"), page([claim("a", 8, uid="u-new")], 9)),
        watching(line("DELETED", claim("a", 10))),  # a late word about the old one
    ) as world:
        await world.heard_of(("added", "a@1"), ("deleted", "a@1"), ("added", "a@8"))
        assert world.store.by_uid("u-a") is None
        assert world.store.by_uid("u-new") is not None
        await world.api.arrived(2, WATCH)
    assert world.names == ["a"]


@pytest.mark.looptime
@pytest.mark.asyncio
async def test_a_list_from_a_server_that_lags_behind_is_not_taken() -> None:
    async with reflecting(
        *answers(page([claim("a", 90)], 100), failure(410, "Expired")),
        *answers(page([], 50), page([claim("a", 90), claim("b", 101)], 101)),
    ) as world:
        await world.heard_of(("added", "a@90"), ("added", "b@101"))


@pytest.mark.looptime
@pytest.mark.asyncio
async def test_versions_that_stay_lower_are_believed_in_the_end() -> None:
    def restored(api: StubApi) -> None:
        async def route(request: web.Request) -> web.StreamResponse:
            if "watch=1" in request.path_qs:
                return await stream(api=api)(request)
            return page([claim("a", 40)], 50)

        api.otherwise = route

    async with reflecting(
        *answers(page([claim("a", 90), claim("b", 91)], 100), failure(410, "Expired")), prepare=restored
    ) as world:
        await world.heard_of(("added", "a@90"), ("added", "b@91"), ("updated", "a@40"), ("deleted", "b@91"))


@pytest.mark.report("F067")
@pytest.mark.asyncio
async def test_a_version_that_is_not_served_any_more_ends_the_reflector() -> None:
    async with connected(tries=1) as (api, client):
        api.script = answers(page([], 5))
        store: Store[Json] = Store(codec_for(t.cast("type[Json]", dict)))
        with pytest.raises(errors.NotServedError, match="watch resourceclaims"):
            await Reflector(client, CLAIMS, store, settings=QUICK).run()


@pytest.mark.report("F101")
@pytest.mark.looptime
@pytest.mark.asyncio
async def test_a_missing_right_is_told_once_and_waited_out(caplog: pytest.LogCaptureFixture) -> None:
    refused = [failure(403, "Forbidden", 'claims are forbidden: User "u" cannot list') for _number in range(6)]
    async with reflecting(*answers(*refused, page([claim("a", 1)], 5))) as world:
        await world.heard_of(("added", "a@1"))
    told = [record for record in caplog.records if "403" in record.message]
    assert len(told) == 1
    assert 'Grant verb "list" on "resourceclaims" in API group "resource.k8s.io"' in told[0].message


@pytest.mark.asyncio
async def test_reconnecting_leaks_no_connection_and_no_task() -> None:
    def short(api: StubApi) -> None:
        number = 5

        async def route(request: web.Request) -> web.StreamResponse:
            nonlocal number
            if "watch=1" not in request.path_qs:
                return page([], 5)
            number += 1
            return await stream(line("ADDED", claim(f"c{number}", number)), stay=False)(request)

        api.otherwise = route

    async with reflecting(prepare=short) as world:
        await world.api.arrived(5, WATCH)
        tasks = len(asyncio.all_tasks())
        await world.api.arrived(40, WATCH)
        assert len(asyncio.all_tasks()) <= tasks + 1
        assert world.api.connections <= 2


@pytest.mark.asyncio
async def test_the_first_state_may_come_through_the_watch() -> None:
    settings = ReflectorSettings(watch_list=True, first_delay=0.01)
    async with reflecting(
        watching(
            line("ADDED", claim("a", 1)),
            line("ADDED", claim("b", 2)),
            bookmark(9, **{"k8s.io/initial-events-end": "true"}),
            line("DELETED", claim("b", 10)),
        ),
        settings=settings,
    ) as world:
        await world.heard_of(("added", "a@1"), ("added", "b@2"), ("deleted", "b@10"))
        assert world.reflector.synced.is_set()
    assert world.api.seen("sendInitialEvents=true")
    assert not world.api.seen(LIST)


@pytest.mark.asyncio
async def test_a_server_without_watch_list_is_asked_for_a_list() -> None:
    settings = ReflectorSettings(watch_list=True, first_delay=0.01)
    refused = failure(422, "Invalid", "sendInitialEvents is forbidden for watch unless the WatchList feature is on")
    async with reflecting(*answers(refused, page([claim("a", 1)], 5)), settings=settings) as world:
        await world.heard_of(("added", "a@1"))
        assert len(world.api.seen(LIST)) == 1


@pytest.mark.report("F060")
@pytest.mark.asyncio
async def test_deletes_that_nobody_told_are_found_by_the_next_list() -> None:
    many = [claim(f"c{number}", number + 1) for number in range(300)]
    async with reflecting(
        *answers(page(many, 500), failure(410, "Expired"), page(many[:1], 900)),
    ) as world:
        await world.api.arrived(2, WATCH)
        assert world.names == ["c0"]
        assert [what for what, _name in world.heard].count("deleted") == 299
