# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""How many pods the manager prepares, beside what the original does with the same driver and the same disk.

The driver is the simulated one in a process of its own, over gRPC. Rounds of both sides take turns, so that whatever
else the machine does meets both. Latencies are those of single pods, in milliseconds; ``driver`` is the part spent in
the call.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import typing as t

import bench_driver
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.claims import (
    ClaimState,
    Device,
    assemble,
    encode,
)
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.store import StateDirectory
from ansible_collections.nodeops.dra.plugins.module_utils.driver.registry import DriverRegistry
from ansible_collections.nodeops.dra.plugins.module_utils.manager.manager import DraManager
from ansible_collections.nodeops.dra.plugins.module_utils.manager.observer import Observer
from ansible_collections.nodeops.dra.plugins.module_utils.manager.opening import Settings
from ansible_collections.nodeops.dra.plugins.module_utils.manager.planning import holder_of, plan_pod
from original import Original

Json = dict[str, t.Any]

SIZES = (100, 1000, 5000)
AT_A_TIME = (1, 16)
PODS = 64
"""Pods of one round: prepared, then unprepared, on top of the claims that stay."""
SECONDS = 2.5
"""How long each side is measured at least, for each size and each number at a time."""
HERE = pathlib.Path(__file__).resolve()


class Side(t.Protocol):
    async def prepare(self, pod: Json, claim: Json) -> None: ...

    async def unprepare(self, pod: Json, claim: Json) -> None: ...

    def disk_use(self) -> tuple[int, int]: ...


class Ours:
    def __init__(self, manager: DraManager) -> None:
        self._manager = manager

    async def prepare(self, pod: Json, claim: Json) -> None:
        await self._manager.prepare(pod, [claim])

    async def unprepare(self, pod: Json, _claim: Json) -> None:
        await self._manager.unprepare(pod["metadata"]["uid"])

    def disk_use(self) -> tuple[int, int]:
        return self._manager.disk_use()


class Theirs:
    def __init__(self, original: Original) -> None:
        self._original = original

    async def prepare(self, pod: Json, claim: Json) -> None:
        (plan,) = plan_pod(pod, [claim])
        await self._original.prepare(holder_of(pod), plan)

    async def unprepare(self, pod: Json, claim: Json) -> None:
        (plan,) = plan_pod(pod, [claim])
        await self._original.unprepare(plan)

    def disk_use(self) -> tuple[int, int]:
        return self._original.bytes_written, self._original.syncs


