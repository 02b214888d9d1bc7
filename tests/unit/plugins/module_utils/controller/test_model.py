# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A few of the random histories that `make soak` plays in great number."""

from __future__ import annotations

import pytest
from ansible_collections.nodeops.dra.tests.soak.model import play

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]


@pytest.mark.parametrize("number", range(12))
async def test_a_history_of_failures_ends_in_the_one_right_state(number: int) -> None:
    assert await play(number) == []
