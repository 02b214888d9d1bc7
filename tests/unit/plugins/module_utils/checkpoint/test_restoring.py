# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Going back: the newest copy that the kubelet starts with, what it changes, and why others were passed over."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import backups, statefile
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.diagnosis import diagnose
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import MissingFileError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.planning import plan_convert
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.restoring import (
    Restoration,
    differences,
    plan_restore,
)
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.statefile import Request

from . import builders as b

OLD = b.fnv_file(b.fnv_claim(1))
ONE, TWO = b.crc_file(b.crc_claim(1)), b.crc_file(b.crc_claim(1), b.crc_claim(2))
UNIVERSAL = plan_convert(OLD, "universal").after
BROKEN = TWO[:-30]
NULL_PODS = b.crc_file(b.crc_claim(1, PodUIDs=None))
HEALTH = b'{"gpu.example.com":{"Devices":{}}}'


class Node:
    """A kubelet's directory with a state file, and a ring of copies; the first copy that is put is the oldest."""

    def __init__(self, directory: Path, data: bytes = BROKEN) -> None:
        self.file = directory / "kubelet" / "dra_manager_state"
        self.ring = directory / "ring"
        self.ring.mkdir()
        self.file.parent.mkdir()
        self.file.write_bytes(data)
        self._copies = 0

    def _name(self, ending: str) -> str:
        self._copies += 1
        return f"dra_manager_state.202601{self._copies:02}T000000Z{ending}"

    def backup(self, data: bytes) -> str:
        path = self.file.parent / self._name(".bak")
        path.write_bytes(data)
        return str(path)

    def copy(self, data: bytes) -> str:
        path = self.ring / self._name("")
        path.write_bytes(data)
        return str(path)

    def of(self, source: Path) -> None:
        """Let the ring say whose copies it holds."""
        (self.ring / backups.RING_SOURCE).write_text(f"{source}\n", encoding="utf-8")

    def plan(self, target: str | None = None, *, ring: bool = True, backup: str | None = None) -> Restoration:
        return plan_restore(
            str(self.file),
            self.file.read_bytes(),
            ring=str(self.ring) if ring else None,
            target=target,
            backup=backup,
        )


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_the_newest_good_copy_is_taken_wherever_it_is(node: Node) -> None:
    oldest = node.copy(ONE)
    middle = node.backup(TWO)
    node.copy(BROKEN)
    newest = node.copy(b"")

    found = node.plan()

    assert (found.chosen.path, found.plan.after) == (middle, TWO)
    assert [one.backup.path for one in found.candidates][:1] == [newest]
    assert [bool(one.problem) for one in found.candidates] == [True, True, False], "none is read after the good one"
    assert oldest not in [one.backup.path for one in found.candidates]
    assert found.candidates[0].problem == "The file is empty."
    assert "ends in the middle" in found.candidates[1].problem


def test_without_a_ring_only_the_copies_beside_the_file_count(node: Node) -> None:
    beside = node.backup(ONE)
    node.copy(TWO)
    assert node.plan(ring=False).chosen.path == beside


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param(None, "new", id="any kubelet"),
        pytest.param("1.36", "new", id="its release"),
        pytest.param("v1.31.4", "new", id="with a patch version"),
        pytest.param("crc-1.31", "new", id="a format"),
        pytest.param("1.40", "new", id="a later release"),
        pytest.param("1.30", "universal", id="another family"),
        pytest.param("fnv-1.27", "universal", id="a format of another family"),
        pytest.param("universal", "universal", id="all releases"),
    ],
)
def test_the_release_that_the_node_runs_decides(node: Node, target: str | None, expected: str) -> None:
    node.copy(OLD)
    copies = {"universal": node.copy(UNIVERSAL), "new": node.copy(ONE)}
    assert node.plan(target).chosen.path == copies[expected]


