# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which boot of the machine this is: after a reboot no device is set up any more, whatever a file says."""

from __future__ import annotations

import pathlib

BOOT_ID_FILE = pathlib.Path("/proc/sys/kernel/random/boot_id")


def current_boot_id(path: pathlib.Path = BOOT_ID_FILE) -> str:
    """The kernel's ID of this boot, empty where it cannot be read."""
    try:
        return path.read_text("ascii").strip()
    except (OSError, ValueError):
        return ""
