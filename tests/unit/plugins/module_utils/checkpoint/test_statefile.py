# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The state file of a node: looked at, and changed with a backup or not at all."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
import typing as t
from pathlib import Path

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import backups, lock, statefile, store
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import (
    FileChangedError,
    NotRegularFileError,
    StoreError,
    SymlinkRefusedError,
)
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.lock import LockHeldError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.selection import Selection, Selector
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.statefile import Location, Request

from . import builders as b
from .child_process import LAYER, mount_namespace, named_child, python_child, run_python

SOUND = b.crc_file(b.crc_claim(1), b.crc_claim(2))
BROKEN = b.crc_file(b.crc_claim(1), b.crc_claim(2), checksum=7)
HOLD = "import sys; f = open(sys.argv[1], 'r+'); print('ready', flush=True); sys.stdin.read()"
REPAIR = Request("repaired")


def put(directory: Path, data: bytes = BROKEN) -> Path:
    file = directory / "dra_manager_state"
    file.write_bytes(data)
    file.chmod(0o640)
    return file


def location(file: Path) -> Location:
    return statefile.locate(str(file))


def everything(directory: Path) -> dict[str, bytes]:
    """What the directory holds, but for the lock file, which a refused change may leave."""
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.suffix != ".lock"}


# Where it is


def test_a_path_that_is_given_is_taken_with_its_directory_for_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert statefile.locate("sub/state") == Location("sub/state", f"{tmp_path}/sub", "the path that was given")


def test_a_root_that_is_given_holds_the_file(tmp_path: Path) -> None:
    found = statefile.locate(kubelet_root=str(tmp_path))
    assert found == Location(f"{tmp_path}/dra_manager_state", str(tmp_path), "option kubelet_root")


RUNNING = f"""
import subprocess, sys
from {LAYER} import statefile
command = ["kubelet", "-c", "echo ready; read line", "--root-dir=" + sys.argv[1]]
with subprocess.Popen(command, executable="/bin/sh", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
    child.stdout.readline()
    found = statefile.locate()
    report = statefile.inspect(found)
    print(found.path, report["kubelet"]["pid"] == child.pid, report["found_by"], sep="|")
    child.communicate()
"""


def test_without_either_the_running_kubelet_is_asked(tmp_path: Path) -> None:
    own_processes = [*mount_namespace(), "--pid", "--fork", "--mount-proc"]
    found = run_python(RUNNING, str(tmp_path), prefix=own_processes).strip().split("|")
    assert found[:2] == [f"{tmp_path}/dra_manager_state", "True"]
    assert found[2].startswith("command line of pid ")


# Looking at it


def test_a_look_tells_the_file_and_what_it_holds(tmp_path: Path) -> None:
    report = statefile.inspect(location(put(tmp_path, SOUND)), target="v1.36.2+k3s1")
    told = {key: report[key] for key in ("file", "kubelet_root", "exists", "size", "mode", "kubelet", "target_version")}
    assert told == {
        "file": f"{tmp_path}/dra_manager_state",
        "kubelet_root": str(tmp_path),
        "exists": True,
        "size": len(SOUND),
        "mode": "0640",
        "kubelet": None,
        "target_version": "v1.36.2+k3s1",
    }
    assert (report["status"], report["faults"], len(report["claims"])) == ("sound", [], 2)
    assert json.loads(json.dumps(report)) == report


def test_a_missing_file_is_told_and_is_no_error(tmp_path: Path) -> None:
    report = statefile.inspect(location(tmp_path / "dra_manager_state"))
    assert (report["exists"], report["mode"], report["size"], report["status"]) == (False, None, 0, "sound")
    assert [item["code"] for item in report["faults"]] == ["missing_file"]
    assert report["repair"] == {"possible": True, "reason": "", "changed": False, "steps": [], "claims": 0}


def test_a_directory_that_is_not_there_may_be_a_slip_of_the_pen(tmp_path: Path) -> None:
    report = statefile.inspect(location(tmp_path / "kubelte" / "dra_manager_state"))
    assert report["status"] == "faulty"
    assert [item["code"] for item in report["faults"]] == ["missing_directory", "missing_file"]
    assert report["faults"][0]["text"] == f"There is no directory {tmp_path}/kubelte."


def test_what_is_no_file_cannot_be_looked_at(tmp_path: Path) -> None:
    with pytest.raises(NotRegularFileError, match="is a directory"):
        statefile.inspect(location(tmp_path))
    with pytest.raises(StoreError, match="/none could not be opened as a directory"):
        statefile.change(location(tmp_path / "none" / "state"), Request("repaired", selection=KEEP_NONE))


KEEP_NONE = Selection(add=[{"uid": "u", "name": "n", "namespace": "s"}])


