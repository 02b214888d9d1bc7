# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The option that says which kubelet is meant. The doc fragment ``kubelet`` describes it for people."""

from __future__ import annotations

import typing as t


def kubelet_spec() -> dict[str, dict[str, t.Any]]:
    """The kubelet root directory."""
    return {"kubelet_root": {"type": "path"}}
