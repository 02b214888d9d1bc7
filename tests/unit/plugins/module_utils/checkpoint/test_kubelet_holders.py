# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Processes that hold a file open are found by the file itself, whatever name they used."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import StoreError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.holders import Holders, holders

from .child_process import LAYER, python_child, run_python
from .fake_node import FakeNode

HOLD = "import sys; f = open(sys.argv[1], sys.argv[2]); print('ready', flush=True); sys.stdin.read()"


@pytest.mark.parametrize(("mode", "writing"), [("r", False), ("r+", True), ("a", True)])
def test_real_process_that_holds_the_file_is_found(tmp_path: Path, mode: str, writing: bool) -> None:
    file = tmp_path / "dra_manager_state"
    file.write_text("x")
    with python_child(HOLD, str(file), mode) as child:
        found = holders(file)
    after = holders(file)

    assert [(one.pid, one.writing) for one in found.processes] == [(child.pid, writing)]
    assert sys.executable.rpartition("/")[2] in found.processes[0].command
    assert f"pid {child.pid} (" in found.describe()
    assert not after
    assert found.processes[0].as_facts() == {
        "pid": child.pid,
        "command": found.processes[0].command,
        "writing": writing,
    }


def test_other_names_of_the_file_count_and_other_files_do_not(tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_text("x")
    os.link(file, tmp_path / "hard")
    (tmp_path / "soft").symlink_to("state")
    (tmp_path / "other").write_text("x")
    with python_child(HOLD, str(tmp_path / "hard"), "r") as first, python_child(HOLD, str(tmp_path / "other"), "r"):
        assert [one.pid for one in holders(tmp_path / "soft").processes] == [first.pid]


def test_replaced_file_is_not_held_by_who_holds_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_text("old")
    with python_child(HOLD, str(file), "r"):
        (tmp_path / "new").write_text("new")
        (tmp_path / "new").rename(file)
        assert not holders(file)


def test_own_and_ignored_processes_do_not_count(tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_text("x")
    with file.open(), python_child(HOLD, str(file), "r") as child:
        assert [one.pid for one in holders(file).processes] == [child.pid]
        assert not holders(file, ignore_pids={child.pid})


def test_missing_file_has_no_holders_and_an_impossible_path_is_told(tmp_path: Path) -> None:
    assert holders(tmp_path / "none") == Holders((), 0)
    with pytest.raises(StoreError):
        holders("a\0b")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(StoreError, match="could not be looked at"):
        holders(tmp_path / "loop")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_processes_of_others_are_counted_as_not_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_text("x")
    tmp_path.chmod(0o755)
    code = f"""
import os, sys
from {LAYER}.holders import holders
os.chdir(sys.argv[1])
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
found = holders("state")
print(len(found.processes), found.unseen > 0, found.describe())
"""
    with python_child(HOLD, str(file), "r"):
        text = run_python(code, str(tmp_path))
    assert text.startswith("0 True held open by no process that could be looked at; could not look at ")


def test_vanished_processes_and_odd_descriptors_are_passed_over(tmp_path: Path) -> None:
    node = FakeNode(tmp_path)
    file = tmp_path / "state"
    file.write_text("x")
    node.process(40, ["kubelet"])
    node.process(41, ["kubelet", "--x"])
    descriptors = node.proc / "41" / "fd"
    descriptors.mkdir()
    (descriptors / "0").symlink_to("pipe:[123]")
    (descriptors / "1").symlink_to("/gone (deleted)")
    (descriptors / "2").symlink_to(file)
    (descriptors / "3").write_text("not a link")

    found = holders(file, proc_root=node.proc)

    assert [(one.pid, one.command, one.writing) for one in found.processes] == [(41, "kubelet --x", False)]
    assert found.unseen == 0
