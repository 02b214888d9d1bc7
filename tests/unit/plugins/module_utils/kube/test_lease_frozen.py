# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A leader that is frozen for longer than its lease and wakes up in the middle of its work."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import signal
import sys
import time
import typing as t

import pytest

from .lease_api import LeaseApi, lease_api

HERE = pathlib.Path(__file__).resolve().parent
DURATION = 3.0


@contextlib.asynccontextmanager
async def candidate(api: LeaseApi, identity: str) -> t.AsyncIterator[asyncio.subprocess.Process]:
    """A process that wants the lease; ended at the end."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(HERE / "lease_process.py"),
        api.url,
        identity,
        str(DURATION),
        env=environment,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
            process.kill()
        await process.communicate()


@pytest.mark.slow
@pytest.mark.report("F070")
@pytest.mark.asyncio
async def test_a_leader_that_was_frozen_writes_nothing_more() -> None:
    async with lease_api() as api, candidate(api, "a") as first, asyncio.timeout(50):
        await api.arrived(20, "/resourceclaims/")
        async with candidate(api, "b") as second:
            await api.arrived(1, "GET /apis/coordination")
            first.send_signal(signal.SIGSTOP)
            frozen = time.monotonic()
            # The other one takes over and writes; the frozen one sleeps for two lease times.
            while not api.writes_of("b") or time.monotonic() < frozen + 2 * DURATION:
                await api.arrived(len(api.seen("/leases/")) + 1, "/leases/")
            before = len(api.writes_of("a"))
            others = len(api.writes_of("b"))
            first.send_signal(signal.SIGCONT)
            _out, said = await first.communicate()
            assert first.returncode not in (0, None), "losing the lease must end the process with a failure"
            assert b"lease" in said
            await api.arrived(len(api.seen("/leases/")) + 2, "/leases/")
            assert len(api.writes_of("a")) == before
            assert len(api.writes_of("b")) > others
            assert second.returncode is None
    assert api.writes_of("b")[0].at - frozen >= DURATION * 0.85, "the lease was taken before it had run out"
    assert max(write.at for write in api.writes_of("a")) < min(write.at for write in api.writes_of("b"))
    assert all(write.holder == write.writer for write in api.writes)
