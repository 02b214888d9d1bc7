# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Feature gates of DRA by release: which there are, which are on, and which values a kubelet does not start with."""

from __future__ import annotations

import enum
import typing as t

DRA: t.Final = "DynamicResourceAllocation"

#: The newest minor release of which the table is known to be complete.
NEWEST: t.Final = 36
#: The first minor release with DRA.
OLDEST: t.Final = 26


class Stage(enum.Enum):
    """What a gate is in a release. A locked one is on and cannot be set to false, a removed one cannot be set."""

    ALPHA = "alpha"
    BETA_OFF = "beta, off by default"
    BETA = "beta"
    GA = "ga"
    LOCKED = "locked"
    REMOVED = "removed"


ALPHA, BETA_OFF, BETA, GA, LOCKED, REMOVED = Stage

# From which minor release on a gate is what. (kubelet: pkg/features)
_GATES: t.Final[t.Mapping[str, t.Sequence[tuple[int, Stage]]]] = {
    DRA: ((26, ALPHA), (32, BETA_OFF), (34, GA), (35, LOCKED)),
    "DRAAdminAccess": ((32, ALPHA), (34, BETA), (36, LOCKED)),
    "DRAConsumableCapacity": ((34, ALPHA), (36, BETA)),
    "DRAControlPlaneController": ((31, ALPHA), (32, REMOVED)),
    "DRADeviceBindingConditions": ((34, ALPHA), (36, BETA)),
    "DRADeviceTaintRules": ((35, ALPHA), (36, BETA_OFF)),
    "DRADeviceTaints": ((33, ALPHA), (36, BETA)),
    "DRAExtendedResource": ((34, ALPHA), (36, BETA)),
    "DRAListTypeAttributes": ((36, ALPHA),),
    "DRANodeAllocatableResources": ((36, ALPHA),),
    "DRAPartitionableDevices": ((33, ALPHA), (36, BETA)),
    "DRAPrioritizedList": ((33, ALPHA), (34, BETA), (36, GA)),
    "DRAResourceClaimDeviceStatus": ((32, ALPHA), (33, BETA)),
    "DRAResourceClaimGranularStatusAuthorization": ((36, BETA),),
    "DRAResourcePoolStatus": ((36, ALPHA),),
    "DRASchedulerFilterTimeout": ((34, BETA),),
    "DRAWorkloadResourceClaims": ((36, ALPHA),),
    "KubeletPodResourcesDynamicResources": ((27, ALPHA), (34, BETA), (36, LOCKED)),
    "KubeletPodResourcesGet": ((27, ALPHA), (34, BETA), (36, LOCKED)),
    "ResourceHealthStatus": ((31, ALPHA), (36, BETA)),
    "ResourceHealthStatusMessage": ((36, BETA),),
}
NAMES: t.Final = tuple(_GATES)


def stage(gate: str, minor: int) -> Stage | None:
    """What the gate is in Kubernetes 1.``minor``; None before it was made. Later releases than NEWEST count as that."""
    found = None
    for since, what in _GATES[gate]:
        found = what if since <= minor else found
    return found


def is_on(gate: str, minor: int, given: t.Mapping[str, bool]) -> bool:
    """Whether the gate is on in that release with the gates that were ``given``."""
    what = stage(gate, minor)
    if what is None or what is REMOVED:
        return False
    if what is LOCKED:
        return True
    if gate in given:
        return given[gate]
    if what is ALPHA:
        return given.get("AllAlpha", False)
    if what in (BETA, BETA_OFF):
        return given.get("AllBeta", what is BETA)
    return True


def refusals(minor: int, given: t.Mapping[str, bool]) -> dict[str, str]:
    """The given gates with which a kubelet of that release does not start, each with the reason.

    Only gates of the table are judged, and no release that is newer than the table.
    """
    found = {}
    for gate, value in sorted(given.items()):
        if gate not in _GATES or minor > NEWEST:
            continue
        what = stage(gate, minor)
        if what is None or what is REMOVED:
            found[gate] = f"1.{minor} does not know it"
        elif what is LOCKED and not value:
            found[gate] = f"it cannot be switched off in 1.{minor}"
    return found
