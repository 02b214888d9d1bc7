# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""``python -m ...agent --config FILE`` is the node agent, ``python -m ...agent ctl COMMAND`` asks the running one."""

from __future__ import annotations

import sys
import typing as t


def main(argv: t.Sequence[str]) -> int:
    """Run the daemon or the client; the return value is the exit status."""
    if argv[:1] == ["ctl"]:
        from . import ctl

        return ctl.main(argv[1:])
    from ..daemon.command import run_daemon
    from .daemon import AgentDaemon

    return run_daemon(AgentDaemon(), argv)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
