# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A node for each test: see `node`."""

from __future__ import annotations

import asyncio
import pathlib
import tempfile
import typing as t

import pytest
import pytest_asyncio
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.node import Node


@pytest.fixture(scope="session", autouse=True)
def default_loop() -> t.Iterator[None]:
    """A loop for looptime, which asks for one before each test that is not asynchronous and never closes it."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()


@pytest.fixture
def root() -> t.Iterator[pathlib.Path]:
    """A kubelet root with a short path: a socket below tmp_path would not fit into 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="dra-") as folder:
        yield pathlib.Path(folder)


@pytest_asyncio.fixture
async def node(root: pathlib.Path) -> t.AsyncIterator[Node]:
    """A node with real files, real drivers on real sockets, and a manager that is started when it is asked for."""
    async with Node(root) as made:
        yield made
