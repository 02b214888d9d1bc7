# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Locks by pod and claim: nobody waits in a circle, nothing is left behind."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.manager.claim_locks import KeyedLocks

pytestmark = pytest.mark.asyncio

Key = tuple[int, str]


async def test_different_claims_do_not_wait_for_each_other() -> None:
    locks: KeyedLocks[Key] = KeyedLocks()
    async with locks.hold([(1, "a")]), locks.hold([(1, "b")]):
        assert len(locks) == 2
    assert len(locks) == 0


async def test_who_need_not_wait_is_not_made_to_wait() -> None:
    locks: KeyedLocks[Key] = KeyedLocks()
    async with locks.hold([(1, "a"), (1, "b")]):
        assert [locks.is_free([(1, key)]) for key in "abc"] == [False, False, True]
        assert not locks.is_free([(1, "c"), (1, "b")])
        # Without a turn of the loop in between nobody else can come first.
        free = locks.hold([(1, "c"), (1, "d")])
        with pytest.raises(StopIteration):
            free.__aenter__().__await__().send(None)
        await free.__aexit__(None, None, None)
    assert locks.is_free([(1, "a"), (1, "b")])


async def test_the_same_key_given_twice_is_one_lock() -> None:
    locks: KeyedLocks[Key] = KeyedLocks()
    async with locks.hold([(1, "a"), (1, "a")]):
        assert len(locks) == 1


async def test_who_waits_and_is_cancelled_gives_back_what_it_had() -> None:
    locks: KeyedLocks[Key] = KeyedLocks()

    async def both() -> None:
        async with locks.hold([(1, "a"), (1, "b")]):
            raise AssertionError("b is taken")

    async with locks.hold([(1, "b")]):
        waiting = asyncio.create_task(both())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        async with locks.hold([(1, "a")]):
            pass
    assert len(locks) == 0


@pytest.mark.parametrize("seed", range(5))
async def test_many_with_many_keys_all_get_through(seed: int) -> None:
    chance = random.Random(seed)
    locks: KeyedLocks[Key] = KeyedLocks()
    holders: dict[Key, int] = {}
    done = itertools.count()

    async def work() -> None:
        keys = [(1, chance.choice("abcdef")) for _unused in range(3)]
        async with locks.hold(keys):
            for key in set(keys):
                holders[key] = holders.get(key, 0) + 1
                assert holders[key] == 1
            for _unused in range(chance.randrange(3)):
                await asyncio.sleep(0)
            for key in set(keys):
                holders[key] -= 1
        next(done)

    tasks = [asyncio.create_task(work()) for _unused in range(100)]
    for task in chance.sample(tasks, 30):
        await asyncio.sleep(0)
        task.cancel()
    async with asyncio.timeout(5):
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(one is None or isinstance(one, asyncio.CancelledError) for one in results)
    assert next(done) >= 70
    assert len(locks) == 0
