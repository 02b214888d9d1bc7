# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""State files on disk: read whole, replaced whole, durable when a call returns.

Writing follows the kubelet (a temporary named "." and digits in the same directory, fsync, rename) and adds what the
kubelet leaves out: fsync of the directory, the old file's owner, mode and labels, no write when nothing changes.
Killed at any moment, the file is the old one or the new one; at worst a ``.<digits>`` temporary stays behind, see
:mod:`.leftovers`.

Paths: directories on the way may be symbolic links (``/var/lib/kubelet`` often is) and are resolved once, when the
directory is opened; from then on everything happens relative to that open directory. The last part of a path is never
followed: a link there is refused, except by a read that asks for it. There is no state outside the objects given and
no asyncio here: long-running callers keep a :class:`StateDirectory` and call it through ``asyncio.to_thread``.
A thread cannot be interrupted: a cancelled caller must await the thread before it assumes which bytes are in place.
"""

from __future__ import annotations

import os
import secrets
import typing as t
from dataclasses import dataclass, replace

from .file_attributes import Attributes, attributes_of
from .file_content import FileContent, holds, read_content
from .file_errors import FileChangedError, MissingFileError, StoreError, from_os_error, shown
from .open_directory import OpenDirectory, PathText, check_name, split_path
from .temporary_file import UNTOUCHED, TemporaryFile

DEFAULT_LIMIT: t.Final = 256 * 1024 * 1024
"""Largest file, in bytes, that is read unless the caller says otherwise."""

Content = t.Union[bytes, bytearray, memoryview]


@dataclass(frozen=True)
class Written:
    """What a write did: ``changed`` is False when the file held these bytes already. ``path`` has no symbolic links."""

    changed: bool
    path: str


def read_file(path: PathText, *, limit: int = DEFAULT_LIMIT, follow: bool = False) -> FileContent:
    """Read the file ``path`` as one consistent whole of at most ``limit`` bytes.

    A file that is replaced meanwhile (rename) gives the old or the new content; a file that is written in place is
    read again until it holds still, at most five times. A symbolic link as the last part is refused by default and
    followed with ``follow=True``, as the kubelet itself reads: use that to inspect, never to decide where to write.
    Pipes, sockets and devices are refused without being opened.

    Raises MissingFileError, SymlinkRefusedError, NotRegularFileError, FileTooLargeError, FileChangedError, and
    StoreError for everything else.
    """
    directory, name = split_path(path)
    if follow:
        directory, name = split_path(os.path.realpath(path))
    with StateDirectory(directory) as opened:
        return replace(opened.read(name, limit=limit), path=os.fspath(path))


def write_atomic(
    path: PathText,
    data: Content,
    *,
    like: Attributes | None = None,
    unless_changed_since: FileContent | None = None,
) -> Written:
    """Replace the file ``path`` by ``data``, atomically and durably; see :meth:`StateDirectory.write`."""
    directory, name = split_path(path)
    with StateDirectory(directory) as opened:
        return opened.write(name, data, like=like, unless_changed_since=unless_changed_since)


def remove_file(path: PathText, *, unless_changed_since: FileContent | None = None) -> bool:
    """Remove the file ``path`` durably; see :meth:`StateDirectory.remove`."""
    directory, name = split_path(path)
    with StateDirectory(directory) as opened:
        return opened.remove(name, unless_changed_since=unless_changed_since)


def compare(path: PathText, data: Content) -> tuple[bool, os.stat_result]:
    """Whether the file ``path`` holds exactly ``data``, and its facts; see :meth:`StateDirectory.compare`."""
    directory, name = split_path(path)
    with StateDirectory(directory) as opened:
        return opened.compare(name, data)


def is_still(path: PathText, read: FileContent) -> bool:
    """Whether the file ``path``, which may be a symbolic link, is the one that was read, byte for byte."""
    try:
        same, facts = compare(os.path.realpath(path), read.data)
    except StoreError:
        return False
    return same and read.is_same_as(facts)


class StateDirectory(OpenDirectory):
    """An open directory of state files. Keeping it open saves a long-running writer the look-up for each write.

    Methods may be called from any thread; two writers of the same file need :mod:`.lock`. ``random_bits(count)``
    names the temporaries.
    """

    def __init__(self, path: PathText, *, random_bits: t.Callable[[int], int] = secrets.randbits) -> None:
        super().__init__(path)
        self._random_bits = random_bits

    def __enter__(self) -> StateDirectory:
        return self

    def read(self, name: str, *, limit: int = DEFAULT_LIMIT) -> FileContent:
        """Read the file ``name``, never through a link; see :func:`read_file`."""
        return read_content(self, name, limit)

    def write(
        self,
        name: str,
        data: Content,
        *,
        like: Attributes | None = None,
        unless_changed_since: FileContent | None = None,
    ) -> Written:
        """Replace the file ``name`` by ``data``; when this returns, the bytes survive a power cut.

        The new file gets owner, mode and labels of the old one, or ``like`` when given, or 0600 and an owner that
        fits the directory when there was none. When the file holds these bytes already, nothing is written, but file
        and directory are still synced (the kubelet does not sync the directory), so the promise is the same.

        ``unless_changed_since`` makes the write fail with FileChangedError when the file is no longer the one that was
        read. The check is repeated right before the rename; only a lock, or a stopped kubelet, closes the rest.

        On any error the temporary is removed and the old file is as it was; the one exception is NotDurableError,
        raised when the new file is in place but the directory could not be synced. Another name of the same inode
        (hard link) keeps the old bytes.
        """
        path = self.path_of(name)
        view = memoryview(data).cast("B")
        self.refuse_if_moved()
        present = self._present(name, view, unless_changed_since)
        if present is not None and present.same_bytes and not (like and like.differ_from(present.attributes)):
            return Written(False, path)
        wanted = like or (present.attributes if present else None)
        with TemporaryFile(self, path, self._random_bits) as temporary:
            temporary.fill(view, wanted)
            if unless_changed_since is not None:
                self._refuse_if_changed(name, unless_changed_since)
            temporary.replace(name)
        self.sync(path)
        return Written(True, path)

    def create(self, names: t.Sequence[str], data: Content, *, like: Attributes | None = None) -> str:
        """Write ``data`` to the first of ``names`` that is free, never over anything; return that name.

        The file appears complete and synced, or not at all. (On file systems without hard links its name appears
        empty for a moment.) StoreError when every name is taken.
        """
        self.refuse_if_moved()
        candidates = list(names)
        for name in candidates:
            check_name(name, self.path_of(name))
        first = self.path_of(candidates[0])
        with TemporaryFile(self, first, self._random_bits, "was not created") as temporary:
            temporary.fill(memoryview(data).cast("B"), like)
            taken = next((name for name in candidates if temporary.publish(name)), None)
            if taken is None:
                raise StoreError(
                    f"{shown(first)} was not created: this and {len(candidates) - 1} further names are taken.",
                    "Move old copies away, then run again.",
                    path=shown(first),
                )
        self.sync(self.path_of(taken))
        return taken

    def remove(self, name: str, *, unless_changed_since: FileContent | None = None) -> bool:
        """Remove the regular file ``name`` and sync the directory; return False when there was none."""
        path = self.path_of(name)
        self.refuse_if_moved()
        try:
            fd, facts = self.open_existing(name, "was not removed")
        except MissingFileError:
            return False
        os.close(fd)
        if unless_changed_since is not None and not unless_changed_since.is_same_as(facts):
            raise _changed(path)
        try:
            os.unlink(name, dir_fd=self.fileno())
        except OSError as error:
            raise from_os_error(error, path, "was not removed") from error
        self.sync(path)
        return True

    def compare(self, name: str, data: Content) -> tuple[bool, os.stat_result]:
        """Whether the file ``name`` holds exactly ``data``, and its facts.

        It is read block by block, from the disk as far as the kernel lets us choose.
        """
        fd, facts = self.open_existing(name, "could not be read back")
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            return holds(fd, facts, memoryview(data).cast("B")), facts
        except OSError as error:
            raise from_os_error(error, self.path_of(name), "could not be read back") from error
        finally:
            os.close(fd)

    def _present(self, name: str, data: memoryview, read: FileContent | None) -> _Present | None:
        """Look at the file that a write would replace; sync it when it needs no replacement. None: there is none."""
        path = self.path_of(name)
        try:
            fd, facts = self.open_existing(name, UNTOUCHED)
        except MissingFileError:
            if read is not None:
                raise _changed(path) from None
            return None
        try:
            if read is not None and not read.is_same_as(facts):
                raise _changed(path)
            attributes = attributes_of(fd, facts)
            same = holds(fd, facts, data)
            if same:
                os.fsync(fd)
        except OSError as error:
            raise from_os_error(error, path, UNTOUCHED) from error
        finally:
            os.close(fd)
        if same:
            self.sync(path)
        return _Present(attributes, same)

    def _refuse_if_changed(self, name: str, read: FileContent) -> None:
        try:
            facts = os.stat(name, dir_fd=self.fileno(), follow_symlinks=False)
        except FileNotFoundError:
            raise _changed(self.path_of(name)) from None
        if not read.is_same_as(facts):
            raise _changed(self.path_of(name))


@dataclass(frozen=True)
class _Present:
    attributes: Attributes
    same_bytes: bool


def _changed(path: str) -> FileChangedError:
    return FileChangedError(
        f"{shown(path)} is no longer the file that was read: somebody wrote or removed it meanwhile.",
        "Nothing was changed. Make sure that the kubelet is stopped, then run again.",
        path=shown(path),
    )
