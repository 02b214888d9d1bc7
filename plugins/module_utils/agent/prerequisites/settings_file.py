# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Settings files of programs that are not ours: read, planned, checked, then replaced all at once, with a backup.

The backup ``<file>.nodeops-dra.bak`` is the file without our lines. It goes when the file is that again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import typing as t

from ...checkpoint.errors import DraError
from ...checkpoint.file_attributes import Attributes, attributes_for_new_file
from ...checkpoint.file_content import FileContent
from ...checkpoint.file_errors import MissingFileError, reason, shown
from ...checkpoint.store import StateDirectory, read_file, remove_file, write_atomic
from ..preflight.node import Node
from .marked_lines import is_ours, made_directory, without_marks

_BACKUP: t.Final = ".nodeops-dra.bak"
#: No pattern of imports (``*.toml``) takes a file with this ending.
_CANDIDATE: t.Final = ".nodeops-dra.check"
_LIMIT: t.Final = 1024 * 1024

Check = t.Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class SettingsFile:
    """A file as it is: ``plain`` is its text without our lines, None where it would not be there without us."""

    path: str
    text: str | None
    plain: str | None
    content: FileContent | None

    @classmethod
    def read(cls, path: str) -> SettingsFile:
        """Read the file, through links. StoreError for one that cannot be read, DraError for one that is no text."""
        try:
            content = read_file(path, limit=_LIMIT, follow=True)
        except MissingFileError:
            return cls(path, None, None, None)
        try:
            text = content.data.decode("utf-8")
        except UnicodeDecodeError:
            raise DraError(f"{shown(path)} is no UTF-8 text.", "Nothing was changed. Look at the file.") from None
        return cls(path, text, None if is_ours(text) else without_marks(text), content)


@dataclasses.dataclass(frozen=True)
class Change:
    """What becomes of a file; ``after`` is None where it is removed, ``backup`` whether one is kept or made."""

    file: SettingsFile
    after: str | None

    @property
    def is_needed(self) -> bool:
        """Whether anything is written."""
        return self.after != self.file.text or (self._is_restored and self._backup_is_spent())

    @property
    def action(self) -> str:
        """For a person and for playbooks."""
        if self.after is None:
            return "removed"
        return "created" if self.file.text is None else "restored" if self._is_restored else "changed"

    @property
    def backup(self) -> str | None:
        """The backup that is there afterwards; None for a file that is ours or back to what it was."""
        kept = self.after is not None and self.file.plain is not None and not self._is_restored
        return f"{self.file.path}{_BACKUP}" if kept else None

    @property
    def _is_restored(self) -> bool:
        return self.after is not None and self.after == self.file.plain

    def to_dict(self) -> dict[str, t.Any]:
        """As a module returns it."""
        return {"path": self.file.path, "action": self.action, "backup": self.backup}

    def _backup_is_spent(self) -> bool:
        saved = SettingsFile.read(f"{self.file.path}{_BACKUP}").text
        return saved is not None and saved == self.file.plain

    def apply(self) -> None:
        """Write it. Whatever fails leaves the file as it was."""
        real = os.path.realpath(self.file.path)
        if self.after is None:
            self._remove(real)
            return
        attributes = self.file.content.attributes if self.file.content is not None else None
        new_backup = False
        if self.backup is not None and self.file.plain is not None:
            new_backup = not os.path.lexists(f"{real}{_BACKUP}")
            write_atomic(f"{real}{_BACKUP}", self.file.plain.encode(), like=attributes)
        try:
            with self._directory(real) as directory:
                like = attributes or readable(directory)
                write_atomic(real, self.after.encode(), like=like, unless_changed_since=self.file.content)
        except DraError:
            if new_backup:
                remove_file(f"{real}{_BACKUP}")
            raise
        if self._is_restored and self._backup_is_spent():
            remove_file(f"{real}{_BACKUP}")

    def _remove(self, real: str) -> None:
        remove_file(real, unless_changed_since=self.file.content)
        if self.file.text is not None and made_directory(self.file.text):
            with contextlib.suppress(OSError):  # others use it by now
                os.rmdir(os.path.dirname(real))

    def _directory(self, real: str) -> StateDirectory:
        parent = os.path.dirname(real)
        if self.after is not None and made_directory(self.after):
            try:
                os.makedirs(parent, mode=0o755, exist_ok=True)
            except OSError as error:
                raise DraError(f"{shown(parent)} was not made: {reason(error)}.", "Make it by hand.") from None
        return StateDirectory(parent)


def readable(directory: StateDirectory) -> Attributes:
    """The attributes of a new settings file: as of any new file there, and everybody may read it."""
    return dataclasses.replace(attributes_for_new_file(os.fstat(directory.fileno())), mode=0o644)


@dataclasses.dataclass(frozen=True)
class PlannedNode(Node):
    """The node as it will be, with files that are not written yet; None is a file that is removed."""

    planned: t.Mapping[str, str | None] = dataclasses.field(default_factory=dict)

    def text(self, path: str) -> str | None:
        """As in Node."""
        return self.planned[path] if path in self.planned else super().text(path)

    def names_in(self, path: str) -> list[str]:
        """As in Node."""
        names = set(super().names_in(path))
        for file, text in self.planned.items():
            if os.path.dirname(file) == path.rstrip("/"):
                (names.discard if text is None else names.add)(os.path.basename(file))
        return sorted(names)


def check_candidate(change: Change, check: Check) -> None:
    """Let ``check`` look at the new content in a file of its own beside the real one, before that is touched."""
    if change.after is None or made_directory(change.after):
        return
    candidate = f"{os.path.realpath(change.file.path)}{_CANDIDATE}"
    attributes = change.file.content.attributes if change.file.content is not None else None
    write_atomic(candidate, change.after.encode(), like=attributes)
    try:
        check(candidate)
    finally:
        remove_file(candidate)


def apply_all(
    changes: t.Sequence[Change], check: Check | None = None, verify: t.Callable[[], None] | None = None
) -> None:
    """Check every change, make them all, and verify the result; when one fails, all that was made is taken back."""
    if check is not None:
        for change in changes:
            check_candidate(change, check)
    made: list[Change] = []
    try:
        for change in changes:
            change.apply()
            made.append(change)
        if verify is not None:
            verify()
    except DraError:
        for change in reversed(made):
            with contextlib.suppress(DraError):
                _take_back(change)
        raise


def _take_back(change: Change) -> None:
    real = os.path.realpath(change.file.path)
    if change.file.text is not None:
        write_atomic(real, change.file.text.encode())
        if change.file.plain == change.file.text and change.backup is not None:
            remove_file(f"{real}{_BACKUP}")
    elif change.after is not None:
        Change(dataclasses.replace(change.file, text=change.after, content=None), None).apply()