def test_what_is_no_release_is_refused_with_what_may_be_given(tmp_path: Path) -> None:
    file = put(tmp_path)
    with pytest.raises(DraError) as caught:
        statefile.inspect(location(file), target="crc-1.31")
    assert str(caught.value) == "'crc-1.31' is not a Kubernetes version. Give a release such as 1.31."
    with pytest.raises(DraError, match=r"one of the formats fnv-1\.27, .*, or universal"):
        statefile.change(location(file), Request("converted", target="new"))


def test_a_link_is_read_and_told(tmp_path: Path) -> None:
    file = put(tmp_path, SOUND)
    (tmp_path / "link").symlink_to(file)
    report = statefile.inspect(location(tmp_path / "link"))
    assert [(item["code"], item["facts"]) for item in report["faults"]] == [("symlink", {"target": str(file)})]
    assert (report["claims_in_file"], report["status"]) == (2, "faulty")


def test_an_unfinished_write_is_told_once_it_is_old(tmp_path: Path) -> None:
    file = put(tmp_path, SOUND)
    left = tmp_path / ".123456"
    left.write_bytes(b"{")
    assert statefile.inspect(location(file))["faults"] == []
    old = time.time() - 7200
    os.utime(left, (old, old))
    (found,) = statefile.inspect(location(file))["faults"]
    assert (found["code"], found["severity"], found["place"]) == ("leftover_temporary", "info", str(left))
    assert "1 bytes was left 2.0 hours ago" in found["text"]


def test_a_kubelet_that_runs_is_told_with_how_to_stop_it(tmp_path: Path) -> None:
    with named_child("kubelet", f"--root-dir={tmp_path}") as child:
        report = statefile.inspect(location(put(tmp_path)))
        without = statefile.inspect(location(tmp_path / "dra_manager_state"), with_processes=False)
    assert report["kubelet"]["pid"] == child.pid
    assert report["kubelet"]["how_to_stop"]
    assert without["kubelet"] is None


def test_other_state_files_are_read_as_what_they_are(tmp_path: Path) -> None:
    file = tmp_path / "dra_health_state"
    file.write_bytes(b'{"gpu.example.com":{"Devices":null}}')
    report = statefile.inspect(location(file))
    assert (report["kind"], report["status"]) == ("dra_health_state", "faulty")
    assert report["faults"]
    assert "repair" not in report


DAMAGED = {
    "checksum": BROKEN,
    "cut": SOUND[:-200],
    "empty": b"",
    "null pods": b.crc_file(b.crc_claim(PodUIDs=None)),
    "sound": SOUND,
    "rest": SOUND + SOUND[400:],
}


@pytest.mark.parametrize("name", DAMAGED)
def test_the_repair_that_a_look_promises_is_the_one_that_is_made(name: str, tmp_path: Path) -> None:
    where = location(put(tmp_path, DAMAGED[name]))
    promised = statefile.inspect(where)["repair"]
    made = statefile.change(where, REPAIR)
    assert (made["changed"], made["steps"], made["claims_after"]) == (
        promised["changed"],
        promised["steps"],
        promised["claims"],
    )
    assert promised["possible"]
    assert statefile.inspect(where)["repair"]["changed"] is False


# Changing it


def test_a_change_keeps_a_backup_and_the_attributes_and_is_done_once(tmp_path: Path) -> None:
    file = put(tmp_path)
    checked = statefile.change(location(file), REPAIR, check=True)
    assert everything(tmp_path) == {"dra_manager_state": BROKEN}

    made = statefile.change(location(file), REPAIR)

    backup = Path(made["backup_file"])
    assert backups.recorded_time(backup.name) is not None
    assert everything(tmp_path) == {"dra_manager_state": SOUND, backup.name: BROKEN}
    assert {path.stat().st_mode & 0o7777 for path in (file, backup)} == {0o640}
    assert {**made, "backup_file": None} == checked
    assert (made["changed"], made["claims_before"], made["claims_after"], made["format"]) == (True, 2, 2, "crc-1.35")
    assert made["before"] == made["after"]
    assert [claim["uid"] for claim in made["after"]["claims"]] == [b.uid(1), b.uid(2)]

    again = statefile.change(location(file), REPAIR)
    assert (again["changed"], again["steps"], again["backup_file"]) == (False, [], None)
    assert len(everything(tmp_path)) == 2


def test_each_change_has_a_backup_of_its_own(tmp_path: Path) -> None:
    file = put(tmp_path)
    states = [BROKEN]
    for request in (REPAIR, Request("converted", "1.30"), Request("converted", "universal"), Request("absent")):
        made = statefile.change(location(file), request)
        assert Path(made["backup_file"]).read_bytes() == states[-1]
        states.append(file.read_bytes() if file.exists() else b"")
    assert len(everything(tmp_path)) == 4


