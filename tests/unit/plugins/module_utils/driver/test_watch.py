# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Sockets that come, go, move and are made anew, with file events and without them."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import pathlib
import socket
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.driver import watch
from ansible_collections.nodeops.dra.plugins.module_utils.driver.timings import Timings
from ansible_collections.nodeops.dra.plugins.module_utils.driver.watch import Changes, find_sockets, watch_sockets

# With events a change must be seen long before the next look; without them each look is soon.
WITH_EVENTS = Timings(rescan=60.0)
POLLING = Timings(poll=0.01)


def make_socket(path: pathlib.Path) -> None:
    """A socket file as a driver leaves it; nobody listens."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


@contextlib.asynccontextmanager
async def watching(directory: pathlib.Path, timings: Timings) -> t.AsyncIterator[t.Callable[[], t.Awaitable[Changes]]]:
    async with contextlib.aclosing(watch_sockets(str(directory), timings)) as looks:

        async def change() -> Changes:
            return await asyncio.wait_for(looks.__anext__(), 20)

        yield change


def names(paths: t.Iterable[str]) -> list[str]:
    return sorted(os.path.basename(path) for path in paths)


@pytest.fixture(params=["events", "polling"])
def timings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Timings:
    if request.param == "events":
        return WITH_EVENTS

    class Missing:
        def __init__(self) -> None:
            raise OSError("no inotify")

    monkeypatch.setattr(watch, "Inotify", Missing)
    return POLLING


@pytest.mark.report("F027")
@pytest.mark.asyncio
async def test_sockets_that_are_there_at_the_start_are_found_at_once(root: pathlib.Path, timings: Timings) -> None:
    make_socket(root / "a.sock")
    async with watching(root, timings) as change:
        changes = await change()
        assert (names(changes.appeared), changes.removed) == (["a.sock"], [])


@pytest.mark.asyncio
async def test_sockets_come_and_go(root: pathlib.Path, timings: Timings) -> None:
    async with watching(root, timings) as change:
        assert (await change()).appeared == []
        make_socket(root / "a.sock")
        assert names((await change()).appeared) == ["a.sock"]
        make_socket(root / "b.sock")
        assert names((await change()).appeared) == ["b.sock"]
        (root / "a.sock").unlink()
        changes = await change()
        assert (changes.appeared, names(changes.removed)) == ([], ["a.sock"])


@pytest.mark.asyncio
async def test_a_socket_that_was_made_anew_is_another_one(root: pathlib.Path, timings: Timings) -> None:
    make_socket(root / "a.sock")
    async with watching(root, timings) as change:
        await change()
        for _unused in range(5):
            (root / "a.sock").unlink()
            make_socket(root / "a.sock")
            changes = await change()
            if not changes.appeared:  # the look fell between the two
                assert names(changes.removed) == ["a.sock"]
                changes = await change()
            assert names(changes.appeared) == ["a.sock"]


@pytest.mark.asyncio
async def test_a_socket_made_anew_with_the_number_and_time_of_the_old_one_is_another_one(
    root: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inode numbers are used again at once and clocks are coarse: then the event must tell."""
    monkeypatch.setattr(watch, "SocketId", lambda *_numbers: (0, 0, 0))
    make_socket(root / "a.sock")
    async with watching(root, WITH_EVENTS) as change:
        await change()
        (root / "a.sock").unlink()
        make_socket(root / "a.sock")
        changes = await change()
        assert names(changes.removed) == ["a.sock"]
        assert names(changes.appeared) == ["a.sock"]


@pytest.mark.asyncio
async def test_a_chmod_or_a_connect_makes_no_new_socket(root: pathlib.Path, timings: Timings) -> None:
    path = root / "a.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        async with watching(root, timings) as change:
            await change()
            path.chmod(0o600)
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
            make_socket(root / "b.sock")
            assert names((await change()).appeared) == ["b.sock"]


