# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""``python -m ...agent ctl COMMAND`` asks the running node agent."""

from __future__ import annotations

import sys
import typing as t


def main(argv: t.Sequence[str]) -> int:
    """Run the command; the return value is the exit status."""
    if argv[:1] == ["ctl"]:
        from . import ctl

        return ctl.main(argv[1:])
    sys.stderr.write("usage: python -m ...agent ctl COMMAND (--help tells more)\n")
    return 64


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
