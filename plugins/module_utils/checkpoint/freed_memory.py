# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Giving memory back to the system between two steps that need much of it.

The C library keeps large blocks that were freed for the next large block. The texts of a file are a few large blocks,
reports of it many small objects, which Python places elsewhere: what is kept would stand unused beside them.
"""

from __future__ import annotations

import contextlib


def give_back() -> None:
    """Give back what is free. Does nothing where the C library has no such call: only the GNU one has."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes  # a Python can be built without it

        ctypes.CDLL(None).malloc_trim(0)
