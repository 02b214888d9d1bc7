# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The claims of this node: what is on disk, and what only this process knows.

What is on disk (`Record`) changes by the journal alone. What this process knows of a claim (`Entry`) is never
written: that a claim is prepared, above all, since after a restart or a reboot nobody can know (kubelet:
``claimInfo.prepared``).

Nothing here waits, so a check and the change that follows it are one step to everybody else.
"""

from __future__ import annotations

import dataclasses
import enum
import typing as t

from ..checkpoint.claims import ClaimState, Device
from ..resource.devices import AllocatedDevice, DeviceKey, exclusive_keys
from .durable_claims import Changes, Record


class Phase(enum.Enum):
    """How far a claim has come in this process. It only ever moves down this list."""

    PLANNED = "planned"
    PREPARED = "prepared"
    UNPREPARING = "unpreparing"


_ORDER = list(Phase)


@dataclasses.dataclass
class Entry:
    """What this process knows of one claim.

    ``called`` are the drivers that may hold something for it, ``answers`` what they answered in this process.
    ``allocated`` is its allocation, None as long as nobody showed it (after a restart). ``restored`` says that the
    claim came from the state file and was not prepared since.
    """

    uid: str
    namespace: str
    name: str
    phase: Phase = Phase.PLANNED
    restored: bool = False
    called: set[str] = dataclasses.field(default_factory=set)
    answers: dict[str, tuple[Device, ...]] = dataclasses.field(default_factory=dict)
    allocated: tuple[AllocatedDevice, ...] | None = None

    @property
    def full_name(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def status(self) -> str:
        """The phase for people; ``needs_prepare`` is a claim that only the state file knows."""
        return "needs_prepare" if self.restored and self.phase is Phase.PLANNED else self.phase.value

    def advance(self, phase: Phase) -> None:
        """Move on to ``phase``. Moving back is a bug: a driver would be told something that is no longer so."""
        if _ORDER.index(phase) < _ORDER.index(self.phase):
            raise AssertionError(f"ResourceClaim {self.full_name}: {self.phase.value} cannot become {phase.value}")
        self.phase = phase
        if phase is Phase.PREPARED:
            self.restored = False


class ClaimTable:
    """All claims, found by UID, by name, by pod and by device.

    ``records`` is what is on disk when the process starts; from then on `apply` is told of every change.
    """

    def __init__(self, records: t.Mapping[str, Record]) -> None:
        self._records: dict[str, Record] = {}
        self._entries: dict[str, Entry] = {}
        self._uids: dict[tuple[str, str], str] = {}
        self._by_pod: dict[str, set[str]] = {}
        self._by_device: dict[DeviceKey, set[str]] = {}
        self._devices: dict[str, frozenset[DeviceKey]] = {}
        for uid, record in records.items():
            # Whatever the file names may have been called; only the drivers know, so they must be told to unprepare.
            state = record.state
            self._add(Entry(uid, state.namespace, state.name, restored=True, called=set(state.drivers)))
        self.apply(records)

    def __len__(self) -> int:
        """How many claims are known."""
        return len(self._entries)

    def __iter__(self) -> t.Iterator[Entry]:
        """All entries, sorted by namespace and name."""
        return iter(sorted(self._entries.values(), key=lambda entry: (entry.namespace, entry.name)))

    def entry(self, uid: str) -> Entry | None:
        """What this process knows of the claim, None when there is no such claim."""
        return self._entries.get(uid)

    def records(self) -> t.Collection[Record]:
        """Everything that is on disk, in no particular order."""
        return self._records.values()

    def record(self, uid: str) -> Record | None:
        """What is on disk of the claim, None when nothing is (yet)."""
        return self._records.get(uid)

    def uid_of(self, namespace: str, name: str) -> str | None:
        """The UID under which a claim of that name is held."""
        return self._uids.get((namespace, name))

    def claims_of_pod(self, pod_uid: str) -> frozenset[str]:
        """UIDs of the claims that the pod holds, as far as that is on disk."""
        return frozenset(self._by_pod.get(pod_uid, ()))

    def pods(self) -> frozenset[str]:
        """UIDs of all pods that hold claims."""
        return frozenset(self._by_pod)

    def without_pods(self) -> frozenset[str]:
        """UIDs of claims on disk that no pod holds."""
        return frozenset(uid for uid, record in self._records.items() if not record.state.pod_uids)

    def other_holder(self, uid: str, key: DeviceKey) -> Entry | None:
        """Another claim than ``uid`` that has the device for itself, None when there is none."""
        others = self._by_device.get(key, set()) - {uid}
        return self._entries[min(others)] if others else None

    def open(self, uid: str, namespace: str, name: str, allocated: tuple[AllocatedDevice, ...]) -> Entry:
        """The entry of a claim that is about to be prepared, made when there is none.

        From here on its name and its devices are taken, before anything is on disk; `settle` gives them back if
        nothing ever is.
        """
        entry = self._entries.get(uid)
        if entry is None:
            entry = self._add(Entry(uid, namespace, name))
        entry.allocated = allocated
        self._index_devices(uid)
        return entry

    def settle(self, uids: t.Iterable[str]) -> None:
        """Forget those of the claims of which nothing is on disk."""
        for uid in uids:
            if uid not in self._records:
                self._drop(uid)

    def apply(self, changes: Changes) -> None:
        """Take note of what is on disk now."""
        for uid, record in changes.items():
            before = self._records.pop(uid, None)
            for pod in before.state.pod_uids if before else ():
                self._by_pod[pod].discard(uid)
                if not self._by_pod[pod]:
                    del self._by_pod[pod]
            if record is None:
                self._drop(uid)
                continue
            self._records[uid] = record
            for pod in record.state.pod_uids:
                self._by_pod.setdefault(pod, set()).add(uid)
            self._index_devices(uid)

    def _add(self, entry: Entry) -> Entry:
        self._entries[entry.uid] = entry
        self._uids[entry.namespace, entry.name] = entry.uid
        return entry

    def _drop(self, uid: str) -> None:
        entry = self._entries.pop(uid, None)
        if entry is not None:
            del self._uids[entry.namespace, entry.name]
            self._set_devices(uid, frozenset())

    def _index_devices(self, uid: str) -> None:
        """A claim has what it was allocated, what its drivers answered last, and what they were asked for since.

        These differ for a claim that was allocated anew while no manager ran: until its drivers answer again, the node
        may still use the old devices. What they were asked for is all that is known when the manager died meanwhile.
        """
        entry, record = self._entries[uid], self._records.get(uid)
        allocated = entry.allocated or ()
        keys = exclusive_keys(allocated)
        if record is not None:
            admin = record.note.admin_devices.union(one.key for one in allocated if one.admin_access)
            keys |= (recorded_keys(record.state) | record.state.planned) - admin
        self._set_devices(uid, keys)

    def _set_devices(self, uid: str, keys: frozenset[DeviceKey]) -> None:
        before = self._devices.pop(uid, frozenset())
        for key in before - keys:
            self._by_device[key].discard(uid)
            if not self._by_device[key]:
                del self._by_device[key]
        for key in keys:
            self._by_device.setdefault(key, set()).add(uid)
        if keys:
            self._devices[uid] = keys


def recorded_keys(state: ClaimState) -> frozenset[DeviceKey]:
    """The devices of a restored claim. Classic drivers name only CDI devices, which tell nothing about overlap."""
    return frozenset(
        (driver, device.pool_name, device.device_name, device.share_id)
        for driver, devices in state.drivers.items()
        for device in devices or ()
        if device.device_name
    )
