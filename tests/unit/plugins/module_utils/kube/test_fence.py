# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The gate that guarded writes pass, down to the socket."""

from __future__ import annotations

import asyncio
import contextlib
import types
import typing as t

import pytest
from aiohttp import web
from ansible_collections.nodeops.dra.plugins.module_utils.kube import errors
from ansible_collections.nodeops.dra.plugins.module_utils.kube.access import ClusterAccess
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.fence import Fence, lease_clock
from ansible_collections.nodeops.dra.plugins.module_utils.kube.guarded_body import abort
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of

from .lease_api import client_of
from .stub_api import connected, running

CLAIMS = resource_of("ResourceClaim")


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def _fine(request: web.Request) -> web.StreamResponse:
    return web.json_response({"metadata": {"name": "c1"}})


def test_a_fence_closes_by_the_clock_and_never_opens_again() -> None:
    clock = Clock()
    fence = Fence(1010, clock)
    fence.check()
    clock.now = 1010
    with pytest.raises(errors.FenceLostError, match="its time ran out"):
        fence.check()
    clock.now = 1000
    assert not fence.is_open
    with pytest.raises(errors.FenceLostError):
        fence.extend(2000)


def test_a_renewal_moves_the_end_but_never_back() -> None:
    clock = Clock()
    fence = Fence(1010, clock)
    fence.extend(1020)
    fence.extend(1015)
    clock.now = 1019
    assert fence.remaining() == pytest.approx(1)


def test_the_clock_does_not_stop_while_the_machine_sleeps() -> None:
    import time

    if hasattr(time, "CLOCK_BOOTTIME"):
        assert abs(lease_clock() - time.clock_gettime(time.CLOCK_BOOTTIME)) < 1


@pytest.mark.report("F070")
@pytest.mark.asyncio
async def test_every_write_passes_the_fence_and_no_read_does() -> None:
    async with connected(tries=1) as (api, client):
        api.otherwise = _fine
        fenced = client.with_fence(Fence(float("-inf")))
        writes: list[t.Callable[[], t.Awaitable[t.Any]]] = [
            lambda: fenced.create(CLAIMS, {}, "team-a"),
            lambda: fenced.replace(CLAIMS, {}, "c1", "team-a"),
            lambda: fenced.patch(CLAIMS, {}, "c1", "team-a", subresource="status"),
            lambda: fenced.apply(CLAIMS, {}, "c1", "team-a", field_manager="me"),
            lambda: fenced.delete(CLAIMS, "c1", "team-a"),
        ]
        for write in writes:
            with pytest.raises(errors.FenceLostError, match="Nothing was sent"):
                await write()
        assert api.requests == []
        await fenced.get(CLAIMS, "c1", "team-a")
        assert len(api.requests) == 1


@pytest.mark.report("F070")
@pytest.mark.asyncio
async def test_a_write_that_waited_for_a_connection_looks_again_before_it_is_sent() -> None:
    clock = Clock()
    async with running() as api, client_of(api, max_connections=1, tries=1) as client:
        go_on = asyncio.Event()

        async def slow(request: web.Request) -> web.StreamResponse:
            await go_on.wait()
            return web.json_response({})

        api.otherwise = slow
        blocking = asyncio.ensure_future(client.get(CLAIMS, "c0", "team-a"))
        await api.arrived(1)
        fenced = client.with_fence(Fence(1010, clock))
        write = asyncio.ensure_future(fenced.patch(CLAIMS, {"a": 1}, "c1", "team-a"))
        for _turn in range(20):
            await asyncio.sleep(0)
        clock.now = 1020  # frozen here, for longer than the term
        go_on.set()
        await blocking
        with pytest.raises(errors.FenceLostError):
            await write
        await client.get(CLAIMS, "c2", "team-a")
    assert [text.split()[0] for text in api.requests] == ["GET", "GET"]


@pytest.mark.report("F070")
@pytest.mark.asyncio
async def test_a_write_in_flight_does_not_outlive_the_term() -> None:
    arrived, ending = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            await reader.readuntil(b"\r\n\r\n")
            arrived.set()
            await reader.read()
            ending.set_result("closed")
        except ConnectionResetError:
            ending.set_result("reset")
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, KubeClient.connect(ClusterAccess(url, "a test"), tries=1) as client:
        await client.get(CLAIMS, "c1", "team-a")  # opens the connection
        started = lease_clock()
        fence = Fence(started + 0.5)
        write = asyncio.ensure_future(client.with_fence(fence).patch(CLAIMS, {"a": 1}, "c1", "team-a"))
        await arrived.wait()
        with pytest.raises(errors.FenceLostError):
            await write
        assert lease_clock() - started < 5
        # A plain close would let the kernel deliver what it still holds.
        assert await asyncio.wait_for(ending, 5) == "reset"


@pytest.mark.report("F070")
@pytest.mark.asyncio
async def test_what_still_waits_to_be_sent_at_the_end_of_the_term_is_thrown_away() -> None:
    size = 32 << 20  # several times what the kernel takes: the rest waits in the transport
    read_now = asyncio.Event()
    got: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_now.wait()
        received = 0
        with contextlib.suppress(ConnectionError):
            while chunk := await reader.read(1 << 16):
                received += len(chunk)
        got.set_result(received)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        _reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"x" * size)
        writer.close()  # as aiohttp does with a request that is cancelled: it would still deliver everything
        abort(types.SimpleNamespace(transport=writer.transport))
        read_now.set()
        assert await asyncio.wait_for(got, 20) < size // 2


@pytest.mark.asyncio
async def test_the_server_is_told_to_give_up_at_the_end_of_the_term() -> None:
    clock = Clock()
    async with connected(tries=1) as (api, client):
        api.otherwise = _fine
        await client.with_fence(Fence(1060.5, clock)).delete(CLAIMS, "c1", "team-a")
    assert api.requests[0].endswith("?timeout=60500ms")


@pytest.mark.asyncio
async def test_writes_in_flight_are_counted() -> None:
    fence = Fence(lease_clock() + 60)
    go_on = asyncio.Event()
    async with connected(tries=1) as (api, client):

        async def slow(request: web.Request) -> web.StreamResponse:
            await go_on.wait()
            return web.json_response({})

        api.otherwise = slow
        write = asyncio.ensure_future(client.with_fence(fence).patch(CLAIMS, {}, "c1", "team-a"))
        await api.arrived(1)
        assert not await fence.drained(0.01)
        go_on.set()
        assert await fence.drained(5)
        await write
