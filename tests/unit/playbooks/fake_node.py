# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A node for playbooks: this machine with a kubelet root directory, a systemctl and a kubelet of its own."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import sys
import typing as t

from .runner import COLLECTIONS, LOCAL, Played, play

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "checkpoint"


class FakeNode:
    """``node-1``. Its kubelet is of 1.36 and runs or not, as ``unit`` says."""

    def __init__(self, folder: pathlib.Path, source: str = "", behaviour: str = "sound") -> None:
        self.folder = folder
        self.root = folder / "kubelet"
        self.file = self.root / "dra_manager_state"
        self.root.mkdir()
        if source:
            self.file.write_bytes((FIXTURES / source).read_bytes())
            self.file.chmod(0o600)
        self.before = self.file.read_bytes() if source else None
        programs = folder / "bin"
        programs.mkdir()
        script = pathlib.Path(__file__).with_name("fake_systemctl.py")
        (programs / "systemctl").write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
        (programs / "systemctl").chmod(0o755)
        self.environ = {"FAKE_NODE": str(folder), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        self.set(behaviour=behaviour)

    def set(self, **changes: t.Any) -> None:
        """Change the settings of systemctl and the kubelet."""
        path = self.folder / "settings.json"
        settings = {"python": sys.executable, "root": str(self.root), "collections": COLLECTIONS, "release": "1.36"}
        if path.exists():
            settings = json.loads(path.read_text())
        path.write_text(json.dumps({**settings, **changes}))

    @property
    def unit(self) -> dict[str, t.Any]:
        """What systemctl knows of the kubelet's unit."""
        path = self.folder / "unit.json"
        return (
            t.cast("dict[str, t.Any]", json.loads(path.read_text())) if path.exists() else {"wanted": False, "pid": 0}
        )

    def crash_loop(self) -> None:
        """Have the kubelet be one that is started again and again."""
        (self.folder / "unit.json").write_text(json.dumps({"wanted": True, "pid": 0, "restarts": 17}))

    @property
    def calls(self) -> list[str]:
        """What systemctl was asked to change."""
        path = self.folder / "calls"
        words = [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []
        return [word for word in words if word in ("start", "stop", "restart")]

    def play(self, name: str, *arguments: str, **variables: t.Any) -> Played:
        """Run a playbook against the node."""
        return play(name, self.folder, {"node-1": LOCAL}, *arguments, variables=variables, environ=self.environ)

    def backups(self) -> list[bytes]:
        """The content of the backups beside the file, oldest first."""
        return [path.read_bytes() for path in sorted(self.root.glob("dra_manager_state.*.bak"))]

    def end(self) -> None:
        """End the kubelet, if one runs."""
        pid = self.unit["pid"]
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
