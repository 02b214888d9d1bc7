# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which spec files belong to which ResourceClaim, and which to none that is known.

DRA drivers put the claim's UID into the file name (``<vendor>-<class>_<uid>``, ``<driver>_metadata_<uid>_<request>``)
and begin the device names with it. A UUID elsewhere proves nothing: GPUs have UUIDs too.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ..checkpoint.findings import Finding
from . import codes
from .directories import printable
from .names import kind_parts
from .spec import SpecFile

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_UUID_IN_STEM = re.compile(rf"_({_UUID})(?![0-9A-Za-z-])")
_UUID_BEFORE_DEVICE = re.compile(rf"({_UUID})[-_]")
_ID_AFTER_CLAIM = re.compile(r"[-_.]claim_([A-Za-z0-9][A-Za-z0-9.-]*)")


@dataclass(frozen=True)
class ClaimFile:
    """A spec file that belongs to a claim, and the devices in it that do (none known when the file is refused)."""

    path: str
    claim_uid: str
    devices: tuple[str, ...]


def uid_of_file(file: SpecFile) -> str:
    """The claim UID in the file's name, empty when it has none."""
    match = _UUID_IN_STEM.search(file.stem)
    if match:
        return match[1]
    transient = _transient_id(file)
    if transient and _devices_of(file, transient):
        return transient
    match = _ID_AFTER_CLAIM.search(file.stem)
    return match[1] if match else ""


def _transient_id(file: SpecFile) -> str:
    """What follows ``<vendor>-<class>_`` or ``<vendor>_<class>_`` in the name, for identifiers that are no UUIDs."""
    if file.spec is None:
        return ""
    vendor, class_name = kind_parts(file.spec.kind)
    for prefix in (f"{vendor}-{class_name}_", f"{vendor}_{class_name}_"):
        if file.stem.startswith(prefix):
            rest = file.stem[len(prefix) :]
            return rest.rsplit("_", 1)[0] if class_name == "metadata" and "_" in rest else rest
    return ""


def _devices_of(file: SpecFile, uid: str) -> list[str]:
    if file.spec is None:
        return []
    return [file.spec.qualified(name) for name in file.spec.devices if name.startswith((f"{uid}-", f"{uid}_"))]


def claim_files(files: t.Iterable[SpecFile], claim_uid: str) -> list[ClaimFile]:
    """The files of one claim: by their name, or because they define devices that begin with its UID."""
    found = []
    for file in files:
        devices = _devices_of(file, claim_uid)
        if file.spec is not None and claim_uid in file.spec.devices:
            devices.append(file.spec.qualified(claim_uid))
        if uid_of_file(file) == claim_uid or devices:
            found.append(ClaimFile(file.path, claim_uid, tuple(sorted(devices))))
    return found


def orphans(files: t.Iterable[SpecFile], known_uids: t.Container[str]) -> list[ClaimFile]:
    """Files, or parts of files, of claims whose UID is not known, sorted by path and UID.

    ``known_uids`` has to hold every claim of every source there is (state files, agent, API): what is missing there
    counts as an orphan.
    """
    found = []
    for file in files:
        named = uid_of_file(file)
        uids = {named} if named else set()
        if file.spec is not None:
            uids |= {match[1] for name in file.spec.devices if (match := _UUID_BEFORE_DEVICE.match(name))}
        for uid in uids:
            if uid not in known_uids:
                found.append(ClaimFile(file.path, uid, tuple(sorted(_devices_of(file, uid)))))
    return sorted(found, key=lambda orphan: (orphan.path, orphan.claim_uid))


def orphan_findings(
    files: t.Iterable[SpecFile], known_uids: t.Container[str], asked: str = "no state file and no API server"
) -> list[Finding]:
    """``orphans`` as findings. A file that is known to hold devices of other claims as well is named as such.

    ``asked`` says in words who does not know the claims.
    """
    listed = list(files)
    by_path = {file.path: file for file in listed}
    return [_finding(orphan, by_path[orphan.path], asked) for orphan in orphans(listed, known_uids)]


def _finding(orphan: ClaimFile, file: SpecFile, asked: str) -> Finding:
    path = printable(orphan.path)
    total = len(file.spec.devices) if file.spec is not None else 0
    partial = 0 < len(orphan.devices) < total and uid_of_file(file) != orphan.claim_uid
    what = f"{len(orphan.devices)} of the {total} devices in {path} belong" if partial else f"{path} belongs"
    return Finding(
        codes.ORPHAN,
        "warning",
        path,
        f"{what} to claim {orphan.claim_uid}, which {asked} knows.",
        "Left behind by a crash or a driver that was removed. Make sure that no container uses the devices, "
        "then archive the "
        "file; never delete a file that other claims share.",
        {"path": path, "claim_uid": orphan.claim_uid, "devices": list(orphan.devices), "partial": partial},
    )
