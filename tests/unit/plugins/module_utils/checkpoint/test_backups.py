# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Backups: made beside the file, never over another, and found again newest first."""

from __future__ import annotations

import errno
import os
import re
import typing as t
from pathlib import Path

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import backups
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.backups import (
    list_backups,
    make_backup,
    recorded_time,
)
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import (
    MissingFileError,
    StoreError,
    SymlinkRefusedError,
)
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.store import read_file

# 2026-08-07 10:11:12 UTC
NOW = 1786097472.0


def state(directory: Path, data: bytes = b"broken") -> Path:
    file = directory / "dra_manager_state"
    file.write_bytes(data)
    file.chmod(0o640)
    return file


def test_backup_lies_beside_the_file_with_the_time_in_its_name(tmp_path: Path) -> None:
    file = state(tmp_path)

    made = make_backup(file, now=lambda: NOW)

    assert made == str(tmp_path / "dra_manager_state.20260807T101112Z.bak")
    copy = Path(made)
    assert copy.read_bytes() == b"broken"
    assert copy.stat().st_mode & 0o7777 == 0o640
    assert copy.stat().st_nlink == 1
    assert file.read_bytes() == b"broken"
    assert sorted(os.listdir(tmp_path)) == ["dra_manager_state", copy.name]


@pytest.mark.skipif(os.geteuid() != 0, reason="changing owners and security labels needs root")
def test_backup_has_owner_and_label_of_the_file(tmp_path: Path) -> None:
    file = state(tmp_path)
    os.chown(file, 1234, 4321)
    label = b"system_u:object_r:container_file_t:s0\0"
    os.setxattr(file, "security.selinux", label)

    made = make_backup(file)

    facts = os.stat(made)
    assert (facts.st_uid, facts.st_gid) == (1234, 4321)
    assert os.getxattr(made, "security.selinux") == label


def test_second_backup_in_the_same_second_gets_a_counter(tmp_path: Path) -> None:
    file = state(tmp_path, b"1")
    first = make_backup(file, now=lambda: NOW)
    file.write_bytes(b"2")
    second = make_backup(file, now=lambda: NOW)
    file.write_bytes(b"3")
    third = make_backup(file, now=lambda: NOW)

    assert [Path(path).name[len("dra_manager_state") :] for path in (first, second, third)] == [
        ".20260807T101112Z.bak",
        ".20260807T101112Z.2.bak",
        ".20260807T101112Z.3.bak",
    ]
    assert [Path(path).read_bytes() for path in (first, second, third)] == [b"1", b"2", b"3"]
    assert [one.path for one in list_backups(file)] == [third, second, first]
    assert {one.origin for one in list_backups(file)} == {"backup"}


def test_name_taken_by_a_link_is_not_written_through(tmp_path: Path) -> None:
    file = state(tmp_path)
    (tmp_path / "dra_manager_state.20260807T101112Z.bak").symlink_to("elsewhere")

    assert make_backup(file, now=lambda: NOW).endswith("Z.2.bak")
    assert not (tmp_path / "elsewhere").exists()


def test_backup_holds_what_was_read_before_if_that_is_given(tmp_path: Path) -> None:
    file = state(tmp_path, b"as diagnosed")
    content = read_file(file)
    file.write_bytes(b"changed meanwhile")

    assert Path(make_backup(file, content=content)).read_bytes() == b"as diagnosed"


