# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What holds for every unit test: nothing is left behind, and random input is the same in every run.

Runs on Python 3.9 too, without looptime, grpc or ansible.
"""

from __future__ import annotations

import asyncio
import asyncio.runners
import gc
import os
import socket
import threading
import typing as t

import pytest

try:
    import hypothesis
except ImportError:  # ansible-test without our requirements
    pass
else:
    # Everybody sees the same examples; a slow machine is not a failure. HYPOTHESIS_PROFILE=default looks for new ones.
    hypothesis.settings.register_profile("same", derandomize=True, deadline=None, database=None)
    hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# How long a thread or task may take to end by itself after the test. Virtual time under looptime.
GRACE = 1.0


def pytest_sessionstart() -> None:
    """Where a loop was set once, plugins that ask for the current one do not make one that nobody closes."""
    asyncio.set_event_loop(None)


def socket_numbers() -> set[str]:
    """Inodes of the sockets that this process has open; empty where there is no /proc."""
    numbers = set()
    try:
        names = os.listdir("/proc/self/fd")
    except OSError:
        return numbers
    for name in names:
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue  # the listing's own descriptor
        if target.startswith("socket:"):
            numbers.add(target)
    return numbers


def open_sockets(numbers: set[str]) -> list[str]:
    """Python's sockets among these, told by their addresses.

    Pairs without an address belong to event loops and to the poller that gRPC keeps for the process.
    """
    found = []
    gc.collect()
    for thing in gc.get_objects():
        if not isinstance(thing, socket.socket) or thing.fileno() < 0:
            continue
        if os.readlink(f"/proc/self/fd/{thing.fileno()}") not in numbers:
            continue
        try:
            local = thing.getsockname()
        except OSError:
            local = ""
        try:
            peer = thing.getpeername()
        except OSError:
            peer = ""
        if local or peer:
            found.append(f"{socket.AddressFamily(thing.family).name} {local!r} to {peer!r}")
    return sorted(found)


def live_threads() -> set[threading.Thread]:
    """Threads that would keep the process alive."""
    return {thread for thread in threading.enumerate() if thread.is_alive() and not thread.daemon}


@pytest.fixture(autouse=True)
def nothing_left_behind(monkeypatch: pytest.MonkeyPatch) -> t.Iterator[None]:
    """Fail a test that leaves a task, a thread that is not a daemon, or an open socket."""
    left: list[str] = []
    cancel_all = asyncio.runners._cancel_all_tasks

    def record(loop: asyncio.AbstractEventLoop) -> None:
        # Called when a runner closes its loop, after all fixtures of the test: the last place where tasks can be seen.
        tasks = asyncio.all_tasks(loop)
        if tasks:
            _done, waiting = loop.run_until_complete(asyncio.wait(tasks, timeout=GRACE))
            left.extend(f"task {task.get_coro()!r}" for task in waiting)
        cancel_all(loop)

    monkeypatch.setattr(asyncio.runners, "_cancel_all_tasks", record)
    threads = live_threads()
    sockets = socket_numbers()
    yield
    # What this test dropped without closing complains now, not in the middle of another test. Young objects only: a
    # full collection for each test would take longer than the tests.
    gc.collect(1)
    for thread in live_threads() - threads:
        thread.join(GRACE)
        if thread.is_alive():
            left.append(f"thread {thread.name}")
    new = socket_numbers() - sockets
    if new:
        left.extend(f"socket {text}" for text in open_sockets(new))
    if left:
        pytest.fail("the test left behind: " + "; ".join(left), pytrace=False)
