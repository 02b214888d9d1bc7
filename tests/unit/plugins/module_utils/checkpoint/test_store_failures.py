# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Writes that fail: the old file stays, nothing is left behind, and the error says what to do."""

from __future__ import annotations

import errno
import json
import os
import typing as t
from pathlib import Path

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import NotDurableError, StoreError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.store import read_file, remove_file, write_atomic

from .child_process import LAYER, mount_namespace, run_python

Call = t.Callable[..., t.Any]


def failing(number: int) -> Call:
    def fail(*_args: object, **_kwargs: object) -> t.NoReturn:
        raise OSError(number, os.strerror(number))

    return fail


FULL_DISK = f"""
import json, os, subprocess, sys
from {LAYER} import backups, lock, store
from {LAYER}.errors import DraError

home = sys.argv[1]
state = home + "/dra_manager_state"
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", home], check=True)
store.write_atomic(state, b"old" * 1000)
filler = os.open(home + "/filler", os.O_WRONLY | os.O_CREAT)
try:
    while True:
        os.write(filler, b"x" * 4096)
except OSError:
    pass

def attempt(action):
    before = sorted(os.listdir(home))
    try:
        action()
    except DraError as error:
        found = dict(error.facts, message=error.message, hint=error.hint)
    else:
        found = dict(errno=None)
    found["untouched"] = store.read_file(state).data == b"old" * 1000 and sorted(os.listdir(home)) == before
    return found

result = dict(
    write=attempt(lambda: store.write_atomic(state, b"new" * 3000)),
    backup=attempt(lambda: backups.make_backup(state)),
)
with lock.take_lock(state, timeout=0):
    result["locked"] = True
os.ftruncate(filler, 0)
result["after"] = store.write_atomic(state, b"new" * 3000).changed
os.close(filler)
subprocess.run(["umount", home], check=True)
print(json.dumps(result))
"""


@pytest.mark.report("F046")
def test_full_disk(tmp_path: Path) -> None:
    result = json.loads(run_python(FULL_DISK, str(tmp_path), prefix=mount_namespace()))

    for step in ("write", "backup"):
        assert result[step]["errno"] == "ENOSPC", result[step]
        assert result[step]["untouched"], f"{step} changed the file or left something behind"
        assert "No space left on device" in result[step]["message"]
        assert f"df -h {tmp_path}" in result[step]["hint"]
    assert result["locked"], "a repair on a full disk starts with the lock"
    assert result["after"], "the next write succeeds as soon as there is space"


READ_ONLY = f"""
import json, os, subprocess, sys
from {LAYER} import backups, leftovers, lock, store
from {LAYER}.errors import DraError

home = sys.argv[1]
state = home + "/dra_manager_state"
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", home], check=True)
store.write_atomic(state, b"old")
subprocess.run(["mount", "-o", "remount,bind,ro", home], check=True)

def refused(action):
    try:
        action()
    except DraError as error:
        return error.facts["errno"]
    return None

result = dict(
    read=store.read_file(state).data == b"old",
    same=store.write_atomic(state, b"old").changed,
    write=refused(lambda: store.write_atomic(state, b"new")),
    backup=refused(lambda: backups.make_backup(state)),
    remove=refused(lambda: store.remove_file(state)),
    lock=refused(lambda: lock.take_lock(state)),
    names=os.listdir(home),
)
subprocess.run(["umount", home], check=True)
print(json.dumps(result))
"""


@pytest.mark.report("F046")
def test_read_only_file_system_can_be_read_and_nothing_else(tmp_path: Path) -> None:
    result = json.loads(run_python(READ_ONLY, str(tmp_path), prefix=mount_namespace()))
    assert result == {
        "read": True,
        "same": False,
        "write": "EROFS",
        "backup": "EROFS",
        "remove": "EROFS",
        "lock": "EROFS",
        "names": ["dra_manager_state"],
    }


MOUNTED_FILE = f"""
import json, os, subprocess, sys
from {LAYER} import store
from {LAYER}.errors import DraError

state = sys.argv[1] + "/dra_manager_state"
other = sys.argv[1] + "/other"
for path in (state, other):
    store.write_atomic(path, b"old")
subprocess.run(["mount", "--bind", other, state], check=True)
try:
    store.write_atomic(state, b"new")
except DraError as error:
    print(json.dumps([error.facts["errno"], error.hint, sorted(os.listdir(sys.argv[1]))]))
subprocess.run(["umount", state], check=True)
"""


def test_single_file_mounted_into_a_container_is_explained(tmp_path: Path) -> None:
    number, hint, names = json.loads(run_python(MOUNTED_FILE, str(tmp_path), prefix=mount_namespace()))
    assert number == "EBUSY"
    assert "mount its directory instead" in hint
    assert names == ["dra_manager_state", "other"]


UNPRIVILEGED = f"""
import json, os, sys
from {LAYER} import backups, lock, store
from {LAYER}.errors import DraError

if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)

def refused(action):
    try:
        action()
    except DraError as error:
        return [error.facts["errno"], error.message]
    return None

print(json.dumps(dict(
    read=store.read_file("closed/state").data.decode(),
    write=refused(lambda: store.write_atomic("closed/state", b"new")),
    backup=refused(lambda: backups.make_backup("closed/state")),
    lock=refused(lambda: lock.take_lock("closed/state")),
    secret=refused(lambda: store.read_file("closed/secret")),
    foreign=refused(lambda: store.write_atomic("open/state", b"new")),
    names=sorted(os.listdir("closed") + os.listdir("open")),
)))
"""


