# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One consistent content of a file, although others replace it or write to it at the same time."""

from __future__ import annotations

import os
import typing as t
from dataclasses import dataclass, field

from .file_attributes import Attributes, attributes_of
from .file_errors import FileChangedError, FileTooLargeError, from_os_error, shown
from .open_directory import OpenDirectory

_ATTEMPTS: t.Final = 5
_BLOCK: t.Final = 1 << 17


@dataclass(frozen=True)
class FileContent:
    """One consistent content of a file and the facts of the inode that held it.

    ``path`` is what was asked for, ``resolved`` the same file without symbolic links: what to hand to a write.
    ``mtime_ns`` is nanoseconds since the epoch, ``links`` the number of names of the inode.
    """

    path: str
    resolved: str
    data: bytes = field(repr=False)
    attributes: Attributes
    device: int
    inode: int
    mtime_ns: int
    links: int

    @property
    def mode(self) -> int:
        """Permission bits, for example 0o600."""
        return self.attributes.mode

    @property
    def uid(self) -> int | None:
        """Number of the owning user; always known for a file that was read."""
        return self.attributes.uid

    @property
    def gid(self) -> int | None:
        """Number of the owning group; always known for a file that was read."""
        return self.attributes.gid

    def is_same_as(self, facts: os.stat_result) -> bool:
        """Tell whether ``facts`` show the very inode that was read, not written to since."""
        return (self.device, self.inode, self.mtime_ns, len(self.data)) == (
            facts.st_dev,
            facts.st_ino,
            facts.st_mtime_ns,
            facts.st_size,
        )


def read_content(directory: OpenDirectory, name: str, limit: int) -> FileContent:
    """Read the file ``name`` of at most ``limit`` bytes; again when it changes meanwhile, at most five times.

    A replaced file needs no second try: what we hold open is the old content, whole. Only a writer that works in
    place can mix two contents, and it shows in size and times.
    """
    path = directory.path_of(name)
    for _unused in range(_ATTEMPTS):
        fd, before = directory.open_existing(name, "could not be read")
        try:
            data = _read_at_most(fd, before.st_size, limit, path)
            after = os.fstat(fd)
            attributes = attributes_of(fd, after)
        except OSError as error:
            raise from_os_error(error, path, "could not be read") from error
        finally:
            os.close(fd)
        if len(data) == after.st_size and _last_change(before) == _last_change(after):
            return FileContent(
                path, path, data, attributes, after.st_dev, after.st_ino, after.st_mtime_ns, after.st_nlink
            )
    raise FileChangedError(
        f"{shown(path)} was written to during each of {_ATTEMPTS} reads.",
        f"Stop the process that writes it (fuser -v {shown(path)} names it), then run again.",
        path=shown(path),
    )


def holds(fd: int, facts: os.stat_result, data: memoryview) -> bool:
    """Tell whether the open file holds exactly ``data``. Raises OSError."""
    if facts.st_size != len(data):
        return False
    place = 0
    while place < len(data):
        block = os.pread(fd, _BLOCK, place)
        if not block or block != data[place : place + len(block)]:
            return False
        place += len(block)
    return True


def _last_change(facts: os.stat_result) -> tuple[int, int, int]:
    # Not the time of the last status change: a rename over the file that we read changes that, its content stays.
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def _read_at_most(fd: int, expected: int, limit: int, path: str) -> bytes:
    """Read ``fd`` to its end; FileTooLargeError as soon as more than ``limit`` bytes are certain."""
    if expected <= limit:
        # One call for the usual case, so that the bytes are in memory once; the second one finds the end.
        chunks = [os.read(fd, expected + 1)]
        total = len(chunks[0])
        while chunks[-1] and total <= limit:
            chunks.append(os.read(fd, min(limit + 1 - total, _BLOCK)))
            total += len(chunks[-1])
        if total <= limit:
            return b"".join(chunks) if len(chunks) > 2 else chunks[0]
        expected = max(os.fstat(fd).st_size, total)
    raise FileTooLargeError(
        f"{shown(path)} has {expected} bytes, more than the limit of {limit}.",
        "A state file of 10,000 claims has about 4 MB: check that this is the file you mean, or raise the limit.",
        path=shown(path),
        size=expected,
        limit=limit,
    )
