# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A manager whose files could not be used goes on once they can; what a killed one left is removed."""

from __future__ import annotations

import dataclasses
import errno
import os
import time
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.lock import LockHeldError, take_lock
from ansible_collections.nodeops.dra.plugins.module_utils.manager.manager import DraManager
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.node import Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim, device, pod

pytestmark = pytest.mark.asyncio


@pytest.fixture
def read_only() -> t.Iterator[pytest.MonkeyPatch]:
    """No file of a manager can be opened for writing until this is undone."""
    original = os.open

    def refusing(path: t.Any, flags: int, *rest: t.Any, **options: t.Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR) and "dra_manager" in str(path):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return original(path, flags, *rest, **options)

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(os, "open", refusing)
        yield patches


@pytest.mark.report("F046")
async def test_a_start_on_a_read_only_disk_recovers(node: Node, read_only: pytest.MonkeyPatch) -> None:
    await node.add_driver()
    await node.start()
    assert not await node.manager.recover()
    assert [one.code for one in node.manager.findings()] == ["state_not_writable"]
    read_only.undo()
    assert await node.manager.recover()
    assert (node.manager.degraded, node.manager.findings()) == (None, [])
    await node.prepare(claim())
    assert set(node.state()) == {"u-1"}


@pytest.mark.report("F046")
async def test_what_others_wrote_meanwhile_is_not_written_over(node: Node, read_only: pytest.MonkeyPatch) -> None:
    await node.add_driver()
    await node.start()
    read_only.undo()
    async with await DraManager.open(node.settings, node.registry, boot_id=lambda: node.boot) as other:
        node.claims["u-1"] = claim()
        await other.prepare(pod(), [claim()])
        with pytest.raises(LockHeldError):
            await node.manager.recover()
        assert node.manager.degraded is not None
    assert await node.manager.recover()
    assert [one.record.state.uid for one in node.manager.claims()] == ["u-1"]
    await node.prepare(claim("c2", "u-2", device("dev-1"), pods=["p-2"]), pod_uid="p-2")
    assert set(node.state()) == {"u-1", "u-2"}


@pytest.mark.report("F046")
async def test_a_disk_that_has_room_again_is_noticed_without_a_new_claim(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim())
    before = node.state_path.read_bytes()

    def full(_fd: int) -> t.NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(Exception, match="ENOSPC"):
            await node.prepare(claim("c2", "u-2", device("dev-1"), pods=["p-2"]), pod_uid="p-2")
        assert not await node.manager.recover()
        assert node.manager.degraded is not None
    assert await node.manager.recover()
    assert (node.manager.degraded, node.manager.findings()) == (None, [])
    assert node.state_path.read_bytes() == before


@pytest.mark.report("F046")
async def test_a_full_disk_at_the_start_of_a_new_boot(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The notes cannot be written, so nothing else can."""
    await node.add_driver()
    await node.start()
    await node.prepare(claim())
    node.boot = "b-1"

    def full(_fd: int) -> t.NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    await node.stop()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        await node.start()
        assert node.manager.degraded is not None
        assert [one.code for one in node.manager.findings()] == ["state_not_writable"]
    assert await node.manager.recover()
    assert node.manager.findings() == []
    (report,) = node.manager.claims()
    assert report.record.note.earlier_boot == "b-0"


@pytest.mark.report("F048")
async def test_a_state_file_that_was_mended_is_taken_up(node: Node) -> None:
    await node.add_driver()
    await node.start()
    first = await node.prepare(claim())
    await node.stop()
    sound = node.state_path.read_bytes()
    node.state_path.write_bytes(sound[:-9])
    await node.start()
    assert not await node.manager.recover()
    assert node.state_path.read_bytes() == sound[:-9]
    with take_lock(node.state_path, timeout=0):  # as whoever mends it does
        node.state_path.write_bytes(sound)
    assert await node.manager.recover()
    assert (node.manager.degraded, node.manager.findings()) == (None, [])
    assert await node.prepare(claim()) == first
    with pytest.raises(LockHeldError):
        take_lock(node.state_path, timeout=0)


@pytest.mark.parametrize("own", [True, False])
async def test_half_written_files_of_a_killed_manager_are_removed(node: Node, own: bool) -> None:
    for name, age in ((".1234567890", 3600), (".55", 1), (".profile", 3600)):
        (node.root / name).write_bytes(b"half")
        then = time.time() - age
        os.utime(node.root / name, (then, then))
    node.settings = dataclasses.replace(node.settings, own_directory=own)
    await node.start()
    # A young one may be somebody's work in a directory that is not the manager's own.
    wanted = [".profile"] if own else [".55", ".profile"]
    assert sorted(path.name for path in node.root.glob(".*")) == wanted
