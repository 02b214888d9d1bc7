# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the agent does when drivers come and go."""

from __future__ import annotations

import typing as t

from ..driver.instances import EventKind
from .workplace import Workplace


async def follow_drivers(place: Workplace, returned: t.Callable[[str], None]) -> None:
    """Tell watchers of every change, and ``returned`` of each driver that can be called again.

    Ends when the registry does.
    """
    with place.registry.subscribe() as events:
        async for event in events:
            place.events.add(f"driver_{event.kind.value}", event.driver, event.endpoint)
            if event.kind in (EventKind.REGISTERED, EventKind.CONNECTED):
                returned(event.driver)
