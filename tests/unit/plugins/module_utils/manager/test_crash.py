# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A process is killed at every step of prepare and unprepare; then a new one must be able to go on.

Real processes, real files, real drivers in processes of their own. What must hold after each kill:

* the state file is one that a kubelet reads;
* a claim that a driver prepared is in it, whether or not anybody was told; one that was reported as prepared is in it
  with its devices; one that was reported as unprepared is in neither;
* a new manager takes it up: for a pod that lives on, prepare gives the driver's devices, each once; for a pod that is
  gone, reconcile leaves nothing, neither in the file nor with a driver.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.claims import ClaimState, claim_states
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.document import Document
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.formats import NEWEST
from ansible_collections.nodeops.dra.plugins.module_utils.driver.registry import DriverRegistry
from ansible_collections.nodeops.dra.plugins.module_utils.manager.manager import DraManager
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_control import ask
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager import crash_child
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.crash_scenarios import (
    CLAIMS,
    DRIVERS,
    SCENARIOS,
    claims_of,
    pod_with,
)

SANDBOX = "ansible_collections.nodeops.dra.plugins.module_utils.sandbox"
EVERY = "DRA_EVERY_CRASH_POINT"
"""With this variable set, every point is tried in both ways, else every sixth."""

STATE = "dra_manager_state"


class Crashes:
    """A node directory with two driver processes, and a process that makes children which kill themselves."""

    def __init__(self, root: pathlib.Path, forker: subprocess.Popen[str]) -> None:
        self.root = root
        self._forker = forker

    def run(self, scenario: str, kill_at: int) -> int:
        """Run a scenario in a child of its own; return how it ended: 0, or -9 when it was killed."""
        assert self._forker.stdin is not None
        assert self._forker.stdout is not None
        request = {"root": str(self.root), "scenario": scenario, "kill_at": kill_at}
        self._forker.stdin.write(json.dumps(request) + "\n")
        self._forker.stdin.flush()
        answer = self._forker.stdout.readline()
        assert answer, f"the process that makes children ended with status {self._forker.wait()}"
        return int(answer)

    def steps(self) -> list[str]:
        return (self.root / "steps").read_text().splitlines()

    def done(self) -> list[str]:
        return (self.root / "done").read_text().splitlines()

    def state(self) -> dict[str, ClaimState]:
        path = self.root / STATE
        if not path.exists():
            return {}
        reading = Document(path.read_bytes()).read_as(NEWEST)
        assert reading.ok, reading.go_message
        return {one.uid: one for one in claim_states(reading.claims)}

    def clear(self) -> None:
        for path in self.root.iterdir():
            if path.is_file():
                path.unlink()

    async def held(self) -> dict[str, dict[str, list[str]]]:
        """Driver to claim UID to CDI names of what it holds, once it has nothing more to do."""
        found = {}
        for name in DRIVERS:
            control = str(self.root / "plugins" / name / "control.sock")
            while any(call["ended"] is None for call in (await ask(control, "calls"))["calls"]):
                pass  # each question lets the driver work
            claims = (await ask(control, "prepared"))["claims"]
            found[name] = {uid: [cdi for d in one["devices"] for cdi in d["cdi_ids"]] for uid, one in claims.items()}
        return found


