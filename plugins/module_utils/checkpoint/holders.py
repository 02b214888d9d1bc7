# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which processes hold a file open, found through /proc by device and inode, so that any name of the file counts.

The kubelet opens its state file only for the moment of a read or write: "nobody holds it" does not mean that no
kubelet runs. Ask :mod:`.kubelet` for that.
"""

from __future__ import annotations

import os
import typing as t
from dataclasses import dataclass

from .file_errors import from_os_error
from .open_directory import PathText, split_path
from .procfs import process_ids, read_process

_WRITE_MODES: t.Final = (os.O_WRONLY, os.O_RDWR)


@dataclass(frozen=True)
class Holder:
    """A process that has the file open; ``command`` is for people, ``writing`` tells whether it may write to it."""

    pid: int
    command: str
    writing: bool

    def as_facts(self) -> dict[str, t.Any]:
        """Return JSON types: ``pid``, ``command``, ``writing``."""
        return {"pid": self.pid, "command": self.command, "writing": self.writing}


@dataclass(frozen=True)
class Holders:
    """Who holds a file open, ascending by process number; ``unseen`` counts the processes that we may not look at.

    Kernel threads do not count. Processes that /proc hides altogether (mount option ``hidepid``, another PID
    namespace) cannot be counted at all: run as root on the host to be sure.
    """

    processes: tuple[Holder, ...]
    unseen: int

    def __bool__(self) -> bool:
        return bool(self.processes)

    def describe(self) -> str:
        """Return one sentence for people, including how many processes could not be looked at."""
        held = ", ".join(f"pid {one.pid} ({one.command}{', writing' if one.writing else ''})" for one in self.processes)
        text = f"held open by {held}" if held else "held open by no process that could be looked at"
        return f"{text}; could not look at {self.unseen} processes, run as root to see them" if self.unseen else text


def holders(path: PathText, *, proc_root: PathText = "/proc", ignore_pids: t.Container[int] = ()) -> Holders:
    """Find the processes, other than this one and ``ignore_pids``, that hold the file ``path`` open.

    A symbolic link is followed; a missing file has no holders. StoreError when the file or /proc cannot be looked at.
    """
    split_path(path)
    try:
        wanted = os.stat(path)
    except FileNotFoundError:
        return Holders((), 0)
    except OSError as error:
        raise from_os_error(error, os.fspath(path), "could not be looked at") from error
    found = []
    unseen = 0
    for pid in process_ids(proc_root):
        if pid == os.getpid() or pid in ignore_pids:
            continue
        base = os.path.join(proc_root, str(pid))
        try:
            descriptors = _descriptors_of(base, wanted)
        except PermissionError:
            process = read_process(pid, proc_root)
            unseen += process is not None and not process.is_kernel_thread
            continue
        if descriptors:
            process = read_process(pid, proc_root)
            writing = any(_may_write(base, descriptor) for descriptor in descriptors)
            found.append(Holder(pid, process.command if process else "gone meanwhile", writing))
    return Holders(tuple(found), unseen)


def _descriptors_of(base: str, wanted: os.stat_result) -> list[str]:
    """Return the descriptors below ``base`` that refer to the file ``wanted``; PermissionError when not allowed."""
    directory = os.path.join(base, "fd")
    try:
        names = os.listdir(directory)
    except PermissionError:
        raise
    except OSError:
        # The process is gone.
        return []
    matching = []
    for name in names:
        path = os.path.join(directory, name)
        try:
            # Looking at the text first spares a stat of every socket and pipe, most of what is open.
            if os.readlink(path).startswith("/") and os.path.samestat(os.stat(path), wanted):
                matching.append(name)
        except OSError:
            continue
    return matching


def _may_write(base: str, descriptor: str) -> bool:
    try:
        with open(os.path.join(base, "fdinfo", descriptor), encoding="ascii", errors="replace") as file:
            flags = next((line.split()[1] for line in file if line.startswith("flags:")), "0")
        return int(flags, 8) & os.O_ACCMODE in _WRITE_MODES
    except (OSError, ValueError, IndexError):
        return False
