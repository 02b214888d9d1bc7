# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A made-up node for each test that wants one."""

from __future__ import annotations

import pathlib

import pytest

from .made_up_node import MadeUpNode


@pytest.fixture
def node(tmp_path: pathlib.Path) -> MadeUpNode:
    """A node on which nothing is wrong."""
    return MadeUpNode(tmp_path)
