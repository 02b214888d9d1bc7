# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Files for podman and systemd, kept by a real agent process with a real driver; and by its parts where disks fail."""

from __future__ import annotations

import asyncio
import pathlib
import threading
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.container_file_directory import ContainerFileDirectory
from ansible_collections.nodeops.dra.plugins.module_utils.agent.container_file_texts import MARKER
from ansible_collections.nodeops.dra.plugins.module_utils.agent.container_files import ContainerFiles
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import StoreError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.store import StateDirectory
from ansible_collections.nodeops.dra.plugins.module_utils.manager.failures import Backoff
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.agent_process import (
    AgentProcess,
    agent_process,
)
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Json, Node, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.running_agent import running
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim, pod

NAME = f"k8s.{GPU}/claim=u-1-dev-0"
CLAIM_FILES = {"claim_team-a_c1.env", "claim_team-a_c1.conf"}
UNIT_FILES = {"holder_unit.env", "holder_unit.conf"}


def directory_of(node: Node) -> pathlib.Path:
    return node.root / "containers"


def files(node: Node) -> set[str]:
    return {path.name for path in directory_of(node).iterdir()}


def agent_of(node: Node) -> t.AsyncContextManager[AgentProcess]:
    """An agent that keeps files."""
    return agent_process(node, node={"container_files": str(directory_of(node))})


async def codes(agent: AgentProcess) -> set[str]:
    async with agent.client() as client:
        return {finding["code"] for finding in await client.findings()}


@pytest.mark.asyncio
async def test_files_come_with_a_claim_and_go_with_it(node: Node) -> None:
    async with node.driver(), agent_of(node) as agent:
        await agent.until("ready daemon=")
        async with agent.client() as client:
            await client.change(node.request("prepared", claim(), holder="unit"))
            assert files(node) == CLAIM_FILES | UNIT_FILES
            for name in ("claim_team-a_c1.env", "holder_unit.env"):
                text = (directory_of(node) / name).read_text()
                assert f'\nNODEOPS_DRA_ARGUMENTS="--device={NAME}"\n' in text
            assert (
                (directory_of(node) / "claim_team-a_c1.conf").read_text().endswith(f"[Container]\nAddDevice={NAME}\n")
            )
            assert {path.stat().st_mode & 0o777 for path in directory_of(node).iterdir()} == {0o600}
            assert "nodeops_dra_container_files 4.0" in (await agent.get("/metrics"))[1]
            await client.change(node.request("unprepared", claim(), holder="unit"))
            assert files(node) == set()
        assert await agent.end() == 0


@pytest.mark.asyncio
async def test_files_go_before_the_driver_is_told(node: Node) -> None:
    async with node.driver() as driver, agent_of(node) as agent:
        await agent.until("ready daemon=")
        async with agent.client() as client:
            await client.change(node.request("prepared", claim(), holder="unit"))
            driver.faults.add("claim_error:method=unprepare")
            with pytest.raises(DraError):
                await client.change(node.request("unprepared", claim(), holder="unit"))
            assert files(node) == set()
            assert [one["status"] for one in await client.claims()] == ["unpreparing"]


@pytest.mark.asyncio
async def test_a_pod_has_a_file_for_each_container(node: Node) -> None:
    uses = {"name": "main", "resources": {"claims": [{"name": "ref-c1"}]}}
    whole = pod("p-1", "c1", containers=[uses, {"name": "other"}])
    async with node.driver(), agent_of(node) as agent:
        await agent.until("ready daemon=")
        async with agent.client() as client:
            await client.change(node.request("prepared", claim(), pod=whole))
            assert files(node) - CLAIM_FILES == {"pod_team-a_name-of-p-1_main.env", "pod_team-a_name-of-p-1_main.conf"}
            assert NAME in (directory_of(node) / "pod_team-a_name-of-p-1_main.env").read_text()
            await client.change(node.request("unprepared", claim(), pod=whole))
            assert files(node) == set()


