# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around an agent, and how it has to take it: stay up, tell, go on by itself."""

from __future__ import annotations

import asyncio
import contextlib
import json
import pathlib
import subprocess
import time
import typing as t

from ansible_collections.nodeops.dra.tests.soak.agent_chaos_node import GPU, NIC, ChaosNode, Row, chaos_node
from ansible_collections.nodeops.dra.tests.soak.agent_invariants import STATE, at_rest
from ansible_collections.nodeops.dra.tests.soak.agent_load import NS, POD
from ansible_collections.nodeops.dra.tests.soak.agent_node import MODULES, start, until

CROWD = 10_000
DAY = 86_400
LEADS = "caches are full"
DEGRADED = "nodeops_dra_degraded 1.0"
AWAY = ("[-]kubernetes failed", 'nodeops_dra_check_up{check="kubernetes"} 0.0', "api_not_followed")


def check(condition: object, text: str) -> None:
    """Raise AssertionError with ``text`` unless the condition holds."""
    if not condition:
        raise AssertionError(text)


async def finish(chaos: ChaosNode) -> Row:
    """It has to be content again, with what is prepared, recorded and needed the same."""
    await chaos.until_content()
    wrongs = ["not looked yet"]

    async def right() -> bool:
        wrongs[:] = at_rest(chaos.node, chaos.load)
        return not wrongs

    try:
        await until(right, "everything is prepared that is needed, and nothing else")
    except AssertionError:
        raise AssertionError("; ".join(wrongs)) from None
    chaos.memory()
    bugs = [*chaos.said("by a bug"), *chaos.said("Traceback")]
    check(not bugs, f"the log tells of a bug: {bugs}")
    return chaos.row


async def api_gone(root: pathlib.Path) -> Row:
    """The API server is gone for a while: nothing is taken for gone, services are served, and it is found again."""
    async with chaos_node(root) as chaos:
        first = chaos.load.living
        await chaos.proxy.cut()
        await chaos.until_seen(*AWAY, 150)
        await chaos.load.put_service("s-0", wanted=True)
        check(chaos.load.services["s-0"], "a service was not served while the API server was gone")
        await chaos.load.end_pod(first[0])
        late = await chaos.add_pod()
        check(await chaos.are_prepared(first), "a pod lost its devices while nobody knew of its end")
        attempts = chaos.proxy.connections
        await chaos.proxy.mend()
        chaos.mended()
        await chaos.until_prepared(late)
        check(chaos.proxy.connections - attempts < 20, "it came back in a storm of connections")
        return await finish(chaos)


async def silent_watch(root: pathlib.Path) -> Row:
    """Connections to the API server stay open, and nothing comes any more."""
    async with chaos_node(root) as chaos:
        chaos.proxy.silence()
        late = await chaos.add_pod()
        await chaos.until_seen(*AWAY, 180)
        await chaos.proxy.mend()
        chaos.mended()
        await chaos.until_prepared(late)
        return await finish(chaos)


async def hanging_driver(root: pathlib.Path) -> Row:
    """A driver takes calls and never answers: the pods of the other one go on."""
    async with chaos_node(root) as chaos:
        await chaos.node.tell_driver(GPU, "fault", kind="hang")
        for _number in range(5):
            await chaos.add_pod(GPU)
        await chaos.until_prepared(*[await chaos.add_pod(NIC) for _number in range(3)])
        await chaos.until_seen("[!]claims degraded", 'nodeops_dra_check_up{check="claims"} 0.5', "operation_failing")
        await chaos.until_prepared(await chaos.add_pod(NIC))
        await chaos.node.tell_driver(GPU, "clear")
        chaos.mended()
        return await finish(chaos)


async def full_disk(root: pathlib.Path) -> Row:
    """No room on the file system of the state directory."""
    async with mounted(root / "state", "-t", "tmpfs", "-o", "size=256k", "none"), chaos_node(root) as chaos:
        first, fill = chaos.load.living, chaos.node.state / "fill"
        with contextlib.suppress(OSError), fill.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        late = await chaos.add_pod()
        await chaos.until_seen("[-]state failed", DEGRADED, "state_not_writable")
        check(await chaos.are_prepared(first), "what is prepared cannot be used any more")
        check(not await chaos.is_prepared(late), "a pod was prepared that is not recorded")
        fill.unlink()
        chaos.mended()
        return await finish(chaos)


