# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""While the state cannot be read or written: look again and again whether it can, and go on by itself then."""

from __future__ import annotations

import asyncio
import logging
import typing as t

from ..checkpoint.errors import DraError
from .after_boot import prepare_again
from .workplace import Workplace

log = logging.getLogger(__name__)

PERIOD = 5.0
"""Seconds between two looks. Each costs a read of the state file, or a write that probably fails."""


async def keep_state_usable(place: Workplace, recovered: t.Callable[[], None], *, period: float = PERIOD) -> t.NoReturn:
    """Have claims of services prepared again after a boot, and see to it that this, and all else, is possible.

    ``recovered`` is called when the state can be used again.
    """
    async with asyncio.TaskGroup() as group:
        group.create_task(prepare_again(place))
        told = str(place.manager.degraded or "")
        while True:
            await asyncio.sleep(period)
            degraded = place.manager.degraded
            if degraded is None:
                told = ""
                continue
            if str(degraded) != told:
                told = str(degraded)
                log.error("degraded, nothing is prepared or unprepared error=%s", told)
                place.events.add("state_unusable", place.directories.state, degraded.message)
            unknown = not place.manager.claims()
            if await _recover(place):
                log.warning("the state can be read and written again claims=%d", len(place.manager.claims()))
                place.events.add("state_usable", place.directories.state, "It can be read and written again.")
                recovered()
                if unknown:
                    group.create_task(prepare_again(place))


async def _recover(place: Workplace) -> bool:
    try:
        return await place.manager.recover()
    except DraError as error:
        log.warning("whether the state can be used again cannot be told now error=%s", error)
        return False
