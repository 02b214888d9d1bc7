# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""After each prepare the CDI names of the claim have to resolve."""

from __future__ import annotations

import dataclasses
import logging

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.manager.cdi_check import CdiUnresolvedError
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.node import Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import GPU, claim

pytestmark = pytest.mark.asyncio

FILE = f"k8s.{GPU}-claim_u-1.json"
NAME = f"k8s.{GPU}/claim=u-1-dev-0"


@pytest.mark.report("F109")
async def test_a_driver_that_does_not_write_its_file_again_is_found_out(node: Node) -> None:
    driver = await node.add_driver()
    await node.start()
    await node.prepare(claim())
    (node.root / "cdi" / FILE).unlink()  # a reboot
    node.boot = "b-1"
    driver.faults.add("no_cdi:times=1")
    await node.start()
    with pytest.raises(CdiUnresolvedError, match=rf"c1.*{NAME}.*{node.root}/cdi") as caught:
        await node.prepare(claim())
    assert caught.value.facts["claims"] == ["u-1"]
    assert [one.code for one in node.manager.findings()] == ["cdi_unresolved"]
    assert node.manager.failures()[0].count == 1
    # The next try asks the driver again although the claim is prepared, and a good driver mends it.
    assert await node.prepare(claim()) == [NAME]
    assert node.asked() == ["prepare u-1"] * 3
    assert node.manager.findings() == []


@pytest.mark.report("F109")
async def test_a_file_that_was_removed_is_made_again(node: Node) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim())
    (node.root / "cdi" / FILE).unlink()
    with pytest.raises(CdiUnresolvedError):
        await node.prepare(claim())
    assert await node.prepare(claim()) == [NAME]
    assert (node.root / "cdi" / FILE).exists()


async def test_it_can_be_a_warning(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    node.settings = dataclasses.replace(node.settings, cdi_policy="warn")
    await node.add_driver(GPU, "no_cdi")
    await node.start()
    with caplog.at_level(logging.WARNING):
        assert await node.prepare(claim()) == [NAME]
        assert await node.prepare(claim()) == [NAME]
    assert sum("CDI names do not resolve" in one.getMessage() for one in caplog.records) == 1
    assert [one.code for one in node.manager.findings()] == ["cdi_unresolved"]
    await node.manager.unprepare("p-1")
    assert node.manager.findings() == []


async def test_it_can_be_off(node: Node) -> None:
    node.settings = dataclasses.replace(node.settings, cdi_policy="off")
    await node.add_driver(GPU, "no_cdi")
    await node.start()
    assert await node.prepare(claim()) == [NAME]
    assert node.manager.findings() == []
