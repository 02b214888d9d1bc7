# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the crash tests let a node do, and on which claims."""

from __future__ import annotations

import typing as t

from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import (
    GPU,
    NIC,
    Json,
    claim,
    device,
    pod,
)

# Devices that the drivers of these tests, which choose by themselves, never give: so nothing overlaps by accident.
CLAIMS: dict[str, Json] = {
    "c1": claim("c1", "u-1", device("wanted-1"), device("wanted-2", NIC, request="r1"), pods=["p-1", "p-2"]),
    "c2": claim("c2", "u-2", device("wanted-3"), pods=["p-1"]),
    "c3": claim("c3", "u-3", device("wanted-4", NIC, adminAccess=True), pods=["p-1"]),
}

Operation = tuple[str, str, tuple[str, ...]]


class Scenario(t.NamedTuple):
    """``operations``: what to do, the pod, its claims. ``large`` writes the state file place by place."""

    operations: tuple[Operation, ...]
    large: bool = False


_SHARED: tuple[Operation, ...] = (
    ("prepare", "p-1", ("c1",)),
    ("prepare", "p-2", ("c1",)),
    ("unprepare", "p-1", ()),
    ("unprepare", "p-2", ()),
)

SCENARIOS = {
    "two claims, two drivers": Scenario((("prepare", "p-1", ("c1", "c2")), ("unprepare", "p-1", ()))),
    "a claim shared by two pods": Scenario(_SHARED),
    "a claim with a note": Scenario((("prepare", "p-1", ("c2", "c3")), ("unprepare", "p-1", ()))),
    "large state file": Scenario(_SHARED, large=True),
}


def claims_of(names: t.Iterable[str]) -> list[Json]:
    return [CLAIMS[name] for name in names]


def pod_with(uid: str, names: t.Sequence[str]) -> Json:
    return pod(uid, *names)


DRIVERS = (GPU, NIC)
