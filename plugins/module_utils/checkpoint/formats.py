# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The layouts of ``dra_manager_state``, one table for all releases.

Kubernetes symbols: ``state.DRAManagerCheckpoint`` (1.27 to 1.30), ``state.Checkpoint`` and ``state.CheckpointData``
(1.31 and later) in pkg/kubelet/cm/dra/state.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .errors import DraError
from .gotypes import Field, Map, Pointer, RawExtension, Slice, Str, Struct, Uint

FNV = "fnv"
CRC = "crc"
DATA_KIND = "DRACheckpoint"
DATA_API_VERSION = "checkpoint.dra.kubelet.k8s.io/v1"
EMPTY_DATA = f'{{"kind":"{DATA_KIND}","apiVersion":"{DATA_API_VERSION}","ClaimInfoStateList":null}}'
"""What ``Data`` is preset to before a file of 1.31 and later is read: a file without ``Data`` has this one."""

_STRING = Str()
_STRINGS = Slice("[]string", _STRING)
_PODS = Map("sets.Set[string]", Struct("sets.Empty", ()))

_NAMED = Struct("v1alpha2.NamedResourcesAllocationResult", [Field("name", _STRING, "Name")])
_MODEL = Pointer(_NAMED)


class _AllocationResult(Struct):
    """``v1alpha2.DriverAllocationResult``: JSON has ``namedResources`` inline, the dump shows the embedded struct."""

    def dump(self, value: t.Any) -> str:
        raw = self.fields[0].type.dump(value.get("vendorRequestParameters"))
        named = _MODEL.dump(value.get("namedResources"))
        return (
            f"{{VendorRequestParameters:(runtime.RawExtension){raw} "
            f"AllocationResultModel:(v1alpha2.AllocationResultModel){{NamedResources:({_MODEL.label}){named}}}}}"
        )


_RESULT = _AllocationResult(
    "v1alpha2.DriverAllocationResult",
    [Field("vendorRequestParameters", RawExtension()), Field("namedResources", _MODEL, omit_empty=True)],
)
_STRUCTURED = Struct(
    "v1alpha2.StructuredResourceHandle",
    [
        Field("vendorClassParameters", RawExtension(), "VendorClassParameters"),
        Field("vendorClaimParameters", RawExtension(), "VendorClaimParameters"),
        Field("nodeName", _STRING, "NodeName", omit_empty=True),
        Field("results", Slice("[]v1alpha2.DriverAllocationResult", _RESULT), "Results"),
    ],
)
_HANDLE_FIELDS = [
    Field("driverName", _STRING, "DriverName", omit_empty=True),
    Field("data", _STRING, "Data", omit_empty=True),
]
_HANDLE_1_28 = Struct("v1alpha2.ResourceHandle", _HANDLE_FIELDS)
_HANDLE_1_30 = Struct(
    "v1alpha2.ResourceHandle",
    [*_HANDLE_FIELDS, Field("structuredData", Pointer(_STRUCTURED), "StructuredData", omit_empty=True)],
)


def _fnv_claim(handle: Struct | None) -> Struct:
    fields = [
        Field("DriverName", _STRING),
        Field("ClassName", _STRING),
        Field("ClaimUID", Str("types.UID")),
        Field("ClaimName", _STRING),
        Field("Namespace", _STRING),
        Field("PodUIDs", _PODS),
    ]
    if handle is not None:
        fields.append(Field("ResourceHandles", Slice("[]v1alpha2.ResourceHandle", handle)))
    fields.append(Field("CDIDevices", Map("map[string][]string", _STRINGS)))
    return Struct("state.ClaimInfoState", fields)


def _fnv_document(claim: Struct) -> Struct:
    return Struct(
        "state.DRAManagerCheckpoint",
        [
            Field("version", _STRING, "Version"),
            Field("entries", Slice("state.ClaimInfoStateList", claim), "Entries", omit_empty=True),
            Field("checksum", Uint("checksum.Checksum", 64), "Checksum"),
        ],
    )


def _crc_device(share_id: bool) -> Struct:
    fields = [Field("PoolName", _STRING), Field("DeviceName", _STRING)]
    if share_id:
        fields.append(Field("ShareID", Pointer(Str("types.UID"))))
    return Struct("state.Device", [*fields, Field("RequestNames", _STRINGS), Field("CDIDeviceIDs", _STRINGS)])


DEVICE = _crc_device(share_id=True)
"""A device of the ``crc`` family with every field that any release knows."""


