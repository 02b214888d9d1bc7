# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The Go types of ``checkpoint.json`` in the two NVIDIA plugins, for each version that was looked at.

A version in this table stands for its neighbours too: 25.3.1 and 25.3.2 read and write as 25.3.0, 25.8.1 as 25.8.0, and
0.4.0 differs from 0.4.1 only in two fields that 0.4.1 leaves out when they are empty.

Each plugin hashes what it decoded and wrote again with its own types. A field that it does not know is lost on the way,
one that it adds appears, and either makes it call an undamaged file of another version corrupted.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .claim_status import CLAIM_STATUS, DEVICE_ATTRIBUTE, NETWORK_DATA, STRING, STRINGS, UID_POINTER
from .gofields import ApiList, ApiStr, ApiStruct, ApiTime, Bool, Int
from .gotypes import Field, Map, Pointer, Struct, Uint

GPU = "gpu.nvidia.com"
COMPUTE_DOMAIN = "compute-domain.nvidia.com"
DRIVERS = (GPU, COMPUTE_DOMAIN)

V25_3 = "v25.3.0"
V25_8 = "v25.8.0"
V25_12 = "v25.12.0"
V0_4 = "v0.4.1"
MAIN = "main-2026-08-07"
VERSIONS = (V25_3, V25_8, V25_12, V0_4, MAIN)
"""In the order of their release; the driver changed its numbering after 25.12."""

_EVERY = "every version"
"""Not a version: the types with the fields of all, to decode a file once for all readers."""

_RANK = {version: rank for rank, version in enumerate((*VERSIONS, _EVERY))}
_CHECKSUM = Field("checksum", Uint("checksum.Checksum", 64))


def _since(version: str, first: str, *fields: Field) -> tuple[Field, ...]:
    return fields if _RANK[version] >= _RANK[first] else ()


def _before(version: str, first: str, *fields: Field) -> tuple[Field, ...]:
    return fields if version == _EVERY or _RANK[version] < _RANK[first] else ()


_METADATA = ApiStruct(
    "kubeletplugin.DeviceMetadata",
    [
        Field("Attributes", Map("map[string]v1.DeviceAttribute", DEVICE_ATTRIBUTE)),
        Field("NetworkData", Pointer(NETWORK_DATA)),
    ],
)


def _plugin_device(version: str) -> Field:
    """``kubeletplugin.Device``, from 0.4 written by a method that leaves out the fields of Kubernetes 1.36."""
    return Field(
        "device",
        Pointer(
            ApiStruct(
                "main.CheckpointedDevice" if _since(version, V0_4, _CHECKSUM) else "kubeletplugin.Device",
                [
                    Field("Requests", STRINGS),
                    Field("PoolName", STRING),
                    Field("DeviceName", STRING),
                    Field("CDIDeviceIDs", STRINGS),
                    *_since(
                        version,
                        V0_4,
                        Field("ShareID", UID_POINTER, omit_empty=True),
                        Field("Metadata", Pointer(_METADATA), omit_empty=True),
                    ),
                ],
            )
        ),
    )


def _uuid_info(name: str, *more: Field) -> Field:
    return Field("info", Pointer(ApiStruct(f"main.{name}", [Field("uuid", STRING), *more])))


def _gpu_device(version: str) -> Struct:
    device = _plugin_device(version)
    concrete = ApiStruct(
        "main.MigLiveTuple",
        [
            Field("parentMinor", Int()),
            Field("giId", Int()),
            Field("ciId", Int()),
            Field("migUUID", STRING),
            Field("parentUUID", STRING),
            *_since(version, V0_4, Field("parentPCIBusID", STRING, omit_empty=True)),
        ],
    )
    mig = [
        *_before(version, V25_12, _uuid_info("MigDeviceInfo")),
        *_since(version, V25_12, Field("concrete", Pointer(concrete))),
        device,
    ]
    bus_id = _since(version, V0_4, Field("pciBusID", STRING, omit_empty=True))
    vfio = ApiStruct("main.PreparedVfioDevice", [_uuid_info("VfioDeviceInfo", *bus_id), device])
    return ApiStruct(
        "main.PreparedDevice",
        [
            Field("gpu", Pointer(ApiStruct("main.PreparedGpu", [_uuid_info("GpuInfo"), device]))),
            Field("mig", Pointer(ApiStruct("main.PreparedMigDevice", mig))),
            *_since(version, V25_12, Field("vfio", Pointer(vfio), omit_empty=True)),
        ],
    )


def _gpu_config(version: str) -> t.Sequence[Field]:
    return [
        Field("mpsControlDaemonID", STRING, omit_empty=version == MAIN),
        *_since(version, MAIN, Field("mpsApplied", Pointer(Bool()), omit_empty=True)),
        *_since(version, V0_4, Field("timeSliceApplied", Pointer(Bool()), omit_empty=True)),
    ]


