# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Whether the drivers of claims keep the contract that every retry relies on, tried with claims that nobody uses.

Nothing is recorded: each driver prepares twice and unprepares twice, and holds afterwards what it held before.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.findings import Finding
from ..driver.conformance import ConformanceReport, check_driver
from ..manager.driver_calls import PREPARE_METHOD, UNPREPARE_METHOD
from ..manager.planning import PlannedClaim
from .kubelet_claims import KubeletClaims
from .reachable_drivers import ReachableDrivers

Json = dict[str, t.Any]

STEPS = (PREPARE_METHOD, PREPARE_METHOD, UNPREPARE_METHOD, UNPREPARE_METHOD)


def refuse_used_claims(
    plans: t.Iterable[PlannedClaim], recorded: t.Container[str], held: KubeletClaims, *, has_pod: bool
) -> None:
    """Raise DraError if a claim may be in use: it would lose its devices at the end."""
    if has_pod:
        raise DraError(
            "Drivers are checked with claims that nobody uses, and a pod was given.",
            "Give claims that were made for the check, without a pod.",
        )
    of_kubelet = {entry.uid for entry in held.entries}
    for plan in plans:
        if plan.uid in recorded or plan.uid in of_kubelet:
            raise DraError(
                f"ResourceClaim {plan.full_name} ({plan.uid}) is prepared on this node: it would lose its devices.",
                "Give a claim that was made for the check and is used by nobody.",
                claim=plan.full_name,
                claim_uid=plan.uid,
            )


async def check_drivers(drivers: ReachableDrivers, plans: t.Sequence[PlannedClaim], timeout: float) -> list[Json]:
    """One report for each driver, sorted by name: ``driver``, ``ok`` and ``steps``. ``timeout`` is for each call."""
    reports = []
    for name in sorted({driver for plan in plans for driver in plan.drivers}):
        client = await drivers.get(name)
        claims = [plan.ref(name) for plan in plans if name in plan.drivers]
        reports.append(_report(await check_driver(client, claims, timeout)))
    return reports


def _report(found: ConformanceReport) -> Json:
    steps = [{**dataclasses.asdict(step), "problems": list(step.problems)} for step in found.steps]
    return {"driver": found.driver, "ok": found.ok, "steps": steps}


def check_findings(reports: t.Iterable[Json]) -> list[Finding]:
    """What is wrong with the drivers."""
    return [
        Finding(
            "driver_not_conformant",
            "error",
            report["driver"],
            f"Driver {report['driver']} does not keep the contract, at {step['name']}: {'; '.join(step['problems'])}.",
            "Report it to the driver: prepare and unprepare are repeated after every failure and every restart, and "
            "what it takes each time leaks.",
            {"driver": report["driver"], "step": step["name"]},
        )
        for report in reports
        for step in report["steps"]
        if not step["ok"]
    ]
