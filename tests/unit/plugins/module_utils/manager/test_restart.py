# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a manager makes of the files that it finds: its own, those of another boot, damaged ones."""

from __future__ import annotations

import asyncio
import json
import threading
import typing as t
import zlib

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.lock import LockHeldError
from ansible_collections.nodeops.dra.plugins.module_utils.manager import manager as manager_module
from ansible_collections.nodeops.dra.plugins.module_utils.manager.container_devices import NotPreparedError
from ansible_collections.nodeops.dra.plugins.module_utils.manager.manager import DegradedError, DraManager
from ansible_collections.nodeops.dra.plugins.module_utils.manager.opening import ManagerFiles, open_files
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.node import Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim, device, pod

pytestmark = pytest.mark.asyncio


async def test_a_second_manager_is_kept_out(node: Node) -> None:
    await node.start()
    with pytest.raises(LockHeldError, match="is locked by"):
        await DraManager.open(node.settings, node.registry)


async def test_a_start_that_is_cancelled_keeps_nobody_out(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow(*arguments: t.Any, **options: t.Any) -> ManagerFiles:
        started.set()
        go_on.wait(20)
        return open_files(*arguments, **options)

    monkeypatch.setattr(manager_module, "open_files", slow)
    opening = asyncio.create_task(DraManager.open(node.settings, node.registry))
    await asyncio.to_thread(started.wait, 20)
    opening.cancel()
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.wait([opening])
    assert opening.cancelled()
    async with await DraManager.open(node.settings, node.registry) as second:
        assert second.degraded is None


async def test_the_file_of_a_kubelet_is_taken_over(node: Node) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim())
    await node.stop()
    # What a kubelet leaves that never got an answer, and pods as old releases may write them.
    data = json.loads(node.state_path.read_bytes())["Data"]
    edited = json.loads(data)
    edited["ClaimInfoStateList"][0]["PodUIDs"] = None
    text = json.dumps(edited, separators=(",", ":"))

    node.state_path.write_text(json.dumps({"Data": text, "Checksum": zlib.crc32(text.encode())}))
    await node.start()
    await node.prepare(claim())
    assert node.state()["u-1"].pod_uids == {"p-1"}
    assert '"PodUIDs":null' not in node.state_path.read_text()


@pytest.mark.report("F050")
async def test_after_a_reboot_nothing_counts_as_prepared(node: Node) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim())
    node.boot = "b-1"
    await node.start()
    (report,) = node.manager.claims()
    assert (report.status, report.record.note.earlier_boot) == ("needs_prepare", "b-0")
    with pytest.raises(NotPreparedError, match="expected it to be prepared for this pod, but it is needs_prepare"):
        node.manager.resources_for(pod(), "main")
    await node.start()  # a restart does not make it one of this boot
    assert node.manager.claims()[0].record.note.earlier_boot == "b-0"
    await node.prepare(claim())
    (report,) = node.manager.claims()
    assert (report.status, report.record.note.earlier_boot) == ("prepared", "")
    await node.start()
    assert node.manager.claims()[0].record.note.earlier_boot == ""


@pytest.mark.report("F050")
async def test_the_boot_is_not_in_the_state_file(node: Node) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim("c1", "u-1", device(adminAccess=True)))
    assert b"b-0" not in node.state_path.read_bytes()
    notes = json.loads((node.root / "dra_manager_notes").read_bytes())
    assert notes["bootID"] == "b-0"
    assert set(notes["claims"]) == {"u-1"}


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"version": 9}', '{"version": 1, "bootID": "b-0", "claims": {"u-1": 3}}']
)
async def test_notes_that_cannot_be_read_are_told_and_done_without(node: Node, content: str) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim())
    await node.stop()
    (node.root / "dra_manager_notes").write_text(content)
    await node.start()
    assert [one.code for one in node.manager.findings()] == ["manager_notes_unusable"]
    assert node.manager.claims()[0].record.note.earlier_boot == "unknown"
    await node.prepare(claim())
    await node.start()
    assert node.manager.findings() == []


def damage(node: Node, kind: str) -> None:
    data = node.state_path.read_bytes()
    document = json.loads(data)
    if kind == "checksum":
        document["Checksum"] ^= 1
        data = json.dumps(document).encode()
    elif kind == "cut":
        data = data[:-20]
    elif kind == "empty":
        data = b""
    elif kind == "old":
        data = b'{"version":"v1","checksum":991151041}'
    else:
        inner = json.loads(document["Data"])
        one = inner["ClaimInfoStateList"][0]
        if kind == "same_uid":
            inner["ClaimInfoStateList"].append({**one, "ClaimName": "other"})
        elif kind == "same_name":
            inner["ClaimInfoStateList"].append({**one, "ClaimUID": "u-2"})
        elif kind == "unsafe":
            one["ClaimUID"] = "../../etc/passwd"
        elif kind == "null":
            inner["ClaimInfoStateList"].append(None)
        text = json.dumps(inner)
        data = json.dumps({"Data": text, "Checksum": zlib.crc32(text.encode())}).encode()
    node.state_path.write_bytes(data)


@pytest.mark.report("F048")
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("checksum", r"is damaged: its checksum is \d+, its data gives \d+"),
        ("cut", "is damaged: unexpected end"),
        ("empty", "is damaged: unexpected end"),
        ("old", "Kubernetes 1.27"),
        ("same_uid", "contradicts itself: it lists claim UID u-1 twice"),
        ("same_name", "contradicts itself: it lists claim team-a/c1 with the UIDs u-1 and u-2"),
        ("unsafe", "contradicts itself: .*etc/passwd"),
        ("null", "contradicts itself: a claim .* has the UID ''"),
    ],
)
async def test_a_damaged_state_file_is_told_and_left_alone(node: Node, kind: str, words: str) -> None:
    await node.add_driver()
    await node.start()
    await node.prepare(claim())
    await node.stop()
    damage(node, kind)
    before = node.state_path.read_bytes()
    await node.start()
    assert [one.code for one in node.manager.findings()] == ["state_damaged"]
    assert node.manager.degraded is not None
    assert "nodeops.dra.checkpoint" in node.manager.degraded.hint
    if kind in ("checksum", "cut", "same_uid", "same_name"):
        assert "u-1" in node.manager.degraded.facts["claims"]
    for refused in (
        node.prepare(claim("c2", "u-2", device("dev-1"))),
        node.manager.unprepare("p-1"),
        node.manager.reconcile(lambda: ()),
        node.manager.forget("u-1", reason="test", by="test"),
    ):
        with pytest.raises(DegradedError, match=words):
            await refused
    await node.stop()
    assert node.state_path.read_bytes() == before
    assert node.asked() == ["prepare u-1"]