def _crc_claim(device: Struct) -> Struct:
    driver = Struct("state.DriverState", [Field("Devices", Slice("[]state.Device", device))])
    return Struct(
        "state.ClaimInfoState",
        [
            Field("ClaimUID", Str("types.UID")),
            Field("ClaimName", _STRING),
            Field("Namespace", _STRING),
            Field("PodUIDs", _PODS),
            Field("DriverState", Map("map[string]state.DriverState", driver)),
        ],
    )


CRC_DOCUMENT = Struct("state.Checkpoint", [Field("Data", _STRING), Field("Checksum", Uint("uint32", 32))])


def _crc_data(claim: Struct) -> Struct:
    return Struct(
        "state.CheckpointData",
        [
            Field("kind", _STRING),
            Field("apiVersion", _STRING),
            Field("ClaimInfoStateList", Slice("state.ClaimInfoStateList", claim)),
        ],
    )


@dataclasses.dataclass(frozen=True)
class Format:
    """One layout: its name, the releases that write it, its family, and the Go structs it is read with.

    ``document`` is the struct that holds the list of claims: the file itself for the ``fnv`` family, the text inside
    ``Data`` for the ``crc`` family. ``list_key`` is the name of that list.
    """

    name: str
    releases: tuple[str, ...]
    family: str
    claim: Struct
    document: Struct
    list_key: str

    def __str__(self) -> str:
        return self.name


def _fnv(name: str, releases: tuple[str, ...], handle: Struct | None) -> Format:
    claim = _fnv_claim(handle)
    return Format(name, releases, FNV, claim, _fnv_document(claim), "entries")


def _crc(name: str, releases: tuple[str, ...], share_id: bool) -> Format:
    claim = _crc_claim(DEVICE if share_id else _crc_device(share_id=False))
    return Format(name, releases, CRC, claim, _crc_data(claim), "ClaimInfoStateList")


FNV_1_27 = _fnv("fnv-1.27", ("1.27",), None)
FNV_1_28 = _fnv("fnv-1.28", ("1.28", "1.29"), _HANDLE_1_28)
FNV_1_30 = _fnv("fnv-1.30", ("1.30",), _HANDLE_1_30)
CRC_1_31 = _crc("crc-1.31", ("1.31", "1.32", "1.33", "1.34"), share_id=False)
CRC_1_35 = _crc("crc-1.35", ("1.35", "1.36"), share_id=True)

FORMATS = (FNV_1_27, FNV_1_28, FNV_1_30, CRC_1_31, CRC_1_35)
RELEASES = tuple(release for form in FORMATS for release in form.releases)
NEWEST = CRC_1_35
RICHEST: t.Mapping[str, Format] = {FNV: FNV_1_30, CRC: CRC_1_35}
"""For each family the format whose claims hold all that the others hold."""
UNIVERSAL = "universal"

_BY_NAME = {form.name: form for form in FORMATS}
_BY_RELEASE = {release: form for form in FORMATS for release in form.releases}
_VERSION = re.compile(r"v?(1)\.([0-9]+)(?:\.[0-9]+)?(?:[-+].*)?")


def release_of(version: str, or_else: str = "") -> str:
    """``v1.31.4+k3s1`` and the like as ``1.31``. Raises `DraError` when it is no Kubernetes version.

    ``or_else`` names for the error what else may be given.
    """
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        raise DraError(
            f"'{version}' is not a Kubernetes version.",
            f"Give a release such as 1.31{or_else}.",
            found=version,
        )
    return f"{match.group(1)}.{match.group(2)}"


def format_for(target: str) -> Format:
    """The layout for a release (``1.31``, ``v1.34.2``) or a format name.

    Releases after the newest one that is known read and write, as far as anybody can tell, what it does; the caller
    sees this from ``release not in format.releases``. Raises `DraError` for releases that have no state file.
    """
    name = target.strip()
    if name in _BY_NAME:
        return _BY_NAME[name]
    release = release_of(name, f", one of the formats {', '.join(_BY_NAME)}, or {UNIVERSAL}")
    if release in _BY_RELEASE:
        return _BY_RELEASE[release]
    if int(release.split(".")[1]) < 27:
        raise DraError(
            f"Kubernetes {release} keeps no state file for Dynamic Resource Allocation: the first to do so is 1.27.",
            "Remove the file instead (state=absent) when the node really goes to that release.",
            found=release,
        )
    return NEWEST
