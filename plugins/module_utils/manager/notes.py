# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the manager must remember of a claim and the kubelet's layout has no field for.

It goes to a file of its own, so that the state file stays one that every kubelet reads. Most claims need no note at
all, and the file is written only when one appears or changes. Losing it is not fatal: the state file alone says what
has to be prepared again and who has to be told to unprepare.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ..resource.devices import DeviceKey
from ..resource.handles import ResourceHandle

VERSION = 1


@dataclasses.dataclass(frozen=True)
class ClaimNote:
    """The note of one claim; one without content is not stored.

    ``earlier_boot`` is the boot in which the claim was last prepared, when that is not the present one.
    ``admin_devices`` are devices held with admin access, which exclude nobody. ``skip_unprepare`` names drivers that
    want no unprepare call. ``handles`` are the resource handles of a classic claim, which its driver expects again
    when it unprepares. ``stopped`` says why and since when (seconds since the epoch) prepare is not tried any more.
    """

    earlier_boot: str = ""
    admin_devices: frozenset[DeviceKey] = frozenset()
    skip_unprepare: frozenset[str] = frozenset()
    handles: tuple[ResourceHandle, ...] = ()
    stopped: tuple[str, float] | None = None

    def __bool__(self) -> bool:
        return self != EMPTY

    def to_fields(self) -> dict[str, t.Any]:
        """The note with JSON types only; what is empty is left out."""
        fields: dict[str, t.Any] = {}
        if self.earlier_boot:
            fields["earlierBoot"] = self.earlier_boot
        if self.admin_devices:
            fields["adminDevices"] = sorted([list(key) for key in self.admin_devices], key=str)
        if self.skip_unprepare:
            fields["skipUnprepare"] = sorted(self.skip_unprepare)
        if self.handles:
            fields["handles"] = [dataclasses.asdict(handle) for handle in self.handles]
        if self.stopped:
            fields["stopped"] = {"reason": self.stopped[0], "since": self.stopped[1]}
        return fields

    @classmethod
    def from_fields(cls, fields: t.Mapping[str, t.Any]) -> ClaimNote:
        """The note that `to_fields` gave; raises KeyError, TypeError or ValueError for anything else."""
        stopped = fields.get("stopped")
        return cls(
            earlier_boot=str(fields.get("earlierBoot", "")),
            admin_devices=frozenset(_device_key(*key) for key in fields.get("adminDevices", ())),
            skip_unprepare=frozenset(map(str, fields.get("skipUnprepare", ()))),
            handles=tuple(ResourceHandle(**handle) for handle in fields.get("handles", ())),
            stopped=(str(stopped["reason"]), float(stopped["since"])) if stopped else None,
        )


EMPTY = ClaimNote()


def _device_key(driver: str, pool: str, device: str, share_id: str | None) -> DeviceKey:
    return driver, pool, device, share_id


@dataclasses.dataclass(frozen=True)
class Notes:
    """The content of the file: the boot in which it was written last, and the notes by claim UID."""

    boot_id: str = ""
    claims: t.Mapping[str, ClaimNote] = dataclasses.field(default_factory=dict)

    def to_fields(self) -> dict[str, t.Any]:
        """The whole file with JSON types only."""
        return {
            "version": VERSION,
            "bootID": self.boot_id,
            "claims": {uid: note.to_fields() for uid, note in sorted(self.claims.items()) if note},
        }

    @classmethod
    def from_fields(cls, fields: t.Mapping[str, t.Any]) -> Notes:
        """From what `to_fields` gave; raises KeyError, TypeError, ValueError or AttributeError for anything else."""
        if fields["version"] != VERSION:
            raise ValueError(f"version {fields['version']!r}, expected {VERSION}")
        claims = {uid: ClaimNote.from_fields(note) for uid, note in fields["claims"].items()}
        return cls(str(fields["bootID"]), claims)


def after_boot(notes: Notes, boot_id: str, claim_uids: t.Iterable[str]) -> Notes:
    """The notes as they stand for the boot ``boot_id`` in which a manager starts with ``claim_uids`` in its state file.

    A claim of an earlier boot keeps that mark over any number of restarts, until it is prepared again. Notes of
    claims that are gone are dropped. No boot ID in the notes (new or lost file) counts as an earlier boot: nobody
    knows better.
    """
    rebooted = notes.boot_id != boot_id
    claims: dict[str, ClaimNote] = {}
    for uid in claim_uids:
        note = notes.claims.get(uid, EMPTY)
        if rebooted and not note.earlier_boot:
            note = dataclasses.replace(note, earlier_boot=notes.boot_id or "unknown")
        if note:
            claims[uid] = note
    return Notes(boot_id, claims)
