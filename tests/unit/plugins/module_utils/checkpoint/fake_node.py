# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A made-up node for tests: a /proc tree with the processes that a test wants, and a root file system."""

from __future__ import annotations

import typing as t
from pathlib import Path

BOOT = 1_700_000_000


class FakeNode:
    """``proc`` and ``root`` are handed to the code under test as ``proc_root`` and ``fs_root``."""

    def __init__(self, directory: Path) -> None:
        self.proc = directory / "proc"
        self.root = directory / "root"
        self.proc.mkdir()
        self.root.mkdir()
        (self.proc / "stat").write_text(f"cpu 1 2 3\nbtime {BOOT}\n")
        (self.proc / "self").mkdir()

    def options(self) -> dict[str, Path]:
        return {"proc_root": self.proc, "fs_root": self.root}

    def file(self, path: str, text: str = "") -> Path:
        """Put a file at the absolute path inside the node."""
        where = self.root / path.lstrip("/")
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(text)
        return where

    def directory(self, path: str) -> Path:
        where = self.root / path.lstrip("/")
        where.mkdir(parents=True, exist_ok=True)
        return where

    def link(self, path: str, target: str) -> None:
        where = self.root / path.lstrip("/")
        where.parent.mkdir(parents=True, exist_ok=True)
        where.symlink_to(target)

    def process(
        self,
        pid: int,
        argv: t.Sequence[str],
        *,
        name: str | None = None,
        executable: str | None = None,
        parent: int = 1,
        state: str = "S",
        root: Path | None = None,
        cwd: str = "/",
        cgroup: str = "0::/system.slice/kubelet.service\n",
        ticks: int = 0,
    ) -> None:
        """Add a process; ``root`` is its root directory if that is not the node's."""
        base = self.proc / str(pid)
        base.mkdir()
        shown = name or (argv[0].rpartition("/")[2][:15] if argv else "kthreadd")
        flags = 0x200000 if not argv else 0x400000
        (base / "stat").write_text(
            f"{pid} ({shown}) {state} {parent} 1 1 0 -1 {flags} " + "0 " * 12 + f"{ticks} 0 0 18446744073709551615\n"
        )
        (base / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in argv))
        (base / "cgroup").write_text(cgroup)
        (base / "root").symlink_to(root or self.root)
        (base / "cwd").symlink_to(cwd)
        if executable is not None:
            (base / "exe").symlink_to(executable)
