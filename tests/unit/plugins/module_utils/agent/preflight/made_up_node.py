# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A node in a directory on which nothing is wrong, for tests to change. Its programs are scripts that really run."""

from __future__ import annotations

import os
import pathlib
import stat
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight.look import Question, preflight
from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight.node import Node

from ...checkpoint.fake_node import FakeNode
from .configurations import CONTAINERD_2

Json = dict[str, t.Any]

DRIVER = "gpu.example.com"
CONFIGURATION = "/var/lib/kubelet/config.yaml"
UPTIME = 3600.0


class MadeUpNode(FakeNode):
    """Kubelet 1.34.2 and containerd 2.1.4 run; ``look`` takes the options of the module."""

    def __init__(self, directory: pathlib.Path) -> None:
        super().__init__(directory)
        self.node = Node(str(self.root), str(self.proc))
        (self.proc / "uptime").write_text(f"{UPTIME} 1.0\n")
        (self.proc / "swaps").write_text("Filename\tType\tSize\tUsed\tPriority\n/dev/sda2 partition 1024 0 -2\n")
        (self.proc / "self" / "mountinfo").write_text(
            "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n21 20 0:20 / /run rw - tmpfs tmpfs rw\n"
        )
        for path in ("/run/systemd/system", "/run/cdi", "/etc/cdi", "/var/lib/kubelet/plugins"):
            self.directory(path)
        self.directory("/var/lib/kubelet/plugins_registry")
        self.directory("/var/lib/nodeops-dra")
        self.link("/var/run", "../run")
        self.file("/sys/fs/cgroup/cgroup.controllers")
        self.file(CONFIGURATION, "kind: KubeletConfiguration\n")
        self.program("/usr/bin/systemctl", "systemd 252 (252.39-1~deb12u1)")
        self.program("/usr/bin/python3.12", "3 12 3 1 1")
        self.kubelet()
        self.containerd(CONTAINERD_2)

    def program(self, path: str, prints: str, status: int = 0) -> pathlib.Path:
        """Put a program that prints that, whatever it is asked."""
        where = self.file(path, f"#!/bin/sh\ncat <<'END'\n{prints}\nEND\nexit {status}\n")
        where.chmod(0o755)
        return where

    def process(self, pid: int, argv: t.Sequence[str], *, executable: str | None = None, **more: t.Any) -> None:
        """Add a process; its program is asked for its version if there is one."""
        where = None if executable is None else f"{self.root}{executable}"
        super().process(pid, argv, executable=where, **more)

    def kubelet(self, *options: str, version: str | None = "1.34.2", pid: int = 40) -> None:
        """Run this kubelet instead of the one that runs."""
        self.stop(pid)
        self.program("/usr/bin/kubelet", f"Kubernetes v{version}", status=0 if version else 1)
        words = ["/usr/bin/kubelet", f"--config={CONFIGURATION}", *options]
        self.process(pid, words, executable="/usr/bin/kubelet")

    def containerd(
        self, configuration: str | None, version: str | None = "2.1.4", *options: str, pid: int = 50
    ) -> None:
        """Run this containerd instead of the one that runs."""
        self.stop(pid)
        self.program("/usr/bin/containerd", f"containerd github.com/x/y v{version} 1234abc", 0 if version else 1)
        if configuration is not None:
            self.file("/etc/containerd/config.toml", configuration)
        self.process(pid, ["/usr/bin/containerd", *options], executable="/usr/bin/containerd", cgroup="0::/\n")

    def stop(self, pid: int) -> None:
        """End a process."""
        base = self.proc / str(pid)
        if base.is_dir():
            for path in base.iterdir():
                path.unlink()
            base.rmdir()

    def no_kubelet(self) -> None:
        """Take the kubelet away, and all traces of it."""
        self.stop(40)
        (self.root / "usr/bin/kubelet").unlink()

    def socket(self, path: str) -> pathlib.Path:
        """Put a socket there on which nobody listens; its path may be longer than those of real ones."""
        where = self.root / path.lstrip("/")
        where.parent.mkdir(parents=True, exist_ok=True)
        os.mknod(where, stat.S_IFSOCK | 0o600)
        return where

    def driver(self, name: str = DRIVER, root: str = "/var/lib/kubelet") -> None:
        """Put the sockets of a driver."""
        self.socket(f"{root}/plugins_registry/{name}-reg.sock")
        self.socket(f"{root}/plugins/{name}/dra.sock")

    def look(self, mode: t.Any = "observe", **options: t.Any) -> Json:
        """What the module returns."""
        return preflight(Question(mode, state_directory=f"{self.root}/var/lib/nodeops-dra", **options), self.node)


def codes(result: Json, severity: str = "") -> list[str]:
    """The codes of what was found, but for what depends on the user and the clock of the test."""
    outside = {"not_root", "clock_unsynchronised"}
    found = [one for one in result["findings"] if one["code"] not in outside]
    return [one["code"] for one in found if severity in ("", one["severity"])]


def the(result: Json, code: str) -> Json:
    """The one finding with that code."""
    found = [one for one in result["findings"] if one["code"] == code]
    assert len(found) == 1, [one["code"] for one in result["findings"]]
    return t.cast("Json", found[0])
