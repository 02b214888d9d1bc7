# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a node's drivers have published as ResourceSlices, against the drivers that are really there. Pure."""

from __future__ import annotations

import datetime
import typing as t

from ..checkpoint.findings import Finding
from ..resource.view import JsonObject

Json = dict[str, t.Any]

CODES: t.Mapping[str, str] = {
    "stale_slices": "ResourceSlices of a driver that cannot be reached: pods land here that can never be prepared.",
    "driver_without_slices": "A driver that can be reached has published nothing for this node.",
}


def pools_of(slices: t.Iterable[JsonObject]) -> list[Json]:
    """The slices of one node by driver and pool, sorted: ``driver``, ``pool``, ``slices``, ``devices``, ``since``.

    ``since`` is when the oldest of them was made, as the API writes it. Slices of v1alpha2 name no pool.
    """
    pools: dict[tuple[str, str], Json] = {}
    for one in slices:
        spec = one.get("spec") or one  # up to 1.30 the fields stand at the top
        driver = str(spec.get("driver") or spec.get("driverName") or "")
        pool = str((spec.get("pool") or {}).get("name") or "")
        made = str((one.get("metadata") or {}).get("creationTimestamp") or "")
        devices = spec.get("devices") or (spec.get("namedResources") or {}).get("instances") or ()
        known = pools.setdefault(
            (driver, pool), {"driver": driver, "pool": pool, "slices": 0, "devices": 0, "since": made}
        )
        known["slices"] += 1
        known["devices"] += len(devices)
        known["since"] = min(known["since"], made)
    return [pools[key] for key in sorted(pools)]


def slice_findings(pools: t.Iterable[Json], registered: t.Mapping[str, bool], *, now: float) -> list[Finding]:
    """Pools without a driver, and drivers without a pool.

    ``registered`` maps the drivers to whether they can be reached; ``now`` is seconds since the epoch.
    """
    found = []
    published = set()
    for one in pools:
        driver, pool = one["driver"], one["pool"]
        published.add(driver)
        if registered.get(driver, False):
            continue
        state = "does not answer" if driver in registered else "is not registered on this node"
        age = _age(one["since"], now)
        old = f", {age:.0f} s old" if age is not None else ""
        facts = {**one, "age": age}
        found.append(
            Finding(
                "stale_slices",
                "error",
                f"{driver}/{pool}",
                f"Pool {pool or '(without a name)'} of driver {driver} is published with {one['devices']} devices"
                f"{old}, and the driver {state}: pods that are given them cannot start here.",
                "Start the driver. If it is gone for good, delete its ResourceSlices of this node; until then cordon "
                "the node.",
                facts,
            )
        )
    for driver, reachable in sorted(registered.items()):
        if reachable and driver not in published:
            found.append(
                Finding(
                    "driver_without_slices",
                    "warning",
                    driver,
                    f"Driver {driver} can be reached, and there is no ResourceSlice of it for this node: no pod is "
                    "given its devices here.",
                    "Look at the driver's log, and whether it may create ResourceSlices; restarting it publishes "
                    "them again.",
                    {"driver": driver},
                )
            )
    return found


def _age(since: str, now: float) -> float | None:
    try:
        made = datetime.datetime.fromisoformat(since.replace("Z", "+00:00"))
    except ValueError:
        return None
    return max(0.0, now - made.timestamp())
