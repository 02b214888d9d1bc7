# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""``python -m ansible_collections.nodeops.dra.plugins.module_utils.controller --config FILE``: the daemon."""

from __future__ import annotations

from ..daemon.command import run_daemon
from .daemon import ControllerDaemon

if __name__ == "__main__":
    raise SystemExit(run_daemon(ControllerDaemon()))
