# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Pack the checkpoint layer as one program for a node that has Python and nothing else.

    python hack/build_zipapp.py dist/dra-checkpoint.pyz

The same sources give the same bytes everywhere: fixed dates and modes, sorted names, no compression (which differs
between zlib builds). The archive holds the layer under a name of its own, so an installed collection is never mixed in.
"""

from __future__ import annotations

import io
import os
import pathlib
import re
import sys
import typing as t
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYER = ROOT / "plugins" / "module_utils" / "checkpoint"
PACKAGE = "dra_checkpoint"
SHEBANG = b"#!/usr/bin/env python3\n"
LONG_AGO = (1980, 1, 1, 0, 0, 0)
LICENCE = "# Copyright (c) 2026 nodeops.dra contributors\n# SPDX-License-Identifier: Apache-2.0\n"

# Must be readable by any Python 3: an old one gets a sentence, not a syntax error.
START = (
    LICENCE
    + """import sys

if sys.version_info < (3, 9):
    sys.exit("dra-checkpoint: needs Python 3.9 or newer, this is %d.%d. Try: python3.9 dra-checkpoint.pyz"
             % sys.version_info[:2])

from dra_checkpoint.__main__ import run  # noqa: E402

sys.exit(run())
"""
)


def version() -> str:
    """Version of the collection, as galaxy.yml tells it."""
    found = re.search(r"^version:\s*(\S+)", (ROOT / "galaxy.yml").read_text(encoding="utf-8"), re.MULTILINE)
    if not found:
        raise SystemExit("build_zipapp: galaxy.yml names no version")
    return found.group(1)


def contents() -> dict[str, bytes]:
    """Name in the archive to bytes."""
    sources = sorted(LAYER.rglob("*.py"))
    if LAYER / "__main__.py" not in sources:
        raise SystemExit(f"build_zipapp: {(LAYER / '__main__.py').relative_to(ROOT)} does not exist")
    files = {
        "__main__.py": START.encode(),
        f"{PACKAGE}/__init__.py": f'{LICENCE}__version__ = "{version()}"\n'.encode(),
        "LICENSE.txt": (ROOT / "LICENSES" / "Apache-2.0.txt").read_bytes(),
    }
    for path in sources:
        files[f"{PACKAGE}/{path.relative_to(LAYER).as_posix()}"] = path.read_bytes()
    return files


def archive(files: t.Mapping[str, bytes]) -> bytes:
    """The program: a shebang line and a zip archive."""
    stream = io.BytesIO()
    stream.write(SHEBANG)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as packed:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, LONG_AGO)
            entry.create_system = 3  # Unix, on every system
            entry.external_attr = 0o100644 << 16
            packed.writestr(entry, files[name])
    return stream.getvalue()


def main(argv: t.Sequence[str]) -> int:
    """Entry point; returns the exit status."""
    if len(argv) != 1:
        sys.stderr.write("usage: build_zipapp.py FILE\n")
        return 2
    target = pathlib.Path(argv[0])
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.new")
    unfinished.write_bytes(archive(contents()))
    unfinished.chmod(0o755)
    os.replace(unfinished, target)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
