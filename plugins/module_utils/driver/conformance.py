# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Does a running driver keep the contract that every retry relies on?

The node side repeats prepare without an unprepare in between, after each restart and each failure; a driver that takes
new devices every time leaks them. The check calls: prepare, prepare, unprepare, unprepare, with the same claims. It
works on the driver's real state, so the claims must exist, be allocated to the driver, and be used by nobody.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ..checkpoint.errors import DraError
from .claims import ClaimRef, Device, PrepareResult

if t.TYPE_CHECKING:
    from .client import DriverClient


@dataclasses.dataclass(frozen=True)
class Step:
    """One call, or the comparison of two: its name, whether it was as it should be, and what was wrong."""

    name: str
    ok: bool
    problems: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class ConformanceReport:
    driver: str
    steps: tuple[Step, ...]

    @property
    def ok(self) -> bool:
        return all(step.ok for step in self.steps)

    @property
    def problems(self) -> list[str]:
        return [f"{step.name}: {problem}" for step in self.steps for problem in step.problems]


async def check_driver(
    client: DriverClient, claims: t.Sequence[ClaimRef], timeout: float | None = None
) -> ConformanceReport:
    """Run the check. Never raises for what the driver does: that is in the report. Ends with the claims unprepared.

    ``timeout`` is for each call. Unprepare is tried even if prepare failed, for that is what the node side does.
    """
    steps: list[Step] = []
    first = await _prepare(client, claims, timeout, "first prepare", steps)
    second = await _prepare(client, claims, timeout, "second prepare", steps)
    problems = [
        problem
        for claim in claims
        if claim.uid in first and claim.uid in second
        for problem in _differences(claim, first[claim.uid], second[claim.uid])
    ]
    steps.append(Step("both prepares answer alike", not problems, tuple(problems)))
    for name in ("first unprepare", "second unprepare"):
        await _unprepare(client, claims, timeout, name, steps)
    return ConformanceReport(client.name, tuple(steps))


async def _prepare(
    client: DriverClient, claims: t.Sequence[ClaimRef], timeout: float | None, name: str, steps: list[Step]
) -> dict[str, tuple[Device, ...]]:
    results: dict[str, PrepareResult] = {}
    try:
        results = await client.prepare(claims, timeout)
        problems = [str(result.error) for result in results.values() if result.error]
    except DraError as error:
        problems = [str(error)]
    steps.append(Step(name, not problems, tuple(problems)))
    return {uid: result.devices for uid, result in results.items() if result.devices is not None}


async def _unprepare(
    client: DriverClient, claims: t.Sequence[ClaimRef], timeout: float | None, name: str, steps: list[Step]
) -> None:
    try:
        results = await client.unprepare(claims, timeout)
        problems = [str(result.error) for result in results.values() if result.error]
    except DraError as error:
        problems = [str(error)]
    steps.append(Step(name, not problems, tuple(problems)))


def _differences(claim: ClaimRef, first: tuple[Device, ...], second: tuple[Device, ...]) -> t.Iterator[str]:
    lost = [device for device in first if device not in second]
    new = [device for device in second if device not in first]
    if lost or new:
        yield f"claim {claim} got {_named(first)} first and {_named(second)} when it was prepared again"
    elif first != second:
        yield f"claim {claim} got the same devices in another order or number: {_named(first)}, then {_named(second)}"


def _named(devices: t.Sequence[Device]) -> str:
    return (
        ", ".join(
            "/".join(filter(None, (d.pool_name, d.device_name))) + f" [{', '.join(d.cdi_device_ids)}]" for d in devices
        )
        or "nothing"
    )
