# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Claims as the manager holds them, and the file of today's kubelets made from them.

Each claim is encoded once and joined many times: a file of N claims costs one copy of its bytes, not N encodings.

Kubernetes symbols: ``state.ClaimInfoState``, ``state.DriverState``, ``state.Device`` in pkg/kubelet/cm/dra/state.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import typing as t
import zlib

from .claim_list import ClaimList
from .formats import CRC_1_35, DATA_API_VERSION, DATA_KIND
from .gojson import encode_text, quote

_PLANNED = "nodeops.dra/planned"
"""A field that no kubelet has. They leave out what they do not know, and their checksum covers it."""

PlannedDevice = tuple[str, str, str, t.Optional[str]]
"""Driver, pool, device and share ID."""


@dataclasses.dataclass(frozen=True)
class Device:
    """One device that a driver prepared for a claim.

    Empty ``request_names`` mean that it belongs to all requests of the claim. ``cdi_device_ids`` are fully qualified
    CDI names. ``share_id`` is None unless the device is shared between claims.
    """

    pool_name: str
    device_name: str
    request_names: tuple[str, ...] = ()
    cdi_device_ids: tuple[str, ...] = ()
    share_id: str | None = None


@dataclasses.dataclass(frozen=True)
class ClaimState:
    """One claim on this node: who holds it, and what each of its drivers prepared.

    ``drivers`` maps a driver's name to its devices, or to None while its answer is still outstanding: the driver was
    or is about to be called, so it must be told to unprepare. ``planned`` are devices that a driver may hold for the
    claim beside those of its last answer: what it was asked for, until it answers.
    """

    uid: str
    name: str
    namespace: str
    pod_uids: frozenset[str] = frozenset()
    drivers: t.Mapping[str, tuple[Device, ...] | None] = dataclasses.field(default_factory=dict)
    planned: frozenset[PlannedDevice] = frozenset()

    @classmethod
    def from_fields(cls, fields: t.Mapping[str, t.Any], planned: frozenset[PlannedDevice] = frozenset()) -> ClaimState:
        """From a decoded claim of the ``crc`` family; null sets become empty ones, repeated devices are dropped."""
        return cls(
            uid=fields["ClaimUID"],
            name=fields["ClaimName"],
            namespace=fields["Namespace"],
            pod_uids=frozenset(fields["PodUIDs"] or ()),
            drivers={name: _devices(state["Devices"]) for name, state in (fields["DriverState"] or {}).items()},
            planned=planned,
        )

    def to_fields(self) -> dict[str, t.Any]:
        """The claim as `formats` describes it, without ``planned``."""
        return {
            "ClaimUID": self.uid,
            "ClaimName": self.name,
            "Namespace": self.namespace,
            "PodUIDs": {uid: {} for uid in self.pod_uids},
            "DriverState": {name: {"Devices": _device_fields(devices)} for name, devices in self.drivers.items()},
        }


def _devices(items: t.Sequence[t.Mapping[str, t.Any]] | None) -> tuple[Device, ...] | None:
    if items is None:
        return None
    devices = [
        Device(
            pool_name=item["PoolName"],
            device_name=item["DeviceName"],
            request_names=tuple(item["RequestNames"] or ()),
            cdi_device_ids=tuple(item["CDIDeviceIDs"] or ()),
            share_id=item.get("ShareID"),
        )
        for item in items
    ]
    return tuple(dict.fromkeys(devices))


def _device_fields(devices: tuple[Device, ...] | None) -> list[dict[str, t.Any]] | None:
    if devices is None:
        return None
    return [
        {
            "PoolName": device.pool_name,
            "DeviceName": device.device_name,
            "ShareID": device.share_id,
            "RequestNames": list(device.request_names),
            "CDIDeviceIDs": list(device.cdi_device_ids),
        }
        for device in devices
    ]


@dataclasses.dataclass(frozen=True)
class EncodedClaim:
    """A claim's bytes: as they count for the checksum, and as they stand in the file, inside a JSON string."""

    inner: bytes
    outer: bytes

    @classmethod
    def of(cls, text: str) -> EncodedClaim:
        """From the JSON text of one claim."""
        return cls(encode_text(text), encode_text(quote(text)[1:-1]))


def encode(claim: ClaimState) -> EncodedClaim:
    """A claim in the layout of `formats.NEWEST`, which every kubelet from 1.31 on reads."""
    text = CRC_1_35.claim.encode(claim.to_fields())
    if claim.planned:
        planned = sorted([list(device) for device in claim.planned], key=str)
        text = f'{text[:-1]},"{_PLANNED}":{json.dumps(planned, separators=(",", ":"))}}}'
    return EncodedClaim.of(text)


def claim_states(claims: ClaimList | None) -> list[ClaimState]:
    """The claims of a list of the ``crc`` family (None: no claims), with the planned devices that `encode` wrote."""
    if claims is None:
        return []
    return [
        ClaimState.from_fields(fields, frozenset() if claims.is_well_formed(index) else _planned(claims.text_at(index)))
        for index, fields in enumerate(claims)
    ]


def _planned(text: str) -> frozenset[PlannedDevice]:
    """What a claim's text says of planned devices; what is not as `encode` writes it is somebody else's."""
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        claim = json.loads(text)
        found = claim.get(_PLANNED) or () if isinstance(claim, dict) else ()
        return frozenset((str(driver), str(pool), str(device), share) for driver, pool, device, share in found)
    return frozenset()


_HEAD = EncodedClaim.of(f'{{"kind":"{DATA_KIND}","apiVersion":"{DATA_API_VERSION}","ClaimInfoStateList":[')
_TAIL = EncodedClaim.of("]}")


def assemble(claims: t.Iterable[EncodedClaim]) -> bytes:
    """The whole file, byte for byte as a kubelet of 1.35 or later writes these claims in this order."""
    parts = list(claims)
    inner = b"".join((_HEAD.inner, b",".join([part.inner for part in parts]), _TAIL.inner))
    outer = b",".join([part.outer for part in parts])
    checksum = zlib.crc32(inner) & 0xFFFFFFFF
    return b"".join((b'{"Data":"', _HEAD.outer, outer, _TAIL.outer, b'","Checksum":', str(checksum).encode(), b"}"))