@contextlib.contextmanager
def crashes() -> t.Iterator[Crashes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with tempfile.TemporaryDirectory(prefix="dra-") as folder, contextlib.ExitStack() as stack:
        root = pathlib.Path(folder)
        for name in DRIVERS:
            command = [sys.executable, "-m", SANDBOX, "driver", "--driver", name, "--devices", "1000", "--api", "v1"]
            command += ["--kubelet-root", folder, "--cdi-dir", f"{folder}/cdi"]
            driver = stack.enter_context(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
            stack.callback(driver.terminate)
            assert driver.stdout is not None
            assert driver.stdout.readline().startswith("ready")
        forker = subprocess.Popen(
            [sys.executable, "-m", crash_child.__name__],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.enter_context(forker)
        yield Crashes(root, forker)
        assert forker.stdin is not None
        forker.stdin.close()


@pytest.fixture(scope="module")
def node() -> t.Iterator[Crashes]:
    with crashes() as made:  # pylint: disable=contextmanager-generator-missing-cleanup
        yield made


async def check_after_crash(node: Crashes, scenario: str, where: str) -> None:
    """What must hold before anybody has repaired anything."""
    state, held, done = node.state(), await node.held(), node.done()
    for driver, claims in held.items():
        assert set(claims) <= set(state), f"{where}: {driver} holds {sorted(claims)}, recorded are {sorted(state)}"
        for uid in claims:
            assert driver in state[uid].drivers, f"{where}: {driver} would never be told to unprepare {uid}"
    operations = SCENARIOS[scenario].operations
    last = {pod: (operation, names) for operation, pod, names in operations[: len(done)]}
    under_way = {pod for _operation, pod, _names in operations[len(done) : len(done) + 1]}
    for pod in set(last) - under_way:
        operation, names = last[pod]
        mine = {one.name for one in state.values() if pod in one.pod_uids}
        assert mine == (set(names) if operation == "prepare" else set()), f"{where}: {operation} {pod} was reported"
        for one in state.values():
            assert pod not in one.pod_uids or None not in one.drivers.values(), (
                f"{where}: devices of {one.uid} are lost"
            )


async def go_on(node: Crashes, registry: DriverRegistry, scenario: str, where: str) -> None:
    """The pods live on: they are prepared again by a new process."""
    manager = await DraManager.open(crash_child.manager_settings(node.root), registry)
    async with manager:
        for operation, pod_uid, names in SCENARIOS[scenario].operations:
            if operation == "prepare":
                await manager.prepare(pod_with(pod_uid, names), claims_of(names))
                got = manager.resources_for(pod_with(pod_uid, names), "main")
                held = await node.held()
                uids = {CLAIMS[name]["metadata"]["uid"] for name in names}
                given = sorted(cdi for one in held.values() for uid in uids for cdi in one.get(uid, ()))
                assert sorted(got) == given, where
        for report in manager.claims():
            for devices in report.record.state.drivers.values():
                assert len(devices or ()) == 1, f"{where}: {report.record.state}"


async def let_go(node: Crashes, registry: DriverRegistry, where: str) -> None:
    """The pods are gone: nothing may stay."""
    async with await DraManager.open(crash_child.manager_settings(node.root), registry) as manager:
        done = await manager.reconcile(set)
        assert done.failures == [], where
    assert node.state() == {}, where
    assert await node.held() == {name: {} for name in DRIVERS}, where
    rest = sorted(path.name for path in node.root.iterdir() if path.name.startswith("."))
    assert not [name for name in rest if "twin" in name], f"{where}: {rest}"


@pytest.mark.report("F044")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_kill_at_any_step_loses_nothing(
    node: Crashes, scenario: str, record_property: t.Callable[[str, object], None]
) -> None:
    async def scene() -> tuple[int, int]:
        async with DriverRegistry(node.root / "plugins_registry", notify=False) as registry:
            for name in DRIVERS:
                await registry.wait_for(name, 10)
            node.clear()
            assert await asyncio.to_thread(node.run, scenario, 0) == 0
            steps = node.steps()
            tried = 0
            for point in range(1, len(steps) + 1):
                where = f"{scenario}, killed before step {point} ({steps[point - 1]})"
                for survives in (True, False):
                    if EVERY not in os.environ and (point + survives) % 6:
                        continue
                    node.clear()
                    assert await asyncio.to_thread(node.run, scenario, point) == -9, where
                    await check_after_crash(node, scenario, where)
                    if survives:
                        await go_on(node, registry, scenario, where)
                    await let_go(node, registry, where)
                    tried += 1
            return len(steps), tried

    points, tried = asyncio.run(scene())
    record_property("crash points", points)
    record_property("crashes", tried)
    sys.stdout.write(f"{scenario}: {points} crash points, {tried} crashes, nothing lost\n")
    assert points > 20
