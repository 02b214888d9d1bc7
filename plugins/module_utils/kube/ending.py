# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The end of tasks that belong to somebody: none is left behind, however often that one is cancelled himself."""

from __future__ import annotations

import asyncio
import typing as t


async def end_all(tasks: t.Collection[asyncio.Future[t.Any]]) -> None:
    """Cancel tasks and wait until all have ended, even when we are cancelled (again) meanwhile.

    Their failures are not raised; who wants them asks the tasks.
    """
    again: asyncio.CancelledError | None = None
    while waiting := [task for task in tasks if not task.done()]:
        for task in waiting:
            task.cancel()
        try:
            await asyncio.wait(waiting)
        except asyncio.CancelledError as error:
            again = error
    for task in tasks:
        if not task.cancelled():
            task.exception()  # it counts as seen
    if again is not None:
        raise again
