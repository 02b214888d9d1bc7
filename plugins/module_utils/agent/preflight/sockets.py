# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Paths of sockets that drivers make below a kubelet root, counted in bytes before anybody tries to bind them.

(kubeletplugin: the registration socket and the socket of the service; with rolling updates each has the pod's UID.)
"""

from __future__ import annotations

import dataclasses
import os
import typing as t

from ...checkpoint.file_errors import shown
from ...checkpoint.findings import Finding
from ...driver.endpoint import MAX_PATH_BYTES
from .codes import finding

_POD_UID: t.Final = "0" * 36
_LONGEST_NAME: t.Final = 63
"""What the API allows for the name of a driver."""

_ONE: t.Final = ("plugins_registry/{0}-reg.sock", "plugins/{0}/dra.sock")
_EACH_POD: t.Final = (f"plugins_registry/{{0}}-{_POD_UID}-reg.sock", f"plugins/{{0}}/dra-{_POD_UID}.sock")


@dataclasses.dataclass(frozen=True)
class SocketRoom:
    """The longest name of a driver, in bytes, for which all paths fit, without and with rolling updates."""

    plain: int
    rolling: int

    @classmethod
    def below(cls, root: str) -> SocketRoom:
        """The room below a root directory; 0 where no name fits."""
        return cls(
            *(max(0, min(MAX_PATH_BYTES - length(root, path, "") for path in paths)) for paths in (_ONE, _EACH_POD))
        )


def length(root: str, path: str, name: str) -> int:
    """How many bytes the path has for a driver of that name."""
    return len(os.fsencode(os.path.join(root, path.format(name))))


def socket_findings(root: str, drivers: t.Iterable[str]) -> t.Iterator[Finding]:
    """The sockets of these drivers that cannot be, and whether the root leaves room for others."""
    for driver in sorted(drivers):
        for code, paths, when in (
            ("socket_path_too_long", _ONE, ""),
            ("socket_path_too_long_in_update", _EACH_POD, " if the driver is one for rolling updates"),
        ):
            worst = max(paths, key=lambda path: length(root, path, driver))
            if length(root, worst, driver) <= MAX_PATH_BYTES:
                continue
            path = shown(os.path.join(root, worst.format(driver)))
            yield finding(
                code,
                path,
                f"The socket {path} of the driver {shown(driver)} has {length(root, worst, driver)} bytes{when}, and a "
                f"unix socket path can have {MAX_PATH_BYTES} at most.",
                "Use a shorter kubelet root directory or driver name"
                + (", or the driver without rolling updates." if when else "."),
                driver=shown(driver),
                length=length(root, worst, driver),
                limit=MAX_PATH_BYTES,
            )
            break  # the longer kind of path tells nothing new
    room = SocketRoom.below(root)
    if room.plain < _LONGEST_NAME:
        text = f"Below {shown(root)} a driver's name may have {room.plain} bytes, with rolling updates {room.rolling}."
        remedy = "Choose drivers with short names, or a shorter root directory for the kubelet."
        yield finding("socket_room_small", shown(root), text, remedy, plain=room.plain, rolling=room.rolling)
