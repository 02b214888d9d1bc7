# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Who holds an advisory lock, as far as it can be known: from the kernel's list and from the lock file's own text.

The kernel's list (``/proc/locks``) is always true but leaves out processes of other PID namespaces; the text in the
file may be of a holder that died. So the text is used only where the kernel names nobody.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import typing as t

from .holders import holders
from .open_directory import PathText
from .procfs import command_text, read_process

_MAX_TEXT: t.Final = 4096


def write_holder(fd: int, now: float) -> None:
    """Write this process into the lock file ``fd``. Informative only, so failures (disk full) are ignored."""
    command = command_text(_own_argv())
    text = json.dumps({"pid": os.getpid(), "command": command, "since": _utc(now)}) + "\n"
    with contextlib.suppress(OSError):
        os.ftruncate(fd, 0)
        os.pwrite(fd, text.encode(), 0)


def clear_holder(fd: int) -> None:
    """Empty the lock file ``fd`` before the lock is given back; failures are ignored."""
    with contextlib.suppress(OSError):
        os.ftruncate(fd, 0)


def lock_holders(fd: int, path: str, proc_root: PathText = "/proc") -> list[dict[str, t.Any]]:
    """Return who holds a lock on the open file ``fd`` at ``path``: ``pid``, ``command`` and, if known, ``since``.

    Empty when nobody can be named. A ``command`` may say that the process that took the lock is gone: then a child
    that inherited the open file keeps it, and is listed too.
    """
    text = _written_holder(fd)
    pids = _pids_in_locks(fd, proc_root)
    found = []
    for pid in pids:
        process = read_process(pid, proc_root)
        one: dict[str, t.Any] = {"pid": pid, "command": process.command if process else "gone, a child holds its lock"}
        if text.get("pid") == pid and "since" in text:
            one["since"] = text["since"]
        found.append(one)
        if process is None:
            others = holders(path, proc_root=proc_root).processes
            found += [{"pid": other.pid, "command": other.command} for other in others if other.pid not in pids]
    if not found and isinstance(text.get("pid"), int):
        found.append({key: text[key] for key in ("pid", "command", "since") if isinstance(text.get(key), (int, str))})
    return found


def _pids_in_locks(fd: int, proc_root: PathText) -> list[int]:
    """Return the holders of ``flock`` locks on ``fd`` that the kernel shows in this PID namespace."""
    facts = os.fstat(fd)
    exact, same_inode = [], []
    try:
        with open(os.path.join(proc_root, "locks"), encoding="ascii", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    for line in lines:
        words = line.split()
        # "1: FLOCK ADVISORY WRITE 4711 fe:00:393227 0 EOF"; waiting ones have "->" in the second place.
        if len(words) < 6 or words[1] != "FLOCK" or not words[4].isdigit():
            continue
        device, _unused, inode = words[5].rpartition(":")
        if inode == str(facts.st_ino):
            same_inode.append(int(words[4]))
            if device == f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}":
                exact.append(int(words[4]))
    # Some file systems (btrfs, overlays) show another device number here than in stat.
    return sorted(set(exact or same_inode))


def _written_holder(fd: int) -> dict[str, t.Any]:
    try:
        found = json.loads(os.pread(fd, _MAX_TEXT, 0).decode("utf-8", "replace"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _own_argv() -> t.Sequence[str]:
    process = read_process(os.getpid())
    return process.argv if process else ()


def _utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
