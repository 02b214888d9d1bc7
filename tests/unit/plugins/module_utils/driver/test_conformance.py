# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The check of a live driver: prepare twice, compare, unprepare twice."""

from __future__ import annotations

import pathlib

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.driver.conformance import check_driver
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.driver.world import claims, driver_and_client

STEPS = ["first prepare", "second prepare", "both prepares answer alike", "first unprepare", "second unprepare"]


@pytest.mark.report("F021")
@pytest.mark.parametrize("api", ["v1", "v1beta1", "v1alpha4", "v1alpha3", "v1alpha2"])
@pytest.mark.asyncio
async def test_a_good_driver_passes_and_is_left_clean(root: pathlib.Path, api: str) -> None:
    async with driver_and_client(root, apis=(api,)) as (driver, client):
        report = await check_driver(client, claims("u-1", "u-2"))
        assert report.ok, report.problems
        assert [step.name for step in report.steps] == STEPS
        methods = [call.method for call in driver.claim_calls]
        assert methods == sorted(methods)  # all prepares, then all unprepares: no unprepare in between
        assert driver.prepared() == {}


@pytest.mark.report("F021")
@pytest.mark.asyncio
async def test_a_driver_that_takes_new_devices_each_time_is_flagged(root: pathlib.Path) -> None:
    async with driver_and_client(root) as (driver, client):
        driver.faults.add("new_devices:uids=u-2")
        report = await check_driver(client, claims("u-1", "u-2"))
        assert not report.ok
        (problem,) = report.problems
        assert problem.startswith("both prepares answer alike: claim team-a/claim-of-u-2 (UID u-2) got pool-0/dev-8")
        assert "pool-0/dev-9" in problem


@pytest.mark.report("F021")
@pytest.mark.asyncio
async def test_a_driver_that_fails_the_second_time_is_flagged(root: pathlib.Path) -> None:
    async with driver_and_client(root) as (driver, client):
        await client.prepare(claims("u-1"))
        await client.unprepare(claims("u-1"))
        report = await check_driver(client, claims("u-1"))
        assert report.ok
        for method, step in [("prepare", "second prepare"), ("unprepare", "second unprepare")]:
            seen = 0
            serve = driver.serve

            async def fail_second(asked: str, *rest: object, wanted: str = method, real: object = serve) -> object:
                nonlocal seen
                seen += asked == wanted
                if seen == 2 and asked == wanted:
                    driver.faults.add(f"claim_error:method={wanted},times=1,text=already done")
                return await real(asked, *rest)  # type: ignore[operator]

            driver.serve = fail_second  # type: ignore[method-assign]
            report = await check_driver(client, claims("u-1"))
            driver.serve = serve  # type: ignore[method-assign]
            assert [s.name for s in report.steps if not s.ok] == [step]
            assert "already done" in report.problems[0]


@pytest.mark.report("F021")
@pytest.mark.asyncio
async def test_a_driver_that_is_broken_altogether_gets_a_report_too(root: pathlib.Path) -> None:
    async with driver_and_client(root) as (driver, client):
        driver.faults.add("error:text=broken")
        report = await check_driver(client, claims("u-1"))
        assert [step.ok for step in report.steps] == [False, False, True, False, False]
        assert all("broken" in problem for problem in report.problems)