@pytest.mark.asyncio
async def test_a_holder_that_leaves_a_shared_claim_and_a_claim_that_is_forgotten(node: Node) -> None:
    async with node.driver(), agent_of(node) as agent:
        await agent.until("ready daemon=")
        async with agent.client() as client:
            for holder in ("unit", "other"):
                await client.change(node.request("prepared", claim(), holder=holder))
            await client.change(node.request("unprepared", claim(), holder="other"))
            assert files(node) == CLAIM_FILES | UNIT_FILES
            await client.change(node.request("forgotten", claim(), reason="a test"))
            assert files(node) == set()


@pytest.mark.asyncio
async def test_after_a_kill_only_what_is_recorded_has_files(node: Node) -> None:
    async with node.driver():
        async with agent_of(node) as agent:
            await agent.until("ready daemon=")
            async with agent.client() as client:
                await client.change(node.request("prepared", claim(), holder="unit"))
            await agent.end(kill=True)
        where = directory_of(node)
        (where / "claim_team-a_gone.env").write_text(f"{MARKER}\nNODEOPS_DRA_DEVICES=x\n")
        (where / ".1234567").write_text("half a fi")
        (where / "claim_of_mine.env").write_text("A=b\n")
        (where / "holder_unit.env").unlink()
        async with agent_of(node) as agent:
            await agent.until("ready daemon=")
            assert files(node) == CLAIM_FILES | UNIT_FILES | {"claim_of_mine.env"}
            assert "container_file_foreign" not in await codes(agent)  # it is in nobody's way


@pytest.mark.asyncio
async def test_a_damaged_state_file_takes_no_files(node: Node) -> None:
    node.manager_has(recorded()).write_bytes(b"{")
    directory_of(node).mkdir(mode=0o700)
    (directory_of(node) / "claim_team-a_c1.env").write_text(f"{MARKER}\n")
    async with agent_of(node) as agent:
        await agent.until("ready daemon=")
        assert files(node) == {"claim_team-a_c1.env"}


@pytest.mark.asyncio
async def test_a_file_in_the_way_is_told_and_left_alone(node: Node) -> None:
    where = directory_of(node)
    where.mkdir(mode=0o700)
    (node.root / "precious").write_text("precious")
    (where / "claim_team-a_c1.env").write_text("FOREIGN=1\n")
    (where / "holder_unit.conf").symlink_to(node.root / "precious")
    (where / "holder_unit.env").mkdir()
    async with node.driver(), agent_of(node) as agent:
        await agent.until("ready daemon=")
        async with agent.client() as client:
            await client.change(node.request("prepared", claim(), holder="unit"))
            found = [one for one in await client.findings() if one["code"] == "container_file_foreign"]
            assert [pathlib.Path(one["place"]).name for one in found] == [
                "claim_team-a_c1.env",
                "holder_unit.conf",
                "holder_unit.env",
            ]
            assert (where / "claim_team-a_c1.conf").exists()
            await client.change(node.request("unprepared", claim(), holder="unit"))
        assert files(node) == {"claim_team-a_c1.env", "holder_unit.conf", "holder_unit.env"}
        assert (where / "claim_team-a_c1.env").read_text() == "FOREIGN=1\n"
        assert (where / "holder_unit.conf").is_symlink()
        assert (node.root / "precious").read_text() == "precious"


@pytest.mark.asyncio
async def test_a_directory_that_cannot_be_made_fails_nothing_and_recovers(node: Node) -> None:
    where = directory_of(node)
    async with node.driver(), agent_of(node) as agent:
        await agent.until("ready daemon=")
        where.rmdir()
        where.write_text("a file")
        async with agent.client() as client:
            done = await client.change(node.request("prepared", claim(), holder="unit"))
            assert done["claims"][0]["prepared"]
        assert "container_files_not_written" in await codes(agent)
        await agent.get_until("/readyz?verbose", 200, "Files for containers are not up to date")
        where.unlink()
        await agent.until("files for containers are kept again")
        assert files(node) == CLAIM_FILES | UNIT_FILES
        assert "container_files_not_written" not in await codes(agent)
    assert sum("files for containers cannot be kept" in line for line in agent.lines) == 1