def test_a_copy_of_another_family_is_passed_over_with_the_reason(node: Node) -> None:
    node.copy(ONE)
    with pytest.raises(DraError) as caught:
        node.plan("1.30")
    assert "None of the 1 copies beside" in caught.value.message
    assert "the kubelet of 1.30 does not read it" in caught.value.message
    with pytest.raises(DraError, match="Not every release reads it"):
        node.plan("universal")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(NULL_PODS, "null", id="it would panic later"),
        pytest.param(HEALTH, "none of its members belongs to a state file", id="another kind of file"),
        pytest.param(b.crc_around(b.crc_data(b.crc_claim(1), list_key="Entries")), "'Entries'", id="list not read"),
        pytest.param(b.crc_file(b.crc_claim(1), checksum=1), "The checksum is 1", id="checksum"),
    ],
)
def test_a_copy_that_loads_and_breaks_the_kubelet_later_is_none(node: Node, data: bytes, problem: str) -> None:
    good, bad = node.copy(ONE), node.copy(data)
    assert node.plan().chosen.path == good
    assert problem in node.plan().candidates[0].problem
    with pytest.raises(DraError) as caught:
        node.plan(backup=bad)
    assert f"Backup {bad} is not good: " in caught.value.message
    assert "repair this one first" in caught.value.hint


def test_warnings_do_not_make_a_copy_bad(node: Node) -> None:
    doubled = b.crc_claim(1, DriverState={"gpu.example.com": {"Devices": [b.device(), b.device()]}})
    assert node.plan(backup=node.copy(b.crc_file(doubled))).plan.after == b.crc_file(doubled)


def test_a_copy_that_is_named_is_the_only_one_that_is_looked_at(node: Node) -> None:
    named, _newer = node.copy(ONE), node.copy(TWO)
    found = node.plan(backup=named)
    assert (found.chosen.path, found.plan.after) == (named, ONE)
    assert [one.backup.path for one in found.candidates] == [named]


def test_no_copy_at_all_is_told_with_where_was_looked(node: Node) -> None:
    with pytest.raises(DraError) as caught:
        node.plan()
    assert str(caught.value) == (
        f"There is no copy of the state file beside {node.file} and in {node.ring}. "
        "Repair the file itself instead (state=repaired)."
    )
    with pytest.raises(DraError, match=rf"There is no copy of the state file beside {node.file}\."):
        node.plan(ring=False)
    with pytest.raises(MissingFileError):
        node.plan(backup=str(node.ring / "none"))


