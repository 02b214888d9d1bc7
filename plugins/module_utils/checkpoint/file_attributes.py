# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Owner, mode and labels of a file: read from an open file, put onto its replacement before the rename.

A replacement is a new inode, so whatever is not copied is lost: a wrong owner keeps a rootless kubelet out, a wrong
SELinux label keeps everybody out, and a mode without its access list gives the group what only a named user had.
"""

from __future__ import annotations

import errno
import os
import stat
import typing as t
from dataclasses import dataclass, field

_ACCESS_LIST: t.Final = "system.posix_acl_access"
_KEPT_NAMES: t.Final = frozenset(("security.selinux", "security.SMACK64", _ACCESS_LIST))
# "No such attribute" and "this file system has no attributes" both mean that there is nothing to keep.
_NO_ATTRIBUTE: t.Final = frozenset((errno.ENOTSUP, errno.ENODATA, errno.ENOSYS))


@dataclass(frozen=True)
class Attributes:
    """Who may do what with a file.

    ``mode`` holds the permission bits only (0o600, never set-user-id: these files are data). ``uid`` and ``gid`` are
    None when the kernel's choice stands. ``labels`` maps names of extended attributes (SELinux and Smack label, access
    list, everything below ``user.``) to their bytes.
    """

    mode: int
    uid: int | None
    gid: int | None
    labels: t.Mapping[str, bytes] = field(default_factory=dict)

    def differ_from(self, present: Attributes) -> bool:
        """Tell whether a file with ``present`` would have to be rewritten to get these attributes."""
        return (
            self.mode != present.mode
            or self.uid not in (None, present.uid)
            or self.gid not in (None, present.gid)
            or any(present.labels.get(name) != value for name, value in self.labels.items())
        )


def attributes_of(fd: int, facts: os.stat_result | None = None) -> Attributes:
    """Return the attributes of the open file ``fd``; ``facts`` saves one system call. Raises OSError."""
    found = os.fstat(fd) if facts is None else facts
    return Attributes(_permissions(found), found.st_uid, found.st_gid, _labels_of(fd))


def attributes_for_new_file(directory: os.stat_result) -> Attributes:
    """Return what a file gets that had no predecessor: mode 0600 and an owner that fits its directory.

    Root gives the file to the directory's owner: a kubelet in a user namespace could not read root's file in its own
    directory. Anybody else keeps what the kernel assigns. The SELinux label is the one that the policy assigns.
    """
    if os.geteuid() == 0 and directory.st_uid != 0:
        return Attributes(0o600, directory.st_uid, directory.st_gid)
    return Attributes(0o600, None, None)


def apply_attributes(fd: int, wanted: Attributes) -> None:
    """Put ``wanted`` onto the open file ``fd`` of our own making; raises OSError when one of them cannot be kept.

    The order matters: a change of owner clears mode bits, and an access list redefines the group bits of the mode.
    """
    found = os.fstat(fd)
    uid = found.st_uid if wanted.uid is None else wanted.uid
    gid = found.st_gid if wanted.gid is None else wanted.gid
    if (uid, gid) != (found.st_uid, found.st_gid):
        os.fchown(fd, uid, gid)
    present = _labels_of(fd)
    for name, value in wanted.labels.items():
        if present.get(name) != value:
            _set_label(fd, name, value)
    if _ACCESS_LIST in present and _ACCESS_LIST not in wanted.labels:
        # Inherited from the directory's default list; the old file had none.
        os.removexattr(fd, _ACCESS_LIST)
    if _permissions(os.fstat(fd)) != wanted.mode:
        os.fchmod(fd, wanted.mode)


def _permissions(facts: os.stat_result) -> int:
    return stat.S_IMODE(facts.st_mode) & 0o777


def _labels_of(fd: int) -> dict[str, bytes]:
    labels: dict[str, bytes] = {}
    try:
        for name in os.listxattr(fd):
            if name in _KEPT_NAMES or name.startswith("user."):
                labels[name] = os.getxattr(fd, name)
    except OSError as error:
        if error.errno not in _NO_ATTRIBUTE:
            raise
    return labels


def _set_label(fd: int, name: str, value: bytes) -> None:
    try:
        os.setxattr(fd, name, value)
    except OSError as error:
        # A copy on a file system without attributes has no label to keep; any other refusal must stop the write.
        if error.errno != errno.ENOTSUP:
            raise
