# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pathlib
import tempfile
import typing as t

import pytest
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import Node


@pytest.fixture
def root() -> t.Iterator[pathlib.Path]:
    """A kubelet root with a short path: a socket below tmp_path would not fit into 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="dra-") as folder:
        yield pathlib.Path(folder)


@pytest.fixture
def node(root: pathlib.Path) -> Node:
    return Node(root)
