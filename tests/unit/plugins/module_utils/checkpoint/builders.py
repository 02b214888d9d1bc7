# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""State files for tests, made without the code under test: JSON by Python, both checksums by their definitions."""

from __future__ import annotations

import json
import typing as t
import zlib

Claim = dict[str, t.Any]
KIND = "DRACheckpoint"
API_VERSION = "checkpoint.dra.kubelet.k8s.io/v1"
NIL = "<nil>"


def uid(number: int) -> str:
    """The UID of claim ``number``."""
    return f"c0de{number:04d}-1111-4222-8333-{number:012d}"


def pod(number: int) -> str:
    """The UID of pod ``number``."""
    return f"b0d0{number:04d}-aaaa-4bbb-8ccc-{number:012d}"


def compact(value: t.Any) -> str:
    """JSON without blanks, as Go writes it (for texts without ``<``, ``>`` and ``&``)."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def device(number: int = 1, **changes: t.Any) -> dict[str, t.Any]:
    """A device as 1.35 and later store it; a change to Ellipsis leaves the member out."""
    members: dict[str, t.Any] = {
        "PoolName": "node-1",
        "DeviceName": f"gpu-{number}",
        "ShareID": None,
        "RequestNames": ["req-0"],
        "CDIDeviceIDs": [f"vendor.example.com/gpu=dev-{number}"],
        **changes,
    }
    return {name: value for name, value in members.items() if value is not ...}


def crc_claim(number: int = 1, **changes: t.Any) -> Claim:
    """A claim as 1.35 and later store it; a change to Ellipsis leaves the member out."""
    members: Claim = {
        "ClaimUID": uid(number),
        "ClaimName": f"claim-{number}",
        "Namespace": "default",
        "PodUIDs": {pod(number): {}},
        "DriverState": {"gpu.example.com": {"Devices": [device(number)]}},
        **changes,
    }
    return {name: value for name, value in members.items() if value is not ...}


def crc_data(*claims: t.Any, list_key: str = "ClaimInfoStateList") -> str:
    """The text inside ``Data``."""
    return compact({"kind": KIND, "apiVersion": API_VERSION, list_key: list(claims)})


def crc_around(data: str, checksum: int | None = None) -> bytes:
    """A file around a text for ``Data``; its checksum is right unless one is given."""
    value = zlib.crc32(data.encode()) if checksum is None else checksum
    return compact({"Data": data, "Checksum": value}).encode()


def crc_file(*claims: t.Any, checksum: int | None = None) -> bytes:
    """A file of 1.35 and later."""
    return crc_around(crc_data(*claims), checksum)


def fnv_claim(number: int = 1, **changes: t.Any) -> Claim:
    """A claim as 1.28 to 1.30 store it (1.27: ``ResourceHandles=...``)."""
    members: Claim = {
        "DriverName": "gpu.example.com",
        "ClassName": "class-1",
        "ClaimUID": uid(number),
        "ClaimName": f"claim-{number}",
        "Namespace": "default",
        "PodUIDs": {pod(number): {}},
        "ResourceHandles": [{"driverName": "gpu.example.com"}],
        "CDIDevices": {"gpu.example.com": [f"vendor.example.com/gpu=dev-{number}"]},
        **changes,
    }
    return {name: value for name, value in members.items() if value is not ...}


def fnv_file(*claims: t.Any, release: str = "1.30", checksum: int | None = None, version: str = "v1") -> bytes:
    """A file of ``release``, 1.27 to 1.30, without structured data; right unless a checksum is given."""
    value = fnv(hashed_text(claims, release, version)) if checksum is None else checksum
    document: dict[str, t.Any] = {"version": version}
    if claims:
        document["entries"] = list(claims)
    return compact({**document, "checksum": value}).encode()


def fnv(text: str) -> int:
    """FNV-1a, 32 bits."""
    value = 2166136261
    for byte in text.encode():
        value = (value ^ byte) * 16777619 % (1 << 32)
    return value


def hashed_text(claims: t.Sequence[Claim], release: str, version: str = "v1") -> str:
    """The text that a kubelet of ``release`` hashes."""
    entries = " ".join(_claim_text(claim, release) for claim in claims)
    head = f"(*state.DRAManagerCheckpoint){{Version:(string){version} Entries:(state.ClaimInfoStateList)"
    return f"{head}[{entries}] Checksum:(checksum.Checksum)0}}"


def _claim_text(claim: Claim, release: str) -> str:
    names = (
        ("DriverName", "string"),
        ("ClassName", "string"),
        ("ClaimUID", "types.UID"),
        ("ClaimName", "string"),
        ("Namespace", "string"),
    )
    parts = [f"{name}:({kind}){claim.get(name) or ''}" for name, kind in names]
    pods = claim.get("PodUIDs")
    podset = NIL if pods is None else f"map[{' '.join(f'{key}:{{}}' for key in sorted(pods))}]"
    parts.append(f"PodUIDs:(sets.Set[string]){podset}")
    if release != "1.27":
        handles = claim.get("ResourceHandles")
        shown = NIL if handles is None else f"[{' '.join(_handle_text(handle, release) for handle in handles)}]"
        parts.append(f"ResourceHandles:([]v1alpha2.ResourceHandle){shown}")
    cdi = claim.get("CDIDevices")
    cdi_text = NIL if cdi is None else f"map[{' '.join(f'{key}:{_list_text(cdi[key])}' for key in sorted(cdi))}]"
    parts.append(f"CDIDevices:(map[string][]string){cdi_text}")
    return f"{{{' '.join(parts)}}}"


def _handle_text(handle: Claim, release: str) -> str:
    text = f"{{DriverName:(string){handle.get('driverName', '')} Data:(string){handle.get('data', '')}"
    return text + (f" StructuredData:(*v1alpha2.StructuredResourceHandle){NIL}}}" if release == "1.30" else "}")


def _list_text(items: t.Sequence[t.Any] | None) -> str:
    return NIL if items is None else f"[{' '.join(str(item or '') for item in items)}]"
