# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Reading the manager's files when it starts. What cannot be read with certainty is left alone, never written over."""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass, field

from ..checkpoint.claims import ClaimState, claim_states
from ..checkpoint.diagnosis import diagnose
from ..checkpoint.document import MISMATCH, Document, Reading
from ..checkpoint.errors import DraError
from ..checkpoint.file_errors import MissingFileError, StoreError, shown
from ..checkpoint.findings import Finding
from ..checkpoint.formats import NEWEST
from ..checkpoint.store import StateDirectory
from ..resource.view import SAFE_NAME
from .durable_claims import Record
from .notes import EMPTY, Notes, after_boot


class StateDamagedError(DraError):
    """The state file is there and cannot be used. Facts: ``path``, ``claims``: UIDs of claims that it seems to hold."""


@dataclass
class Loaded:
    """What the files hold: ``notes`` as they stand for this boot, ``stored_notes`` as they were found."""

    records: dict[str, Record]
    notes: Notes
    stored_notes: Notes
    findings: list[Finding] = field(default_factory=list)


def load(directory: StateDirectory, state_name: str, notes_name: str, boot_id: str) -> Loaded:
    """Read both files; a missing one is an empty one.

    Raises StateDamagedError for a state file that this manager must not go on from, StoreError when it cannot be read
    at all. Notes that cannot be used are dropped with a finding: the state file alone is enough to clean up.
    """
    claims = _read_state(directory, state_name)
    stored, findings = _read_notes(directory, notes_name)
    notes = after_boot(stored, boot_id, [claim.uid for claim in claims])
    records = {claim.uid: Record(claim, notes.claims.get(claim.uid, EMPTY)) for claim in claims}
    return Loaded(records, notes, stored, findings)


def _read_state(directory: StateDirectory, name: str) -> list[ClaimState]:
    path = directory.path_of(name)
    try:
        data = directory.read(name).data
    except MissingFileError:
        return []
    reading = Document(data).read_as(NEWEST)
    if not reading.ok:
        raise _damaged(path, data, reading)
    claims = claim_states(reading.claims)
    problem = _contradiction(claims)
    if problem:
        raise StateDamagedError(
            f"{shown(path)} contradicts itself: {problem}.",
            _way_out(path),
            path=shown(path),
            claims=sorted({claim.uid for claim in claims}),
        )
    return claims


def _damaged(path: str, data: bytes, reading: Reading) -> StateDamagedError:
    diagnosis = diagnose(data)
    if reading.error_class == MISMATCH:
        found = f"its checksum is {reading.stored}, its data gives {reading.computed}"
    else:
        found = reading.go_message or reading.error_class
    format_found = diagnosis.format
    if format_found is not None and format_found is not NEWEST and format_found.family != NEWEST.family:
        found += f"; it looks like a file of Kubernetes {' to '.join(format_found.releases)}"
    claims = [entry.uid for entry in diagnosis.entries]
    known = f" It seems to hold {len(claims)} claims, which stay prepared by their drivers." if claims else ""
    return StateDamagedError(
        f"{shown(path)} is damaged: {found}.{known} Nothing is prepared or unprepared meanwhile, and the file stays as "
        "it is.",
        _way_out(path),
        path=shown(path),
        claims=claims,
    )


def _contradiction(claims: t.Sequence[ClaimState]) -> str:
    """Why these claims cannot all be true, empty when they can."""
    names: dict[tuple[str, str], str] = {}
    uids: set[str] = set()
    for claim in claims:
        for what, value in (("UID", claim.uid), ("name", claim.name), ("namespace", claim.namespace)):
            if not SAFE_NAME.fullmatch(value):
                return f"a claim ({claim.namespace}/{claim.name}, UID {claim.uid}) has the {what} {value!r:.80}"
        for driver in claim.drivers:
            if not SAFE_NAME.fullmatch(driver):
                return f"claim {claim.uid} names the driver {driver!r:.80}"
        if claim.uid in uids:
            return f"it lists claim UID {claim.uid} twice"
        other = names.setdefault((claim.namespace, claim.name), claim.uid)
        if other != claim.uid:
            return f"it lists claim {claim.namespace}/{claim.name} with the UIDs {other} and {claim.uid}"
        uids.add(claim.uid)
    return ""


def _way_out(path: str) -> str:
    return (
        f"Look at it with nodeops.dra.checkpoint_info (path={shown(path)}) and mend it with "
        "nodeops.dra.checkpoint (state=repaired, or state=restored from a backup). An agent goes on by itself then."
    )


def _read_notes(directory: StateDirectory, name: str) -> tuple[Notes, list[Finding]]:
    path = directory.path_of(name)
    try:
        return Notes.from_fields(json.loads(directory.read(name).data)), []
    except MissingFileError:
        return Notes(), []
    except (StoreError, ValueError, TypeError, KeyError, AttributeError) as error:
        reason = str(error) if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"
        finding = Finding(
            "manager_notes_unusable",
            "warning",
            shown(path),
            f"{shown(path)} cannot be used ({reason}): every claim counts as one of an earlier boot.",
            "Nothing to do: the file is written anew with the next change that needs it.",
        )
        return Notes(), [finding]
