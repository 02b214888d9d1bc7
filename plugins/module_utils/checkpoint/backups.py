# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Copies of a state file: made before it is changed, and found again when it has to be restored.

A backup lies beside its file as ``<file>.<time>.bak`` with the time in UTC, for example
``dra_manager_state.20260807T101112Z.bak``; a second one in the same second is ``...Z.2.bak``. Nothing here removes
or overwrites a copy.

A ring is a directory of copies, named ``<file>.<time>``, that an observing agent keeps. A file in it names the one that
they are of, so that nobody takes them for those of another one: the files of all kubelets have the same name.
"""

from __future__ import annotations

import calendar
import os
import re
import time
import typing as t
from dataclasses import dataclass

from .file_content import FileContent
from .file_errors import StoreError, shown
from .open_directory import OpenDirectory, PathText, split_path
from .store import StateDirectory

_STAMP: t.Final = re.compile(r"(?<![0-9])([0-9]{8}T[0-9]{6})(?:[.,]([0-9]{1,9}))?Z(?:\.([0-9]{1,6})\.bak)?")
_OURS: t.Final = re.compile(r"\.[0-9]{8}T[0-9]{6}Z(?:\.[0-9]{1,6})?\.bak")
_MAX_CLASHES: t.Final = 1000
DEFAULT_RING: t.Final = "/var/lib/nodeops-dra/ring"
RING_SOURCE: t.Final = ".source"
"""The file in a ring that holds the path, without symbolic links on the way, of the file whose copies are there."""
# What people and Ansible's own backup option leave behind; never what the lock or a temporary is called.
_HAND_MADE: t.Final = (".bak", ".backup", ".old", ".orig", ".save", "~")


@dataclass(frozen=True)
class Backup:
    """A copy that may be restored; whether it is a good one, only its content tells.

    ``origin``: ``backup`` (made by :func:`make_backup`), ``ring`` (found in the ring directory) or ``copy`` (another
    copy beside the file, made by hand or by Ansible). ``recorded_at`` is in seconds since the epoch, taken from the
    name if ``time_in_name``, else the time of the last write.
    """

    path: str
    origin: str
    recorded_at: float
    time_in_name: bool
    counter: int
    size: int


def make_backup(path: PathText, *, content: FileContent | None = None, now: t.Callable[[], float] = time.time) -> str:
    """Copy the file ``path`` to a new name beside it and return the full path of the copy.

    The copy has the owner, mode and labels of the original, is synced, and was read back and compared when this
    returns. ``content``, when given, is what was read before: the copy then holds exactly what was diagnosed, even if
    the file changed since. On any error (disk full ...) nothing is left behind and the original is untouched.

    Raises what :func:`~.store.read_file` raises, and StoreError.
    """
    directory, name = split_path(path)
    with StateDirectory(directory) as opened:
        original = opened.read(name) if content is None else content
        first = stamped(name, now())
        names = [f"{first}.bak", *(f"{first}.{n}.bak" for n in range(2, _MAX_CLASHES))]
        made = opened.create(names, original.data, like=original.attributes)
        try:
            _verify(opened, made, original.data)
        except StoreError:
            opened.remove(made)
            raise
        return opened.path_of(made)


def stamped(name: str, seconds: float) -> str:
    """The file name ``name`` with a time, in seconds since the epoch: what a copy in a ring is called."""
    return f"{name}.{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(seconds))}"


def ring_of(path: PathText, ring: PathText | None = None) -> str | None:
    """The directory ``ring`` (`DEFAULT_RING` unless given) if copies of the file ``path`` are kept there, else None."""
    directory = os.fspath(DEFAULT_RING if ring is None else ring)
    try:
        with StateDirectory(directory) as opened:
            source = opened.read(RING_SOURCE).data
    except StoreError:
        return None
    return directory if os.fsdecode(source).rstrip("\n") == source_path(path) else None


def source_path(path: PathText) -> str:
    """The path as a ring names it: the file may be missing or a link, its directory is the real one."""
    directory, name = split_path(path)
    return os.path.join(os.path.realpath(directory), name)


def list_backups(path: PathText, *, ring: PathText | None = None) -> list[Backup]:
    """List the copies of the file ``path``, newest first: those beside it and those in the directory ``ring``.

    The ring may hold copies of several files: when some of its names start with the name of this file, the others
    are left out. Hidden files and links are ignored. Raises StoreError when a directory cannot be read
    (MissingFileError when there is none); the file itself need not exist.
    """
    directory, name = split_path(path)
    found = _copies_in(directory, lambda other: _origin_beside(name, other))
    if ring is not None:
        copies = _copies_in(ring, lambda other: None if other.startswith(".") else "ring")
        named = [one for one in copies if os.path.basename(one.path).startswith(name)]
        found += named or copies
    return sorted(found, key=lambda one: (one.recorded_at, one.counter, one.path), reverse=True)


def recorded_time(name: str) -> tuple[float, int] | None:
    """Return the UTC time in ``name`` (seconds since the epoch) and its counter (1 if none); None without a time."""
    match = _STAMP.search(name)
    if match is None:
        return None
    try:
        seconds = calendar.timegm(time.strptime(match[1], "%Y%m%dT%H%M%S"))
    except ValueError:
        return None
    fraction = int((match[2] or "0").ljust(9, "0")) / 1e9
    return seconds + fraction, int(match[3] or 1)


def _verify(opened: StateDirectory, name: str, expected: bytes) -> None:
    """Read the copy back and compare."""
    if not opened.compare(name, expected)[0]:
        raise StoreError(
            f"The backup {shown(opened.path_of(name))} differs from its original when read back; it was removed.",
            "The disk may be failing: see dmesg, and copy the original to another disk before anything else.",
            path=shown(opened.path_of(name)),
        )


def _origin_beside(name: str, other: str) -> str | None:
    rest = other[len(name) :] if other.startswith((name + ".", name + "-", name + "~")) else ""
    if not rest.endswith(_HAND_MADE):
        return None
    return "backup" if _OURS.fullmatch(rest) else "copy"


def _copies_in(directory: PathText, origin_of: t.Callable[[str], str | None]) -> list[Backup]:
    found = []
    with OpenDirectory(directory) as opened:
        for name, facts in opened.regular_files():
            origin = origin_of(name)
            if origin is not None:
                stamp = recorded_time(name)
                when, counter = stamp or (facts.st_mtime, 1)
                found.append(Backup(opened.path_of(name), origin, when, stamp is not None, counter, facts.st_size))
    return found
