# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Advisory locks that keep two writers of one state file apart.

The lock of ``dra_manager_state`` is a ``flock`` on ``dra_manager_state.lock`` in the same directory: the state file
itself is replaced by every write, so a lock on it would be a lock on a file that is gone. The lock file (mode 0600)
is never replaced or removed, since removing it would let two writers in. The kernel drops the lock when its process
dies, so what the file says about a dead holder does no harm. It holds off everybody who uses this module; the kubelet
takes no lock at all and must be stopped, NVIDIA's driver has its own lock files (:func:`take_existing_locks`).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
import typing as t

from .file_errors import StoreError, from_os_error, shown, symlink_refused
from .lock_holder import clear_holder, lock_holders, write_holder
from .open_directory import OpenDirectory, PathText, split_path

DRIVER_LOCK_NAMES: t.Final = ("pu.lock", "cp.lock")
"""Lock files of NVIDIA's driver beside its checkpoint.json, in the order in which the driver takes them."""

_FLAGS: t.Final = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FIRST_PAUSE: t.Final = 0.01
_LONGEST_PAUSE: t.Final = 0.2


class LockHeldError(StoreError):
    """Somebody else holds the lock. Facts: ``path`` (of the lock), ``waited`` in seconds, ``holders`` with pids."""


class Lock:
    """A held lock; give it back with :meth:`release` or at the end of ``with``. ``path`` is that of the lock file.

    The lock belongs to this object, not to the process: a second attempt in the same process has to wait as well.
    """

    def __init__(self, fd: int, path: str, *, shared: bool, named: bool) -> None:
        self._fd = fd
        self._named = named
        self.path = path
        self.shared = shared

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_unused: object) -> None:
        self.release()

    def release(self) -> None:
        """Give the lock back. Harmless when done twice."""
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        if self._named:
            clear_holder(fd)
        # Explicitly, not by closing alone: a forked child may have inherited the open file.
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


def lock_path(path: PathText) -> str:
    """Return the path of the lock file that guards the state file ``path``."""
    return os.fspath(path) + ".lock"


def take_lock(
    path: PathText,
    *,
    shared: bool = False,
    timeout: float = 10.0,
    clock: t.Callable[[], float] = time.monotonic,
    sleep: t.Callable[[float], None] = time.sleep,
    now: t.Callable[[], float] = time.time,
) -> Lock:
    """Take the lock that guards the state file ``path`` (which need not exist), waiting up to ``timeout`` seconds.

    Exclusive for writers; ``shared=True`` lets any number of readers in and keeps writers out. (A single read needs
    no lock: files are replaced whole.) A timeout of 0 tries once.

    Raises LockHeldError naming the holders, SymlinkRefusedError, NotRegularFileError; MissingFileError when the
    directory is missing; StoreError when the lock file cannot be made (read-only file system ...).
    """
    directory, name = split_path(lock_path(path))
    split_path(path)
    waiter = _Waiter(timeout, clock, sleep)
    with OpenDirectory(directory) as opened:
        fd = waiter.lock(opened, name, shared=shared, create=True)
        path_of_lock = opened.path_of(name)
    if not shared:
        write_holder(fd, now())
    return Lock(fd, path_of_lock, shared=shared, named=not shared)


def driver_locks(path: PathText) -> list[str]:
    """Return the lock files of NVIDIA's driver that exist beside its state file ``path``, in the order to take them."""
    directory, _unused = split_path(path)
    paths = [os.path.join(directory, name) for name in DRIVER_LOCK_NAMES]
    return [one for one in paths if os.path.lexists(one)]