def test_a_conversion_needs_a_target(tmp_path: Path) -> None:
    with pytest.raises(DraError, match="needs a target_version"):
        statefile.change(location(put(tmp_path)), Request("converted"))


def test_an_absent_file_is_forgotten_claim_by_claim(tmp_path: Path) -> None:
    file = put(tmp_path, SOUND)
    made = statefile.change(location(file), Request("absent"))
    assert not file.exists()
    assert [step["action"] for step in made["steps"]] == ["drop_claim", "drop_claim", "remove_file"]
    assert [step["place"] for step in made["lost"]] == [made["steps"][0]["place"], made["steps"][1]["place"]]
    assert (made["claims_before"], made["claims_after"], made["after"], made["format"]) == (2, 0, {}, None)
    again = statefile.change(location(file), Request("absent"))
    assert (again["changed"], again["steps"], again["before"], again["after"]) == (False, [], {}, {})


def test_a_file_is_made_where_there_was_none(tmp_path: Path) -> None:
    file = tmp_path / "dra_manager_state"
    assert not statefile.change(location(file), REPAIR)["changed"]
    assert not file.exists()
    made = statefile.change(location(file), Request("repaired", "1.36", selection=KEEP_NONE))
    assert (made["changed"], made["backup_file"], made["before"]) == (True, None, {})
    assert file.stat().st_mode & 0o7777 == 0o600
    assert everything(tmp_path).keys() == {"dra_manager_state"}


def test_claims_are_chosen_in_the_same_step(tmp_path: Path) -> None:
    file = put(tmp_path)
    made = statefile.change(
        location(file), Request("repaired", selection=Selection(drop=[Selector.parse("default/claim-1")]))
    )
    assert file.read_bytes() == b.crc_file(b.crc_claim(2))
    assert [step["action"] for step in made["steps"]] == ["recompute_checksum", "drop_claim"]


@pytest.mark.parametrize("state", ["repaired", "absent", "restored"])
def test_files_of_another_kind_are_left_alone(state: str, tmp_path: Path) -> None:
    file = tmp_path / "dra_health_state"
    file.write_bytes(b'{"gpu.example.com":null}')
    with pytest.raises(DraError, match="it is a file of kind dra_health_state") as caught:
        statefile.change(location(file), Request(state))
    assert caught.value.facts["kind"] == "dra_health_state"
    assert everything(tmp_path) == {"dra_health_state": b'{"gpu.example.com":null}'}


def test_a_link_is_never_written_through(tmp_path: Path) -> None:
    file = put(tmp_path)
    (tmp_path / "link").symlink_to(file)
    with pytest.raises(SymlinkRefusedError):
        statefile.change(location(tmp_path / "link"), REPAIR)
    assert file.read_bytes() == BROKEN
    assert (tmp_path / "link").is_symlink()


# Who else is at work on it


@pytest.mark.parametrize("state", ["repaired", "converted", "absent"])
def test_while_a_kubelet_runs_on_this_root_nothing_is_changed(state: str, tmp_path: Path) -> None:
    file = put(tmp_path, BROKEN if state == "repaired" else SOUND)
    before = everything(tmp_path)
    request = Request(state, "1.30" if state == "converted" else None)
    with named_child("kubelet", f"--root-dir={tmp_path}") as child:
        with pytest.raises(DraError, match=rf"kubelet pid {child.pid} runs on .* and overwrites it\.") as caught:
            statefile.change(location(file), request)
        assert everything(tmp_path) == before
        assert caught.value.facts["kubelet"]["pid"] == child.pid
        assert caught.value.hint.endswith("Or use force to change the file all the same.")
        assert statefile.change(location(file), request, check=True)["changed"], "a plan may be made meanwhile"
        assert statefile.change(location(file), Request(state, request.target, force=True))["changed"]
    assert everything(tmp_path) != before


def test_a_kubelet_on_another_root_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with named_child("kubelet", f"--root-dir={tmp_path}/other"):
        assert statefile.change(location(put(tmp_path)), REPAIR)["changed"]


def test_while_nothing_is_to_be_changed_a_kubelet_may_run(tmp_path: Path) -> None:
    file = put(tmp_path, SOUND)
    with named_child("kubelet", f"--root-dir={tmp_path}"):
        assert not statefile.change(location(file), REPAIR)["changed"]


def test_while_a_process_holds_the_file_nothing_is_changed(tmp_path: Path) -> None:
    file = put(tmp_path)
    with python_child(HOLD, str(file)) as child:
        with pytest.raises(DraError, match=rf"held open by pid {child.pid} \(.*, writing\)\.") as caught:
            statefile.change(location(file), REPAIR)
        assert everything(tmp_path) == {"dra_manager_state": BROKEN}
        assert [one["pid"] for one in caught.value.facts["holders"]] == [child.pid]
        assert "Stop that process first" in caught.value.hint
        assert statefile.change(location(file), Request("repaired", force=True))["changed"]
    assert file.read_bytes() == SOUND


