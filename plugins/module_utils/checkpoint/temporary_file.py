# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A complete, synced file under a temporary name, waiting for the one step that shows it under its real name."""

from __future__ import annotations

import contextlib
import errno
import os
import typing as t

from .file_attributes import Attributes, apply_attributes, attributes_for_new_file
from .file_errors import StoreError, from_os_error, shown
from .open_directory import OpenDirectory

UNTOUCHED: t.Final = "was not written, it is as it was"

_CREATE_FLAGS: t.Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME_ATTEMPTS: t.Final = 100
_NO_HARD_LINKS: t.Final = frozenset((errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK))


class TemporaryFile:
    """The context of one write: the temporary exists inside it and is gone after it, whatever happens.

    ``path`` is the file to name in errors, ``what_failed`` completes their sentence. An OSError in the body becomes
    a StoreError. ``random_bits(count)`` gives the digits of the name; the kubelet's temporaries look the same.
    """

    def __init__(
        self,
        directory: OpenDirectory,
        path: str,
        random_bits: t.Callable[[int], int],
        what_failed: str = UNTOUCHED,
    ) -> None:
        self._directory = directory
        self._path = path
        self._what_failed = what_failed
        self._random_bits = random_bits
        self._name: str | None = None

    def __enter__(self) -> TemporaryFile:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        left = self._remove()
        failure = error if isinstance(error, StoreError) else None
        if isinstance(error, OSError):
            failure = from_os_error(error, self._path, self._what_failed)
        if failure is not None and left is not None:
            failure.hint += f" The temporary {left} could not be removed either: remove it by hand."
            failure.facts["leftover"] = left
        if failure is not None and failure is not error:
            raise failure from error

    def fill(self, data: memoryview, attributes: Attributes | None) -> None:
        """Write and sync the whole content with its final attributes; None means those of a new file here."""
        fd = self._create()
        try:
            _write_all(fd, data)
            self._dress(fd, attributes)
            os.fsync(fd)
        except BaseException:
            with contextlib.suppress(OSError):
                os.close(fd)
            raise
        # Not in a finally: network file systems report a full disk or quota only here.
        os.close(fd)

    def _dress(self, fd: int, attributes: Attributes | None) -> None:
        try:
            apply_attributes(fd, attributes or attributes_for_new_file(os.fstat(self._directory.fileno())))
        except OSError as error:
            raise from_os_error(
                error, self._path, f"{self._what_failed} (owner, mode or label of the new file could not be set)"
            ) from error

    def replace(self, name: str) -> None:
        """Rename over ``name``; a symbolic link that appeared there is replaced, never followed."""
        directory = self._directory.fileno()
        os.rename(self._made(), name, src_dir_fd=directory, dst_dir_fd=directory)
        self._name = None

    def publish(self, name: str) -> bool:
        """Take ``name`` unless it exists already; return False then, and the temporary stays for another try.

        Without hard links on this file system the name shows an empty file for a moment.
        """
        directory = self._directory.fileno()
        try:
            os.link(self._made(), name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            return self._publish_without_link(name)
        return True

    def _publish_without_link(self, name: str) -> bool:
        directory = self._directory.fileno()
        try:
            os.close(os.open(name, _CREATE_FLAGS, 0o600, dir_fd=directory))
        except FileExistsError:
            return False
        try:
            self.replace(name)
        except BaseException:
            os.unlink(name, dir_fd=directory)
            raise
        return True

    def _create(self) -> int:
        for _unused in range(_NAME_ATTEMPTS):
            name = f".{self._random_bits(32)}"
            try:
                fd = os.open(name, _CREATE_FLAGS, 0o600, dir_fd=self._directory.fileno())
            except FileExistsError:
                continue
            self._name = name
            return fd
        raise StoreError(
            f"{shown(self._path)} {self._what_failed}: {_NAME_ATTEMPTS} names for a temporary file are taken.",
            f"Remove left-over files named '.<digits>' from {shown(self._directory.resolved)}.",
            path=shown(self._path),
        )

    def _made(self) -> str:
        if self._name is None:
            raise StoreError(
                f"{shown(self._path)} {self._what_failed}: there is no content yet.", path=shown(self._path)
            )
        return self._name

    def _remove(self) -> str | None:
        """Remove the temporary if it is there; return its path when that fails."""
        if self._name is not None:
            try:
                os.unlink(self._name, dir_fd=self._directory.fileno())
            except FileNotFoundError:
                pass
            except OSError:
                return shown(self._directory.path_of(self._name))
        return None


def _write_all(fd: int, data: memoryview) -> None:
    # Python itself goes on after a signal; a short write (disk nearly full, more than 2 GiB) is ours to continue.
    place = 0
    while place < len(data):
        written = os.write(fd, data[place:])
        if written <= 0:
            raise OSError(errno.EIO, "nothing was written")
        place += written
