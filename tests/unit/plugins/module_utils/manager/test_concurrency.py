# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Many pods at once, shared claims, failing drivers, and cancellations at every await."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import pathlib
import tempfile
import types
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.manager.claim_table import Phase
from ansible_collections.nodeops.dra.plugins.module_utils.manager.observer import Observer
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.node import Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import (
    GPU,
    NIC,
    Json,
    claim,
    device,
    pod,
)
from hypothesis import given, settings
from hypothesis import strategies as st

PODS, DRIVERS, CLAIMS = 64, 8, 40
FAULTS = (
    "",
    "claim_error:times=2",
    "error_after:times=2",
    "skip:times=1",
    "slow:seconds=0.01,times=5",
    "blank:times=3",
)


class Invariants(Observer):
    """Looks at everything after each write and each call, and remembers what it saw wrong."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.broken: list[str] = []
        self.looks = 0
        self.writes = 0

    def write(self, seconds: float, claims: int, commits: int, failed: bool) -> None:
        self.writes += 1
        self.look(f"after write {self.writes}")

    def driver_call(self, driver: str, method: str, seconds: float, code: str) -> None:
        self.look(f"after {method} of {driver}", disk=False, drivers=[driver])

    def look(self, where: str, *, disk: bool = True, drivers: t.Iterable[str] = ()) -> None:
        self.looks += 1
        self.broken += [f"{where}: {what}" for what in self._wrong(disk, drivers)]

    def _wrong(self, disk: bool, drivers: t.Iterable[str]) -> t.Iterator[str]:
        context = self._node.manager._context
        records = {uid: record.state for uid, record in context.journal.records.items()}
        if disk:
            on_disk = self._node.state()
            if on_disk != records:
                yield f"the file has {sorted(on_disk)}, memory {sorted(records)}"
        holders: dict[t.Any, str] = {}
        for entry in context.table:
            state = records.get(entry.uid)
            if entry.phase is Phase.PREPARED and (state is None or None in state.drivers.values()):
                yield f"{entry.uid} counts as prepared and is recorded as {state}"
            if state is not None and not set(entry.called) <= set(state.drivers):
                yield f"{entry.uid}: {entry.called} were called, recorded are {sorted(state.drivers)}"
            for one in entry.allocated or ():
                other = holders.setdefault(one.key, entry.uid)
                if other != entry.uid:
                    yield f"{one} is held by {other} and {entry.uid}"
        for name in drivers or self._node.simulated:
            for uid in self._node.simulated[name].prepared():
                if uid not in records or name not in records[uid].drivers:
                    yield f"{name} holds {uid}, which is not recorded"


def overlapping_calls(node: Node) -> list[str]:
    """Claims that were worked on by two calls of one driver at a time."""
    found = []
    for name, driver in node.simulated.items():
        last: dict[str, float] = {}
        for call in driver.calls:
            for uid in call.uids:
                if call.started < last.get(uid, 0.0):
                    found.append(f"{name} {call.method} {uid}")
                last[uid] = max(last.get(uid, 0.0), call.ended or float("inf"))
    return found


@contextlib.asynccontextmanager
async def new_node() -> t.AsyncIterator[Node]:
    with tempfile.TemporaryDirectory(prefix="dra-") as folder:
        async with Node(pathlib.Path(folder)) as node:
            yield node


@types.coroutine
def counted(
    work: t.Coroutine[t.Any, t.Any, t.Any], on_wait: t.Callable[[int], None]
) -> t.Generator[t.Any, t.Any, t.Any]:
    """Run work, and call ``on_wait`` with a number each time right before it waits."""
    steps = work.__await__()
    send: t.Callable[[], t.Any] = lambda: next(steps)  # noqa: E731
    for number in itertools.count():
        try:
            waits_for = send()
        except StopIteration as end:
            return end.value
        on_wait(number)
        try:
            answer = yield waits_for
        except BaseException as error:
            send = functools.partial(steps.throw, error)
        else:
            send = functools.partial(steps.send, answer)


async def cancelled_at(work: t.Coroutine[t.Any, t.Any, t.Any], await_number: int, turns: int) -> bool:
    """Cancel work that many turns of the loop after it began to wait for the given time; tell whether it came so far.

    A DraError counts as an end like any other.
    """
    loop = asyncio.get_running_loop()
    reached = False

    def cancel(left: int) -> None:
        if left:
            loop.call_soon(cancel, left - 1)
        else:
            task.cancel()

    def on_wait(number: int) -> None:
        nonlocal reached
        if number == await_number:
            reached = True
            cancel(turns)

    async def run() -> t.Any:
        return await counted(work, on_wait)

    task = asyncio.ensure_future(run())
    await asyncio.wait([task])
    if not task.cancelled() and not isinstance(task.exception(), DraError):
        task.result()
    return reached


# Every await of one operation


async def one_pod(node: Node) -> list[Json]:
    claims = [
        claim("c1", "u-1", device("dev-0"), device("nic-0", NIC, request="r1"), pods=["p-1", "p-2"]),
        claim("c2", "u-2", device("dev-1"), pods=["p-1"]),
    ]
    node.claims.update({one["metadata"]["uid"]: one for one in claims})
    return claims


@pytest.mark.asyncio
@pytest.mark.parametrize("turns", [0, 2, 20])
async def test_prepare_can_be_cancelled_at_every_await(node: Node, turns: int) -> None:
    await node.add_driver(GPU)
    await node.add_driver(NIC)
    watch = Invariants(node)
    manager = await node.start(observer=watch)
    claims = await one_pod(node)
    reached, number = True, -1
    while reached:
        number += 1
        reached = await cancelled_at(manager.prepare(pod("p-1", "c1", "c2"), claims), number, turns)
        watch.look(f"cancelled at await {number}")
        assert len(manager._context.locks) == 0
        await manager.unprepare("p-1")
        watch.look(f"unprepared after await {number}")
        assert node.state() == {}
    assert number > 3
    assert watch.broken == []
    for driver in node.simulated.values():
        await driver.wait_for(lambda driver=driver: all(call.ended for call in driver.calls))  # type: ignore[misc]
        assert driver.prepared() == {}


@pytest.mark.asyncio
@pytest.mark.parametrize("turns", [0, 2, 20])
async def test_unprepare_can_be_cancelled_at_every_await(node: Node, turns: int) -> None:
    await node.add_driver(GPU)
    await node.add_driver(NIC)
    watch = Invariants(node)
    manager = await node.start(observer=watch)
    claims = await one_pod(node)
    reached, number = True, -1
    while reached:
        number += 1
        await manager.prepare(pod("p-1", "c1", "c2"), claims)
        await manager.prepare(pod("p-2", "c1"), claims)
        reached = await cancelled_at(manager.unprepare("p-1"), number, turns)
        watch.look(f"cancelled at await {number}")
        assert len(manager._context.locks) == 0
        assert ("p-1" in node.state()["u-1"].pod_uids) == ("u-2" in node.state()), "one write, all or nothing"
        await manager.unprepare("p-1")
        await manager.unprepare("p-2")
        assert node.state() == {}
    assert number >= 2
    assert watch.broken == []


# Many at once


def claim_number(number: int, drivers: t.Sequence[int], pods: t.Iterable[str]) -> Json:
    results = [device(f"dev-{number}", f"d{one}.test.example", request=f"r{one}") for one in drivers]
    return claim(f"c{number}", f"u-{number}", *results, pods=list(pods))


class Plan(t.NamedTuple):
    drivers_of_claim: list[list[int]]
    claims_of_pod: list[list[int]]
    steps_of_pod: list[list[tuple[str, int, int]]]
    faults: list[str]


plans = st.builds(
    Plan,
    drivers_of_claim=st.lists(
        st.lists(st.integers(0, DRIVERS - 1), min_size=1, max_size=3, unique=True), min_size=CLAIMS, max_size=CLAIMS
    ),
    claims_of_pod=st.lists(
        st.lists(st.integers(0, CLAIMS - 1), min_size=1, max_size=3, unique=True), min_size=PODS, max_size=PODS
    ),
    steps_of_pod=st.lists(
        st.lists(
            st.tuples(st.sampled_from(["prepare", "unprepare"]), st.integers(0, 16), st.integers(0, 30)),
            min_size=1,
            max_size=4,
        ),
        min_size=PODS,
        max_size=PODS,
    ),
    faults=st.lists(st.sampled_from(FAULTS), min_size=DRIVERS, max_size=DRIVERS),
)


@given(plan=plans)
@settings(max_examples=4, deadline=None)
@pytest.mark.timeout(300)
def test_many_pods_at_once_leave_a_consistent_node(plan: Plan) -> None:
    async def scene() -> None:
        async with new_node() as node:
            for number, fault in enumerate(plan.faults):
                await node.add_driver(f"d{number}.test.example", *filter(None, [fault]))
            watch = Invariants(node)
            manager = await node.start(observer=watch)
            users = {
                number: [f"p-{p}" for p, used in enumerate(plan.claims_of_pod) if number in used]
                for number in range(CLAIMS)
            }
            claims = [claim_number(n, plan.drivers_of_claim[n], users[n]) for n in range(CLAIMS)]
            node.claims.update({one["metadata"]["uid"]: one for one in claims})

            async def live(number: int) -> None:
                uid, used = f"p-{number}", plan.claims_of_pod[number]
                made = pod(uid, *(f"c{one}" for one in used))
                for what, awaits, turns in plan.steps_of_pod[number]:
                    work = (
                        manager.prepare(made, [claims[one] for one in used])
                        if what == "prepare"
                        else manager.unprepare(uid)
                    )
                    # Half of them are left to end by themselves.
                    await cancelled_at(t.cast("t.Any", work), awaits, turns)

            async with asyncio.TaskGroup() as group:
                for number in range(PODS):
                    group.create_task(live(number))
            assert len(manager._context.locks) == 0
            for driver in node.simulated.values():
                driver.faults.clear()
                await driver.wait_for(lambda driver=driver: all(call.ended for call in driver.calls))  # type: ignore[misc]
            watch.look("at the end")
            done = await manager.reconcile(set, obey_backoff=False)
            assert done.failures == []
            watch.look("after the last pod")
            assert watch.broken == []
            assert overlapping_calls(node) == []
            assert node.state() == {}
            assert manager.claims() == []
            assert all(driver.prepared() == {} for driver in node.simulated.values())
            assert watch.looks > 0

    asyncio.run(scene())
