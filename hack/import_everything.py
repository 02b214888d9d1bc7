# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Import every file that travels to nodes, in the interpreter that runs this: Python 3.9 or newer.

    python3.9 -I -S -W error hack/import_everything.py COLLECTIONS LIBRARIES

COLLECTIONS is the folder that holds ``ansible_collections``, LIBRARIES one that holds ``ansible``. Nothing else can be
imported. It takes seconds where ``ansible-test sanity --test import`` takes a minute; what that one finds beyond, it
finds in any version.
"""

from __future__ import annotations

import importlib
import pathlib
import sys
import traceback
import typing as t

PLUGINS = "ansible_collections/nodeops/dra/plugins"


def names(collections: pathlib.Path) -> list[str]:
    """Dotted names of all files, sorted."""
    files = [path for kind in ("module_utils", "modules") for path in (collections / PLUGINS / kind).rglob("*.py")]
    return sorted(".".join(path.relative_to(collections).with_suffix("").parts) for path in files)


def main(argv: t.Sequence[str]) -> int:
    """Entry point; returns the exit status."""
    if len(argv) != 2:
        sys.stderr.write("usage: import_everything.py COLLECTIONS LIBRARIES\n")
        return 2
    sys.dont_write_bytecode = True
    sys.path[:0] = argv
    found = names(pathlib.Path(argv[0]))
    failed = 0
    for name in found:
        try:
            importlib.import_module(name)
        except BaseException:
            failed += 1
            sys.stdout.write(f"{name}: cannot be imported\n{traceback.format_exc(limit=-2)}\n")
    sys.stdout.write(f"{len(found)} files, {failed} of them cannot be imported by Python {sys.version.split()[0]}\n")
    return 1 if failed or not found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
