# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Write the archive that roles push to nodes, for those who install a node by hand.

    python hack/build_node_archive.py FOLDER

It is ``FOLDER/dra-node-VERSION.tar.gz``; older ones there are removed. Its name is not one that begins like that of the
collection's own archive, since people install ``nodeops-dra-*.tar.gz``.
"""

from __future__ import annotations

import os
import pathlib
import sys
import typing as t

# The link that `make` keeps: through it the collection can be imported from any checkout.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / ".build"))

from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.plugin_utils.node_archive import NodeArchive, pack

__all__ = ["NodeArchive", "pack"]
ROOT = pathlib.Path(__file__).resolve().parents[1]
NAME = "dra-node-{}.tar.gz"


def main(argv: t.Sequence[str]) -> int:
    """Entry point; returns the exit status."""
    if len(argv) != 1:
        sys.stderr.write("usage: build_node_archive.py FOLDER\n")
        return 2
    folder = pathlib.Path(argv[0])
    folder.mkdir(parents=True, exist_ok=True)
    try:
        archive = pack(ROOT)
    except DraError as error:
        raise SystemExit(f"build_node_archive: {error}") from error
    target = folder / NAME.format(archive.version)
    unfinished = target.with_name(f".{target.name}.new")
    unfinished.write_bytes(archive.content)
    os.replace(unfinished, target)
    for old in folder.glob(NAME.format("*")):
        if old != target:
            old.unlink()
    sys.stdout.write(f"{target}\nrelease {archive.release}, content {archive.digest}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
