# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Spec directories: one spelling for each, which are the same, and whether all sides use the same ones."""

from __future__ import annotations

import os
import stat
import typing as t
from dataclasses import dataclass

from ..checkpoint.errors import DraError
from ..checkpoint.findings import Finding
from . import codes
from .names import quoted

#: What container runtimes read unless they are told otherwise; a later directory has the higher priority.
DEFAULT_DIRECTORIES = ("/etc/cdi", "/var/run/cdi")


@dataclass(frozen=True)
class SpecDirectory:
    """A spec directory: the tidied spelling, the path without symbolic links; a higher priority wins."""

    path: str
    real_path: str
    priority: int


def normalised(directory: str) -> str:
    """The directory without trailing slash, double slashes and dots; blanks inside stay. Links are not followed.

    Raises ``DraError`` for a relative path, since it would mean something else to each process.
    """
    if not directory or not directory.startswith("/") or "\x00" in directory:
        raise DraError(
            f"The CDI directory {quoted(directory)} is not an absolute path.",
            "Give it as in the runtime's configuration, such as /var/run/cdi.",
            directory=directory.replace("\x00", "?")[:200],
        )
    return "/" + os.path.normpath(directory).lstrip("/")


def spec_directories(directories: t.Iterable[str] | None = None) -> tuple[SpecDirectory, ...]:
    """The directories in rising priority, each once; the defaults when none are given.

    Two spellings of one directory (/run/cdi and /var/run/cdi where the one links to the other) would make every device
    conflict with itself or shadow itself, so the one of higher priority stands for both.
    """
    by_real_path: dict[str, str] = {}
    for directory in directories if directories is not None else DEFAULT_DIRECTORIES:
        path = normalised(directory)
        real_path = os.path.realpath(path)
        by_real_path.pop(real_path, None)
        by_real_path[real_path] = path
    return tuple(SpecDirectory(path, real, priority) for priority, (real, path) in enumerate(by_real_path.items()))


def same_directory(one: str, other: str) -> bool:
    """Whether two paths mean the same directory, existing or not, through whatever links and mounts."""
    first, second = normalised(one), normalised(other)
    if os.path.realpath(first) == os.path.realpath(second):
        return True
    try:
        return os.path.samefile(first, second)
    except OSError:
        return False


def directory_findings(directory: str, *, must_write: bool = False) -> list[Finding]:
    """What is wrong with one spec directory: missing, not a directory, a link, not readable or not writable."""
    path = normalised(directory)
    try:
        entry, target = os.lstat(path), os.stat(path)
    except FileNotFoundError:
        return [
            Finding(
                codes.DIRECTORY_MISSING,
                "error" if must_write else "info",
                printable(path),
                f"The CDI directory {printable(path)} does not exist.",
                "Create it with mode 0755, owned by root, or correct the setting that names it.",
                {"directory": printable(path)},
            )
        ]
    except OSError as error:
        return [unreadable(path, f"cannot be looked at: {error.strerror}")]
    if not stat.S_ISDIR(target.st_mode):
        return [unreadable(path, "is not a directory")]
    findings = []
    if stat.S_ISLNK(entry.st_mode):
        findings.append(
            Finding(
                codes.IGNORED_DIRECTORY,
                "warning",
                printable(path),
                f"{printable(path)} is a symbolic link to {printable(os.path.realpath(path))}: the CDI library "
                "that runtimes "
                "use does not follow it and finds no specs there.",
                "Name the real directory in the runtime's cdi_spec_dirs, or bind-mount it instead of linking it.",
                {"directory": printable(path), "target": printable(os.path.realpath(path))},
            )
        )
    if not os.access(path, os.R_OK | os.X_OK):
        findings.append(unreadable(path, "cannot be read by this user"))
    if must_write and not os.access(path, os.W_OK | os.X_OK):
        findings.append(
            Finding(
                codes.DIRECTORY_NOT_WRITABLE,
                "error",
                printable(path),
                f"The CDI directory {printable(path)} cannot be written, so no claim can be prepared into it.",
                "Immutable hosts keep /etc read-only: point the driver and the runtime to a writable directory such as "
                "/var/run/cdi.",
                {"directory": printable(path)},
            )
        )
    return findings


def directory_mismatches(
    runtime: t.Sequence[str],
    *,
    drivers: t.Mapping[str, str] | None = None,
    ours: t.Sequence[str] | None = None,
) -> list[Finding]:
    """Directories that one side uses and the runtime does not read.

    ``runtime`` is the runtime's cdi_spec_dirs, ``drivers`` maps driver names to the directory each writes to, ``ours``
    is what this product is set to look at.
    """
    findings = []
    listed = ", ".join(printable(normalised(directory)) for directory in runtime) or "nothing"
    for driver, directory in sorted((drivers or {}).items()):
        if not any(same_directory(directory, known) for known in runtime):
            place = printable(normalised(directory))
            findings.append(
                Finding(
                    codes.DIRECTORY_MISMATCH,
                    "error",
                    place,
                    f"DRA driver {driver} writes its CDI specs to {place}, the container runtime reads {listed}: no "
                    "container will get a device of this driver.",
                    "Add the directory to cdi_spec_dirs of the runtime, or set the driver's CDI root to one of those.",
                    {"driver": driver, "directory": place, "runtime_directories": list(map(printable, runtime))},
                )
            )
    for directory in ours or ():
        if not any(same_directory(directory, known) for known in runtime):
            place = printable(normalised(directory))
            findings.append(
                Finding(
                    codes.DIRECTORY_MISMATCH,
                    "warning",
                    place,
                    f"{place} is searched for CDI specs here, but the container runtime reads {listed}: what is "
                    "found there says nothing about containers.",
                    "Set cdi_directories to the runtime's cdi_spec_dirs.",
                    {"directory": place, "runtime_directories": list(map(printable, runtime))},
                )
            )
    for directory in runtime if ours is not None else ():
        if not any(same_directory(directory, known) for known in ours or ()):
            place = printable(normalised(directory))
            findings.append(
                Finding(
                    codes.DIRECTORY_MISMATCH,
                    "warning",
                    place,
                    f"The container runtime reads CDI specs from {place}, which is not searched here: devices "
                    "defined there count as unresolved.",
                    "Set cdi_directories to the runtime's cdi_spec_dirs.",
                    {"directory": place, "runtime_directories": list(map(printable, runtime))},
                )
            )
    return findings


def unreadable(path: str, why: str, severity: t.Literal["error", "warning", "info"] = "error") -> Finding:
    """The finding for a file or directory that cannot be read."""
    return Finding(
        codes.UNREADABLE,
        severity,
        printable(path),
        f"{printable(path)} {why}.",
        "Correct its owner, mode or kind; runtimes read spec directories as root.",
        {"path": printable(path)},
    )


def printable(path: str) -> str:
    """A path for messages: bytes that are no UTF-8, and control characters, become escapes."""
    text = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