def test_another_writer_is_waited_for_and_named(tmp_path: Path) -> None:
    file = put(tmp_path)
    with lock.take_lock(file), pytest.raises(LockHeldError):
        statefile.change(location(file), Request("repaired", lock_timeout=0, force=True))
    assert everything(tmp_path) == {"dra_manager_state": BROKEN}


def test_what_another_writer_left_is_what_is_changed(tmp_path: Path) -> None:
    file = put(tmp_path)
    other = b.crc_file(b.crc_claim(3), checksum=1)
    done: list[t.Any] = []
    with lock.take_lock(file):
        thread = threading.Thread(
            target=lambda: done.append(statefile.change(location(file), Request("repaired", lock_timeout=50)))
        )
        thread.start()
        file.write_bytes(other)
    thread.join()
    assert file.read_bytes() == b.crc_file(b.crc_claim(3))
    assert Path(done[0]["backup_file"]).read_bytes() == other


def test_nothing_is_done_when_another_writer_has_done_it_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(tmp_path)
    take_lock = lock.take_lock

    def late(path: str, *, timeout: float) -> lock.Lock:
        file.write_bytes(SOUND)
        return take_lock(path, timeout=timeout)

    monkeypatch.setattr(lock, "take_lock", late)
    made = statefile.change(location(file), REPAIR)
    assert (made["changed"], made["backup_file"]) == (False, None)
    assert everything(tmp_path) == {"dra_manager_state": SOUND}


# What can go wrong on the way


@pytest.mark.parametrize("call", ["write", "fsync", "rename", "link", "fchown", "open"])
def test_a_failing_disk_leaves_the_file_as_it_was(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = put(tmp_path)
    if call == "fchown" and os.geteuid() == 0:
        os.chown(file, 12, 34)
    before = file.stat()
    real = getattr(os, call)

    def fail(*args: t.Any, **kwargs: t.Any) -> t.Any:
        if call == "open" and not args[1] & os.O_CREAT:
            return real(*args, **kwargs)
        if call == "fchown" and os.geteuid() != 0:
            return real(*args, **kwargs)
        raise OSError(errno.EIO, "Input/output error")

    with lock.take_lock(file):
        pass  # the lock file is there already
    monkeypatch.setattr(os, call, fail)
    with pytest.raises(StoreError) as caught:
        statefile.change(location(file), REPAIR)
    monkeypatch.undo()

    assert caught.value.facts["errno"] == "EIO"
    after = file.stat()
    assert (after.st_ino, after.st_mtime_ns, file.read_bytes()) == (before.st_ino, before.st_mtime_ns, BROKEN)
    assert {data for name, data in everything(tmp_path).items()} == {BROKEN}, "whole copies at most"


def test_a_disk_that_fails_when_the_backup_is_made_and_not_when_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The backup stays: it is a good copy of what the file holds."""
    file = put(tmp_path)

    def fail(*_unused: t.Any, **__: t.Any) -> t.NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(StoreError, match="was not written, it is as it was: No space left on device"):
        statefile.change(location(file), REPAIR)
    assert sorted(everything(tmp_path).values()) == [BROKEN, BROKEN]


def test_a_file_that_changes_after_the_backup_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(tmp_path)
    make_backup = backups.make_backup

    def meanwhile(*args: t.Any, **kwargs: t.Any) -> str:
        made = make_backup(*args, **kwargs)
        file.write_bytes(SOUND + b"\n")
        return made

    monkeypatch.setattr(backups, "make_backup", meanwhile)
    for state in ("repaired", "absent"):
        file.write_bytes(BROKEN)
        with pytest.raises(FileChangedError):
            statefile.change(location(file), Request(state))
        assert file.read_bytes() == SOUND + b"\n"


def test_a_write_that_does_not_stick_is_told_with_the_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = put(tmp_path)
    write_atomic = store.write_atomic

    def overwritten(*args: t.Any, **kwargs: t.Any) -> store.Written:
        written = write_atomic(*args, **kwargs)
        file.write_bytes(b"{}")
        return written

    monkeypatch.setattr(store, "write_atomic", overwritten)
    with pytest.raises(
        DraError, match=f"does not hold what was written: {len(SOUND)} bytes expected, 2 found"
    ) as caught:
        statefile.change(location(file), REPAIR)
    assert Path(caught.value.facts["backup_file"]).read_bytes() == BROKEN
    assert caught.value.facts["backup_file"] in caught.value.hint