def take_existing_locks(
    paths: t.Sequence[PathText],
    *,
    timeout: float = 10.0,
    clock: t.Callable[[], float] = time.monotonic,
    sleep: t.Callable[[float], None] = time.sleep,
) -> contextlib.ExitStack:
    """Take the exclusive ``flock`` of each existing lock file in turn; all or none, within ``timeout`` seconds.

    For locks that belong to somebody else (NVIDIA's ``pu.lock`` and ``cp.lock``, see :func:`driver_locks`): nothing
    is created or written. Give the outer lock first, as its owner does, or the two can block each other. The result
    releases them at the end of ``with`` or by ``close()``. Raises what :func:`take_lock` raises; MissingFileError for
    a lock file that is not there.
    """
    waiter = _Waiter(timeout, clock, sleep)
    with contextlib.ExitStack() as held:
        for path in paths:
            directory, name = split_path(path)
            with OpenDirectory(directory) as opened:
                fd = waiter.lock(opened, name, shared=False, create=False)
                held.enter_context(Lock(fd, opened.path_of(name), shared=False, named=False))
        return held.pop_all()


class _Waiter:
    """Tries until a deadline that all locks of one call share."""

    def __init__(self, timeout: float, clock: t.Callable[[], float], sleep: t.Callable[[float], None]) -> None:
        self._clock = clock
        self._sleep = sleep
        self._start = clock()
        self._deadline = self._start + timeout

    def lock(self, opened: OpenDirectory, name: str, *, shared: bool, create: bool) -> int:
        """Return an open, locked descriptor of the lock file ``name``."""
        how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
        pause = _FIRST_PAUSE
        fd = _open_lock_file(opened, name, create)
        try:
            while True:
                try:
                    fcntl.flock(fd, how)
                except BlockingIOError:
                    left = self._deadline - self._clock()
                    if left <= 0:
                        raise self._held(fd, opened.path_of(name), shared=shared) from None
                    self._sleep(min(pause, left))
                    pause = min(2 * pause, _LONGEST_PAUSE)
                else:
                    if _is_still_named(fd, opened, name):
                        return fd
                    # Somebody removed or replaced the lock file while we waited: ours guards nothing any more.
                    os.close(fd)
                    fd = -1
                    fd = _open_lock_file(opened, name, create)
        except OSError as error:
            _close(fd)
            raise from_os_error(error, opened.path_of(name), "could not be locked") from error
        except BaseException:
            _close(fd)
            raise

    def _held(self, fd: int, path: str, *, shared: bool) -> LockHeldError:
        found = lock_holders(fd, path)
        who = ", ".join(f"pid {one['pid']} ({one.get('command', 'unknown')})" for one in found)
        waited = self._clock() - self._start
        return LockHeldError(
            f"{shown(path)} is locked by {who or 'a process that cannot be seen from here (another container?)'}; "
            f"waited {waited:.1f} s for {'shared' if shared else 'exclusive'} access.",
            "Let it finish or stop it, then run again. Do not remove the lock file: the lock ends with its process.",
            path=shown(path),
            waited=round(waited, 3),
            holders=found,
        )


def _open_lock_file(opened: OpenDirectory, name: str, create: bool) -> int:
    path = opened.path_of(name)
    what_failed = "could not be opened for locking"
    try:
        with contextlib.suppress(FileNotFoundError):
            # Before it is opened: opening a device can have effects.
            opened.refuse_special(name, os.stat(name, dir_fd=opened.fileno(), follow_symlinks=False))
        fd = os.open(name, _FLAGS | (os.O_CREAT if create else 0), 0o600, dir_fd=opened.fileno())
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise symlink_refused(path, "somewhere else") from error
        raise from_os_error(error, path, what_failed) from error
    try:
        facts = os.fstat(fd)
        opened.refuse_special(name, facts)
        if create and facts.st_nlink > 1:
            # We write our name into the file: with a second name it may be a file that somebody needs.
            raise StoreError(
                f"{shown(path)} has {facts.st_nlink} names (hard links), expected 1 for a lock file.",
                "Look what else it is (find / -samefile on it), then remove this name.",
                path=shown(path),
            )
    except BaseException:
        os.close(fd)
        raise
    return fd


def _is_still_named(fd: int, opened: OpenDirectory, name: str) -> bool:
    try:
        return os.path.samestat(os.stat(name, dir_fd=opened.fileno(), follow_symlinks=False), os.fstat(fd))
    except FileNotFoundError:
        return False


def _close(fd: int) -> None:
    if fd >= 0:
        os.close(fd)
