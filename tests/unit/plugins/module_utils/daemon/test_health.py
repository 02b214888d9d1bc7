# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Health checks: deadlines, probes that hang, sharing of results."""

from __future__ import annotations

import asyncio
import threading
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.health import (
    BlockingProbe,
    Check,
    Degraded,
    Health,
    Standby,
    State,
)

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]


def check(name: str, probe: t.Callable[[], t.Awaitable[t.Any]], **options: t.Any) -> Check:
    """A check."""
    return Check(name, probe, "For a test.", **options)


def health(*checks: Check, timeout: float = 5.0) -> Health:
    """Health over these checks."""
    made = Health(timeout)
    made.use(checks)
    return made


async def hang() -> None:
    """Never answers."""
    await asyncio.Event().wait()


async def well() -> str:
    """Answers."""
    return "2 of 2"


async def no_api() -> None:
    """Fails."""
    raise DraError("No API.", "Look.")


async def bug() -> None:
    """Has a bug."""
    raise KeyError("k")


async def no_file() -> None:
    """Fails by the system."""
    raise OSError(28, "No space left on device")


async def one_dead() -> Degraded:
    """Half well."""
    return Degraded("driver a is dead")


async def test_each_check_has_its_line_and_failures_decide() -> None:
    checks = [("a", well), ("b", one_dead), ("c", no_api), ("d", no_file), ("e", bug)]
    report = await health(*(check(name, probe) for name, probe in checks)).look()
    assert report.failed
    assert report.lines() == [
        "[+]a ok: 2 of 2",
        "[!]b degraded: driver a is dead",
        "[-]c failed: No API. Look.",
        "[-]d failed: [Errno 28] No space left on device",
        "[-]e failed: ended by a bug (KeyError), see the log",
    ]
    assert report.summary().startswith("failed: b: driver a is dead; c: No API.")


@pytest.mark.report("F107")
async def test_one_dead_driver_shows_but_does_not_fail() -> None:
    report = await health(check("a", well), check("drivers", one_dead)).look()
    assert not report.failed
    assert report.summary() == "degraded: drivers: driver a is dead"


async def test_a_daemon_that_rests_is_ready_and_says_so() -> None:
    async def rests() -> Standby:
        return Standby("b leads")

    report = await health(check("lease", rests), check("api", well)).look()
    assert not report.failed
    assert report.summary() == "standby: b leads"
    assert "[+]lease ok: b leads" in report.lines()
    assert (await health(check("lease", rests), check("api", no_api)).look()).summary().startswith("failed: api")


async def test_a_hanging_probe_fails_by_its_deadline_and_holds_no_other() -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()
    report = await health(check("a", hang, deadline=2.0), check("b", well)).look()
    assert loop.time() - start == pytest.approx(2.0)
    assert report.lines() == ["[-]a failed: no answer within 2.0 s", "[+]b ok: 2 of 2"]


async def test_the_asker_may_have_less_time_than_the_check() -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()
    assert (await health(check("a", hang)).look(longest=0.5)).failed
    assert loop.time() - start == pytest.approx(0.5)


async def test_live_checks_are_asked_alone() -> None:
    report = await health(check("a", well, live=True), check("b", no_api)).look(live_only=True)
    assert [outcome.check.name for outcome in report.outcomes] == ["a"]
    assert report.summary() == "ready"


async def test_many_askers_cost_one_probe_and_a_young_result_is_shared() -> None:
    calls: list[float] = []

    async def slow() -> None:
        calls.append(asyncio.get_running_loop().time())
        await asyncio.sleep(2.0)

    made = health(check("a", slow))
    reports = await asyncio.gather(*(made.look() for _number in range(5)))
    assert [report.failed for report in reports] == [False] * 5
    await made.look()
    assert len(calls) == 1
    await asyncio.sleep(1.5)
    await made.look()
    assert len(calls) == 2


async def test_a_probe_that_cannot_be_cancelled_is_not_started_a_second_time() -> None:
    calls: list[int] = []
    let_go = asyncio.Event()

    async def stubborn() -> None:
        calls.append(1)
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    made = health(check("a", stubborn), timeout=1.0)
    for _number in range(3):
        assert (await made.look()).failed
        await asyncio.sleep(2.0)
    assert len(calls) == 1
    let_go.set()
    await asyncio.sleep(2.0)
    assert not (await made.look()).failed
    assert len(calls) == 2


async def test_a_probe_recovers_after_it_hung() -> None:
    probes = [hang, well]

    async def probe() -> t.Any:
        return await probes.pop(0)()

    made = health(check("a", probe), timeout=1.0)
    assert (await made.look()).failed
    await asyncio.sleep(1.5)
    assert not (await made.look()).failed


async def test_a_report_of_its_last_state_goes_to_the_observer() -> None:
    seen: list[tuple[str, State]] = []

    class Watching:
        def checked(self, outcome: t.Any) -> None:
            seen.append((outcome.check.name, outcome.state))

    made = Health(5.0, Watching())
    made.use([check("a", well), check("b", hang)])
    await made.look()
    assert seen == [("a", State.OK), ("b", State.FAILED)]


async def test_two_checks_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two checks"):
        health(check("a", well), check("a", well))


async def test_closing_ends_probes_under_way() -> None:
    made = health(check("a", hang))
    asker = asyncio.create_task(made.look())
    await asyncio.sleep(0.1)
    await made.close()
    assert (await asker).failed


async def test_a_blocking_probe_hangs_in_one_thread_only() -> None:
    let_go = threading.Event()
    calls: list[str] = []

    def blocks() -> str:
        calls.append(threading.current_thread().name)
        let_go.wait()
        return "written"

    probe = BlockingProbe(blocks, "disk")
    made = health(check("disk", probe), timeout=1.0)
    for _number in range(3):
        assert (await made.look()).failed
        await asyncio.sleep(2.0)
    assert calls == ["disk"]
    let_go.set()
    assert await probe() == "written"


async def test_a_blocking_probe_tells_its_failure() -> None:
    def fails() -> None:
        raise DraError("Read-only.")

    with pytest.raises(DraError, match="Read-only"):
        await BlockingProbe(fails)()