@pytest.mark.report("F046")
def test_directory_without_write_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for name, mode in (("closed", 0o555), ("open", 0o777)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "state").write_bytes(b"old")
        (tmp_path / name / "state").chmod(0o644)
        (tmp_path / name).chmod(mode)
    if os.geteuid() == 0:
        (tmp_path / "closed" / "secret").write_bytes(b"secret")
        (tmp_path / "closed" / "secret").chmod(0o600)

    result = json.loads(run_python(UNPRIVILEGED, cwd=tmp_path))

    (tmp_path / "closed").chmod(0o755)
    assert result["read"] == "old"
    assert (result["write"][0], result["backup"][0], result["lock"][0]) == ("EACCES", "EACCES", "EACCES")
    if os.geteuid() == 0:
        assert result["secret"][0] == "EACCES"
        # Writing would have changed the owner from root to nobody: refused before the rename.
        assert result["foreign"][0] == "EPERM"
        assert "owner, mode or label" in result["foreign"][1]
        assert (tmp_path / "open" / "state").stat().st_uid == 0
        assert (tmp_path / "open" / "state").read_bytes() == b"old"
        assert result["names"] == ["secret", "state", "state"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG], ids=errno.errorcode.get)
@pytest.mark.parametrize("call", ["write", "fsync", "close", "rename", "fchmod", "listxattr"])
def test_any_failing_step_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"old")
    file.chmod(0o644)  # differs from a temporary's 0600, so that fchmod is needed
    real = getattr(os, call)
    temporary_seen: list[int] = []

    def fail_on_temporary(fd: t.Any, *args: t.Any, **kwargs: t.Any) -> t.Any:
        if call == "rename" or (os.readlink(f"/proc/self/fd/{fd}").startswith(f"{tmp_path}/.") and not temporary_seen):
            temporary_seen.append(1)
            if call == "close":
                real(fd)
            raise OSError(number, os.strerror(number))
        return real(fd, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail_on_temporary)
        with pytest.raises(StoreError) as error:
            write_atomic(file, b"new")

    assert temporary_seen, "the failing call was not reached"
    assert error.value.facts["errno"] == errno.errorcode[number]
    assert error.value.facts["path"] == str(file)
    assert "it is as it was" in error.value.message
    assert error.value.hint
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["state"]
    assert write_atomic(file, b"new").changed


def test_label_that_cannot_be_kept_stops_the_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"old")
    try:
        os.setxattr(file, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system takes no extended attributes")
    monkeypatch.setattr(os, "setxattr", failing(errno.EPERM))

    with pytest.raises(StoreError, match="owner, mode or label of the new file could not be set"):
        write_atomic(file, b"new")

    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["state"]


def test_file_system_without_labels_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "listxattr", failing(errno.ENOTSUP))
    (tmp_path / "state").write_bytes(b"old")
    assert write_atomic(tmp_path / "state", b"new").changed


def test_directory_that_does_not_confirm_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"old")
    real = os.fsync

    def fail_on_directory(fd: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            raise OSError(errno.EIO, "Input/output error")
        real(fd)

    monkeypatch.setattr(os, "fsync", fail_on_directory)
    with pytest.raises(NotDurableError, match="is changed, but the disk did not confirm it"):
        write_atomic(file, b"new")
    assert file.read_bytes() == b"new", "a caller that gets NotDurableError may rely on the new bytes being in place"
    with pytest.raises(NotDurableError):
        write_atomic(file, b"new")
    with pytest.raises(NotDurableError):
        remove_file(file)


def test_directory_fsync_that_the_file_system_does_not_know_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def unknown_for_directories(fd: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(fd)

    monkeypatch.setattr(os, "fsync", unknown_for_directories)
    assert write_atomic(tmp_path / "state", b"new").changed


def test_temporary_that_cannot_be_removed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", failing(errno.ENOSPC))
    monkeypatch.setattr(os, "unlink", failing(errno.EIO))
    with pytest.raises(StoreError) as error:
        write_atomic(tmp_path / "state", b"new")
    (left,) = tmp_path.iterdir()
    assert error.value.facts["leftover"] == str(left)
    assert str(left) in error.value.hint


def test_write_that_takes_nothing_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", lambda _fd, _data: 0)
    with pytest.raises(StoreError):
        write_atomic(tmp_path / "state", b"new")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, MemoryError])
def test_interruption_passes_through_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruption: type[BaseException]
) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"old")
    before = sorted(os.listdir("/proc/self/fd"))

    def interrupt(_fd: int) -> None:
        raise interruption

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(interruption):
        write_atomic(file, b"new")
    assert os.listdir(tmp_path) == ["state"]
    assert file.read_bytes() == b"old"
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_permission_of_the_file_itself_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "state").write_bytes(b"old")
    real = os.open

    def deny(path: str, *args: int, **kwargs: int) -> int:
        if path == "state":
            raise OSError(errno.EACCES, "Permission denied")
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", deny)
    with pytest.raises(StoreError) as error:
        read_file(tmp_path / "state")
    assert error.value.message == f"{tmp_path}/state could not be read: Permission denied (EACCES)."
    assert "Run as root" in error.value.hint
