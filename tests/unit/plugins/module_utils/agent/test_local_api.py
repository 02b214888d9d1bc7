# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The local API over its real socket: what each call does, how failures travel, and who is let in."""

from __future__ import annotations

import asyncio
import os
import pathlib
import re
import socket
import stat
import subprocess
import sys
import tempfile
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.events import EventLog
from ansible_collections.nodeops.dra.plugins.module_utils.agent.local_client import connected
from ansible_collections.nodeops.dra.plugins.module_utils.agent.local_errors import AgentSilentError, encode_error
from ansible_collections.nodeops.dra.plugins.module_utils.agent.local_messages import agent_api
from ansible_collections.nodeops.dra.plugins.module_utils.agent.local_socket import Gate
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.version import VERSION
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Json, Node, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.running_agent import running
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim, pod

ROOT = pathlib.Path(__file__).resolve().parents[5]
PROTO = (ROOT / "proto" / "nodeops" / "dra" / "agent" / "v1" / "agent.proto").read_text(encoding="utf-8")
NAME = f"k8s.{GPU}/claim=u-1-dev-0"


def test_version_is_that_of_the_collection() -> None:
    assert re.search(r"^version: (.+)$", (ROOT / "galaxy.yml").read_text(encoding="utf-8"), re.M)[1] == VERSION  # type: ignore[index]


def test_every_call_is_described() -> None:
    found = re.findall(r"  // .+\n  rpc (\w+)\(", PROTO)
    assert set(found) == set(agent_api().service())


# Claims


@pytest.mark.asyncio
async def test_prepare_gives_what_a_manager_of_its_own_gives(node: Node) -> None:
    async with node.driver() as driver, running(node) as agent:
        planned = await agent.client.change(node.request("prepared", claim(), holder="unit"), check=True)
        done = await agent.client.change(node.request("prepared", claim(), holder="unit"))
        again = await agent.client.change(node.request("prepared", claim(), holder="unit"))
        gone = await agent.client.change(node.request("unprepared", claim(), holder="unit"))
    async with node.driver():
        own = await node.claim("prepared", claim(), holder="unit")

    assert done == {**own, "via": "agent"}
    assert (planned["changed"], planned["calls"], planned["claims"]) == (True, done["calls"], [])
    assert (again["changed"], again["claims"]) == (False, done["claims"])
    assert (gone["changed"], gone["released"], gone["claims"]) == (True, ["u-1"], [])
    assert [one.method for one in driver.calls if one.method.endswith("prepare")] == ["prepare", "prepare", "unprepare"]


@pytest.mark.asyncio
async def test_claims_tell_their_status_and_what_fails(node: Node) -> None:
    async with node.driver() as driver, running(node) as agent:
        await agent.client.change(node.request("prepared", claim(), holder="unit"))
        driver.faults.add("claim_error")
        with pytest.raises(DraError):
            await agent.client.change(node.request("unprepared", claim()))
        found = (await agent.client.claims())[0]
        elsewhere = await agent.client.claims("other")
        codes = [one["code"] for one in await agent.client.findings()]

    assert (found["uid"], found["status"], found["cdi_devices"]) == ("u-1", "unpreparing", [NAME])
    assert [(one["operation"], one["count"]) for one in found["failures"]] == [("unprepare", 1)]
    assert elsewhere == []
    assert codes == ["operation_failing"]


@pytest.mark.asyncio
async def test_forget_names_who_is_connected_in_the_audit_log(node: Node) -> None:
    async with running(node) as agent:
        async with node.driver():
            await agent.client.change(node.request("prepared", claim(), holder="unit"))
        done = await agent.client.change(node.request("forgotten", claim(), reason="gone", by="somebody"))
    assert done["forgotten"][0]["by"] == f"somebody (user {os.getuid()}, process {os.getpid()})"
    assert f"process {os.getpid()}" in (node.state_directory / "dra_manager_audit.log").read_text(encoding="utf-8")


@pytest.mark.asyncio
async def test_resources_are_those_of_each_container(node: Node) -> None:
    bare = {"name": "bare"}
    user = {"name": "main", "resources": {"claims": [{"name": "ref-c1"}]}}
    asked = pod("p-1", "c1", containers=[bare, user])
    async with node.driver(), running(node) as agent:
        with pytest.raises(DraError, match="needs ResourceClaim team-a/c1"):
            await agent.client.resources(asked)
        with pytest.raises(DraError, match=r"Pod team-a/name-of-p-1 \(p-1\) is not known"):
            await agent.client.resources({"metadata": asked["metadata"]})
        await agent.client.change(node.request("prepared", claim(), pod=asked))
        every, one = await agent.client.resources(asked), await agent.client.resources(asked, "main")
        # It was given whole with the prepare, so from now on its metadata are enough.
        assert await agent.client.resources({"metadata": asked["metadata"]}) == every
    assert every == {"bare": [], "main": [NAME]}
    assert one == {"main": [NAME]}


