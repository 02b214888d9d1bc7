# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Failures of the file system, told to a person: which path, which error number, what to do next.

Every fact is a JSON type: ``path``, ``errno`` (the symbolic name, for example ``ENOSPC``) and what a class adds.
"""

from __future__ import annotations

import errno
import os
import typing as t

from .errors import DraError


class StoreError(DraError):
    """A state file could not be read, written, locked or copied. Unless said otherwise the file is as it was."""


class MissingFileError(StoreError):
    """There is no such file, or not even its directory. To the kubelet a missing file is an empty list."""


class NotRegularFileError(StoreError):
    """The name is taken by a directory, pipe, socket or device; it was not opened."""


class SymlinkRefusedError(StoreError):
    """The last part of the path is a symbolic link. Facts: ``path`` (the link) and ``target`` (where it points)."""


class FileTooLargeError(StoreError):
    """The file is larger than the limit of bytes. Facts: ``size`` and ``limit`` in bytes."""


class FileChangedError(StoreError):
    """Somebody else changed the file: while it was read, or since the content that a write is based on was read."""


class DirectoryChangedError(StoreError):
    """The path of an open :class:`~.store.StateDirectory` now names another directory, or none."""


class NotDurableError(StoreError):
    """The new content is in place and visible, but the disk did not confirm it: it may be gone after a power cut."""


_HINTS: t.Final[t.Mapping[int, str]] = {
    errno.ENOSPC: "Free space and inodes on that file system (df -h {d}; df -i {d}), then run again.",
    errno.EDQUOT: "The disk quota is used up: raise it or delete files (quota -s; repquota -a), then run again.",
    errno.EROFS: "The file system is mounted read-only: look for disk errors (dmesg), then remount it read-write.",
    errno.EACCES: "Run as root, or as the owner of {d}; with SELinux see its audit log (ausearch -m avc -ts recent).",
    errno.EPERM: "Run as root on the node itself; look for the immutable flag too (lsattr -d {d} {p}).",
    errno.EIO: "The disk or its file system is failing: see dmesg, and copy the state files away before anything else.",
    errno.EBUSY: "{p} may be a mount of its own (a single file mounted into a container): mount its directory instead.",
    errno.ENAMETOOLONG: "Give a shorter path.",
    errno.ELOOP: "Pass the real path, without symbolic links that lead in a circle (namei -l {p}).",
    errno.ENOTDIR: "A part of the path is a file where a directory is expected: check it (namei -l {p}).",
    errno.ENOENT: "Check the spelling and the kubelet's root directory (option --root-dir of the kubelet).",
    errno.EFBIG: "The file size limit of this process is too low (ulimit -f), raise it and run again.",
    errno.EMFILE: "Too many files are open in this process: raise its limit (ulimit -n).",
    errno.ENFILE: "Too many files are open on this machine (sysctl fs.file-max).",
    errno.ENOMEM: "The machine is out of memory: free some, then run again.",
    errno.ESTALE: "The network file system lost the file: remount it, then run again.",
    errno.ENOLCK: "The file system cannot lock (or has no lock left): keep state files on a local file system.",
}
_OTHER_HINT: t.Final = "Check the file system that holds {d} (dmesg, mount), then run again."


def shown(path: t.Any) -> str:
    """Return ``path`` as text that any terminal, log and JSON writer takes: control and broken characters escaped."""
    text = os.fsdecode(path) if isinstance(path, bytes) else str(path)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def error_name(error: OSError) -> str:
    """Return the symbolic name of the error number, such as ``ENOSPC``; ``unknown`` when there is none."""
    return errno.errorcode.get(error.errno or 0, "unknown")


def reason(error: OSError) -> str:
    """Return the system's text and the symbolic name: ``No space left on device (ENOSPC)``."""
    text = os.strerror(error.errno) if error.errno else str(error)
    return f"{text} ({error_name(error)})"


def hint_for(error: OSError, path: str) -> str:
    """Return the next step for this error number on this path."""
    text = _HINTS.get(error.errno or 0, _OTHER_HINT)
    return text.format(p=shown(path), d=shown(os.path.dirname(path) or "."))


def from_os_error(error: OSError, path: str, what_failed: str, **facts: t.Any) -> StoreError:
    """Turn ``error`` into a :class:`StoreError`: "<path> <what_failed>: <reason>." with the next step as hint.

    An ``ENOENT`` becomes :class:`MissingFileError`, so that callers can treat "no file" as a state of its own.
    """
    kind = MissingFileError if error.errno == errno.ENOENT else StoreError
    return kind(
        f"{shown(path)} {what_failed}: {reason(error)}.",
        hint_for(error, path),
        path=shown(path),
        errno=error_name(error),
        **facts,
    )


def symlink_refused(path: str, target: str) -> SymlinkRefusedError:
    """Say that ``path`` is a symbolic link to ``target`` and what to pass instead."""
    return SymlinkRefusedError(
        f"{shown(path)} is a symbolic link to {shown(target)}, expected a regular file.",
        f"Nothing was changed. Pass the real path ({shown(target)}) if that is the file you mean; "
        "note that the kubelet's next write replaces the link itself by a file.",
        path=shown(path),
        target=shown(target),
    )