class CallTimes(Observer):
    """Seconds of each driver call."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def driver_call(self, driver: str, method: str, seconds: float, code: str) -> None:
        self.seconds.append(seconds)


@dataclasses.dataclass
class Measured:
    """What one side did in all of its rounds; latencies and times in seconds."""

    prepare: list[float] = dataclasses.field(default_factory=list)
    unprepare: list[float] = dataclasses.field(default_factory=list)
    prepare_time: float = 0.0
    unprepare_time: float = 0.0
    bytes_written: int = 0
    syncs: int = 0
    calls: list[float] = dataclasses.field(default_factory=list)

    @property
    def prepared_per_second(self) -> float:
        return len(self.prepare) / self.prepare_time

    @property
    def mean(self) -> float:
        return statistics.fmean(self.prepare) * 1000

    def quantile(self, share: float) -> float:
        return sorted(self.prepare)[min(int(share * len(self.prepare)), len(self.prepare) - 1)] * 1000

    def row(self) -> str:
        pods = len(self.prepare)
        return (
            f"{self.prepared_per_second:>10.0f}{self.mean:>8.1f}{self.quantile(0.5):>8.1f}{self.quantile(0.99):>8.1f}"
            f"{statistics.fmean(self.calls) * 1000:>8.1f}{len(self.unprepare) / self.unprepare_time:>12.0f}"
            f"{self.bytes_written / pods / 1000:>9.1f}{self.syncs / pods:>9.2f}{pods:>7}"
        )


HEAD = (
    f"{'claims':>6}{'at once':>9} {'side':<9}{'prepared/s':>10}{'mean':>8}{'p50':>8}{'p99':>8}{'driver':>8}"
    f"{'unprepared/s':>12}{'kB/pod':>9}{'syncs/pod':>10}{'pods':>6}"
)


def standing(count: int) -> list[ClaimState]:
    """The claims that are on the node before and after."""
    return [
        ClaimState(
            f"5ca1ab1e-0000-4000-8000-{number:012d}",
            f"standing-{number}",
            "default",
            frozenset({f"b0d1e500-0000-4000-8000-{number:012d}"}),
            {
                bench_driver.NAME: (
                    Device("node-1", f"gpu-{number}", ("req-0",), (f"k8s.{bench_driver.NAME}/claim={number}-gpu",)),
                )
            },
        )
        for number in range(count)
    ]


def pod_and_claim(number: int) -> tuple[Json, Json]:
    """A pod and the claim that was allocated for it."""
    pod_uid, claim_uid = f"90d00000-0000-4000-8000-{number:012d}", f"c1a10000-0000-4000-8000-{number:012d}"
    metadata = {"namespace": "default", "name": f"work-{number}"}
    result = {"request": "req-0", "driver": bench_driver.NAME, "pool": "node-1", "device": f"new-gpu-{number}"}
    pod = {
        "metadata": {**metadata, "uid": pod_uid},
        "spec": {
            "resourceClaims": [{"name": "gpu", "resourceClaimName": metadata["name"]}],
            "containers": [{"name": "main", "resources": {"claims": [{"name": "gpu"}]}}],
        },
    }
    claim = {
        "metadata": {**metadata, "uid": claim_uid},
        "spec": {"devices": {"requests": [{"name": "req-0", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": metadata["name"], "uid": pod_uid}],
        },
    }
    return pod, claim


async def timed_all(work: t.Iterable[t.Callable[[], t.Awaitable[None]]], at_a_time: int) -> tuple[list[float], float]:
    """Do all of it, so many at a time; return the seconds of each, and of all together."""
    waiting = iter(list(work))
    seconds: list[float] = []

    async def worker() -> None:
        for one in waiting:
            start = time.perf_counter()
            await one()
            seconds.append(time.perf_counter() - start)

    start = time.perf_counter()
    await asyncio.gather(*(worker() for _unused in range(at_a_time)))
    return seconds, time.perf_counter() - start


async def one_round(side: Side, measured: Measured, calls: CallTimes, numbers: t.Iterable[int], at_a_time: int) -> None:
    made = [pod_and_claim(number) for number in numbers]
    before = side.disk_use()
    calls.seconds.clear()
    each, together = await timed_all([lambda o=one: side.prepare(*o) for one in made], at_a_time)  # type: ignore[misc]
    after = side.disk_use()
    measured.prepare += each
    measured.prepare_time += together
    measured.bytes_written += after[0] - before[0]
    measured.syncs += after[1] - before[1]
    measured.calls += calls.seconds
    each, together = await timed_all([lambda o=one: side.unprepare(*o) for one in made], at_a_time)  # type: ignore[misc]
    measured.unprepare += each
    measured.unprepare_time += together


async def measure(root: pathlib.Path, size: int, at_a_time: int) -> tuple[Measured, Measured]:
    """Both sides with so many standing claims and pods at a time."""
    claims = standing(size)
    content = assemble(encode(claim) for claim in claims)
    folders = [root / "ours", root / "theirs"]
    for folder in folders:
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        (folder / "dra_manager_state").write_bytes(content)
    calls = CallTimes()
    ours, theirs = Measured(), Measured()
    async with contextlib.AsyncExitStack() as stack:
        registry = await stack.enter_async_context(DriverRegistry(root / "plugins_registry"))
        await registry.wait_for(bench_driver.NAME, 10)
        # The CDI check is another matter: this driver writes no files.
        settings = Settings(str(folders[0]), cdi_policy="off")
        manager = await stack.enter_async_context(await DraManager.open(settings, registry, observer=calls))
        directory = stack.enter_context(StateDirectory(folders[1]))
        original = Original(directory, "dra_manager_state", claims, registry, calls)
        sides: list[tuple[Side, Measured]] = [(Ours(manager), ours), (Theirs(original), theirs)]
        next_number = 0
        for side, _measured in sides:  # connections and caches, the second copy of a large file
            await one_round(side, Measured(), calls, range(1_000_000, 1_000_000 + 16), at_a_time)
        while min(one.prepare_time for _side, one in sides) < SECONDS:
            for side, measured in sides:
                if measured.prepare_time < SECONDS:
                    await one_round(side, measured, calls, range(next_number, next_number + PODS), at_a_time)
                    next_number += PODS
    return ours, theirs


def run() -> t.Iterator[str]:
    """The lines of the table."""
    build = HERE.parents[2] / ".build"
    build.mkdir(exist_ok=True)
    found: dict[tuple[int, int], tuple[Measured, Measured]] = {}
    # On the disk of the checkout: /tmp may be memory. Sockets go where their paths are short.
    with tempfile.TemporaryDirectory(prefix="bench-", dir=build) as files, tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("ours", "theirs"):
            (pathlib.Path(files) / name).mkdir()
            (root / name).symlink_to(pathlib.Path(files) / name)
        command = [sys.executable, str(HERE.with_name("bench_driver.py")), folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
            assert driver.stdout is not None
            assert driver.stdout.readline() == "ready\n"
            yield "Pods prepared beside claims that stand; one claim and one driver a pod; latencies in ms"
            yield HEAD
            for size in SIZES:
                for at_a_time in AT_A_TIME:
                    found[size, at_a_time] = ours, theirs = asyncio.run(measure(root, size, at_a_time))
                    yield f"{size:>6}{at_a_time:>9} {'ours':<9}{ours.row()}"
                    yield f"{'':>15} {'original':<9}{theirs.row()}"
            driver.terminate()
    yield from targets(found)


def targets(found: t.Mapping[tuple[int, int], tuple[Measured, Measured]]) -> t.Iterator[str]:
    ours, theirs = found[1000, 16]
    single, single_theirs = found[1000, 1]
    rows = [
        (
            "1000 claims, 16 at once: times the original",
            ours.prepared_per_second / theirs.prepared_per_second,
            ">=",
            5.0,
        ),
        ("1000 claims, 16 at once: pods/s", ours.prepared_per_second, ">=", 400.0),
        ("1000 claims, 16 at once: mean latency, ms", ours.mean, "<", 50.0),
        (
            "1000 claims, 1 at a time: times the original",
            single.prepared_per_second / single_theirs.prepared_per_second,
            ">=",
            2.0,
        ),
    ]
    rows += [
        (
            f"{at_a_time} at a time: p50 at 5000 claims, times that at 100",
            found[5000, at_a_time][0].quantile(0.5) / found[100, at_a_time][0].quantile(0.5),
            "<=",
            1.5,
        )
        for at_a_time in AT_A_TIME
    ]
    for text, value, sign, limit in rows:
        met = value >= limit if sign == ">=" else value <= limit
        yield f"{text:<60}{value:>8.1f}  wanted {sign} {limit:g}{'' if met else '   NOT MET'}"
