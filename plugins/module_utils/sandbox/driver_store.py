# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the simulated driver keeps on disk: its own record of prepared claims, and one CDI spec file a claim.

Two instances of one driver (a rolling update) share the record, so every change is made under a file lock on the
newest content. All work here is short and blocking; a simulator can afford that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import re
import typing as t

from ..checkpoint.errors import DraError

_SAFE_UID = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,200}[A-Za-z0-9])?")


@dataclasses.dataclass(frozen=True)
class PreparedDevice:
    """One device as the driver answers it; ``requests`` empty means that it serves every request of the claim."""

    pool: str
    device: str
    requests: tuple[str, ...] = ()
    cdi_ids: tuple[str, ...] = ()
    share_id: str | None = None


@dataclasses.dataclass(frozen=True)
class PreparedClaim:
    uid: str
    namespace: str
    name: str
    devices: tuple[PreparedDevice, ...] = ()


def uid_problem(uid: str) -> str:
    """Why a claim UID cannot be part of a file name and of a CDI name; empty when it can."""
    return "" if _SAFE_UID.fullmatch(uid) else f"claim UID {uid!r} cannot be used in a file name"


def _write(path: pathlib.Path, text: str, durable: bool) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    os.replace(temporary, path)
    if durable:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class ClaimStore:
    """The driver's own record of prepared claims: a JSON file that survives ``kill -9``."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def claims(self) -> dict[str, PreparedClaim]:
        """The record as it is on disk now, by claim UID. DraError when the file is damaged."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        try:
            entries = json.loads(text)["claims"]
            return {uid: _claim_from(uid, entry) for uid, entry in entries.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DraError(
                f"The state file {self.path} of the simulated driver is damaged: {error}.",
                "Remove it; the simulated driver then starts with no prepared claims.",
                path=str(self.path),
            ) from error

    @contextlib.contextmanager
    def transaction(self) -> t.Iterator[dict[str, PreparedClaim]]:
        """The record, to be changed in place: written back, atomically and synced, when the block ends well."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path.with_name(self.path.name + ".lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = self.claims()
            claims = dict(before)
            yield claims
            if claims != before:
                entries = {uid: dataclasses.asdict(claim) for uid, claim in claims.items()}
                _write(self.path, json.dumps({"version": 1, "claims": entries}), durable=True)


def _claim_from(uid: str, entry: dict[str, t.Any]) -> PreparedClaim:
    devices = tuple(
        PreparedDevice(d["pool"], d["device"], tuple(d["requests"]), tuple(d["cdi_ids"]), d["share_id"])
        for d in entry["devices"]
    )
    return PreparedClaim(uid, entry["namespace"], entry["name"], devices)


class CdiFiles:
    """The CDI spec files of one driver: ``<dir>/k8s.<driver>-claim_<uid>.json`` with one device entry a device."""

    def __init__(self, directory: pathlib.Path, driver: str) -> None:
        self.directory = directory
        # With the prefix the vendor part starts with a letter, whatever the driver's name starts with.
        self.kind = f"k8s.{driver}/claim"

    def path(self, uid: str) -> pathlib.Path:
        return self.directory / f"{self.kind.replace('/', '-')}_{uid}.json"

    def qualified_name(self, uid: str, device: str) -> str:
        return f"{self.kind}={uid}-{device}"

    def write(self, claim: PreparedClaim) -> None:
        """A real, small spec: each device sets one variable. Not synced, the directory is a tmpfs on real nodes."""
        entries = [
            {
                "name": f"{claim.uid}-{device.device}",
                "containerEdits": {
                    "env": [f"DRA_DEVICE_{_env_name(device.device)}={claim.namespace}/{claim.name}"],
                },
            }
            for device in claim.devices
        ]
        if not entries:  # the CDI schema wants at least one device
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        # 0.5.0 is the first version in which a device name may start with a digit, as many claim UIDs do.
        spec = {"cdiVersion": "0.5.0", "kind": self.kind, "devices": entries}
        _write(self.path(claim.uid), json.dumps(spec, indent=2) + "\n", durable=False)

    def remove(self, uid: str) -> None:
        self.path(uid).unlink(missing_ok=True)


def _env_name(device: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", device.upper())
