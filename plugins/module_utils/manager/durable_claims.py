# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The claims of this node on disk: the state file and, beside it, the notes."""

from __future__ import annotations

import dataclasses
import json
import typing as t

from ..checkpoint.claims import ClaimState
from ..checkpoint.store import StateDirectory
from .notes import EMPTY, ClaimNote, Notes
from .state_file import StateFile


@dataclasses.dataclass(frozen=True)
class Record:
    """A claim as it is on disk: its entry in the state file, and its note."""

    state: ClaimState
    note: ClaimNote = EMPTY


Changes = t.Mapping[str, t.Optional[Record]]
"""Claim UID to the record as it shall be, None for a claim that goes."""


class DurableClaims:
    """The two files in ``directory``; ``records`` and ``boot_id`` are what they hold.

    Methods block and must not run at the same time.
    """

    def __init__(
        self,
        directory: StateDirectory,
        *,
        state_file: StateFile,
        notes_name: str,
        notes: Notes,
    ) -> None:
        self._directory = directory
        self._state_file = state_file
        self._notes_name = notes_name
        self._boot_id = notes.boot_id
        self._notes: dict[str, ClaimNote] = dict(notes.claims)
        self._notes_bytes = 0
        self._notes_syncs = 0

    @property
    def bytes_written(self) -> int:
        """Bytes handed to the file system since the start."""
        return self._state_file.bytes_written + self._notes_bytes

    @property
    def syncs(self) -> int:
        """Calls of fsync and fdatasync since the start."""
        return self._state_file.syncs + self._notes_syncs

    def write(self, changes: Changes) -> None:
        """Make ``changes`` durable. On an error (StoreError) the state file is as it was.

        Notes go first: what the manager does on the strength of a claim's entry needs the note to be there. One too
        many, after a crash in between, is dropped at the next start. For the same reason notes of claims that go are
        not worth a write.
        """
        notes = dict(self._notes)
        wanted = False
        for uid, record in changes.items():
            if record is None:
                notes.pop(uid, None)
            elif record.note != notes.get(uid, EMPTY):
                notes[uid] = record.note
                wanted = True
        if wanted:
            self.write_notes(notes)
        self._state_file.write({uid: None if record is None else record.state for uid, record in changes.items()})
        self._notes = notes

    def write_notes(self, notes: t.Mapping[str, ClaimNote]) -> None:
        """Write the notes alone. Raises StoreError."""
        content = json.dumps(Notes(self._boot_id, notes).to_fields(), indent=1).encode() + b"\n"
        self._directory.write(self._notes_name, content)
        self._notes_bytes += len(content)
        self._notes_syncs += 2

    def close(self) -> None:
        """Leave both files as any reader likes them, and close the directory."""
        try:
            self._state_file.close()
        finally:
            self._directory.close()
