# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""All benchmarks, or those named on the command line; each is a module here with a ``run()`` that gives lines."""

from __future__ import annotations

import importlib
import pathlib
import platform
import sys

# Each needs the machine for itself, so they run one after the other.
BENCHES = ("checkpoint", "manager", "kube", "controller", "agent")

# The link that `make` keeps: through it the collection can be imported from any checkout.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / ".build"))


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - set(BENCHES))
    if unknown:
        sys.stderr.write(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHES)}\n")
        return 2
    sys.stdout.write(f"Python {platform.python_version()} on {platform.system()} {platform.release()}\n")
    for name in names or BENCHES:
        sys.stdout.write(f"\n== {name}\n")
        for line in importlib.import_module(name).run():
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