@pytest.mark.asyncio
async def test_a_hostile_name_of_a_holder_stays_in_the_directory(node: Node) -> None:
    async with node.driver(), agent_of(node) as agent:
        await agent.until("ready daemon=")
        async with agent.client() as client:
            await client.change(node.request("prepared", claim(), holder='../../x" ExecStart=/bin/sh'))
        names = {f"holder_..+2f..+2fx+22+20ExecStart+3d+2fbin+2fsh{end}" for end in (".env", ".conf")}
        assert files(node) == CLAIM_FILES | names


# Without a process: what a disk does


def test_an_unsafe_directory_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for name in ("link", "open"):
        with pytest.raises(DraError, match="is not used for containers"):
            ContainerFileDirectory(str(tmp_path / name)).bring({"claim_a_b.env": b"x"})
    assert list((tmp_path / "real").iterdir()) == list((tmp_path / "open").iterdir()) == []


def test_a_second_look_writes_nothing_and_mends_what_was_changed(tmp_path: pathlib.Path) -> None:
    directory = ContainerFileDirectory(str(tmp_path / "d"))
    wanted = {f"claim_a_{name}.env": f"{MARKER}\n{name}\n".encode() for name in "bcd"}
    directory.bring(wanted)
    before = {path.name: path.stat().st_ino for path in (tmp_path / "d").iterdir()}
    directory.bring(wanted)
    assert {path.name: path.stat().st_ino for path in (tmp_path / "d").iterdir()} == before
    (tmp_path / "d" / "claim_a_b.env").unlink()
    (tmp_path / "d" / "claim_a_c.env").write_text(f"{MARKER}\nedited\n")
    directory.bring(wanted)
    assert {path.name: path.read_bytes() for path in (tmp_path / "d").iterdir()} == wanted


def test_one_file_that_cannot_be_written_keeps_no_other(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = ContainerFileDirectory(str(tmp_path / "d"))
    directory.bring({"claim_a_b.env": f"{MARKER}\n".encode()})

    write = ContainerFileDirectory._write

    def full(self: ContainerFileDirectory, opened: StateDirectory, name: str, data: bytes) -> None:
        if name == "claim_a_c.env":
            raise StoreError("no space", "")
        write(self, opened, name, data)

    monkeypatch.setattr(ContainerFileDirectory, "_write", full)
    with pytest.raises(StoreError, match="no space"):
        directory.bring({"claim_a_c.env": b"x", "claim_a_d.env": b"x"})
    assert [path.name for path in (tmp_path / "d").iterdir()] == ["claim_a_d.env"]


@pytest.mark.asyncio
async def test_a_file_system_that_hangs_holds_up_nobody_for_long(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    bring = ContainerFileDirectory.bring

    def hang(self: ContainerFileDirectory, wanted: t.Mapping[str, bytes]) -> None:
        released.wait()
        bring(self, wanted)

    async with running(node) as agent:
        kept = ContainerFiles(str(directory_of(node)), patience=0.05)
        monkeypatch.setattr(ContainerFileDirectory, "bring", hang)
        await kept.serve(agent.place)
        monkeypatch.setattr(kept, "_patience", 3600.0)  # nobody waits as long as the first
        await asyncio.gather(*(kept.changed() for _caller in range(50)))
        assert not directory_of(node).exists()
        released.set()
        await kept.look()
        assert directory_of(node).exists()
        await kept.close()


@pytest.mark.asyncio
async def test_a_burst_shares_looks(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    bring = ContainerFileDirectory.bring

    def count(self: ContainerFileDirectory, wanted: Json) -> None:
        looks.append(len(wanted))
        bring(self, wanted)

    monkeypatch.setattr(ContainerFileDirectory, "bring", count)
    async with running(node) as agent:
        kept = ContainerFiles(str(directory_of(node)), backoff=Backoff(0.01, 0.02))
        await kept.serve(agent.place)
        await asyncio.gather(*(kept.changed() for _caller in range(100)))
        assert len(looks) == 2
        await kept.close()