def test_a_copy_that_cannot_be_read_is_passed_over(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    good = node.copy(ONE)
    huge = node.copy(b"")
    with open(huge, "ab") as file:
        file.truncate(300 * 1024 * 1024)  # sparse: larger than any state file that is read
    found = node.plan()
    assert found.chosen.path == good
    assert "more than the limit" in found.candidates[0].problem


@pytest.mark.parametrize("target", ["new", "1.26", "", "1.3x"])
def test_what_is_no_release_is_refused_before_any_copy_is_read(node: Node, target: str) -> None:
    if target:
        with pytest.raises(DraError, match=r"is not a Kubernetes version|keeps no state file"):
            node.plan(target)
    else:
        node.copy(ONE)
        assert node.plan(target).plan.after == ONE


# What it changes


def test_the_difference_to_the_broken_file_is_told_claim_by_claim(node: Node) -> None:
    now = b.crc_file(b.crc_claim(1), b.crc_claim(2), b.crc_claim(4))[:-3]  # cut, all claims are whole
    then = b.crc_file(b.crc_claim(4), b.crc_claim(2, PodUIDs={}), b.crc_claim(3))
    node.file.write_bytes(now)
    node.copy(then)

    steps = node.plan().plan.steps

    assert [(step.action, step.place.split()[0]) for step in steps] == [
        ("add_claim", "default/claim-3"),
        ("change_claim", "default/claim-2"),
        ("drop_claim", "default/claim-1"),
    ]
    assert [step.loses for step in steps] == [
        "",
        "what the file says of it now",
        "the claim: its drivers gpu.example.com are not told to unprepare it",
    ]


def test_a_file_that_is_good_is_only_replaced_by_a_copy_that_is_named(node: Node) -> None:
    """The newest copy of a restored file is what it was before: without this each run would undo the last one."""
    copy = node.copy(ONE)
    node.file.write_bytes(TWO)
    found = node.plan()
    assert (found.chosen, found.candidates, found.plan.changed, found.plan.steps) == (None, [], False, [])
    where = statefile.locate(str(node.file))
    request = Request("restored", backup=copy)
    assert [statefile.change(where, request)["changed"] for _unused in range(2)] == [True, False]
    unnamed = statefile.change(where, Request("restored"))
    assert (unnamed["changed"], unnamed["restored_from"], unnamed["copies"]) == (False, None, [])
    assert node.file.read_bytes() == ONE


def test_a_file_that_is_good_for_another_release_is_replaced(node: Node) -> None:
    node.file.write_bytes(TWO)
    node.copy(OLD)
    assert node.plan("1.30").plan.after == OLD


def test_the_same_claims_in_another_order_and_spelling_are_no_difference() -> None:
    swapped = b.crc_around(b.crc_data(b.crc_claim(2), b.crc_claim(1)).replace('"ClaimUID":', '"claimuid" : '))
    (step,) = differences(diagnose(TWO).contents, diagnose(swapped).contents)
    assert (step.action, step.loses) == ("restore", "")


def test_a_missing_file_gets_all_claims_back(node: Node) -> None:
    node.copy(TWO)
    found = plan_restore(str(node.file), None, ring=str(node.ring))
    assert [step.action for step in found.plan.steps] == ["add_claim", "add_claim"]
    assert found.plan.changed


def test_a_file_that_equals_its_newest_copy_needs_nothing(node: Node) -> None:
    node.file.write_bytes(TWO)
    node.copy(TWO)
    plan = node.plan().plan
    assert (plan.changed, plan.steps) == (False, [])


def test_restored_on_disk_with_the_broken_file_kept(node: Node) -> None:
    copy = node.copy(TWO)
    where = statefile.locate(str(node.file))
    request = Request("restored", "1.36", ring=str(node.ring))
    checked = statefile.change(where, request, check=True)
    assert node.file.read_bytes() == BROKEN

    made = statefile.change(where, request)

    assert node.file.read_bytes() == TWO
    assert Path(made["backup_file"]).read_bytes() == BROKEN
    assert Path(copy).read_bytes() == TWO
    assert (made["restored_from"], made["format"], made["changed"]) == (copy, "crc-1.35", True)
    assert made["copies"] == [{"path": copy, "recorded_at": 1767225600.0, "problem": ""}]
    assert {**made, "backup_file": None} == checked
    again = statefile.change(where, request)
    assert (again["changed"], again["restored_from"], again["copies"]) == (False, None, [])
    node.file.unlink()
    passed = statefile.change(where, request)
    assert passed["restored_from"] == copy
    assert [bool(one["problem"]) for one in passed["copies"]] == [True, False], "the backup of the broken file"


def test_the_ring_of_the_agent_is_looked_at_without_being_named(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backups, "DEFAULT_RING", str(node.ring))
    copy = node.copy(TWO)
    node.of(node.file)
    (node.file.parent.parent / "link").symlink_to(node.file.parent)
    where = statefile.locate(str(node.file.parent.parent / "link" / node.file.name))
    assert statefile.change(where, Request("restored"))["restored_from"] == copy
    assert node.file.read_bytes() == TWO


@pytest.mark.parametrize("source", ["/var/lib/other/dra_manager_state", None])
def test_a_ring_of_another_file_is_not(node: Node, source: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backups, "DEFAULT_RING", str(node.ring))
    node.copy(TWO)
    if source is not None:
        node.of(Path(source))
    with pytest.raises(DraError, match="There is no copy of the state file"):
        statefile.change(statefile.locate(str(node.file)), Request("restored"))


def test_without_a_ring_of_the_agent_only_copies_beside_the_file_count(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backups, "DEFAULT_RING", str(node.ring / "nowhere"))
    with pytest.raises(DraError, match="There is no copy of the state file"):
        statefile.change(statefile.locate(str(node.file)), Request("restored"))
