# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which sockets are in a directory and below it, and how that changes. (kubelet: pluginwatcher)

The truth is what the directory holds when it is read. File events only say when to read it; it is read from time to
time without them too, which heals events that were lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import stat
import typing as t

from .inotify import Inotify
from .timings import Timings


class SocketId(t.NamedTuple):
    """Tells a socket from a later one of the same path. Times matter too: inode numbers are used again at once.

    Of the times only that of the content: connecting and chmod change the others.
    """

    device: int
    inode: int
    made: int


@dataclasses.dataclass(frozen=True)
class Found:
    """``sockets`` by path, ``other`` files that are no sockets, ``unreadable`` directories with the reason.

    ``missing``: the directory itself is not there.
    """

    sockets: dict[str, SocketId]
    other: list[str]
    unreadable: dict[str, str]
    missing: bool = False


@dataclasses.dataclass(frozen=True)
class Changes:
    """What changed since the last look. A socket that was made anew is in both lists."""

    removed: list[str]
    appeared: list[str]
    found: Found


def find_sockets(directory: str, on_directory: t.Callable[[str], None] = lambda _path: None) -> Found:
    """Look at a directory and all below it. Names that start with a dot are passed over, links are not followed.

    ``on_directory`` is called for each directory before it is read. A directory that is not there is empty.
    """
    found = Found({}, [], {})
    todo = [directory]
    while todo:
        current = todo.pop()
        try:
            on_directory(current)
            entries = sorted(os.scandir(current), key=lambda entry: entry.name)
        except FileNotFoundError:
            if current == directory:
                return dataclasses.replace(found, missing=True)
            continue
        except OSError as error:
            found.unreadable[current] = error.strerror or str(error)
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            with contextlib.suppress(OSError):  # gone since the listing
                info = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(info.st_mode):
                    todo.append(entry.path)
                elif stat.S_ISSOCK(info.st_mode):
                    found.sockets[entry.path] = SocketId(info.st_dev, info.st_ino, info.st_mtime_ns)
                else:
                    found.other.append(entry.path)
    return found


async def watch_sockets(directory: str, timings: Timings) -> t.AsyncGenerator[Changes]:
    """What is there now, at once, then each change as it happens. Never ends by itself."""
    with contextlib.ExitStack() as stack:
        events = _events(stack)
        known: dict[str, SocketId] = {}
        last: Found | None = None
        while True:
            removed_since = events.read() if events else set()
            found = find_sockets(directory, _watcher(events))
            # A directory that cannot be read now (no file handle left, a disk in trouble) says nothing about its
            # sockets, and is no reason to give up drivers that are connected.
            for path in known.keys() - found.sockets.keys() - removed_since:
                if any(path.startswith(f"{unread}/") for unread in found.unreadable):
                    found.sockets[path] = known[path]
            removed = [p for p, number in known.items() if found.sockets.get(p) != number or p in removed_since]
            appeared = [p for p in found.sockets if p not in known or p in removed]
            known = dict(found.sockets)
            if removed or appeared or found != last:
                last = found
                yield Changes(removed, appeared, found)
            await _wait(events, timings)


def _events(stack: contextlib.ExitStack) -> Inotify | None:
    try:
        events = Inotify()
    except OSError:  # too many instances, or not Linux: polling does as well
        return None
    stack.callback(events.close)
    return events


def _watcher(events: Inotify | None) -> t.Callable[[str], None]:
    def watch(directory: str) -> None:
        if events is not None:
            # Without a watch (limit reached) changes are found by the next look.
            with contextlib.suppress(OSError):
                events.watch(directory)

    return watch


async def _wait(events: Inotify | None, timings: Timings) -> None:
    """Until an event comes, or until it is time for another look anyway."""
    if events is None:
        await asyncio.sleep(timings.poll)
        return
    await events.wait(timings.rescan)