# Drivers, events, who answers


@pytest.mark.asyncio
async def test_drivers_with_their_instances(node: Node) -> None:
    async with node.driver(), running(node) as agent:
        await agent.place.registry.wait_for(GPU, 10.0)
        found = await agent.client.drivers()
    assert [(one["name"], one["connected"]) for one in found["drivers"]] == [(GPU, True)]
    assert found["drivers"][0]["instances"][0]["service"].endswith("v1.DRAPlugin")
    assert [one["state"] for one in found["registrations"]] == ["registered"]


@pytest.mark.asyncio
async def test_events_come_as_they_happen(node: Node) -> None:
    async with node.driver(), running(node) as agent:
        agent.place.events.add("earlier", "a")
        watch = agent.client.watch(only_new=False)
        first = await watch.__anext__()
        await agent.client.change(node.request("prepared", claim(), holder="unit", by="me"))
        second = await watch.__anext__()
        await watch.aclose()
    assert (first["kind"], first["number"]) == ("earlier", 1)
    assert (second["kind"], second["subject"], second["number"]) == ("claim_prepared", "team-a/c1 (u-1)", 2)
    assert second["text"].startswith("asked by me (user ")


@pytest.mark.asyncio
async def test_a_slow_watcher_sees_a_gap_and_the_end() -> None:
    events = EventLog(keep=2)
    for number in range(5):
        events.add("k", str(number))
    events.close()
    assert [event.number async for event in events.follow(1)] == [4, 5]


@pytest.mark.asyncio
async def test_watchers_do_not_keep_an_agent_from_ending(node: Node) -> None:
    async with running(node) as agent:
        watch = agent.client.watch()
        agent.place.events.add("k", "s")
        await watch.__anext__()  # the call has arrived
        waiting = asyncio.ensure_future(_all(watch))
        await agent.api.stop(60.0)
        assert await waiting == []
        await watch.aclose()


@pytest.mark.asyncio
async def test_an_agent_with_a_damaged_file_answers_and_says_so(node: Node) -> None:
    path = node.manager_has(recorded())
    path.write_bytes(path.read_bytes()[:-9])
    before = path.read_bytes()
    async with node.driver(), running(node) as agent:
        version = await agent.client.version()
        for state in ("prepared", "unprepared"):
            with pytest.raises(DraError, match="is damaged") as caught:
                await agent.client.change(node.request(state, claim(), holder="unit"))
            assert "nodeops.dra.checkpoint" in caught.value.hint
        assert [one["code"] for one in await agent.client.findings()] == ["state_damaged"]
    assert "is damaged" in version["degraded"]
    assert "nodeops.dra.checkpoint" in version["degraded"]
    assert version["state_directory"] == str(node.state_directory)
    assert path.read_bytes() == before


async def _all(watch: t.AsyncIterator[Json]) -> list[Json]:
    return [event async for event in watch]


# Failures


@pytest.mark.asyncio
async def test_a_failure_keeps_its_message_hint_and_facts(node: Node) -> None:
    async with running(node) as agent:
        with pytest.raises(DraError) as caught:
            await agent.client.change(node.request("prepared", claim(), holder="unit"))
    with pytest.raises(DraError) as own:
        await node.claim("prepared", claim(), holder="unit")
    assert (caught.value.message, caught.value.hint) == (own.value.message, own.value.hint)
    assert caught.value.facts == own.value.facts


@pytest.mark.asyncio
async def test_long_facts_do_not_break_a_call(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(node) as agent:

        def refuse() -> t.NoReturn:
            raise DraError("No.", "Wait.", rows=["x" * 100] * 250)

        monkeypatch.setattr(agent.place.registry, "drivers", refuse)
        with pytest.raises(DraError) as caught:
            await agent.client.drivers()
        assert len(caught.value.facts["rows"]) == 250
    short = encode_error(DraError("No.", "Wait.", rows=["x" * 100] * 2500))
    assert b"facts_left_out" in short


@pytest.mark.asyncio
async def test_a_bug_does_not_reach_the_client_as_a_trace(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(node) as agent:
        monkeypatch.setattr(agent.place.registry, "drivers", lambda: 1 / 0)
        with pytest.raises(DraError, match=r"met a bug in ListDrivers \(ZeroDivisionError\)"):
            await agent.client.drivers()
        assert (await agent.client.version())["version"] == VERSION


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param({"pod": b"{"}, "pod is no JSON", id="no JSON"),
        pytest.param({"claims": [b"[]"]}, "claims is a list", id="no object"),
        pytest.param({}, "nothing to do", id="nothing"),
        pytest.param({"claims": [b"{}"], "timeout": -1.0}, "timeout is -1 s", id="negative"),
        pytest.param({"claims": [b"{}"], "timeout": float("nan")}, "timeout is nan s", id="no number"),
    ],
)
@pytest.mark.asyncio
async def test_requests_that_cannot_be_meant(fields: Json, words: str, node: Node) -> None:
    async with running(node) as agent:
        with pytest.raises(DraError, match=words):
            await agent.client._call("Prepare", fields=fields)


