# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import pathlib
import typing as t

import pytest

from .processes import World

# looptime asks for the current loop around every test. For a test that is not asynchronous Python would then make one
# that nobody closes, and its ResourceWarning fails some later test. Once a loop was set, even to None, none is made.
asyncio.set_event_loop(None)


@pytest.fixture
def world(tmp_path: pathlib.Path) -> t.Iterator[World]:
    """A folder in which small daemons live."""
    made = World(tmp_path)
    try:
        yield made
    finally:
        made.close()
