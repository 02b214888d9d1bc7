# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The version of the collection, as the agent tells it."""

from __future__ import annotations

from ..daemon.version import VERSION

__all__ = ["VERSION"]
