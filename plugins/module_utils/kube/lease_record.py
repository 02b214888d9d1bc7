# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The Lease object (coordination.k8s.io/v1) as far as an election needs it, and how it is written."""

from __future__ import annotations

import dataclasses
import datetime
import math
import typing as t


@dataclasses.dataclass(frozen=True)
class LeaseMeta:
    """Metadata of a Lease."""

    resource_version: str = ""
    uid: str = ""


@dataclasses.dataclass(frozen=True)
class LeaseSpec:
    """``spec`` of a Lease; every field may be absent."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


@dataclasses.dataclass(frozen=True)
class LeaseObject:
    """A Lease."""

    metadata: LeaseMeta = dataclasses.field(default_factory=LeaseMeta)
    spec: LeaseSpec | None = None


class Observed(t.NamedTuple):
    """The part of a Lease that changes with every sign of life of its holder."""

    holder: str
    renew_time: str
    resource_version: str
    duration: float
    transitions: int


def observed(lease: LeaseObject) -> Observed:
    """What a Lease says; an absent holder is an empty one."""
    spec = lease.spec or LeaseSpec()
    return Observed(
        spec.holder_identity or "",
        spec.renew_time or "",
        lease.metadata.resource_version,
        float(spec.lease_duration_seconds or 0),
        spec.lease_transitions or 0,
    )


def micro_time(now: float) -> str:
    """Wall time as metav1.MicroTime is written."""
    return datetime.datetime.fromtimestamp(now, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def held_spec(identity: str, duration: float, now: float, before: Observed | None) -> dict[str, t.Any]:
    """``spec`` that takes or renews a Lease. ``before`` is what it said; None for a new one."""
    spec: dict[str, t.Any] = {
        "holderIdentity": identity,
        "leaseDurationSeconds": math.ceil(duration),
        "renewTime": micro_time(now),
    }
    if before is None or before.holder != identity:
        spec["acquireTime"] = spec["renewTime"]
        spec["leaseTransitions"] = 0 if before is None else before.transitions + 1
    return spec


def released_spec(now: float) -> dict[str, t.Any]:
    """``spec`` that gives a Lease up, so that the next one need not wait."""
    return {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": micro_time(now)}