@pytest.mark.asyncio
async def test_nobody_there(root: pathlib.Path) -> None:
    async with connected(str(root / "agent.sock")) as client:
        with pytest.raises(AgentSilentError, match="does not answer"):
            await client.version()


# The socket


@pytest.mark.asyncio
async def test_the_socket_and_what_is_behind_it_are_private(node: Node) -> None:
    async with running(node) as agent:
        assert stat.S_IMODE(agent.socket.stat().st_mode) == 0o600
        assert stat.S_IMODE(pathlib.Path(f"{agent.socket}.d").stat().st_mode) == 0o700
        await agent.client.version()
    assert list(agent.socket.parent.iterdir()) == []


CONNECT = """
import os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
with socket.socket(socket.AF_UNIX) as s:
    s.settimeout(20)
    try:
        s.connect(sys.argv[1])
    except PermissionError:
        raise SystemExit("no permission")
    raise SystemExit("refused" if s.recv(1) == b"" else "served")
"""


async def connect_as_nobody(path: pathlib.Path) -> str:
    """What somebody without rights meets."""
    command = [sys.executable, "-c", CONNECT, str(path)]
    child = await asyncio.create_subprocess_exec(*command, stderr=subprocess.PIPE)
    _out, told = await child.communicate()
    return told.decode().strip()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.asyncio
async def test_another_user_is_refused_even_where_the_mode_lets_him_in(node: Node) -> None:
    async with running(node) as agent:
        for folder in (node.root, agent.socket.parent):
            folder.chmod(0o755)
        by_mode = await connect_as_nobody(agent.socket)
        agent.socket.chmod(0o666)
        by_credentials = await connect_as_nobody(agent.socket)
        assert (by_mode, by_credentials) == ("no permission", "refused")
        assert agent.api.refused == 1
        assert (await agent.client.version())["version"] == VERSION


@pytest.mark.asyncio
async def test_who_is_not_wanted_is_refused(node: Node) -> None:
    async with running(node, users=[os.geteuid() + 1]) as agent:
        with pytest.raises(AgentSilentError):
            await agent.client.version()
        assert agent.api.refused >= 1


@pytest.mark.asyncio
async def test_a_socket_that_a_killed_agent_left_is_replaced(node: Node) -> None:
    run = node.root / "run"
    (run / "agent.sock.d").mkdir(parents=True)
    (run / "agent.sock.d" / "0.1.1").touch()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(run / "agent.sock"))
    async with running(node) as agent:
        assert (await agent.client.version())["version"] == VERSION


@pytest.mark.asyncio
async def test_what_is_in_the_way_stays(node: Node) -> None:
    run = node.root / "run"
    run.mkdir()
    (run / "agent.sock").write_text("precious", encoding="utf-8")
    with pytest.raises(DraError, match="is no socket") as caught:
        async with running(node):
            pass
    assert caught.value.facts["errno"] == "EADDRINUSE"
    assert (run / "agent.sock").read_text(encoding="utf-8") == "precious"


@pytest.mark.asyncio
async def test_a_second_agent_does_not_take_the_socket(node: Node, root: pathlib.Path) -> None:
    async with running(node) as agent:
        gate = Gate(str(agent.socket), "local API")
        with pytest.raises(DraError, match=rf"Another process listens on .*: pid {os.getpid()} \("):
            gate.prepare()
        async with connected(str(agent.socket)) as another:
            assert (await another.version())["version"] == VERSION


@pytest.mark.asyncio
async def test_a_socket_that_somebody_else_put_there_stays(node: Node) -> None:
    async with running(node) as agent:
        agent.socket.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(agent.socket))
    assert agent.socket.is_socket()


@pytest.mark.report("F026")
def test_a_path_that_is_too_long_is_told(tmp_path: pathlib.Path) -> None:
    with pytest.raises(DraError, match="can have 107 at most"):
        Gate(str(tmp_path / ("x" * 120)), "local API").prepare()


def test_a_link_in_place_of_the_private_directory_is_not_followed() -> None:
    with tempfile.TemporaryDirectory(prefix="dra-") as folder:
        precious = pathlib.Path(folder) / "precious"
        precious.mkdir()
        (precious / "file").touch()
        (pathlib.Path(folder) / "agent.sock.d").symlink_to(precious)
        with pytest.raises(DraError):
            Gate(f"{folder}/agent.sock", "local API").prepare()
        assert (precious / "file").exists()
