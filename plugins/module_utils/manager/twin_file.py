# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A large file that changes a few bytes at a time and is still replaced as a whole.

Two files take turns. The one that nobody can see under the real name, the twin, is brought up to date by a few small
writes and synced; then it takes the real name in one rename, and the file that had the name becomes the next twin.
Whoever opens the name finds a complete file, before and after a power cut; the cost is that of the changed bytes.

The twin was visible a moment ago, so somebody may still be reading it. The kernel tells: a write lease is granted
only on a file that nobody else has open. Without the lease, or with another name (hard link) on it, the twin is left
to its reader and a new one is written in full. So it is where the file system has no leases: slower, never wrong.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import typing as t

from ..checkpoint.file_attributes import apply_attributes, attributes_of
from ..checkpoint.file_errors import from_os_error
from ..checkpoint.store import StateDirectory
from .claim_grid import Patch

_UNTOUCHED = "was not written, it is as it was"
_CANNOT = frozenset((errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.ENOENT))
"""How a file system says that it has no hard links; ENOENT when somebody removed the file."""

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class _Twin(t.NamedTuple):
    fd: int
    name: str
    behind: list[Patch]
    """What the real file has and the twin lacks."""


class TwinFile:
    """The file ``name`` in ``directory``, of which the caller is the only writer. Not safe for two threads at a time.

    ``bytes_written`` and ``syncs`` count what was asked of the disk.
    """

    def __init__(self, directory: StateDirectory, name: str) -> None:
        self._directory = directory
        self._name = name
        self._twin_names = (f".{name}.twin-a", f".{name}.twin-b")
        self._fd = -1
        self._twin: _Twin | None = None
        self.bytes_written = 0
        self.syncs = 0
        for left_over in self._twin_names:
            self._unlink(left_over)

    def write(self, data: bytes) -> None:
        """Replace the file by ``data``, as `StateDirectory.write` does. On an error (StoreError) it is as it was."""
        self.forget()
        written = self._directory.write(self._name, data)
        self.bytes_written += len(data) if written.changed else 0
        self.syncs += 2

    def patch(self, patches: list[Patch], data: bytearray) -> bool:
        """Replace the file by itself with ``patches`` applied; ``data`` is the whole new content.

        Returns False when it cannot be done this way here: nothing has happened then, and `write` must do it. On an
        error (StoreError) the file is as it was, except for NotDurableError, and the next change must be a `write`.
        """
        try:
            self._directory.refuse_if_moved()
            done = self._open() and self._exchange(
                self._update_twin(patches, len(data)) or self._new_twin(data), patches
            )
        except OSError as error:
            self.forget()
            raise from_os_error(error, self._directory.path_of(self._name), _UNTOUCHED) from error
        except BaseException:
            self.forget()
            raise
        if not done:
            self.forget()
        return done

    def forget(self) -> None:
        """Remove the twin and let go of the file. Harmless when done twice."""
        twin, self._twin = self._twin, None
        if twin is not None:
            os.close(twin.fd)
            self._unlink(twin.name)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> bool:
        """Hold the file open that has the real name; False when there is none."""
        if self._fd < 0:
            try:
                self._fd = os.open(
                    self._name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._directory.fileno()
                )
            except FileNotFoundError:
                return False
        return True

    def _update_twin(self, patches: list[Patch], size: int) -> _Twin | None:
        """Bring the twin up to date and sync it; None when there is none that may be written to."""
        twin = self._twin
        if twin is None:
            return None
        facts = os.fstat(twin.fd)
        if facts.st_nlink != 1 or facts.st_size != size or not _lease(twin.fd):
            self._twin = None
            os.close(twin.fd)
            self._unlink(twin.name)
            return None
        try:
            # Two changes may meet in one place, so the order counts.
            for offset, content in (*twin.behind, *patches):
                _write_all(twin.fd, content, offset)
                self.bytes_written += len(content)
            os.fdatasync(twin.fd)
        finally:
            fcntl.fcntl(twin.fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        self.syncs += 1
        return twin

    def _new_twin(self, data: bytearray) -> _Twin:
        name = self._twin_names[0]
        fd = os.open(name, _CREATE, 0o600, dir_fd=self._directory.fileno())
        self._twin = twin = _Twin(fd, name, [])
        _write_all(fd, data, 0)
        apply_attributes(fd, attributes_of(self._fd))
        os.fsync(fd)
        self.bytes_written += len(data)
        self.syncs += 1
        return twin

    def _exchange(self, twin: _Twin, patches: list[Patch]) -> bool:
        """Give the twin the real name, durably; False when the file system cannot.

        The file that had the name lives on under the other twin's name.
        """
        directory = self._directory.fileno()
        spare = self._twin_names[1] if twin.name == self._twin_names[0] else self._twin_names[0]
        try:
            os.link(self._name, spare, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        except OSError as error:
            if error.errno in _CANNOT:
                return False
            raise
        try:
            os.rename(twin.name, self._name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError:
            self._unlink(spare)
            raise
        before, self._fd = self._fd, twin.fd
        self._twin = _Twin(before, spare, patches)
        self.syncs += 1
        self._directory.sync(self._directory.path_of(self._name))
        return True

    def _unlink(self, name: str) -> None:
        # A twin that cannot be removed costs disk space, nothing else; the next start tries again.
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self._directory.fileno())


def _lease(fd: int) -> bool:
    """Take a write lease on an open file, which nobody else may have open then."""
    try:
        # Somebody who opens the twin by name while the lease is held makes the kernel send us a signal. SIGIO, the
        # default, would end the process; SIGURG is ignored unless asked for.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError:
        return False
    return True


def _write_all(fd: int, content: bytes | bytearray, offset: int) -> None:
    view = memoryview(content)
    while view:
        written = os.pwrite(fd, view, offset)
        offset += written
        view = view[written:]
