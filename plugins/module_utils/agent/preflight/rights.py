# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Who may do what: our own user, the directories of drivers and of the agent, SELinux, room on the disk."""

from __future__ import annotations

import os
import pwd
import stat
import typing as t

from ...checkpoint.errors import DraError
from ...checkpoint.file_errors import reason, shown
from ...checkpoint.findings import Finding
from .codes import finding
from .node import Node

#: A state file, its successor and a backup of a node with thousands of claims fit into this.
ROOM: t.Final = 16 * 1024 * 1024

_ENFORCE: t.Final = "/sys/fs/selinux/enforce"
Json = dict[str, t.Any]


def look_at_selinux(node: Node) -> str:
    """``enforcing``, ``permissive`` or ``disabled``; ``unknown`` where it may not be read."""
    try:
        text = node.text(_ENFORCE)
    except DraError:
        return "unknown"
    return "disabled" if text is None else "enforcing" if text.strip() == "1" else "permissive"


def look_at_directory(path: str) -> Json:
    """Owner, group, mode and so on of a directory, null where it does not exist or may not be looked at."""
    facts: Json = dict.fromkeys(("owner", "group", "mode", "writable", "free_bytes", "real_path", "problem"))
    facts = {"place": shown(path), "exists": False, **facts}
    try:
        status = os.stat(path)
        if not stat.S_ISDIR(status.st_mode):
            return {**facts, "problem": "it is no directory"}
        room = os.statvfs(path)
    except FileNotFoundError:
        return facts
    except OSError as error:
        return {**facts, "problem": reason(error)}
    return {
        "place": shown(path),
        "exists": True,
        "owner": _name(status.st_uid),
        "group": status.st_gid,
        "mode": f"{stat.S_IMODE(status.st_mode):04o}",
        "writable": os.access(path, os.W_OK | os.X_OK) and not room.f_flag & os.ST_RDONLY,
        # Some file systems do not count inodes.
        "free_bytes": 0 if room.f_files and not room.f_favail else room.f_bavail * room.f_frsize,
        "real_path": shown(os.path.realpath(path)),
        "problem": None,
    }


def directory_findings(facts: Json, *, must_write: bool, has_state: bool) -> t.Iterator[Finding]:
    """What is wrong with a directory of sockets or state that exists."""
    place = facts["place"]
    if facts["problem"] is not None:
        text = f"{place} cannot be used: {facts['problem']}."
        yield finding("directory_not_writable", place, text, "Correct the setting that names it, or its rights.")
        return
    if not facts["exists"]:
        return
    mode = int(facts["mode"], 8)
    if facts["owner"] not in ("root", _name(os.geteuid())) or (mode & (stat.S_IWGRP | stat.S_IWOTH)):
        yield finding(
            "directory_unsafe",
            place,
            f"{place} belongs to {facts['owner']} and has the mode {facts['mode']}: others than root may put a socket "
            "or a file there, and root's programs would use it.",
            f"chown root:root {place} && chmod go-w {place}",
            owner=facts["owner"],
            mode=facts["mode"],
        )
    if must_write and not facts["writable"]:
        text = f"{place} cannot be written (a read-only file system, or not root)."
        yield finding("directory_not_writable", place, text, "Mount it writable, or name another directory.")
    if has_state and facts["free_bytes"] < ROOM:
        text = f"{place} has {facts['free_bytes']} bytes or no inodes left: a state file could not be written."
        yield finding("disk_full", place, text, "Make room on that file system.", free_bytes=facts["free_bytes"])


def user_findings(selinux: str) -> t.Iterator[Finding]:
    """Whether we may look at everything, and whether SELinux has a say."""
    if os.geteuid() != 0:
        text = f"This was not run as root but as {_name(os.geteuid())}, so processes and files may be hidden from it."
        yield finding("not_root", "user", text, "Run it with become: true.")
    if selinux == "enforcing":
        text = "SELinux is enforced: a driver in a container reaches its sockets and CDI directories only with a label."
        remedy = "Let the driver's pod run privileged or with a type such as container_device_plugin_t."
        yield finding("selinux_enforcing", "selinux", text, remedy)


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
