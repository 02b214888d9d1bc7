# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A disk that is full, read-only or not ours: one operation fails, what is prepared stays usable."""

from __future__ import annotations

import asyncio
import errno
import os
import pathlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import StoreError
from ansible_collections.nodeops.dra.plugins.module_utils.manager.prepare import NotRecordedError
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.node import Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import GPU, claim, device, pod

pytestmark = pytest.mark.asyncio

CODES = [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT]


class Disk:
    """Makes the writes of a node's manager fail."""

    def __init__(self, root: pathlib.Path, patches: pytest.MonkeyPatch) -> None:
        self._root = root
        self._patches = patches

    def fail(self, code: int, *, after: int = 0) -> None:
        """Let every sync in the node's directory fail from now on, or after some that go through."""
        fsync, left = os.fsync, [after]

        def failing(fd: int) -> None:
            path = pathlib.Path(os.readlink(f"/proc/self/fd/{fd}"))
            if self._root in (path, path.parent):
                left[0] -= 1
                if left[0] < 0:
                    raise OSError(code, os.strerror(code))
            fsync(fd)

        self._patches.setattr(os, "fsync", failing)

    def mend(self) -> None:
        self._patches.undo()


@pytest.fixture
def disk(root: pathlib.Path) -> t.Iterator[Disk]:
    with pytest.MonkeyPatch.context() as patches:
        yield Disk(root, patches)


def leftovers(root: pathlib.Path) -> list[str]:
    return [name for name in os.listdir(root) if name.startswith(".")]


@pytest.mark.report("F046")
@pytest.mark.parametrize("code", CODES)
async def test_a_full_disk_fails_one_prepare_and_nothing_else(node: Node, disk: Disk, code: int) -> None:
    await node.add_driver()
    await node.start()
    first = await node.prepare(claim("c1", "u-1", device("dev-0")))
    before = node.state_path.read_bytes()
    disk.fail(code)
    with pytest.raises(StoreError, match=rf"{node.state_path}.*{errno.errorcode[code]}"):
        await node.prepare(claim("c2", "u-2", device("dev-1"), pods=["p-2"]), pod_uid="p-2")
    assert node.asked() == ["prepare u-1"]
    assert node.state_path.read_bytes() == before
    assert leftovers(node.root) == []
    assert list(node.manager.resources_for(pod(), "main")) == first
    assert [one.record.state.uid for one in node.manager.claims()] == ["u-1"]
    assert [one.code for one in node.manager.findings()] == ["state_not_writable"]
    assert node.manager.degraded is not None
    disk.mend()
    await node.prepare(claim("c2", "u-2", device("dev-1"), pods=["p-2"]), pod_uid="p-2")
    assert node.manager.findings() == []
    assert set(node.state()) == {"u-1", "u-2"}


@pytest.mark.report("F046")
async def test_when_the_answer_cannot_be_recorded_the_driver_is_asked_again(node: Node, disk: Disk) -> None:
    await node.add_driver()
    await node.start()
    disk.fail(errno.ENOSPC, after=2)
    with pytest.raises(NotRecordedError, match=r"could not be recorded.*ENOSPC"):
        await node.prepare(claim())
    assert node.state()["u-1"].drivers == {GPU: None}
    assert [one.status for one in node.manager.claims()] == ["planned"]
    disk.mend()
    await node.prepare(claim())
    assert node.asked() == ["prepare u-1", "prepare u-1"]


@pytest.mark.report("F046")
async def test_an_unprepare_that_cannot_be_recorded_is_repeated(node: Node, disk: Disk) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim())
    before = node.state()
    disk.fail(errno.EROFS)
    with pytest.raises(StoreError, match="EROFS"):
        await node.manager.unprepare("p-1")
    assert node.state() == before
    assert node.manager.pod_might_need_unprepare("p-1")
    disk.mend()
    assert (await node.manager.unprepare("p-1")).gone == ("u-1",)
    assert node.asked() == ["prepare u-1", "unprepare u-1", "unprepare u-1"]


@pytest.mark.report("F046")
async def test_pods_that_share_a_failed_write_fail_together_and_try_again(node: Node, disk: Disk) -> None:
    await node.add_driver()
    await node.start()
    claims = [claim(f"c{n}", f"u-{n}", device(f"dev-{n}"), pods=[f"p-{n}"]) for n in range(8)]

    def all_of_them() -> t.Any:
        work = (node.prepare(one, pod_uid=f"p-{n}") for n, one in enumerate(claims))
        return asyncio.gather(*work, return_exceptions=True)

    disk.fail(errno.ENOSPC)
    assert {type(one) for one in await all_of_them()} == {StoreError}
    assert node.state() == {}
    assert node.manager.claims() == []
    disk.mend()
    assert [len(names) for names in await all_of_them()] == [1] * 8


@pytest.mark.report("F046")
async def test_a_manager_that_starts_on_a_read_only_disk_serves_what_is_there(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim())
    await node.stop()
    original = os.open

    def read_only(path: t.Any, flags: int, *rest: t.Any, **options: t.Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR) and "dra_manager" in str(path):
            raise OSError(errno.EROFS, "Read-only file system")
        return original(path, flags, *rest, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", read_only)
        await node.start()
        assert [one.record.state.uid for one in node.manager.claims()] == ["u-1"]
        assert node.manager.claim_infos(pod(), "main")[0].devices[0].device.device_name == "dev-0"
        assert node.manager.degraded is not None
        assert [one.code for one in node.manager.findings()] == ["state_not_writable"]
        with pytest.raises(StoreError, match="EROFS"):
            await node.manager.unprepare("p-1")
        await node.stop()
    assert set(node.state()) == {"u-1"}
