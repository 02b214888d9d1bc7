# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the readings of drivers' own checkpoint files have in common: the claims in them, and a reader's verdict."""

from __future__ import annotations

import typing as t

OK = "ok"
MISMATCH = "checksum_mismatch"
WRONG_TYPE = "wrong_type"
CORRUPTED = "checkpoint is corrupted"
"""``errors.CorruptCheckpointError`` of the kubelet's checkpoint manager, which drivers use too."""


class DriverDevice(t.NamedTuple):
    """A prepared device. ``kind`` is the driver's own word (``gpu``, ``channel`` ...), empty where it has none."""

    kind: str
    pool: str
    device: str
    requests: tuple[str, ...]
    cdi_device_ids: tuple[str, ...]
    share_id: str | None
    uuid: str

    def to_dict(self) -> dict[str, t.Any]:
        """The device as modules return it, with the names that devices of a kubelet's file have there."""
        return {
            "kind": self.kind,
            "pool": self.pool,
            "device": self.device,
            "share_id": self.share_id,
            "requests": list(self.requests),
            "cdi_devices": list(self.cdi_device_ids),
            "uuid": self.uuid,
        }


class DriverClaim(t.NamedTuple):
    """A claim that a driver holds prepared, as far as its file tells: names and state are empty where it does not.

    ``pods`` are the consumers that the claim had, as name and UID.
    """

    uid: str
    name: str
    namespace: str
    state: str
    devices: tuple[DriverDevice, ...]
    pods: tuple[tuple[str, str], ...]

    def to_dict(self) -> dict[str, t.Any]:
        """The claim as modules return it. Pods go by their UIDs, as in the claims of a kubelet's file."""
        return {
            "uid": self.uid,
            "name": self.name,
            "namespace": self.namespace,
            "pods": sorted(uid for _unused, uid in self.pods),
            "pod_names": sorted(name for name, _unused in self.pods),
            "state": self.state,
            "devices": [device.to_dict() for device in self.devices],
        }


class ReaderVerdict(t.NamedTuple):
    """What one version of a driver makes of a file.

    ``error_class`` is ``ok`` or the class of the error; None where it cannot be told. ``claims`` is the number of
    claims that this version starts with, None unless it loads the file.
    """

    error_class: str | None
    go_message: str = ""
    claims: int | None = None

    @property
    def ok(self) -> bool:
        """Whether this version loads the file."""
        return self.error_class == OK


class ChecksumPair(t.NamedTuple):
    """A checksum in a file, and the one of the same members in the same order; None where there is none."""

    stored: int | None = None
    computed: int | None = None

    @property
    def ok(self) -> bool | None:
        """Whether the two agree, None where one is missing."""
        return None if self.stored is None or self.computed is None else self.stored == self.computed


def strings(value: t.Sequence[str] | None) -> tuple[str, ...]:
    """A decoded list of strings, empty for nil."""
    return tuple(value or ())
