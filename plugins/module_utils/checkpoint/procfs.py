# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What /proc tells about the processes of this machine, read tolerantly: processes come and go while we look.

``proc_root`` and ``fs_root`` are parameters everywhere, so that a mounted host (``/host/proc``, ``/host``) or a made-up
tree can be looked at. A process that vanished, or that we may not look at, is never an error.
"""

from __future__ import annotations

import os
import re
import typing as t
from dataclasses import dataclass

from .file_errors import StoreError, error_name, shown
from .open_directory import PathText

_KERNEL_THREAD_FLAG: t.Final = 0x00200000
_SECRET_OPTION: t.Final = re.compile(
    r"--?[\w-]*(?:token|password|passwd|secret|credential|api-?key)[\w-]*", re.IGNORECASE
)
_SHOWN_COMMAND_LENGTH: t.Final = 200
_MAX_LINKS: t.Final = 40


@dataclass(frozen=True)
class Process:
    """One process as /proc shows it.

    ``argv`` is empty for kernel threads, ``executable`` is None when we may not look, ``start_ticks`` counts clock
    ticks since the boot, see :func:`start_time`.
    """

    pid: int
    parent: int
    name: str
    argv: tuple[str, ...]
    executable: str | None
    start_ticks: int
    is_kernel_thread: bool

    @property
    def command(self) -> str:
        """The command line for people: secrets masked, cut to 200 characters."""
        return command_text(self.argv) or f"[{shown(self.name)}]"


def process_ids(proc_root: PathText = "/proc") -> list[int]:
    """Return the numbers of all visible processes, ascending; StoreError when /proc is not there."""
    try:
        names = os.listdir(proc_root)
    except OSError as error:
        raise StoreError(
            f"The running processes could not be listed: {shown(proc_root)}: {error_name(error)}.",
            "Mount /proc (mount -t proc proc /proc), then run again.",
            path=shown(proc_root),
            errno=error_name(error),
        ) from error
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())


def read_process(pid: int, proc_root: PathText = "/proc") -> Process | None:
    """Return process ``pid``; None when it is gone or only its exit status is left (zombie)."""
    base = os.path.join(proc_root, str(pid))
    # The name stands in parentheses and may hold blanks and parentheses itself.
    head, _unused, tail = _text(os.path.join(base, "stat")).rpartition(")")
    fields = tail.split()
    if len(fields) < 20 or fields[0] in ("Z", "X"):
        return None
    argv = _text(os.path.join(base, "cmdline")).rstrip("\0")
    try:
        executable: str | None = os.readlink(os.path.join(base, "exe")).removesuffix(" (deleted)")
    except OSError:
        executable = None
    return Process(
        pid=pid,
        parent=int(fields[1]),
        name=head.partition("(")[2],
        argv=tuple(argv.split("\0")) if argv else (),
        executable=executable,
        start_ticks=int(fields[19]),
        is_kernel_thread=bool(int(fields[6]) & _KERNEL_THREAD_FLAG),
    )


def processes(proc_root: PathText = "/proc") -> t.Iterator[Process]:
    """Yield every visible process by ascending number."""
    for pid in process_ids(proc_root):
        process = read_process(pid, proc_root)
        if process is not None:
            yield process


def start_time(process: Process, proc_root: PathText = "/proc") -> float | None:
    """Return when ``process`` was started, in seconds since the epoch; None when the boot time is not known."""
    match = re.search(r"^btime ([0-9]+)$", _text(os.path.join(proc_root, "stat")), re.MULTILINE)
    return int(match[1]) + process.start_ticks / os.sysconf("SC_CLK_TCK") if match else None


def masked_argv(argv: t.Sequence[str]) -> list[str]:
    """Return ``argv`` for people and logs: values of options that carry secrets are ``***``, odd characters escaped."""
    masked = []
    hide_next = False
    for word in argv:
        option, equals, _unused = word.partition("=")
        secret = _SECRET_OPTION.fullmatch(option) is not None
        masked.append("***" if hide_next else f"{shown(option)}=***" if secret and equals else shown(word))
        hide_next = secret and not equals
    return masked


def command_text(argv: t.Sequence[str]) -> str:
    """Return ``argv`` as one line for people, at most 200 characters, without secrets."""
    text = " ".join(masked_argv(argv))
    return text if len(text) <= _SHOWN_COMMAND_LENGTH else text[: _SHOWN_COMMAND_LENGTH - 3] + "..."


def has_other_root(pid: int, proc_root: PathText = "/proc", fs_root: PathText = "/") -> bool | None:
    """Tell whether ``pid`` sees another root directory than ``fs_root`` (container, chroot); None: may not look."""
    try:
        return not os.path.samestat(os.stat(os.path.join(proc_root, str(pid), "root")), os.stat(fs_root))
    except OSError:
        return None


def resolve_below(fs_root: PathText, path: str) -> str:
    """Resolve the symbolic links of the absolute ``path`` as a process with the root directory ``fs_root`` would.

    Returns an absolute path inside that root, normalised; what does not exist is kept as it is. A circle of links
    ends after 40 of them.
    """
    root = os.fspath(fs_root)
    pending = [part for part in reversed(path.split("/")) if part]
    done: list[str] = []
    links = 0
    while pending:
        part = pending.pop()
        if part == "..":
            done = done[:-1]
        elif part != ".":
            done.append(part)
            target = _link_target(inside(root, "/".join(done))) if links < _MAX_LINKS else None
            if target is not None:
                links += 1
                done = [] if target.startswith("/") else done[:-1]
                pending += [step for step in reversed(target.split("/")) if step]
    return "/" + "/".join(done)


def inside(fs_root: PathText, path: str) -> str:
    """Return where ``path``, absolute inside ``fs_root``, is seen from here."""
    return os.path.join(fs_root, path.lstrip("/"))


def _link_target(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _text(path: str) -> str:
    """Return the content of a /proc file, empty when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read())
    except OSError:
        return ""
