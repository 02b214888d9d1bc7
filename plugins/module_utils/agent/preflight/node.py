# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The node that is looked at: where its files are seen from here, and how its programs are asked for their version."""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import subprocess
import tempfile
import typing as t

from ...checkpoint.errors import DraError
from ...checkpoint.file_errors import reason, shown
from ...checkpoint.procfs import Process, has_other_root, inside, resolve_below

#: Longer than any version takes on a busy node, short enough that a program that hangs does not hold up the look.
COMMAND_TIMEOUT: t.Final = 10.0

_MAX_TEXT: t.Final = 1024 * 1024
_MAX_ANSWER: t.Final = 64 * 1024
_VERSION: t.Final = re.compile(r"(?<![\d.])v?(\d+)\.(\d+)(?:\.(\d+))?(?:[-+~][\w.+~-]*)?")


class UnreadableError(DraError):
    """A file is there and cannot be read or understood. The message is a sentence that begins with its path."""


@dataclasses.dataclass(frozen=True)
class Node:
    """``fs_root`` is where the node's root directory is seen, ``proc_root`` its /proc. Tests have made-up ones."""

    fs_root: str = "/"
    proc_root: str = "/proc"

    def place(self, path: str) -> str:
        """Where the node's ``path`` is seen from here, links followed as the node would."""
        return inside(self.fs_root, resolve_below(self.fs_root, path))

    def named(self, path: str) -> str:
        """Where the node's ``path`` is seen from here, links in it as they are."""
        return inside(self.fs_root, path)

    def own(self, path: str) -> str:
        """What the node itself calls a path that is seen from here."""
        prefix = self.fs_root.rstrip("/")
        return path[len(prefix) :] if prefix and path.startswith(f"{prefix}/") else path

    def text(self, path: str) -> str | None:
        """The content of a file, None where there is none. UnreadableError for everything else."""
        try:
            descriptor = os.open(self.place(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise UnreadableError(f"{shown(path)} is no regular file.")
                data = file.read(_MAX_TEXT + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise UnreadableError(f"{shown(path)} cannot be read: {reason(error)}.") from None
        if len(data) > _MAX_TEXT:
            raise UnreadableError(f"{shown(path)} has more than {_MAX_TEXT} bytes.")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise UnreadableError(f"{shown(path)} is no UTF-8 text.") from None

    def names_in(self, path: str) -> list[str]:
        """The names in a directory, sorted; empty where it is none. UnreadableError where it may not be read."""
        try:
            return sorted(os.listdir(self.place(path)))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise UnreadableError(f"{shown(path)} cannot be read: {reason(error)}.") from None

    def exists(self, path: str) -> bool:
        """Whether something is there."""
        return os.path.exists(self.place(path))

    def version(self, program: str, *arguments: str) -> str | None:
        """The version that a program prints (``1.7.24``, ``1.31.4+k3s1``), None where it does not or is not there."""
        return version_in(self.ask(program, *(arguments or ("--version",))))

    def ask(self, program: str, *arguments: str) -> str | None:
        """What a program of the node prints, None if it fails. Only programs that none but root can replace are run."""
        path = self.place(program)
        return answer_of([path, *arguments]) if is_trusted(path) else None

    def running_version(self, process: Process, *arguments: str) -> str | None:
        """The version of a running program, even where its file has been replaced since it was started.

        None for a program in a container, which may need the files there, and for one of another user than root.
        """
        image = os.path.join(self.proc_root, str(process.pid), "exe")
        if has_other_root(process.pid, self.proc_root, self.fs_root) is not False or not is_trusted(image):
            return None
        if self._owner_of(process) not in (0, os.geteuid()):
            return None
        # Some programs are many in one and go by the name that they are called with.
        name = process.executable or process.name
        return version_in(answer_of([name, *(arguments or ("--version",))], program=image))

    def seen_by(self, process: Process) -> Node | None:
        """The node as a process sees it: a container has another root directory. None when we may not look."""
        other = has_other_root(process.pid, self.proc_root, self.fs_root)
        if other is None:
            return None
        return Node(os.path.join(self.proc_root, str(process.pid), "root"), self.proc_root) if other else self

    def _owner_of(self, process: Process) -> int | None:
        """The user whom a process belongs to."""
        try:
            return os.stat(os.path.join(self.proc_root, str(process.pid))).st_uid
        except OSError:
            return None


def is_trusted(path: str) -> bool:
    """Whether a program belongs to root (or to us) and nobody else may write it: we run it, mostly as root."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_uid in (0, os.geteuid())
        and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        and os.access(path, os.X_OK)
    )


def answer_of(argv: t.Sequence[str], timeout: float = COMMAND_TIMEOUT, program: str | None = None) -> str | None:
    """What a command prints, None if it fails, cannot be started, or takes longer than ``timeout`` seconds.

    ``program`` is the file to run if that is not the first word. The output goes through a file, not a pipe: a child
    that outlives the command would keep a pipe open for ever.
    """
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(  # noqa: S603 - no shell, and a program that root alone can replace
                list(argv),
                executable=program,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd="/",
            )
        except OSError:
            return None
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return None
        output.seek(0)
        text = output.read(_MAX_ANSWER).decode("utf-8", "replace")
    return text if status == 0 else None


def version_in(text: str | None) -> str | None:
    """The first version in what a program printed (``1.7.24``, ``1.31.4+k3s1``), None if there is none."""
    found = _VERSION.search(text or "")
    return found[0].lstrip("v") if found else None


def release(version: str | None) -> tuple[int, int] | None:
    """Major and minor of a version, None where it is not known."""
    found = _VERSION.match(version or "")
    return (int(found[1]), int(found[2])) if found else None
