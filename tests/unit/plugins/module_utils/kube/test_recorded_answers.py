# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Every answer that was recorded from a real API server goes through the client: none surprises it."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
from aiohttp import web
from ansible_collections.nodeops.dra.plugins.module_utils.kube import errors
from ansible_collections.nodeops.dra.plugins.module_utils.kube.object_index import codec_for
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import Call, resource_of
from ansible_collections.nodeops.dra.plugins.module_utils.kube.shapes import meta_of
from ansible_collections.nodeops.dra.plugins.module_utils.kube.watch import open_watch

from .stub_api import connected, line, stream

EXCHANGES: list[dict[str, t.Any]] = json.loads(
    (pathlib.Path(__file__).parents[3] / "fixtures" / "api" / "exchanges.json").read_text(encoding="utf-8")
)
PLAIN = [exchange for exchange in EXCHANGES if "events" not in exchange["response"]]
WATCHES = [exchange for exchange in EXCHANGES if "events" in exchange["response"]]
CODES = {400: errors.BadRequestError, 401: errors.UnauthorizedError, 422: errors.InvalidObjectError}


def note(exchange: t.Mapping[str, t.Any]) -> str:
    """The name of an exchange."""
    return str(exchange["note"])


@pytest.mark.parametrize("exchange", PLAIN, ids=note)
@pytest.mark.asyncio
async def test_an_answer_is_a_result_or_an_error_with_its_text(exchange: dict[str, t.Any]) -> None:
    request, response = exchange["request"], exchange["response"]
    async with connected(tries=1) as (api, client):

        async def route(_request: web.Request) -> web.StreamResponse:
            return web.json_response(response["body"], status=response["status"])

        api.otherwise = route
        call = Call("get", request["method"], request["path"].partition("?")[0])
        if response["status"] < 400:
            assert await client.request(call)
            return
        with pytest.raises(errors.ApiStatusError) as caught:
            await client.request(call)
    found, said = caught.value, response["body"]
    assert found.status == response["status"]
    assert found.reason == said["reason"]
    assert said["message"][:300] in found.message or said["message"] == said["reason"]
    assert isinstance(found, CODES.get(found.status, errors.ApiStatusError))


@pytest.mark.parametrize("exchange", WATCHES, ids=note)
@pytest.mark.asyncio
async def test_the_events_of_a_watch(exchange: dict[str, t.Any]) -> None:
    events = exchange["response"]["events"]
    codec = codec_for(t.cast("type[dict[str, t.Any]]", dict))
    async with connected(tries=1) as (api, client):
        api.otherwise = stream(*(line(event["type"], event["object"]) for event in events), stay=False)
        seen: list[tuple[str, str]] = []
        try:
            async with open_watch(client, resource_of("ResourceClaim"), "5", namespace="team-a") as watch:
                while batch := await watch.batch():
                    for event in batch:
                        if event.bookmark is not None:
                            seen.append((event.kind, event.bookmark.metadata.resource_version))
                        else:
                            obj = codec.decode(event.raw)
                            assert obj is not None
                            seen.append((event.kind, meta_of(obj).resource_version))
        except errors.GoneError as error:
            said = error.facts["server_message"]
            seen.append(("ERROR", said))
    wanted = [
        (event["type"], event["object"]["metadata"].get("resourceVersion") or event["object"]["message"])
        for event in events
    ]
    assert seen == wanted


def test_there_are_recordings() -> None:
    assert len(PLAIN) > 40
    assert len(WATCHES) > 4
