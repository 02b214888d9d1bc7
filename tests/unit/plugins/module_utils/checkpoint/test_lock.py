# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The lock keeps two writers apart, names the one that holds it, and never outlives its process."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import lock, lock_holder
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import (
    MissingFileError,
    NotRegularFileError,
    StoreError,
    SymlinkRefusedError,
)
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.lock import (
    LockHeldError,
    driver_locks,
    lock_path,
    take_existing_locks,
    take_lock,
)
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.store import write_atomic

from .child_process import LAYER, environment, python_child, run_python

HOLD = f"""
import sys
from {LAYER} import lock
held = lock.take_lock(sys.argv[1], shared=sys.argv[2:] == ["shared"])
print("ready", flush=True)
sys.stdin.read()
"""


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def test_lock_file_lies_beside_the_file_and_is_closed_to_others(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with take_lock(tmp_path / "dra_manager_state") as held:
            assert held.path == lock_path(tmp_path / "dra_manager_state") == f"{tmp_path}/dra_manager_state.lock"
            assert os.stat(held.path).st_mode & 0o7777 == 0o600
    finally:
        os.umask(old)
    assert os.listdir(tmp_path) == ["dra_manager_state.lock"], "removing it would let two writers in"


def test_lock_survives_the_replacement_of_the_state_file(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with take_lock(state):
        write_atomic(state, b"1")
        write_atomic(state, b"2")
        with pytest.raises(LockHeldError):
            take_lock(state, timeout=0)


def test_two_writers_never_work_at_the_same_time(tmp_path: Path) -> None:
    """Two processes add 1 to the number in the file, 60 times each: without the lock additions get lost."""
    code = f"""
import sys
from {LAYER} import lock, store
path = sys.argv[1]
sys.stdin.readline()
for _ in range(60):
    with lock.take_lock(path, timeout=30):
        number = int(store.read_file(path).data)
        store.write_atomic(path, b"%d" % (number + 1))
"""
    state = tmp_path / "state"
    state.write_bytes(b"0")
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(state)], env=environment(), stdin=subprocess.PIPE, text=True)
        for _unused in range(2)
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=50)
        assert writer.returncode == 0
    assert state.read_bytes() == b"120"


def test_error_names_the_holder(tmp_path: Path) -> None:
    with python_child(HOLD, str(tmp_path / "state")) as child, pytest.raises(LockHeldError) as error:
        take_lock(tmp_path / "state", timeout=0)

    (holder,) = error.value.facts["holders"]
    assert holder["pid"] == child.pid
    assert "python" in holder["command"]
    assert holder["since"].endswith("Z")
    assert f"is locked by pid {child.pid} (" in error.value.message
    assert "Do not remove the lock file" in error.value.hint
    assert error.value.facts["path"] == f"{tmp_path}/state.lock"


