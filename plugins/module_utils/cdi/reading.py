# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Reading one file of a spec directory without being led astray by links, pipes, size or bad bytes."""

from __future__ import annotations

import errno
import os
import stat
import typing as t
from dataclasses import dataclass

from ..checkpoint.errors import DraError

#: Far above any real spec; a file of this size still reads in a second or two.
MAX_BYTES = 8 * 1024 * 1024

#: What tells whether a file changed: device, inode, size, and both times in nanoseconds.
Signature = tuple[int, int, int, int, int]


class UnreadableFileError(DraError):
    """A file was not read; the message ends a sentence that starts with its path. ``gone`` when it vanished."""

    def __init__(self, message: str, hint: str = "", *, gone: bool = False, severity: str = "error") -> None:
        super().__init__(message, hint)
        self.gone = gone
        self.severity: t.Literal["error", "warning"] = "warning" if severity == "warning" else "error"


@dataclass(frozen=True)
class FileContent:
    """The bytes of a file with the signature they belong to."""

    data: bytes
    signature: Signature


def read_file(path: str, allowed: t.Sequence[str]) -> FileContent:
    """The content of ``path``; a symbolic link is followed only to a file inside one of the ``allowed`` real
    directories.

    Raises ``UnreadableFileError``. A pipe or device is never waited on.
    """
    target = _resolved(path, allowed)
    try:
        descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _cannot(error) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableFileError(f"is {_kind(status.st_mode)}, expected a regular file")
        if status.st_size > MAX_BYTES:
            raise UnreadableFileError(f"has {status.st_size} bytes, more than the {MAX_BYTES} read of one spec")
        data = _all_of(descriptor)
    except OSError as error:
        raise _cannot(error) from None
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise UnreadableFileError(f"grew beyond {MAX_BYTES} bytes while it was read")
    return FileContent(data, signature_of(status))


def signature_of(status: os.stat_result) -> Signature:
    """The signature of a file from its status."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _resolved(path: str, allowed: t.Sequence[str]) -> str:
    try:
        if not stat.S_ISLNK(os.lstat(path).st_mode):
            return path
        target = os.path.realpath(path)
        os.stat(target)
    except OSError as error:
        if error.errno == errno.ENOENT and os.path.islink(path):
            raise UnreadableFileError("is a symbolic link to a file that does not exist") from None
        raise _cannot(error) from None
    if not any(target.startswith(directory.rstrip("/") + "/") for directory in allowed):
        raise UnreadableFileError(
            f"is a symbolic link that leads out of the spec directories, to {ascii(target)[1:-1]}, and is not followed",
            "Runtimes do follow it. Put the file itself into the spec directory to have it checked.",
            severity="warning",
        )
    return target


def _all_of(descriptor: int) -> bytes:
    chunks = []
    left = MAX_BYTES + 1
    while left > 0:
        chunk = os.read(descriptor, min(left, 1 << 20))
        if not chunk:
            break
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def _cannot(error: OSError) -> UnreadableFileError:
    gone = error.errno == errno.ENOENT
    return UnreadableFileError("is gone" if gone else f"cannot be read: {error.strerror or error}", gone=gone)


def _kind(mode: int) -> str:
    for test, word in (
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a character device"),
        (stat.S_ISBLK, "a block device"),
    ):
        if test(mode):
            return word
    return "something else"
