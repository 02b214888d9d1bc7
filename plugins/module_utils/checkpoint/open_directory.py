# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A directory held open, so that every later step happens in that very directory, whatever its path means by then."""

from __future__ import annotations

import errno
import os
import stat
import typing as t

from .file_errors import (
    DirectoryChangedError,
    NotDurableError,
    NotRegularFileError,
    StoreError,
    from_os_error,
    shown,
    symlink_refused,
)

PathText = t.Union[str, "os.PathLike[str]"]

_READ_FLAGS: t.Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
_KINDS: t.Final[t.Mapping[int, str]] = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


def split_path(path: PathText) -> tuple[str, str]:
    """Split ``path`` into a directory (``.`` when there is none) and the name of a file; StoreError if it has none."""
    text = os.fspath(path)
    directory, name = os.path.split(text)
    check_name(name, text)
    return directory or ".", name


def check_name(name: str, path: str) -> None:
    """Raise StoreError unless ``name``, the last part of ``path``, can be the name of a file inside one directory."""
    try:
        usable = name not in ("", ".", "..") and "/" not in name and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        usable = False
    if not usable:
        raise StoreError(
            f'"{shown(path)}" is not the path of a file.',
            "Give the file itself, for example /var/lib/kubelet/dra_manager_state, without a slash at the end.",
            path=shown(path),
        )


def check_directory_path(path: PathText) -> str:
    """Return ``path`` as text; StoreError when no directory can have it (empty, NUL character, not encodable)."""
    text = os.fspath(path)
    try:
        usable = text != "" and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        usable = False
    if not usable:
        raise StoreError(f'"{shown(text)}" is not the path of a directory.', "Give another path.", path=shown(text))
    return text


class OpenDirectory:
    """A directory held open; use it with ``with``, or call :meth:`close`.

    ``path`` is as given, ``resolved`` is absolute and without symbolic links. Raises StoreError (MissingFileError when
    there is no such directory). Methods may be called from any thread.
    """

    def __init__(self, path: PathText) -> None:
        self.path = check_directory_path(path)
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise from_os_error(error, self.path, "could not be opened as a directory") from error
        self.resolved = _real_name(self._fd, self.path)

    def __enter__(self) -> OpenDirectory:
        return self

    def __exit__(self, *_unused: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the directory back. Harmless when done twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def fileno(self) -> int:
        """Return the descriptor of the directory, for calls with ``dir_fd``."""
        return self._fd

    def path_of(self, name: str) -> str:
        """Return the full path of the file ``name`` in here."""
        return os.path.join(self.resolved, name)

    def open_existing(self, name: str, what_failed: str) -> tuple[int, os.stat_result]:
        """Open the regular file ``name`` for reading, without following a link; return descriptor and facts.

        Looked at before it is opened, since opening a device can have effects (a watchdog starts, a tape rewinds),
        and again afterwards, since the name may have changed its meaning in between. ``what_failed`` completes the
        sentence of an error. Raises MissingFileError, SymlinkRefusedError, NotRegularFileError, StoreError.
        """
        path = self.path_of(name)
        check_name(name, path)
        try:
            self.refuse_special(name, os.stat(name, dir_fd=self._fd, follow_symlinks=False))
            fd = os.open(name, _READ_FLAGS, dir_fd=self._fd)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise symlink_refused(path, self._link_target(name)) from error
            raise from_os_error(error, path, what_failed) from error
        try:
            facts = os.fstat(fd)
            self.refuse_special(name, facts)
        except BaseException:
            os.close(fd)
            raise
        return fd, facts

    def regular_files(self) -> t.Iterator[tuple[str, os.stat_result]]:
        """The regular files in the directory with their facts, in no order; links and what vanishes are passed over."""
        try:
            names = os.listdir(self.fileno())
        except OSError as error:
            raise from_os_error(error, self.path, "could not be listed") from error
        for name in names:
            try:
                facts = os.stat(name, dir_fd=self.fileno(), follow_symlinks=False)
            except OSError:
                continue  # gone since it was listed, or not ours to look at
            if stat.S_ISREG(facts.st_mode):
                yield name, facts

    def refuse_special(self, name: str, facts: os.stat_result) -> None:
        """Raise SymlinkRefusedError or NotRegularFileError unless ``facts`` of ``name`` are of a regular file."""
        path = self.path_of(name)
        if stat.S_ISLNK(facts.st_mode):
            raise symlink_refused(path, self._link_target(name))
        if not stat.S_ISREG(facts.st_mode):
            found = _KINDS.get(stat.S_IFMT(facts.st_mode), "something else")
            raise NotRegularFileError(
                f"{shown(path)} is {found}, expected a regular file.",
                "Nothing was changed. Give the path of the state file, or move what is there out of the way.",
                path=shown(path),
                found=found,
            )

    def refuse_if_moved(self) -> None:
        """Fail when ``path`` names another directory by now: what we wrote into the old one, nobody would read."""
        try:
            if os.path.samestat(os.stat(self.path), os.fstat(self._fd)):
                return
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                raise from_os_error(error, self.path, "could not be looked at") from error
        raise DirectoryChangedError(
            f"{shown(self.path)} is no longer the directory that was opened: it was moved, removed or mounted over.",
            "Nothing was written. Start again, so that the directory is opened anew.",
            path=shown(self.path),
        )

    def sync(self, path: str | None = None) -> None:
        """Make renames and removals in here durable; ``path`` is the file to name in an error (NotDurableError)."""
        try:
            os.fsync(self._fd)
        except OSError as error:
            # Some network and user-space file systems know no fsync of a directory; they order renames themselves.
            if error.errno in (errno.EINVAL, errno.ENOTSUP):
                return
            named = path or self.resolved
            failure = from_os_error(
                error, named, "is changed, but the disk did not confirm it (fsync of its directory)"
            )
            raise NotDurableError(failure.message, failure.hint, **failure.facts) from error

    def _link_target(self, name: str) -> str:
        try:
            return os.path.join(self.resolved, os.readlink(name, dir_fd=self._fd))
        except OSError:
            return "(gone again)"


def _real_name(fd: int, path: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return os.path.realpath(path)
