# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The diff of nodeops.dra.claim: the same with and without check mode, and empty where nothing changes."""

from __future__ import annotations

import pytest
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import Json, Node, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim

pytestmark = pytest.mark.asyncio

C1 = "team-a/c1 (u-1)"
BY_NAME: Json = {"metadata": {"namespace": "team-a", "name": "c1"}}


def held(*pods: str, prepared: bool = True) -> Json:
    return {C1: {"pods": list(pods), "prepared": prepared}}


async def change(node: Node, state: str, given: Json, **changes: str | bool) -> tuple[Json, Json]:
    """Before and after, which check mode, the run, and the run after it must agree on."""
    planned = await node.claim(state, given, check=True, **changes)
    done = await node.claim(state, given, **changes)
    again = await node.claim(state, given, **changes)
    assert (planned["before"], planned["after"]) == (done["before"], done["after"])
    assert planned["changed"] == done["changed"] == (done["before"] != done["after"])
    assert not again["changed"]
    assert again["before"] == again["after"], "nothing is left to change"
    return done["before"], done["after"]


async def test_from_the_first_holder_to_the_last(node: Node) -> None:
    a, b = "holder:a", "holder:b"
    async with node.driver():
        assert await change(node, "prepared", claim(), holder="a") == ({}, held(a))
        assert await change(node, "prepared", claim(), holder="b") == (held(a), held(a, b))
        assert await change(node, "unprepared", BY_NAME, holder="a") == (held(a, b), held(b))
        assert await change(node, "unprepared", BY_NAME) == (held(b), {})
        assert await change(node, "unprepared", BY_NAME) == ({}, {})


async def test_a_claim_that_is_forgotten(node: Node) -> None:
    node.manager_has(recorded())
    assert await change(node, "forgotten", BY_NAME, reason="a test") == (held("p-1", prepared=False), {})


async def test_a_claim_of_an_earlier_boot_is_prepared_again(node: Node) -> None:
    node.manager_has(recorded(pods=("holder:a",)))
    async with node.driver():
        before, after = await change(node, "prepared", claim(), holder="a")
    assert (before, after) == (held("holder:a", prepared=False), held("holder:a"))


async def test_what_only_the_kubelet_has(node: Node) -> None:
    node.kubelet_has(recorded())
    async with node.driver():
        done = await node.claim("unprepared", BY_NAME, force=True)
    assert (done["changed"], done["before"], done["after"]) == (True, held("p-1"), {})
