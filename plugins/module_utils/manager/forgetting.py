# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The way out when a driver is gone for good: dropping a claim without it, with a record of who did so and why."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import time
import typing as t
from dataclasses import dataclass

from ..checkpoint.file_errors import from_os_error
from ..checkpoint.store import StateDirectory
from .claim_table import Entry
from .durable_claims import Record


@dataclass(frozen=True)
class Forgotten:
    """A claim that was dropped. ``may_leak`` says, in sentences, what its drivers may still hold."""

    claim_uid: str
    namespace: str
    name: str
    pods: tuple[str, ...]
    drivers: tuple[str, ...]
    devices: tuple[str, ...]
    cdi_device_ids: tuple[str, ...]
    reason: str
    by: str
    may_leak: tuple[str, ...]

    def to_dict(self) -> dict[str, t.Any]:
        """JSON types only."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in dataclasses.asdict(self).items()}


def describe(entry: Entry, record: Record, reason: str, by: str) -> Forgotten:
    """What would be lost track of by dropping the claim."""
    state = record.state
    drivers = tuple(sorted(entry.called))
    held = {driver: state.drivers.get(driver) or () for driver in drivers}
    devices = [f"{driver}/{one.pool_name}/{one.device_name}" for driver in drivers for one in held[driver]]
    devices += sorted(f"{driver}/{pool}/{name}" for driver, pool, name, _share in state.planned if driver in drivers)
    leaks = []
    for driver in drivers:
        names = [device for device in devices if device.startswith(f"{driver}/")]
        what = f"devices {', '.join(names)}" if names else "whatever it has prepared"
        leaks.append(
            f"Driver {driver} is not told and may keep {what} reserved for claim {state.uid}, with its CDI files, "
            "until somebody cleans up by hand or the driver starts with empty state."
        )
    return Forgotten(
        state.uid,
        state.namespace,
        state.name,
        tuple(sorted(state.pod_uids)),
        drivers,
        tuple(devices),
        tuple(dict.fromkeys(cdi for driver in drivers for one in held[driver] for cdi in one.cdi_device_ids)),
        reason,
        by,
        tuple(leaks),
    )


class AuditLog:
    """A file of JSON lines, one for each claim that was dropped, synced before the claim goes. Methods block."""

    def __init__(self, directory: StateDirectory, name: str, *, now: t.Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._name = name
        self._now = now

    @property
    def path(self) -> str:
        """Where the lines are."""
        return self._directory.path_of(self._name)

    def write(self, forgotten: Forgotten) -> None:
        """Add a line and make it durable. Raises StoreError."""
        line = json.dumps({"time": self._now(), "event": "forgotten", **forgotten.to_dict()}, sort_keys=True) + "\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(self._name, flags, 0o600, dir_fd=self._directory.fileno())
            try:
                if os.write(fd, line.encode()) != len(line.encode()):
                    raise OSError(errno.ENOSPC, "only a part of the line was written")
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise from_os_error(error, self.path, "was not written, so nothing was forgotten") from error
        self._directory.sync(self.path)