def test_missing_file_and_link_have_no_backup(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        make_backup(tmp_path / "dra_manager_state")
    (tmp_path / "dra_manager_state").symlink_to("x")
    with pytest.raises(SymlinkRefusedError):
        make_backup(tmp_path / "dra_manager_state")
    assert os.listdir(tmp_path) == ["dra_manager_state"]


@pytest.mark.parametrize("call", ["write", "fsync", "link"])
def test_failing_backup_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    file = state(tmp_path)

    def fail(*_args: t.Any, **_kwargs: t.Any) -> t.NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(StoreError) as error:
        make_backup(file)
    assert error.value.facts["errno"] == "ENOSPC"
    assert "was not created" in error.value.message
    assert os.listdir(tmp_path) == ["dra_manager_state"]
    assert file.read_bytes() == b"broken"


def test_backup_that_reads_back_differently_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = state(tmp_path)

    def damage(fd: int, *_args: int) -> None:
        Path(os.readlink(f"/proc/self/fd/{fd}")).write_bytes(b"brokeN")

    monkeypatch.setattr(os, "posix_fadvise", damage)
    with pytest.raises(StoreError, match="differs from its original"):
        make_backup(file)
    assert os.listdir(tmp_path) == ["dra_manager_state"]


def test_empty_file_has_a_backup_too(tmp_path: Path) -> None:
    assert Path(make_backup(state(tmp_path, b""))).read_bytes() == b""


def put(path: Path, mtime: float, data: bytes = b"x") -> Path:
    path.write_bytes(data)
    os.utime(path, (mtime, mtime))
    return path


def test_list_names_every_copy_newest_first(tmp_path: Path) -> None:
    file = state(tmp_path)
    put(tmp_path / "dra_manager_state.20260101T000000Z.bak", NOW)
    put(tmp_path / "dra_manager_state.20260301T000000Z.bak", NOW, b"12345")
    put(tmp_path / "dra_manager_state.bak", 1767225600.5)  # half a second after the first
    put(tmp_path / "dra_manager_state.4711.2025-11-01@10:00:00~", 1761991200)
    put(tmp_path / "dra_manager_state~", 1)
    for other in (
        "dra_manager_state.lock",
        ".123",
        "dra_health_state.bak",
        "dra_manager_state2",
        "dra_manager_state.tmp",
    ):
        put(tmp_path / other, NOW)
    (tmp_path / "dra_manager_state.old").symlink_to("dra_manager_state")

    found = list_backups(file)

    assert [(Path(one.path).name, one.origin, one.time_in_name) for one in found] == [
        ("dra_manager_state.20260301T000000Z.bak", "backup", True),
        ("dra_manager_state.bak", "copy", False),
        ("dra_manager_state.20260101T000000Z.bak", "backup", True),
        ("dra_manager_state.4711.2025-11-01@10:00:00~", "copy", False),
        ("dra_manager_state~", "copy", False),
    ]
    assert (found[0].size, found[0].recorded_at) == (5, 1772323200.0)


def test_copies_are_found_when_the_file_itself_is_gone(tmp_path: Path) -> None:
    put(tmp_path / "dra_manager_state.20260101T000000Z.bak", NOW)
    assert len(list_backups(tmp_path / "dra_manager_state")) == 1


def test_ring_is_sorted_in_by_the_time_in_the_names(tmp_path: Path) -> None:
    home, ring = tmp_path / "kubelet", tmp_path / "ring"
    home.mkdir()
    ring.mkdir()
    file = state(home)
    put(home / "dra_manager_state.20260102T000000Z.bak", 1)
    put(ring / "dra_manager_state.20260103T000000.500000Z", 1)
    put(ring / "dra_manager_state.20260103T000000.25Z", 1)
    put(ring / "dra_manager_state.20260101T000000Z.json", 1)
    put(ring / "dra_health_state.20260104T000000Z", 1)
    put(ring / ".99", 1)

    found = list_backups(file, ring=ring)

    assert [(one.origin, Path(one.path).name.partition(".")[2]) for one in found] == [
        ("ring", "20260103T000000.500000Z"),
        ("ring", "20260103T000000.25Z"),
        ("backup", "20260102T000000Z.bak"),
        ("ring", "20260101T000000Z.json"),
    ]


def test_ring_with_names_of_its_own_is_taken_whole_by_time_of_writing(tmp_path: Path) -> None:
    file = state(tmp_path)
    ring = tmp_path / "ring"
    ring.mkdir()
    put(ring / "copy-a", 100)
    put(ring / "copy-b", 200)
    assert [Path(one.path).name for one in list_backups(file, ring=ring)] == ["copy-b", "copy-a"]


def test_missing_ring_is_told(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="ring"):
        list_backups(state(tmp_path), ring=tmp_path / "ring")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("x.20260807T101112Z.bak", (NOW, 1)),
        ("x.20260807T101112Z.12.bak", (NOW, 12)),
        ("x.20260807T101112.250Z", (NOW + 0.25, 1)),
        ("20260807T101112Z-x", (NOW, 1)),
        ("x.20261307T101112Z.bak", None),
        ("x.120260807T101112Z", None),
        ("x.20260807T101112.bak", None),
        ("x", None),
    ],
)
def test_time_in_a_name(name: str, expected: tuple[float, int] | None) -> None:
    assert recorded_time(name) == expected


def test_name_made_now_is_understood_again(tmp_path: Path) -> None:
    made = make_backup(state(tmp_path))
    assert re.fullmatch(r"dra_manager_state\.[0-9]{8}T[0-9]{6}Z\.bak", Path(made).name)
    assert backups.recorded_time(made) is not None
