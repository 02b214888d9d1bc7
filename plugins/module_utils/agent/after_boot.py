# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Claims of holders that are no pods, prepared again after a boot.

A pod is prepared again because it is there. For a systemd unit nobody asks again, and the CDI files that its container
needs went with the boot. What is recorded of a claim is enough to ask its drivers: they get its name and UID.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging

from ..checkpoint.errors import DraError
from ..manager.durable_claims import Record
from ..manager.failures import BackingOffError
from ..manager.planning import Holder, PlannedClaim, is_pod_uid
from ..resource.devices import AllocatedDevice
from .workplace import Workplace

log = logging.getLogger(__name__)

PAUSE = 2.0
"""Seconds between two looks whether a claim's next try is due: drivers may register at any time."""


async def prepare_again(place: Workplace, *, pause: float = PAUSE) -> None:
    """Ask the drivers until every such claim is prepared again or given back, each for itself."""
    async with asyncio.TaskGroup() as group:
        for report in place.manager.claims():
            record = report.record
            for uid in sorted(record.state.pod_uids):
                if record.note.earlier_boot and not is_pod_uid(uid):
                    group.create_task(_one(place, Holder.named(uid.partition(":")[2]), planned(record), pause))


async def _one(place: Workplace, holder: Holder, plan: PlannedClaim, pause: float) -> None:
    while True:
        try:
            done = await place.manager.prepare_claims(holder, [plan], obey_backoff=True, only_held=True)
        except BackingOffError:
            pass
        except DraError as error:
            log.warning("claim cannot be prepared again after the boot claim=%s error=%s", plan.full_name, error)
        else:
            if done:
                log.info("claim prepared again after the boot claim=%s holder=%s", plan.full_name, holder)
                place.events.add(
                    "claim_prepared", f"{plan.full_name} ({plan.uid})", f"for {holder.label}, after the boot"
                )
            return
        await asyncio.sleep(pause)


def planned(record: Record) -> PlannedClaim:
    """What is recorded of a claim, as a plan to prepare it."""
    state, note = record.state, record.note
    allocated = []
    for driver, devices in state.drivers.items():
        for one in devices or ():
            device = AllocatedDevice(
                next(iter(one.request_names), ""), driver, one.pool_name, one.device_name, one.share_id
            )
            allocated.append(dataclasses.replace(device, admin_access=device.key in note.admin_devices))
    drivers = tuple(sorted(state.drivers))
    return PlannedClaim(state.uid, state.namespace, state.name, drivers, tuple(allocated), note)
