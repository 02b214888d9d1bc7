# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Choosing claims by hand: which to drop, which to keep, which to add."""

from __future__ import annotations

import dataclasses
import typing as t

from .draft import Draft
from .entries import Entry
from .errors import DraError
from .formats import CRC

_KEYS = ("uid", "name", "namespace")


@dataclasses.dataclass(frozen=True)
class Selector:
    """Claims by UID, name, namespace, or any two or three of them; what is None matches all."""

    uid: str | None = None
    name: str | None = None
    namespace: str | None = None

    @classmethod
    def of(cls, given: t.Mapping[str, str | None]) -> Selector:
        """From a module's suboptions. Raises `DraError` when nothing is given: it would match every claim."""
        chosen = {key: given.get(key) for key in _KEYS}
        if not any(chosen.values()):
            raise DraError(
                "A selector of claims has neither uid, name nor namespace.", "Give at least one of the three."
            )
        return cls(**chosen)

    @classmethod
    def parse(cls, text: str) -> Selector:
        """From ``UID``, ``NAMESPACE/NAME`` or ``NAMESPACE/``. Raises `DraError` for an empty text."""
        namespace, slash, name = text.partition("/")
        return cls.of({"namespace": namespace, "name": name} if slash else {"uid": text})

    def matches(self, entry: Entry) -> bool:
        """Whether a claim is meant."""
        who = entry.identity
        return (
            (not self.uid or self.uid == who.uid)
            and (not self.name or self.name == who.name)
            and (not self.namespace or self.namespace == who.namespace)
        )

    def __str__(self) -> str:
        return ", ".join(f"{key} {getattr(self, key)}" for key in _KEYS if getattr(self, key))


@dataclasses.dataclass(frozen=True)
class Selection:
    """What to do with the claims of a file besides mending them: drop, then keep only, then add."""

    drop: t.Sequence[Selector] = ()
    keep: t.Sequence[Selector] = ()
    add: t.Sequence[t.Mapping[str, t.Any]] = ()

    def __bool__(self) -> bool:
        return bool(self.drop or self.keep or self.add)

    def apply(self, draft: Draft) -> None:
        """Change a draft; what is gone already, or there already, is left as it is.

        Raises `DraError` when a claim to add is malformed or its name is taken by another UID, and when nothing is
        left of the claims to keep.
        """
        if self.keep and draft.entries and not any(self._kept(entry) for entry in draft.entries):
            raise DraError(
                f"None of the {len(draft.entries)} claims is to be kept ({'; '.join(map(str, self.keep))}).",
                "Check the selectors with checkpoint_info, or use drop to empty the file on purpose.",
            )
        there, draft.entries = draft.entries, []
        for entry in there:
            if self._kept(entry) and not any(selector.matches(entry) for selector in self.drop):
                draft.entries.append(entry)
            else:
                loses = f"the claim and its drivers {', '.join(entry.drivers()) or '(none)'}, who are never told"
                draft.did("drop_claim", entry.label, f"Claim {entry.label} is dropped on request.", loses)
        for claim in self.add:
            self._add(draft, Entry.from_fields(CRC, claim_fields(claim)))

    def _kept(self, entry: Entry) -> bool:
        return not self.keep or any(selector.matches(entry) for selector in self.keep)

    @staticmethod
    def _add(draft: Draft, entry: Entry) -> None:
        from .conversion import other_family

        if draft.family != CRC:
            entry = other_family(entry)
        for other in draft.entries:
            if other.name == entry.name and other.uid != entry.uid:
                raise DraError(
                    f"Claim {entry.label} cannot be added: {entry.name} is in the file with UID {other.uid}.",
                    "Drop that claim in the same call if it is really gone.",
                    claim_uid=entry.uid,
                    found_uid=other.uid,
                )
            if other.uid == entry.uid:
                return
        draft.entries.append(entry)
        draft.did("add_claim", entry.label, f"Claim {entry.label} is added on request.")


def claim_fields(claim: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """A claim as `report` shows it, as the ``crc`` family stores it. Raises `DraError` for what is missing."""
    for key in _KEYS:
        if not isinstance(claim.get(key), str) or not claim[key]:
            raise DraError(
                f"A claim to add has no {key}: found {claim.get(key)!r}.",
                "Give uid, name, namespace, pods and drivers as checkpoint_info returns them.",
            )
    drivers = claim.get("drivers") or []
    return {
        "ClaimUID": claim["uid"],
        "ClaimName": claim["name"],
        "Namespace": claim["namespace"],
        "PodUIDs": {str(uid): {} for uid in claim.get("pods") or ()},
        "DriverState": {str(driver["name"]): {"Devices": _devices(driver.get("devices"))} for driver in drivers},
    }


def _devices(devices: t.Sequence[t.Mapping[str, t.Any]] | None) -> list[dict[str, t.Any]] | None:
    if devices is None:
        return None
    return [
        {
            "PoolName": str(device.get("pool") or ""),
            "DeviceName": str(device.get("device") or ""),
            "ShareID": device.get("share_id"),
            "RequestNames": [str(name) for name in device.get("requests") or ()],
            "CDIDeviceIDs": [str(name) for name in device.get("cdi_devices") or ()],
        }
        for device in devices
    ]
