# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a reflector makes of objects: dropped, malformed, replaced, stale, vanished."""

from __future__ import annotations

import asyncio
import typing as t

import pytest
from aiohttp import web
from ansible_collections.nodeops.dra.plugins.module_utils.kube import errors
from ansible_collections.nodeops.dra.plugins.module_utils.kube.object_index import Codec, codec_for
from ansible_collections.nodeops.dra.plugins.module_utils.kube.reflector import Reflector, ReflectorSettings
from ansible_collections.nodeops.dra.plugins.module_utils.kube.store import Handler, Store

from .reflecting import CLAIMS, LIST, QUICK, WATCH, reflecting, watching
from .stub_api import Json, StubApi, answers, bookmark, claim, connected, failure, line, page, status, stream


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
async def test_what_is_dropped_but_exists_can_be_told_from_what_is_deleted() -> None:
    codec = codec_for(t.cast("type[Json]", dict), keep=lambda obj: bool(obj.get("wanted")))
    heard: list[str] = []
    async with reflecting(
        *answers(page([claim("a", 1, wanted=True), claim("b", 2, wanted=True), claim("c", 2, wanted=True)], 5)),
        watching(line("MODIFIED", claim("a", 7)), line("ERROR", status(410, "Expired"))),
        *answers(page([claim("a", 7), claim("b", 8)], 9)),
        codec=codec,
    ) as world:
        everything = asyncio.Event()

        def hears(what: str) -> t.Callable[[Json], None]:
            def note(obj: Json) -> None:
                heard.append(f"{what} {obj['metadata']['name']}")
                if len(heard) == 6:
                    everything.set()

            return note

        world.store.subscribe(Handler(deleted=hears("deleted")))
        world.store.subscribe(Handler(deleted=hears("gone"), dropped=hears("dropped")))
        await asyncio.wait_for(everything.wait(), 10)
    told = [text for text in heard if not text.startswith("deleted")]
    assert sorted(told) == ["dropped a", "dropped b", "gone c"]
    assert sorted(set(heard) - set(told)) == [
        "deleted a",
        "deleted b",
        "deleted c",
    ]  # who does not care hears of an end


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
        codec=t.cast(Codec[Json], codec_for(Strict)),
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
        watching(line("DELETED", claim("a", 10)), line("ADDED", claim("z", 11))),  # a late word about the old one
    ) as world:
        await world.heard_of(("added", "a@1"), ("deleted", "a@1"), ("added", "a@8"), ("added", "z@11"))
        assert world.store.by_uid("u-a") is None
        assert world.store.by_uid("u-new") is not None
    assert world.names == ["a", "z"]


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