def test_killed_holder_holds_nothing_and_its_text_does_no_harm(tmp_path: Path) -> None:
    with python_child(HOLD, str(tmp_path / "state")) as child:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert json.loads((tmp_path / "state.lock").read_text())["pid"] == child.pid
        with take_lock(tmp_path / "state", timeout=0):
            assert json.loads((tmp_path / "state.lock").read_text())["pid"] == os.getpid()
    assert (tmp_path / "state.lock").read_text() == "", "a released lock names nobody"


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff\xfe", b'{"pid": "x"}', b"[" * 100_000, b"9" * 5000])
def test_any_text_in_the_lock_file_is_harmless(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "state.lock").write_bytes(text)
    with (tmp_path / "state.lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(LockHeldError) as error:
            take_lock(tmp_path / "state", timeout=0)
    assert [one["pid"] for one in error.value.facts["holders"]] == [os.getpid()]
    with take_lock(tmp_path / "state", timeout=0):
        pass


def test_holder_from_the_text_where_the_kernel_names_nobody(tmp_path: Path) -> None:
    (tmp_path / "locks").write_text("")
    (tmp_path / "state.lock").write_text('{"pid": 4711, "command": "agent", "since": "2026-08-07T10:11:12Z", "x": []}')
    with (tmp_path / "state.lock").open() as file:
        found = lock_holder.lock_holders(file.fileno(), str(tmp_path / "state.lock"), proc_root=tmp_path)
    assert found == [{"pid": 4711, "command": "agent", "since": "2026-08-07T10:11:12Z"}]


def test_kernels_list_with_another_device_number_and_with_waiters(tmp_path: Path) -> None:
    file = tmp_path / "state.lock"
    file.touch()
    inode = file.stat().st_ino
    (tmp_path / "locks").write_text(
        f"1: FLOCK  ADVISORY  WRITE 4711 ff:ff:{inode} 0 EOF\n"
        f"1: -> FLOCK  ADVISORY  WRITE 4712 ff:ff:{inode} 0 EOF\n"
        f"2: POSIX  ADVISORY  WRITE 4713 ff:ff:{inode} 0 EOF\n"
        f"3: FLOCK  ADVISORY  READ 4714 ff:ff:{inode}0 0 EOF\nnonsense\n"
    )
    with file.open() as opened:
        found = lock_holder.lock_holders(opened.fileno(), str(file), proc_root=tmp_path)
    assert [one["pid"] for one in found] == [4711]


def test_child_that_inherited_the_lock_is_named(tmp_path: Path) -> None:
    code = """
import fcntl, os, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
if os.fork():
    os._exit(0)
print(os.getpid(), flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "state.lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        grandchild = int(parent.stdout.readline())
        parent.wait()
        with pytest.raises(LockHeldError) as error:
            take_lock(tmp_path / "state", timeout=0)
        parent.communicate()
    found = {one["pid"]: one["command"] for one in error.value.facts["holders"]}
    assert grandchild in found
    assert found.get(parent.pid, "gone, a child holds its lock") == "gone, a child holds its lock"


def test_same_process_has_to_wait_as_well(tmp_path: Path) -> None:
    with take_lock(tmp_path / "state"), pytest.raises(LockHeldError) as error:
        take_lock(tmp_path / "state", timeout=0)
    assert [one["pid"] for one in error.value.facts["holders"]] == [os.getpid()]


def test_readers_share_and_keep_a_writer_out(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    with python_child(HOLD, state, "shared"), take_lock(state, shared=True, timeout=0) as held:
        assert held.shared
        with pytest.raises(LockHeldError, match="for exclusive access"):
            take_lock(state, timeout=0)
    with take_lock(state, timeout=0), pytest.raises(LockHeldError, match="for shared access"):
        take_lock(state, shared=True, timeout=0)


def test_waiting_ends_at_the_deadline_of_a_clock_that_never_goes_back(tmp_path: Path) -> None:
    clock = Clock()
    with take_lock(tmp_path / "state"), pytest.raises(LockHeldError, match=r"waited 3\.0 s") as error:
        take_lock(tmp_path / "state", timeout=3, clock=clock, sleep=clock.sleep)
    assert error.value.facts["waited"] == 3.0
    assert clock.pauses[:3] == [0.01, 0.02, 0.04]
    assert max(clock.pauses) == 0.2


def test_waiting_succeeds_as_soon_as_the_holder_is_done(tmp_path: Path) -> None:
    first = take_lock(tmp_path / "state")
    clock = Clock()

    def release_while_waiting(seconds: float) -> None:
        clock.sleep(seconds)
        if len(clock.pauses) == 3:
            first.release()

    with take_lock(tmp_path / "state", timeout=60, clock=clock, sleep=release_while_waiting):
        assert len(clock.pauses) == 3


def test_lock_file_that_was_removed_while_we_waited_is_not_trusted(tmp_path: Path) -> None:
    first = take_lock(tmp_path / "state")

    def somebody_tidies_up(_seconds: float) -> None:
        os.unlink(first.path)
        first.release()

    with take_lock(tmp_path / "state", timeout=5, sleep=somebody_tidies_up) as second:
        assert os.path.exists(second.path)
        with pytest.raises(LockHeldError):
            take_lock(tmp_path / "state", timeout=0)


def test_releasing_twice_is_harmless(tmp_path: Path) -> None:
    held = take_lock(tmp_path / "state")
    held.release()
    with take_lock(tmp_path / "state", timeout=0):
        held.release()
        with pytest.raises(LockHeldError):
            take_lock(tmp_path / "state", timeout=0)


def test_released_lock_is_free_although_a_forked_child_has_the_file_open(tmp_path: Path) -> None:
    code = f"""
import os, sys
from {LAYER} import lock
held = lock.take_lock(sys.argv[1])
to_parent, from_child = os.pipe(), os.pipe()
if os.fork() == 0:
    os.write(from_child[1], b"forked")
    os.read(to_parent[0], 1)
    os._exit(0)
os.read(from_child[0], 6)
held.release()
lock.take_lock(sys.argv[1], timeout=0).release()
os.write(to_parent[1], b"x")
print("free")
"""
    assert run_python(code, str(tmp_path / "state")) == "free\n"


def test_lock_is_not_passed_on_to_started_programs(tmp_path: Path) -> None:
    with take_lock(tmp_path / "state"):
        child = subprocess.Popen(["/bin/sh", "-c", "read line"], stdin=subprocess.PIPE)
    with child, take_lock(tmp_path / "state", timeout=0):
        child.communicate()


@pytest.mark.parametrize("target", ["existing", "missing"])
def test_link_in_place_of_the_lock_file_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "existing").write_bytes(b"precious")
    (tmp_path / "state.lock").symlink_to(target)
    with pytest.raises(SymlinkRefusedError):
        take_lock(tmp_path / "state")
    assert (tmp_path / "existing").read_bytes() == b"precious"
    assert not (tmp_path / "missing").exists()


def test_hard_link_in_place_of_the_lock_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    os.link(tmp_path / "precious", tmp_path / "state.lock")
    with pytest.raises(StoreError, match="2 names"):
        take_lock(tmp_path / "state")
    assert (tmp_path / "precious").read_bytes() == b"precious"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["directory", "pipe"])
def test_what_is_not_a_file_cannot_be_the_lock(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "state.lock")
    with pytest.raises(NotRegularFileError):
        take_lock(tmp_path / "state")


def test_missing_directory_and_impossible_path(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        take_lock(tmp_path / "none" / "state")
    with pytest.raises(StoreError, match="is not the path of a file"):
        take_lock(f"{tmp_path}/")
    assert os.listdir(tmp_path) == []


def test_file_system_that_cannot_lock_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_fd: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    before = sorted(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(StoreError, match="could not be locked: No locks available"):
        take_lock(tmp_path / "state")
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_full_disk_does_not_keep_the_lock_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", fail)
    with take_lock(tmp_path / "state"), pytest.raises(LockHeldError):
        take_lock(tmp_path / "state", timeout=0)


def test_driver_locks_are_those_that_exist_in_the_drivers_order(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint.json"
    assert driver_locks(checkpoint) == []
    (tmp_path / "cp.lock").touch()
    (tmp_path / "pu.lock").touch()
    assert driver_locks(checkpoint) == [str(tmp_path / "pu.lock"), str(tmp_path / "cp.lock")]


def test_driver_locks_are_taken_without_touching_the_files(tmp_path: Path) -> None:
    for name in lock.DRIVER_LOCK_NAMES:
        (tmp_path / name).write_text("of the driver")
        (tmp_path / name).chmod(0o644)
    paths = driver_locks(tmp_path / "checkpoint.json")

    with take_existing_locks(paths, timeout=0):
        for path in paths:
            with open(path) as file, pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for path in paths:
        with open(path) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            assert file.read() == "of the driver"
    assert sorted(os.listdir(tmp_path)) == ["cp.lock", "pu.lock"]


def test_driver_locks_are_all_taken_or_none(tmp_path: Path) -> None:
    for name in lock.DRIVER_LOCK_NAMES:
        (tmp_path / name).touch()
    paths = driver_locks(tmp_path / "checkpoint.json")
    clock = Clock()
    with open(paths[1]) as driver:
        fcntl.flock(driver, fcntl.LOCK_EX)
        with pytest.raises(LockHeldError, match=r"cp\.lock is locked by"):
            take_existing_locks(paths, timeout=1, clock=clock, sleep=clock.sleep)
        with take_existing_locks(paths[:1], timeout=0):
            pass


def test_missing_driver_lock_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        take_existing_locks([tmp_path / "cp.lock"])
    assert os.listdir(tmp_path) == []
