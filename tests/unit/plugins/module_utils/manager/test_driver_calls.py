# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What is told of calls to drivers: the status that each of them ended with."""

from __future__ import annotations

import asyncio
import contextlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.driver.claims import ClaimRef, PrepareResult
from ansible_collections.nodeops.dra.plugins.module_utils.driver.errors import DriverNotRegistered
from ansible_collections.nodeops.dra.plugins.module_utils.manager.driver_calls import PREPARE_METHOD, DriverCalls
from ansible_collections.nodeops.dra.plugins.module_utils.manager.observer import Observer
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.node import Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import GPU, claim

pytestmark = pytest.mark.asyncio


class Told(Observer):
    """The calls as the observer hears of them."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, str]] = []

    def driver_call(self, driver: str, method: str, seconds: float, code: str) -> None:
        self.calls.append((driver, method, code))


@pytest.mark.parametrize(
    ("faults", "config", "code"),
    [
        pytest.param([], {}, "OK", id="answered"),
        pytest.param(["claim_error:text=no such device"], {}, "OK", id="a claim refused"),
        pytest.param(["skip"], {}, "OK", id="a claim left out"),
        pytest.param(["error:code=ABORTED"], {}, "ABORTED", id="failed"),
        pytest.param(["error:code=ABORTED"], {"apis": ("v1alpha2",)}, "ABORTED", id="failed, one call a claim"),
        pytest.param(["hang"], {}, "DEADLINE_EXCEEDED", id="no answer"),
    ],
)
async def test_the_status_of_a_call(faults: list[str], config: dict[str, t.Any], code: str, node: Node) -> None:
    await node.add_driver(GPU, *faults, **config)
    told = Told()
    await node.start(observer=told)
    with contextlib.suppress(DraError):
        await node.prepare(claim(), timeout=2.0 if "hang" in faults else 10.0)
    assert told.calls == [(GPU, PREPARE_METHOD, code)]


async def test_a_call_that_its_caller_gave_up(node: Node) -> None:
    driver = await node.add_driver(GPU, "hang")
    told = Told()
    calls = DriverCalls(node.registry, told)
    deadline = asyncio.get_running_loop().time() + 60
    asked = {GPU: [ClaimRef("u-1", "team-a", "c1")]}
    calling = asyncio.ensure_future(calls.run(PREPARE_METHOD, asked, deadline=deadline, before=lambda *_call: None))
    await driver.wait_for(lambda: node.asked() != [])
    calling.cancel()
    await asyncio.wait([calling])
    assert told.calls == [(GPU, PREPARE_METHOD, "CANCELLED")]


class Gone:
    """A driver that was there when it was looked up, and its node's drivers."""

    async def get(self, _name: str) -> t.Any:
        return self

    async def prepare(self, _claims: t.Sequence[ClaimRef], _timeout: float) -> dict[str, PrepareResult]:
        raise DriverNotRegistered("gone", driver=GPU)


async def test_a_driver_that_went_before_it_was_called() -> None:
    told = Told()
    deadline = asyncio.get_running_loop().time() + 60
    asked = {GPU: [ClaimRef("u-1", "team-a", "c1")]}
    await DriverCalls(Gone(), told).run(PREPARE_METHOD, asked, deadline=deadline, before=lambda *_call: None)
    assert told.calls == [(GPU, PREPARE_METHOD, "UNAVAILABLE")]
