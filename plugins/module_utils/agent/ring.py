# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A ring of last good copies of one state file, from which ``restored`` of the module checkpoint goes back.

A copy appears whole and synced or not at all, and is never written to again. So whenever the writer is killed the ring
holds good copies; at worst a temporary stays, or a copy beside its successor, and both are gone after the next store.
"""

from __future__ import annotations

import dataclasses
import os
import time
import typing as t

from ..checkpoint.backups import RING_SOURCE, recorded_time, stamped
from ..checkpoint.errors import DraError
from ..checkpoint.file_errors import MissingFileError, StoreError, from_os_error
from ..checkpoint.leftovers import remove_stale, stale_temporaries
from ..checkpoint.store import StateDirectory
from .kubelet_state import judge


@dataclasses.dataclass(frozen=True)
class RingLimits:
    """How much is kept: number of copies, bytes of all of them, and seconds. The newest good copy always is."""

    copies: int = 20
    size: int = 64 * 1024 * 1024
    age: float = 30 * 86400.0


@dataclasses.dataclass(frozen=True)
class Copy:
    """One copy. ``made`` is wall time in seconds, from its name. ``problem`` says why it will not do any more."""

    name: str
    made: int
    size: int
    key: str
    problem: str = ""


class ForeignRingError(DraError):
    """The directory holds copies of another file. Facts: ``ring``, ``expected``, ``found``."""


class Ring:
    """The ring in ``directory`` of the file ``source``. Its methods block and raise `DraError`; one call at a time.

    The directory is read again by each call, so that it may be cleared or replaced at any time. Files whose names are
    not ours are left alone. ``now`` is wall time.
    """

    def __init__(
        self, directory: str, source: str, limits: RingLimits, *, now: t.Callable[[], float] = time.time
    ) -> None:
        self.directory = directory
        self.copies: tuple[Copy, ...] = ()
        self._source = source
        self._name = os.path.basename(source)
        self.limits = limits
        self._now = now
        self._read: dict[tuple[str, int, int], Copy] = {}

    @property
    def newest(self) -> Copy | None:
        """The copy to go back to: the newest that is good."""
        return next((copy for copy in self.copies if not copy.problem), None)

    def refresh(self) -> None:
        """Make the directory if it is missing, remove what a killed writer left, forget what is too much."""
        with self._opened() as directory:
            self._tidy(directory)

    def store(self, data: bytes, key: str) -> str | None:
        """Keep a good content; the path of the copy, None when the newest one holds the same.

        An older copy of the same content makes room for the new one: the newest name must be the newest content.
        """
        with self._opened() as directory:
            newest = self.newest
            if newest is not None and newest.key == key:
                self._tidy(directory)
                return None
            last = max((copy.made for copy in self.copies), default=0)
            # A clock that was set back must not make the newest copy look old.
            name = stamped(self._name, max(int(self._now()), last + 1))
            directory.create([name], data)
            self._load(directory)
            self._tidy(directory)
            return directory.path_of(name)

    def _opened(self) -> StateDirectory:
        try:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
        except OSError as error:
            raise from_os_error(error, self.directory, "could not be made as directory of copies") from error
        directory = StateDirectory(self.directory)
        try:
            self._claim(directory)
            remove_stale(directory.path, stale_temporaries(directory.path), min_age=0.0)
            self._load(directory)
        except BaseException:
            directory.close()
            raise
        return directory

    def _claim(self, directory: StateDirectory) -> None:
        """Write down whose copies these are, or make sure that they are those of our file."""
        try:
            found = os.fsdecode(directory.read(RING_SOURCE).data).rstrip("\n")
        except MissingFileError:
            directory.write(RING_SOURCE, os.fsencode(f"{self._source}\n"))
            return
        if found != self._source:
            raise ForeignRingError(
                f"The ring {self.directory} holds copies of {found}, not of {self._source}.",
                "Move the directory away if that file is of no use any more; it is made anew then.",
                ring=self.directory,
                expected=self._source,
                found=found,
            )

    def _load(self, directory: StateDirectory) -> None:
        """Read the copies that were not read before, each once."""
        known: dict[tuple[str, int, int], Copy] = {}
        for name, facts in directory.regular_files():
            recorded = recorded_time(name)
            if recorded is None or name != stamped(self._name, recorded[0]):
                continue
            identity = (name, facts.st_ino, facts.st_mtime_ns)
            known[identity] = self._read.get(identity) or _copy(directory, name, int(recorded[0]), facts.st_size)
        self._read = known
        self.copies = tuple(sorted(known.values(), key=lambda copy: copy.made, reverse=True))

    def _tidy(self, directory: StateDirectory) -> None:
        """Remove older copies of the same content, and the oldest ones beyond the limits."""
        dropped = list(self._repeated())
        kept = [copy for copy in self.copies if copy not in dropped]
        oldest_allowed = self._now() - self.limits.age
        for copy in kept[::-1]:
            size = sum(one.size for one in kept)
            too_much = len(kept) > self.limits.copies or size > self.limits.size
            if not too_much and copy.made >= oldest_allowed:
                break
            if copy is not self.newest:
                kept.remove(copy)
                dropped.append(copy)
        for copy in dropped:
            directory.remove(copy.name)
        if dropped:
            self._load(directory)

    def _repeated(self) -> t.Iterator[Copy]:
        seen: set[str] = set()
        for copy in self.copies:
            if not copy.problem and copy.key in seen:
                yield copy
            seen.add(copy.key)


def _copy(directory: StateDirectory, name: str, made: int, size: int) -> Copy:
    try:
        state = judge(name, directory.read(name).data)
    except StoreError as error:
        return Copy(name, made, size, "", error.message)
    return Copy(name, made, size, state.key, state.problem)