def _domain_device(device: Field, suffix: str = "") -> Struct:
    def part(kind: str) -> Pointer:
        info = ApiStruct(f"main.ComputeDomain{kind}Info", [Field("id", Int())])
        return Pointer(ApiStruct(f"main.PreparedComputeDomain{kind}{suffix}", [Field("info", Pointer(info)), device]))

    fields = [Field("channel", part("Channel")), Field("daemon", part("Daemon"))]
    return ApiStruct(f"main.PreparedDevice{suffix}", fields)


_DOMAIN_CONFIG = [Field("Type", STRING), Field("ComputeDomain", STRING)]


def _groups(device: Struct, config: t.Sequence[Field], suffix: str = "") -> ApiList:
    group = ApiStruct(
        f"main.PreparedDeviceGroup{suffix}",
        [
            Field("devices", ApiList(f"main.PreparedDeviceList{suffix}", device)),
            Field("configState", ApiStruct("main.DeviceConfigState", config)),
        ],
    )
    return ApiList(f"main.PreparedDevices{suffix}", Pointer(group))


def _prepared(driver: str, version: str) -> list[Field]:
    if driver == GPU:
        groups = _groups(_gpu_device(version), _gpu_config(version))
    else:
        groups = _groups(_domain_device(_plugin_device(version)), _DOMAIN_CONFIG)
    return [Field("status", CLAIM_STATUS), Field("preparedDevices", groups, omit_empty=True)]


def _claims(version: str, generation: str, claim: t.Sequence[Field]) -> Field:
    suffix = "" if version == V25_3 else generation
    form = ApiStruct(f"main.PreparedClaim{suffix}", claim)
    return Field("preparedClaims", Map(f"main.PreparedClaimsByUID{suffix}", form), omit_empty=True)


@dataclasses.dataclass(frozen=True)
class Layout:
    """How one version of one plugin reads and writes: the file, and the part that ``v2.checksum`` covers."""

    driver: str
    version: str
    document: Struct
    v2: Struct | None


def _layout(driver: str, version: str) -> Layout:
    prepared = _prepared(driver, version)
    fields = [_CHECKSUM]
    v1 = ApiStruct("main.CheckpointV1", [_claims(version, "V1", prepared)])
    fields.append(Field("v1", Pointer(v1), omit_empty=True))
    if version == V25_3:
        return Layout(driver, version, ApiStruct("main.Checkpoint", fields), None)
    claim = [
        Field("checkpointState", ApiStr("main.ClaimCheckpointState")),
        *prepared,
        *_since(
            version,
            V25_12 if driver == GPU else V25_8,
            Field("name", STRING, omit_empty=True),
            Field("namespace", STRING, omit_empty=True),
        ),
    ]
    if driver == COMPUTE_DOMAIN:
        claim += _since(version, V0_4, Field("abortedAt", Pointer(ApiTime()), omit_empty=True))
    v2 = ApiStruct(
        "main.CheckpointV2",
        [
            _CHECKSUM,
            _claims(version, "V2", claim),
            *_since(version, V0_4, Field("nodeBootID", STRING, omit_empty=True)),
        ],
    )
    fields.append(Field("v2", Pointer(v2), omit_empty=True))
    return Layout(driver, version, ApiStruct("main.Checkpoint", fields), v2)


LAYOUTS = {driver: tuple(_layout(driver, version) for version in VERSIONS) for driver in DRIVERS}
DECODER = {driver: _layout(driver, _EVERY).document for driver in DRIVERS}
"""A document that is free of type errors for this type has, for each version, just the values that it would decode."""

DRA_V1BETA1_DEVICE = [
    Field("request_names", STRINGS, omit_empty=True),
    Field("pool_name", STRING, omit_empty=True),
    Field("device_name", STRING, omit_empty=True),
    Field("cdi_device_ids", STRINGS, omit_empty=True),
]
"""``Device`` of the gRPC interface v1beta1, which early drivers put into their files as it was."""


def _release_candidate() -> Struct:
    """What 25.3.0-rc.2 of the compute-domain plugin wrote, and later versions try when a file is not of their type."""
    suffix = "2503RC2"
    device = Field("device", Pointer(ApiStruct("v1beta1.Device", DRA_V1BETA1_DEVICE)))
    groups = _groups(_domain_device(device, suffix), _DOMAIN_CONFIG, suffix)
    claims = Field("preparedClaims", Map(f"main.PreparedClaims{suffix}", groups), omit_empty=True)
    v1 = ApiStruct(f"main.Checkpoint{suffix}V1", [claims])
    return ApiStruct(f"main.Checkpoint{suffix}", [_CHECKSUM, Field("v1", Pointer(v1), omit_empty=True)])


RELEASE_CANDIDATE = _release_candidate()
