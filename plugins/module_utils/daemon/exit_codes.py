# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Why a daemon ended: one exit status for each reason, so that a unit file can tell them apart.

64 to 78 are those of sysexits.h, which ``systemctl status`` shows by name; 80 and above are ours. Where another start
cannot help without a person's help, a unit lists the status in ``RestartPreventExitStatus``.
"""

from __future__ import annotations

import enum
import errno
import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.lock import LockHeldError
from .problems import SettingsError


class ExitCode(enum.IntEnum):
    """The exit status of a daemon."""

    OK = 0
    FAILED = 1
    USAGE = 64
    ADDRESS_IN_USE = 69
    BUG = 70
    SYSTEM = 71
    LEASE_LOST = 75
    RIGHTS = 77
    SETTINGS = 78
    LOCK_HELD = 80
    DRAIN_TIMEOUT = 81
    LIBRARY = 82
    REFUSED = 83


#: For documentation: what happened, and whether a start without a change can succeed.
MEANINGS: t.Mapping[ExitCode, tuple[str, bool]] = {
    ExitCode.OK: ("It was asked to end and did.", True),
    ExitCode.FAILED: ("A failure that the log names and that is none of the others.", True),
    ExitCode.USAGE: ("The command line is wrong.", False),
    ExitCode.ADDRESS_IN_USE: ("An address or socket that it serves is taken by another process.", True),
    ExitCode.BUG: ("A bug of the daemon; its log has the stack trace. Please report it.", True),
    ExitCode.SYSTEM: ("The system refused something: disk, memory, open files.", True),
    ExitCode.LEASE_LOST: ("It is not the leader any more and must not write.", True),
    ExitCode.RIGHTS: ("It may not do what it needs: file modes, capabilities, security modules.", False),
    ExitCode.SETTINGS: ("The settings cannot be used; the log names every problem.", False),
    ExitCode.LOCK_HELD: ("Another instance is running on this machine.", True),
    ExitCode.DRAIN_TIMEOUT: ("Work under way did not end within life.drain_timeout after it was asked to end.", True),
    ExitCode.LIBRARY: ("A Python library that it needs is missing.", False),
    ExitCode.REFUSED: (
        "It refuses to work here, for example beside another controller; the log has the evidence.",
        False,
    ),
}

_BY_ERRNO = {
    errno.EACCES: ExitCode.RIGHTS,
    errno.EPERM: ExitCode.RIGHTS,
    errno.EADDRINUSE: ExitCode.ADDRESS_IN_USE,
}


def exit_code_for(error: BaseException, own: t.Mapping[type[BaseException], ExitCode]) -> ExitCode:
    """The status for an error that ends the daemon; ``own`` are the daemon's further types and go first."""
    for kind in type(error).__mro__:
        if kind in own:
            return own[kind]
    if isinstance(error, SettingsError):
        return ExitCode.SETTINGS
    if isinstance(error, LockHeldError):
        return ExitCode.LOCK_HELD
    if isinstance(error, DraError):
        name = error.facts.get("errno")
        if isinstance(name, str) and name:
            return _BY_ERRNO.get(getattr(errno, name, 0), ExitCode.SYSTEM)
        return ExitCode.FAILED
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("ansible_collections"):
        return ExitCode.LIBRARY
    if isinstance(error, OSError):
        return _BY_ERRNO.get(error.errno or 0, ExitCode.SYSTEM)
    return ExitCode.BUG


def exit_codes_rst() -> str:
    """The table as reStructuredText."""
    lines = [
        ".. list-table::",
        "   :header-rows: 1",
        "",
        "   * - Status",
        "     - Meaning",
        "     - A new start can help",
    ]
    for code in ExitCode:
        text, helps = MEANINGS[code]
        lines += [f"   * - {code.value}", f"     - {text}", f"     - {'yes' if helps else 'no'}"]
    return "\n".join(lines) + "\n"


def without_restart() -> str:
    """The value of ``RestartPreventExitStatus`` for a unit file."""
    return " ".join(str(code.value) for code in ExitCode if not MEANINGS[code][1])
