# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The console client as a process of its own, against a real agent; and its tables."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import re
import subprocess
import sys
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent import ctl, ctl_tables
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.version import VERSION
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Json, Node, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.running_agent import RunningAgent, running
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim, pod

COMMAND = (sys.executable, "-m", "ansible_collections.nodeops.dra.plugins.module_utils.agent", "ctl")
NAME = f"k8s.{GPU}/claim=u-1-dev-0"


class Answer(t.NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> t.Any:
        """What it printed."""
        return json.loads(self.out)


async def start(socket: pathlib.Path, *arguments: str) -> asyncio.subprocess.Process:
    """A command that runs."""
    pipes: Json = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return await asyncio.create_subprocess_exec(*COMMAND, *arguments, "--socket", str(socket), env=environment, **pipes)


async def ask(agent: RunningAgent, *arguments: str, stdin: Json | None = None) -> Answer:
    """A command that has ended."""
    process = await start(agent.socket, *arguments)
    out, err = await process.communicate(b"" if stdin is None else json.dumps(stdin).encode())
    assert process.returncode is not None
    return Answer(process.returncode, out.decode(), err.decode())


def manifest(obj: Json, kind: str) -> Json:
    return {"kind": kind, **obj}


@pytest.mark.report("F095")
@pytest.mark.asyncio
async def test_prepare_look_and_unprepare(node: Node) -> None:
    given = {"kind": "List", "items": [manifest(claim(), "ResourceClaim")]}
    async with node.driver(), running(node) as agent:
        planned = await ask(agent, "prepare", "--file", "-", "--holder", "unit", "--check", stdin=given)
        done = await ask(agent, "prepare", "--file", "-", "--holder", "unit", "--output", "json", stdin=given)
        table = await ask(agent, "claims")
        listed = await ask(agent, "claims", "--output", "json", "--namespace", "team-a")
        drivers = await ask(agent, "drivers")
        gone = await ask(agent, "unprepare", "--claim", "team-a/c1")
        nothing = await ask(agent, "unprepare", "--claim", "u-1")

    assert planned == (0, f"would call NodePrepareResources of {GPU} for u-1\n", "")
    assert (done.status, done.json["changed"], done.json["claims"][0]["cdi_devices"]) == (0, True, [NAME])
    assert done.json["diff"]["after"] == {"team-a/c1 (u-1)": {"pods": ["holder:unit"], "prepared": True}}
    head, row = table.out.splitlines()
    assert head.split() == ["CLAIM", "UID", "STATUS", "DRIVERS", "CDI", "DEVICES", "HELD", "BY"]
    assert row.split() == ["team-a/c1", "u-1", "prepared", GPU, NAME, "holder:unit"]
    assert listed.json["claims"][0]["status"] == "prepared"
    assert drivers.out.splitlines()[1].split()[:3] == [GPU, "connected", "1"]
    assert gone == (0, f"called NodeUnprepareResources of {GPU} for u-1\nreleased u-1\n", "")
    assert nothing == (0, "nothing has changed\n", "")


@pytest.mark.asyncio
async def test_who_answers(node: Node) -> None:
    async with running(node) as agent:
        text = await ask(agent, "version")
        found = await ask(agent, "version", "--output", "json")
    assert (found.status, found.json["version"], found.json["mode"]) == (0, VERSION, "manage")
    assert f"version: {VERSION}" in text.out.splitlines()
    assert f"kubelet root: {found.json['kubelet_root']}" in text.out.splitlines()


@pytest.mark.asyncio
async def test_resources_of_a_pod(node: Node) -> None:
    both = {"items": [manifest(claim(), "ResourceClaim"), manifest(pod(), "Pod")]}
    async with node.driver(), running(node) as agent:
        assert (await ask(agent, "prepare", "--file", "-", stdin=both)).status == 0
        table = await ask(agent, "resources", "--file", "-", stdin=manifest(pod(), "Pod"))
        found = await ask(agent, "resources", "--file", "-", "--output", "json", stdin=manifest(pod(), "Pod"))
    assert table.out.splitlines()[1].split() == ["main", NAME]
    assert found.json == {"containers": {"main": [NAME]}}


@pytest.mark.asyncio
async def test_findings_have_an_exit_status(node: Node) -> None:
    node.manager_has(recorded()).write_bytes(b"{")
    async with running(node) as agent:
        found = await ask(agent, "findings")
    assert found.status == 1
    assert found.out.startswith("ERROR state_damaged: ")
    assert "nodeops.dra.checkpoint" in found.out


@pytest.mark.asyncio
async def test_forget_tells_what_may_leak(node: Node) -> None:
    async with running(node) as agent:
        async with node.driver():
            await agent.client.change(node.request("prepared", claim(), holder="unit"))
        done = await ask(agent, "forget", "--claim", "u-1", "--reason", "gone for good")
    assert done.out.splitlines()[:2] == ["released u-1", "forgotten team-a/c1 (u-1)"]
    assert f"Driver {GPU} is not told" in done.out


@pytest.mark.asyncio
async def test_watch_shows_events_and_ends_with_the_agent(node: Node) -> None:
    async with running(node) as agent:
        agent.place.events.add("claim_prepared", "team-a/c1 (u-1)", "text\x1b[31m")
        process = await start(agent.socket, "watch", "--output", "text")
        assert process.stdout is not None
        first = (await process.stdout.readline()).decode()
        await agent.api.stop(10.0)
        assert await process.wait() == 0
        await process.communicate()
    assert first.split(maxsplit=2)[2] == "claim_prepared team-a/c1 (u-1) text\\x1b[31m\n"


@pytest.mark.asyncio
async def test_failures_are_told_without_a_trace(node: Node) -> None:
    async with running(node) as agent:
        text = await ask(agent, "prepare", "--claim", "team-a/c1")
        as_json = await ask(agent, "prepare", "--claim", "team-a/c1", "--output", "json")
        no_file = await ask(agent, "prepare", "--file", "/nonexistent")
        no_kind = await ask(agent, "prepare", "--file", "-", stdin=claim())
        no_pod = await ask(agent, "resources")
    silent = await start(agent.socket, "claims")
    _out, told = await silent.communicate()

    assert (text.status, text.out) == (2, "")
    assert "this agent does not follow the API" in text.err
    assert (as_json.status, as_json.json["failed"]) == (2, True)
    assert (no_file.status, "/nonexistent" in no_file.err) == (2, True)
    assert "expected a Pod, ResourceClaims, or both" in no_kind.err
    assert "No pod was given" in no_pod.err
    assert (silent.returncode, b"does not answer" in told) == (2, True)
    assert not any("Traceback" in one.err for one in (text, as_json, no_file, no_kind, no_pod))


# Tables


def test_a_claim_that_fails_is_told_below_the_table() -> None:
    failure = {"operation": "prepare", "text": "no\nway", "count": 3, "first": 0.0, "last": 60.0, "retry_in": 4.0}
    one = {
        "uid": "u-1",
        "name": "c1",
        "namespace": "team-a",
        "pods": [],
        "prepared": False,
        "cdi_devices": [],
        "drivers": [{"name": GPU, "devices": None}],
        "status": "planned",
        "stopped": "by me",
        "failures": [failure],
    }
    assert ctl_tables.claims_text([one]).splitlines()[1:] == [
        f"team-a/c1  u-1  planned  {GPU}  -            -",
        "team-a/c1: prepare failed 3 times since 1970-01-01T00:00:00Z, next try in 4 s: no\\nway",
        "team-a/c1: retries were stopped: by me",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(ctl_tables.claims_text([]), "No claims are recorded.", id="claims"),
        pytest.param(ctl_tables.findings_text([]), "All is as it should be.", id="findings"),
        pytest.param(
            ctl_tables.drivers_text({"drivers": [], "registrations": []}), "No driver is registered.", id="drivers"
        ),
        pytest.param(ctl_tables.resources_text({}), "The pod has no containers.", id="resources"),
    ],
)
def test_nothing_is_said_in_words(text: str, words: str) -> None:
    assert text == words + "\n"


def test_sockets_that_are_not_through_are_listed() -> None:
    row = {"socket": "/r/a.sock", "driver": "", "error": ""}
    found = {"drivers": [], "registrations": [{**row, "state": "trying"}, {**row, "state": "registered"}]}
    assert ctl_tables.drivers_text(found).splitlines()[1:] == ["/r/a.sock: trying: not answered yet"]


def test_every_command_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        ctl.main(["--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    for name in ("claims", "drivers", "findings", "resources", "prepare", "unprepare", "forget", "watch"):
        assert re.search(rf"^    {name}\s", told, re.MULTILINE), name
