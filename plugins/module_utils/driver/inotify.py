# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""File events of Linux, by the system calls of libc: a dependency for three functions would be out of proportion.

Events are hints that it is time to look; what is there is always read from the directory. So nothing breaks where
inotify is missing or its queue overflows, changes are only seen later.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import struct
import typing as t

# From <sys/inotify.h>.
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_ONLYDIR = 0x01000000
_HEADER = struct.Struct("iIII")


class Inotify:
    """Watches directories, without their subdirectories. OSError where the kernel has none to give."""

    def __init__(self) -> None:
        try:
            self._libc = ctypes.CDLL(None, use_errno=True)
            self.fd: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except AttributeError as error:
            raise OSError(f"no inotify on this system: {error}") from error
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._directories: dict[int, str] = {}

    def watch(self, directory: str) -> None:
        """Watch a directory; again for one that is watched does nothing. OSError when that is not possible."""
        mask = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _ONLYDIR
        number = self._libc.inotify_add_watch(self.fd, os.fsencode(directory), mask)
        if number < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), directory)
        self._directories[number] = directory

    def read(self) -> set[str]:
        """Take all waiting events; the paths that were removed or moved away since the last call."""
        removed = set()
        for number, mask, name in self._events():
            directory = self._directories.get(number)
            if directory is not None and mask & (_DELETE | _MOVED_FROM):
                removed.add(os.path.join(directory, name))
        return removed

    async def wait(self, seconds: float) -> None:
        """Return when there is an event to read, or after so many seconds."""
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(self.fd, readable.set)
        try:
            with contextlib.suppress(asyncio.TimeoutError):
                async with asyncio.timeout(seconds):
                    await readable.wait()
        finally:
            loop.remove_reader(self.fd)

    def _events(self) -> t.Iterator[tuple[int, int, str]]:
        while True:
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                return
            offset = 0
            while offset < len(data):
                number, mask, _cookie, length = _HEADER.unpack_from(data, offset)
                offset += _HEADER.size
                yield number, mask, os.fsdecode(data[offset : offset + length].rstrip(b"\0"))
                offset += length

    def close(self) -> None:
        os.close(self.fd)
