# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Connection plugin of the scenarios: each command is ``ENGINE exec``, so that tasks can be pipelined.

It works with podman and docker alike, and needs no collection.
"""

from __future__ import annotations

import shlex
import subprocess
import typing as t

from ansible.errors import AnsibleConnectionFailure, AnsibleError, AnsibleFileNotFound
from ansible.module_utils.common.process import get_bin_path
from ansible.plugins.connection import ConnectionBase

DOCUMENTATION = """
name: container_exec
short_description: Run tasks in a local container through its engine's command line
description:
  - Runs each command with C(ENGINE exec --interactive), so modules can be pipelined.
author: nodeops.dra contributors
options:
  remote_addr:
    description: Name of the container.
    default: inventory_hostname
    vars: [{name: inventory_hostname}, {name: ansible_host}]
  engine:
    description: The engine's command.
    default: podman
    env: [{name: MOLECULE_ENGINE}]
    vars: [{name: molecule_engine}]
"""

_ENGINE_FAILED = 125


class Connection(ConnectionBase):
    """A container that runs on this machine."""

    transport = "container_exec"
    has_pipelining = True

    def _connect(self) -> Connection:
        if not self._connected:
            try:
                self._engine = get_bin_path(self.get_option("engine"))
            except ValueError as error:
                raise AnsibleError(f"There is no container engine: {error}") from error
            self._connected = True
        return self

    def _run(self, command: str, **streams: t.Any) -> subprocess.CompletedProcess[bytes]:
        self._connect()
        argv = [self._engine, "exec", "--interactive", self.get_option("remote_addr"), "/bin/sh", "-c", command]
        done = subprocess.run(argv, stderr=subprocess.PIPE, check=False, **streams)  # noqa: S603
        if done.returncode == _ENGINE_FAILED:
            raise AnsibleConnectionFailure(done.stderr.decode(errors="replace").strip())
        return done

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Run a command; its exit status, output and error output."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        done = self._run(cmd, input=in_data or b"", stdout=subprocess.PIPE)
        return done.returncode, done.stdout, done.stderr

    def put_file(self, in_path: str, out_path: str) -> None:
        """Copy a file of this machine into the container."""
        super().put_file(in_path, out_path)
        try:
            source = open(in_path, "rb")  # noqa: SIM115
        except OSError as error:
            raise AnsibleFileNotFound(f"cannot read {in_path}: {error}") from error
        with source:
            done = self._run(f"cat > {shlex.quote(out_path)}", stdin=source, stdout=subprocess.DEVNULL)
        if done.returncode:
            raise AnsibleError(f"cannot write {out_path}: {done.stderr.decode(errors='replace')}")

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Copy a file of the container to this machine."""
        super().fetch_file(in_path, out_path)
        with open(out_path, "wb") as target:
            done = self._run(f"cat {shlex.quote(in_path)}", stdin=subprocess.DEVNULL, stdout=target)
        if done.returncode:
            raise AnsibleError(f"cannot read {in_path}: {done.stderr.decode(errors='replace')}")

    def close(self) -> None:
        """There is nothing to close: each command is a process of its own."""
        self._connected = False
