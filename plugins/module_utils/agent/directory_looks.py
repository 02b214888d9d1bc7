# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""When it is time to look into directories again: after each change in them, and from time to time anyway."""

from __future__ import annotations

import asyncio
import contextlib
import typing as t

from ..driver.inotify import Inotify

UNWATCHED = 5.0
"""The longest pause, in seconds, while a directory cannot be watched: it may not be there yet."""


async def times_to_look(directories: t.Callable[[], t.Iterable[str]], poll: float) -> t.AsyncGenerator[None]:
    """Yields at once, after each change in one of ``directories``, and every ``poll`` seconds. Never ends by itself.

    Directories are asked for each time. Whoever looks after a yield sees what is there now; a change during the look
    leads to another one.
    """
    with contextlib.ExitStack() as stack:
        events = _events(stack)
        while True:
            pause = poll if events is not None and _watch(events, directories()) else min(poll, UNWATCHED)
            if events is not None:
                events.read()
            yield
            await (asyncio.sleep(pause) if events is None else events.wait(pause))


def _events(stack: contextlib.ExitStack) -> Inotify | None:
    try:
        events = Inotify()
    except OSError:  # too many instances, or not Linux: looking from time to time does as well
        return None
    stack.callback(events.close)
    return events


def _watch(events: Inotify, directories: t.Iterable[str]) -> bool:
    """Watch all that can be watched; whether these are all of them."""
    complete = True
    for directory in directories:
        try:
            events.watch(directory)
        except OSError:
            complete = False
    return complete
