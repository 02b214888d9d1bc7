# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Starting from the files of a node: the lock, the state file, the notes, and what to do when one of them fails."""

from __future__ import annotations

import contextlib
import os
import typing as t
from dataclasses import dataclass, field

from ..checkpoint.errors import DraError
from ..checkpoint.file_errors import StoreError
from ..checkpoint.findings import Finding
from ..checkpoint.leftovers import remove_stale, stale_temporaries
from ..checkpoint.lock import Lock, LockHeldError, take_lock
from ..checkpoint.store import StateDirectory
from .cdi_check import CdiPolicy
from .durable_claims import Changes, DurableClaims, Record
from .failures import Backoff
from .forgetting import AuditLog
from .loading import StateDamagedError, load
from .notes import Notes
from .state_file import StateFile

_OLD = 60.0
"""Seconds after which nobody still writes a temporary file."""

DEFAULT_TIMEOUT = 45.0
"""Seconds for one prepare or unprepare, all waiting included (the kubelet's limit for one call)."""


@dataclass(frozen=True)
class Settings:
    """Where a manager keeps its files and how long it waits. Durations are seconds.

    ``deterministic_names`` is for clusters up to 1.27, whose generated claims have no random suffix. ``cdi_policy``
    says what a prepared CDI name is that does not resolve in ``cdi_directories`` (None: those that runtimes read by
    default). With ``own_directory`` nobody else writes to the directory: whatever a killed writer left there goes at
    once, else only what is old enough to be nobody's work.
    """

    directory: str
    state_name: str = "dra_manager_state"
    notes_name: str = "dra_manager_notes"
    audit_name: str = "dra_manager_audit.log"
    timeout: float = DEFAULT_TIMEOUT
    lock_timeout: float = 10.0
    backoff: Backoff = field(default_factory=Backoff)
    deterministic_names: bool = False
    cdi_policy: CdiPolicy = "warn"
    cdi_directories: tuple[str, ...] | None = None
    own_directory: bool = False

    @property
    def state_path(self) -> str:
        """Path of the state file."""
        return os.path.join(self.directory, self.state_name)


@dataclass
class ManagerFiles:
    """The open files of a manager, and what was in them.

    ``damaged`` says why the state cannot be used at all, ``unwritable`` why it can only be read. Either way nothing is
    ever written through these files and nobody is kept from mending them: the lock is free.
    """

    directory: StateDirectory
    audit: AuditLog
    records: dict[str, Record] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    durable: DurableClaims | None = None
    lock: Lock | None = None
    damaged: DraError | None = None
    unwritable: DraError | None = None

    def write(self, changes: Changes) -> None:
        """Make changes durable; raises DraError. Blocks."""
        if self.damaged is not None:
            raise self.damaged
        if self.unwritable is not None:
            raise self.unwritable
        if self.durable is None:
            raise DraError("The manager is closed, nothing was recorded.", "Start it again.")
        self.durable.write(changes)

    def close(self) -> None:
        """Leave the files tidy and give the lock back. Harmless when done twice. Blocks."""
        durable, self.durable = self.durable, None
        try:
            if durable is not None:
                durable.close()
        finally:
            self.directory.close()
            if self.lock is not None:
                self.lock.release()


def open_files(settings: Settings, boot_id: str, *, now: t.Callable[[], float]) -> ManagerFiles:
    """Take the lock and read the files. Blocks.

    Raises LockHeldError when another manager works on them, StoreError when there is no such directory. Everything else
    gives files that say what is wrong with them.
    """
    directory = StateDirectory(settings.directory)
    files = ManagerFiles(directory, AuditLog(directory, settings.audit_name, now=now))
    try:
        files.lock = take_lock(settings.state_path, timeout=settings.lock_timeout)
    except LockHeldError:
        directory.close()
        raise
    except StoreError as error:
        # A full or read-only disk must not take away what is prepared: it can still be handed to containers.
        files.unwritable = error
        files.findings.append(_not_writable(settings, error))
    if files.lock is not None:
        _remove_left_over(settings)
    try:
        loaded = load(directory, settings.state_name, settings.notes_name, boot_id)
    except StoreError as error:
        files.damaged = error
    except StateDamagedError as error:
        files.damaged = error
    else:
        files.records = loaded.records
        files.findings += loaded.findings
        if files.lock is not None:
            _make_durable(settings, files, loaded.notes, loaded.notes != loaded.stored_notes)
    if files.damaged is not None:
        finding = Finding(
            "state_damaged",
            "error",
            settings.state_path,
            files.damaged.message,
            files.damaged.hint,
            files.damaged.facts,
        )
        files.findings.append(finding)
    if files.durable is None and files.lock is not None:
        files.lock.release()
        files.lock = None
    return files


def _remove_left_over(settings: Settings) -> None:
    """Remove files that were half written when their writer was killed, or an agent that dies often fills the disk."""
    left = [one for one in stale_temporaries(settings.directory) if one.kind == "checkpoint"]
    with contextlib.suppress(StoreError):  # harmless where they are
        remove_stale(settings.directory, left, min_age=0.0 if settings.own_directory else _OLD)


def _make_durable(settings: Settings, files: ManagerFiles, notes: Notes, notes_changed: bool) -> None:
    state_file = StateFile(files.directory, settings.state_name, [record.state for record in files.records.values()])
    files.durable = DurableClaims(files.directory, state_file=state_file, notes_name=settings.notes_name, notes=notes)
    if notes_changed:
        try:
            files.durable.write_notes(notes.claims)
        except StoreError as error:
            files.durable, files.unwritable = None, error
            files.findings.append(_not_writable(settings, error))


def _not_writable(settings: Settings, error: DraError) -> Finding:
    place = str(error.facts.get("path", settings.directory))
    return Finding("state_not_writable", "error", place, error.message, error.hint, error.facts)