async def read_only(root: pathlib.Path) -> Row:
    """The agent starts on a state directory that is read-only. (The kernel refuses to take that of a running one.)"""
    async with mounted(root / "state", "--bind", str(root / "state")), chaos_node(root) as chaos:
        assert chaos.node.agent is not None
        await chaos.node.agent.end(kill=True)
        await run("mount", "-o", "remount,ro,bind", str(chaos.node.state))
        await chaos.node.start_agent()
        await chaos.node.until_ready()
        late = await chaos.add_pod()
        await chaos.until_seen("[-]state failed", DEGRADED, "state_not_writable")
        check(not await chaos.is_prepared(late), "a pod was prepared that is not recorded")
        await run("mount", "-o", "remount,rw,bind", str(chaos.node.state))
        chaos.mended()
        await chaos.until_prepared(late)
        return await finish(chaos)


async def unreadable_state(root: pathlib.Path) -> Row:
    """The state file is damaged: it stays as it is, everything names the command that mends it, and that helps."""
    command = "nodeops.dra.checkpoint"
    async with chaos_node(root) as chaos:
        path = chaos.node.state / STATE
        assert chaos.node.agent is not None
        await chaos.node.agent.end(kill=True)
        damaged = path.read_bytes()[:-9]
        path.write_bytes(damaged)
        await restart(chaos)
        late = await chaos.add_pod()
        await chaos.until_seen("[-]state failed", DEGRADED, "state_damaged")
        check(command in chaos.row.health, "/readyz?verbose does not name the command")
        check(command in (await chaos.get("/metrics"))[1], "/metrics does not name the command")
        check(any(command in line for line in chaos.said("degraded")), "the log does not name the command")
        for question in ("findings", "claims"):
            told = await ctl(chaos, question)
            check(command in told, f"ctl {question} does not name the command: {told}")
        check(path.read_bytes() == damaged, "the damaged file was changed")
        repair = ("-m", f"{MODULES}.checkpoint", "repair", str(path))
        status, told = await output(root, *repair)
        check(status == 0, f"the repair failed: {told}")
        chaos.mended()
        (backup,) = path.parent.glob("*.bak")
        check(backup.read_bytes() == damaged, "the backup is not what was there")
        backup.unlink()
        await chaos.until_prepared(late)
        return await finish(chaos)


