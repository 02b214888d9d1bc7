# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import pathlib
import tempfile
import typing as t

import pytest
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import Node


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


@pytest.fixture
def node(root: pathlib.Path) -> Node:
    return Node(root)