@pytest.mark.asyncio
async def test_subdirectories_are_watched_too(root: pathlib.Path, timings: Timings) -> None:
    async with watching(root, timings) as change:
        await change()
        (root / "one" / "two").mkdir(parents=True)
        make_socket(root / "one" / "two" / "a.sock")
        assert names((await change()).appeared) == ["a.sock"]
        make_socket(root / "one" / "b.sock")
        assert names((await change()).appeared) == ["b.sock"]
        (root / "one" / "two" / "a.sock").unlink()
        assert names((await change()).removed) == ["a.sock"]


@pytest.mark.asyncio
async def test_a_socket_moved_into_place_is_found(root: pathlib.Path, timings: Timings) -> None:
    make_socket(root / ".hidden")
    async with watching(root, timings) as change:
        assert (await change()).appeared == []
        (root / ".hidden").rename(root / "a.sock")
        assert names((await change()).appeared) == ["a.sock"]


@pytest.mark.asyncio
async def test_the_directory_may_come_later(root: pathlib.Path) -> None:
    async with watching(root / "later", Timings(rescan=0.05, poll=0.05)) as change:
        changes = await change()
        assert changes.found.missing
        (root / "later").mkdir()
        make_socket(root / "later" / "a.sock")
        assert names((await change()).appeared) == ["a.sock"]


@pytest.mark.report("F027")
@pytest.mark.asyncio
async def test_a_lost_event_is_healed_by_the_next_look(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch.Inotify, "watch", lambda _self, _directory: None)  # no event ever comes
    async with watching(root, Timings(rescan=0.05)) as change:
        await change()
        make_socket(root / "a.sock")
        assert names((await change()).appeared) == ["a.sock"]


def test_dot_names_files_and_links_are_no_sockets(root: pathlib.Path) -> None:
    make_socket(root / "a.sock")
    make_socket(root / ".b.sock")
    (root / ".dir").mkdir()
    make_socket(root / ".dir" / "c.sock")
    (root / "file.sock").write_text("x")
    (root / "link.sock").symlink_to(root / "a.sock")
    (root / "linked").symlink_to(root / ".dir")
    found = find_sockets(str(root))
    assert names(found.sockets) == ["a.sock"]
    assert names(found.other) == ["file.sock", "link.sock", "linked"]


def test_an_unreadable_directory_is_told(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "closed").mkdir()
    make_socket(root / "a.sock")
    scandir = os.scandir

    def refuse(path: str) -> t.Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(watch.os, "scandir", refuse)
    found = find_sockets(str(root))
    assert names(found.sockets) == ["a.sock"]
    assert found.unreadable == {str(root / "closed"): "Permission denied"}


@pytest.mark.asyncio
async def test_a_directory_that_cannot_be_read_for_a_while_takes_no_driver_away(
    root: pathlib.Path, timings: Timings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "sub").mkdir()
    make_socket(root / "a.sock")
    make_socket(root / "sub" / "b.sock")
    scandir, closed = os.scandir, True

    def refuse(path: str) -> t.Any:
        if closed and not str(path).endswith("sub"):
            raise OSError(errno.EMFILE, "Too many open files")
        return scandir(path)

    async with watching(root, timings) as change:
        assert names((await change()).appeared) == ["a.sock", "b.sock"]
        monkeypatch.setattr(watch.os, "scandir", refuse)
        (root / "x").touch()
        changes = await change()
        assert (changes.removed, changes.appeared) == ([], [])
        assert changes.found.unreadable == {str(root): "Too many open files"}
        closed = False
        (root / "a.sock").unlink()
        changes = await change()
        assert (names(changes.removed), changes.appeared, changes.found.unreadable) == (["a.sock"], [], {})


@pytest.mark.asyncio
async def test_a_file_that_is_no_socket_is_told_whenever_it_comes(root: pathlib.Path, timings: Timings) -> None:
    async with watching(root, timings) as change:
        assert (await change()).found.other == []
        (root / "gpu.sock").touch()
        assert names((await change()).found.other) == ["gpu.sock"]


@pytest.mark.asyncio
async def test_nothing_is_left_open(root: pathlib.Path) -> None:
    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = open_files()
    async with watching(root, WITH_EVENTS) as change:
        await change()
        assert open_files() > before
    assert open_files() == before
