# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Comparing resourceVersions.

They are decimal numbers that grow with every write to the cluster's storage; Kubernetes 1.35 made that a promise for
its own kinds. Servers that use something else get ``None``: nothing is known, and callers take the arriving order.
"""

from __future__ import annotations


def as_number(version: str) -> int | None:
    """The version as a number; None when it is none."""
    return int(version) if version.isascii() and version.isdigit() and len(version) < 40 else None


def is_older(version: str, than: str) -> bool:
    """Whether ``version`` is surely older than ``than``."""
    first, second = as_number(version), as_number(than)
    return first is not None and second is not None and first < second


def covers(seen: str, version: str) -> bool:
    """Whether somebody who has seen everything up to ``seen`` has surely seen ``version`` too."""
    first, second = as_number(seen), as_number(version)
    return first is not None and second is not None and first >= second
