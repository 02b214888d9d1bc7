# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The version of the collection. On a node galaxy.yml is not there to be asked; a test compares the two."""

from __future__ import annotations

VERSION = "0.1.0-dev0"