async def jumping_clock(root: pathlib.Path) -> Row:
    """The wall clock goes a day forward, then two days back, while a driver fails and a controller holds its lease."""
    clock, library = root / "clock", root / "clock.so"
    clock.write_text("0", encoding="ascii")
    source = pathlib.Path(__file__).with_name("agent_clock.c")
    await run("cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source))
    hook = {"LD_PRELOAD": str(library), "SOAK_CLOCK": str(clock)}
    async with chaos_node(root, environment=hook) as chaos, controller(chaos, hook) as leader:
        for shift in (DAY, -DAY):
            before = len(chaos.lines), len(leader)
            clock.write_text(str(shift), encoding="ascii")
            await chaos.node.tell_driver(GPU, "fault", kind="claim_error", times=3)
            await chaos.until_prepared(await chaos.add_pod(GPU), await chaos.add_pod(NIC))
            await asyncio.sleep(20)  # longer than a lease lasts without being renewed
            lines, led = chaos.lines[before[0] :], leader[before[1] :]
            check(len(lines) < 60, f"{len(lines)} lines of log after a jump of the clock:\n" + "\n".join(lines))
            check(len(led) < 20, f"{len(led)} lines of the controller's log:\n" + "\n".join(led))
            check(not any(": lease " in line for line in led), f"something happened to the lease: {led}")
            day = time.strftime("%Y-%m-%d", time.gmtime(time.time() + shift))
            check(lines[-1].startswith(day), f"the clock did not jump: {lines[-1]}")
        status, health = await chaos.get("/readyz?verbose")
        check(status == 200, f"not ready: {health}")
        chaos.row.health = "stays ready, the controller keeps its lease"
        chaos.row.metrics = f"{len(chaos.lines)} lines of log in all"
        return await finish(chaos)


@contextlib.asynccontextmanager
async def controller(chaos: ChaosNode, environment: t.Mapping[str, str]) -> t.AsyncIterator[list[str]]:
    """The controller's daemon at the same API server, once it leads; the lines of its log."""
    node = chaos.node
    lines: list[str] = []
    config = node.root / "controller.yml"
    settings = {"cluster": {"kubeconfig": str(node.kubeconfig)}, "http": {"port": 0}}
    config.write_text(json.dumps({**settings, "life": {"run_directory": str(node.run)}}), encoding="utf-8")
    argv = ("-m", f"{MODULES}.controller", "--config", str(config))
    process = await start(node.logs / "controller", *argv, heard=lines.append, **environment)

    async def leads() -> bool:
        return any(LEADS in line for line in lines)

    try:
        await until(leads, "the controller leads")
        yield lines
        check(process.runs, f"the controller has ended: {lines[-3:]}")
    finally:
        await process.end(kill=True)


async def crowd(root: pathlib.Path) -> Row:
    """Ten thousand pods that are none of its business come and go in the cluster."""
    async with chaos_node(root) as chaos:
        before = chaos.memory()
        await fill_cluster(chaos, "node-2", CROWD)
        late = await chaos.add_pod()
        await chaos.until_prepared(late)
        grown = chaos.memory() - before
        check(grown < 8, f"memory grew by {grown:.1f} MB while {CROWD} pods of other nodes appeared")
        await restart(chaos)
        await chaos.until_prepared(late)
        chaos.row.health = "stays ready"
        chaos.row.metrics = f"memory {grown:+.1f} MB"
        return await finish(chaos)


async def fill_cluster(chaos: ChaosNode, node: str, number: int) -> None:
    """Make pods with claims on another node."""
    uses = [{"name": "x", "resourceClaimName": "x"}]
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "i"}], "resourceClaims": uses}
    names = iter([f"other-{one}" for one in range(number)])

    async def some() -> None:
        async with chaos.node.cluster() as client:
            for name in names:
                await client.create(POD, {"metadata": {"name": name}, "spec": spec}, NS)

    await asyncio.gather(*(some() for _one in range(8)))


# Tools


async def restart(chaos: ChaosNode) -> None:
    """Kill the agent and start another one."""
    assert chaos.node.agent is not None
    await chaos.node.agent.end(kill=True)
    await chaos.node.start_agent()
    await chaos.node.until_ready()


async def ctl(chaos: ChaosNode, question: str) -> str:
    """What the command line client says, on both of its outputs."""
    argv = ("-m", f"{MODULES}.agent", "ctl", question, "--socket", str(chaos.node.run / "agent.sock"))
    return (await output(chaos.node.root, *argv))[1]


async def output(root: pathlib.Path, *argv: str, **environment: str) -> tuple[int, str]:
    """Run ``python argv...``; its exit status and what it said."""
    lines: list[str] = []
    process = await start(root / "output", *argv, heard=lines.append, **environment)
    async with asyncio.timeout(90):
        status = await process.child.wait()
    await process.end()
    return status, "\n".join(lines)


async def run(*argv: str) -> None:
    """Run a command of the system. Raises AssertionError when it fails."""
    child = await asyncio.create_subprocess_exec(*argv, stderr=subprocess.PIPE)
    _out, told = await child.communicate()
    check(child.returncode == 0, f"{' '.join(argv)}: {told.decode().strip()}")


@contextlib.asynccontextmanager
async def mounted(place: pathlib.Path, *mount: str) -> t.AsyncIterator[None]:
    """Mount something at ``place``, which is made if it is missing."""
    place.mkdir(parents=True, exist_ok=True)
    await run("mount", *mount, str(place))
    try:
        yield
    finally:
        await run("umount", "--lazy", str(place))


SCENARIOS: dict[str, t.Callable[[pathlib.Path], t.Awaitable[Row]]] = {
    "watch silent": silent_watch,
    "10,000 unrelated pods": crowd,
    "API server gone": api_gone,
    "driver hangs": hanging_driver,
    "disk full": full_disk,
    "state read-only": read_only,
    "state unreadable": unreadable_state,
    "clock jumps": jumping_clock,
}
"""Those that take longest go first."""
