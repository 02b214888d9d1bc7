# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Real child processes for tests: Python code that can import the collection, and stand-ins for a kubelet."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
import typing as t
from pathlib import Path

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import store

# The directory that holds ansible_collections, however this test found it.
COLLECTIONS = Path(store.__file__).parents[6]
LAYER = "ansible_collections.nodeops.dra.plugins.module_utils.checkpoint"
TESTS = "ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.checkpoint"


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(COLLECTIONS), "PYTHONDONTWRITEBYTECODE": "1"}


def run_python(code: str, *args: str, prefix: t.Sequence[str] = (), cwd: Path | None = None) -> str:
    """Run code in a child and return its output; the test fails with the child's error text."""
    command = [*prefix, sys.executable, "-c", code, *args]
    done = subprocess.run(command, env=environment(), cwd=cwd, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rounds(at_least: int, enough: t.Callable[[], bool]) -> t.Iterator[int]:
    """Count rounds of a race against another process: so many, and on until enough was seen or 20 s are over.

    On a busy machine the other process may not run at all during the first few hundred rounds.
    """
    deadline = time.monotonic() + 20
    count = 0
    while count < at_least or not (enough() or time.monotonic() > deadline):
        yield count
        count += 1


def mount_namespace() -> list[str]:
    """The command prefix that lets a child mount without anybody else seeing it; skips the test where none works."""
    if shutil.which("unshare") is None:
        pytest.skip("mounting needs unshare")
    for options in (["--mount"], ["--user", "--map-root-user", "--mount"]):
        prefix = ["unshare", *options]
        if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0:
            return prefix
    pytest.skip("mounting is forbidden here; what the test covers needs a real mount")


@contextlib.contextmanager
def python_child(code: str, *args: str) -> t.Iterator[subprocess.Popen[str]]:
    """Start code in a child, wait for its first line, stop it at the end. It should wait for its standard input."""
    with _running([sys.executable, "-c", code, *args], sys.executable) as child:
        yield child


@contextlib.contextmanager
def named_child(argv0: str, *args: str) -> t.Iterator[subprocess.Popen[str]]:
    """Start a real process with this argv[0] and these arguments, that does nothing until it is stopped."""
    with _running([argv0, "-c", "echo ready; read line", *args], "/bin/sh") as child:
        yield child


@contextlib.contextmanager
def _running(command: t.Sequence[str], executable: str) -> t.Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        command,
        executable=executable,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout is not None
        first = child.stdout.readline()
        if not first:
            _unused, errors = child.communicate()
            raise AssertionError(f"child ended at once: {errors}")
        try:
            yield child
        finally:
            child.kill()
            child.communicate()
