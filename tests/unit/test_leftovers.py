# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The fixture of conftest.py that fails tests which leave something behind."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

CONFTEST = pathlib.Path(__file__).with_name("conftest.py")

BAD = """
import asyncio, socket, threading
import pytest

keep = []

@pytest.mark.asyncio
async def test_task():
    keep.append(asyncio.create_task(asyncio.Event().wait()))

def test_task_of_run():
    async def main():
        keep.append(asyncio.create_task(asyncio.Event().wait()))
    asyncio.run(main())

def test_thread():
    keep.append(threading.Event())
    threading.Thread(target=keep[-1].wait, args=(30,), name="stray").start()

def test_socket():
    keep.append(socket.create_server(("127.0.0.1", 0)))

def test_last():
    for thing in keep:
        if isinstance(thing, threading.Event):
            thing.set()
"""

GOOD = """
import asyncio, socket, threading
import pytest

@pytest.mark.asyncio
async def test_tasks_that_end():
    quick = asyncio.create_task(asyncio.sleep(0.01))
    stopped = asyncio.create_task(asyncio.Event().wait())
    stopped.cancel()

def test_thread_that_ends():
    threading.Thread(target=lambda: None).start()

def test_closed_socket():
    with socket.create_server(("127.0.0.1", 0)):
        pass

def test_pair_without_address():
    pair.extend(socket.socketpair())

pair = []
"""


def outcome(folder: pathlib.Path, text: str) -> str:
    """What pytest says about a test file that uses our conftest."""
    (folder / "conftest.py").write_bytes(CONFTEST.read_bytes())
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pytest_asyncio.plugin", "-rE"]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [*argv, "-o", "asyncio_mode=strict", str(folder)]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False).stdout


def test_each_kind_of_leftover_fails_its_test(tmp_path: pathlib.Path) -> None:
    told = outcome(tmp_path, BAD)
    assert "5 passed, 4 errors" in told
    for test in ("test_task", "test_task_of_run", "test_thread", "test_socket"):
        assert f"ERROR test_it.py::{test} - Failed: the test left behi" in told, told


def test_what_ends_by_itself_is_fine(tmp_path: pathlib.Path) -> None:
    assert "4 passed in" in outcome(tmp_path, GOOD)
