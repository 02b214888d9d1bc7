# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Replacing a state file: what the new file looks like, and what stays as it was."""

from __future__ import annotations

import os
import typing as t
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import (
    DirectoryChangedError,
    FileChangedError,
    MissingFileError,
    NotRegularFileError,
    StoreError,
)
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.store import (
    StateDirectory,
    Written,
    read_file,
    remove_file,
    write_atomic,
)


def test_new_file_has_the_kubelets_mode_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o777)
    try:
        result = write_atomic(tmp_path / "state", b"new")
    finally:
        os.umask(old)

    facts = (tmp_path / "state").stat()
    assert result == Written(True, str(tmp_path / "state"))
    assert (facts.st_mode & 0o7777, facts.st_uid) == (0o600, os.geteuid())
    assert (tmp_path / "state").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["state"]


def test_same_bytes_are_not_written_but_made_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"same")
    before = file.stat()
    synced = []
    real = os.fsync

    def record(fd: int) -> None:
        synced.append(os.fstat(fd).st_ino)
        real(fd)

    monkeypatch.setattr(os, "fsync", record)
    assert write_atomic(file, b"same") == Written(False, str(file))

    after = file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert synced == [before.st_ino, tmp_path.stat().st_ino]


def test_file_is_synced_before_the_rename_and_the_directory_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    real_fsync, real_rename = os.fsync, os.rename

    def fsync(fd: int) -> None:
        steps.append("sync directory" if os.path.isdir(f"/proc/self/fd/{fd}") else "sync file")
        real_fsync(fd)

    def rename(*args: t.Any, **kwargs: t.Any) -> None:
        steps.append("rename")
        real_rename(*args, **kwargs)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", rename)
    write_atomic(tmp_path / "state", b"new")

    assert steps == ["sync file", "rename", "sync directory"]


def test_temporary_is_named_like_the_kubelets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    renamed = []
    real = os.rename

    def rename(source: str, target: str, **kwargs: int) -> None:
        renamed.append((source, target))
        real(source, target, **kwargs)

    monkeypatch.setattr(os, "rename", rename)
    (tmp_path / ".7").write_bytes(b"of somebody else")
    numbers = iter([7, 7, 1234567890])
    with StateDirectory(tmp_path, random_bits=lambda _count: next(numbers)) as opened:
        opened.write("state", b"new")

    assert renamed == [(".1234567890", "state")]
    assert (tmp_path / ".7").read_bytes() == b"of somebody else"


def test_no_free_name_for_the_temporary_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / ".7").touch()
    with StateDirectory(tmp_path, random_bits=lambda _count: 7) as opened, pytest.raises(StoreError, match="100 names"):
        opened.write("state", b"new")


def test_beginning_of_the_old_bytes_is_a_change(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"old and longer")
    assert write_atomic(tmp_path / "state", b"old").changed
    assert (tmp_path / "state").read_bytes() == b"old"


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:7]))

    write_atomic(tmp_path / "state", bytes(range(256)))

    assert (tmp_path / "state").read_bytes() == bytes(range(256))


@pytest.mark.parametrize("data", [b"", bytearray(b"abc"), memoryview(b"abc")], ids=["empty", "bytearray", "memoryview"])
def test_any_bytes_can_be_written(tmp_path: Path, data: bytes) -> None:
    write_atomic(tmp_path / "state", data)
    assert (tmp_path / "state").read_bytes() == bytes(data)


def test_other_name_of_the_same_file_keeps_the_old_bytes(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"old")
    os.link(tmp_path / "state", tmp_path / "copy")

    write_atomic(tmp_path / "state", b"new")

    assert (tmp_path / "copy").read_bytes() == b"old"
    assert read_file(tmp_path / "state").links == 1


@pytest.mark.report("F116")
@pytest.mark.parametrize("form", ["{}/state", "{}//state", "{}/./state"])
def test_directory_in_any_spelling_gives_the_same_path(tmp_path: Path, form: str) -> None:
    home = tmp_path / "with blank"
    home.mkdir()
    assert write_atomic(form.format(home), b"x").path == str(home / "state")


def test_path_without_directory_means_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert write_atomic("state", b"x").path == str(tmp_path / "state")


def test_write_based_on_an_outdated_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"old")
    read = read_file(file)
    write_atomic(file, b"by the kubelet")

    with pytest.raises(FileChangedError):
        write_atomic(file, b"ours", unless_changed_since=read)
    assert file.read_bytes() == b"by the kubelet"

    with pytest.raises(FileChangedError):
        write_atomic(file, b"by the kubelet", unless_changed_since=read)

    file.unlink()
    with pytest.raises(FileChangedError):
        write_atomic(file, b"ours", unless_changed_since=read)
    assert os.listdir(tmp_path) == []


def test_write_based_on_a_current_read_goes_through(tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"old")
    assert write_atomic(file, b"new", unless_changed_since=read_file(file)).changed


@pytest.mark.parametrize("meanwhile", ["replaced", "removed"])
def test_change_during_the_write_is_noticed_before_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"old")
    read = read_file(file)
    real = os.fsync

    def kubelet_writes_now(fd: int) -> None:
        monkeypatch.setattr(os, "fsync", real)
        if meanwhile == "removed":
            file.unlink()
        else:
            write_atomic(file, b"by the kubelet")
        real(fd)

    monkeypatch.setattr(os, "fsync", kubelet_writes_now)
    with pytest.raises(FileChangedError):
        write_atomic(file, b"ours", unless_changed_since=read)
    assert [entry.read_bytes() for entry in tmp_path.iterdir()] == (
        [] if meanwhile == "removed" else [b"by the kubelet"]
    )


def test_directory_that_is_a_file_or_missing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError) as error:
        write_atomic(tmp_path / "file" / "state", b"x")
    assert error.value.facts["errno"] == "ENOTDIR"
    with pytest.raises(MissingFileError):
        write_atomic(tmp_path / "none" / "state", b"x")


def test_directory_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    with pytest.raises(NotRegularFileError, match="is a directory"):
        write_atomic(tmp_path / "state", b"x")
    assert os.listdir(tmp_path) == ["state"]


def test_open_directory_that_was_moved_away_is_noticed(tmp_path: Path) -> None:
    home = tmp_path / "kubelet"
    home.mkdir()
    with StateDirectory(home) as opened:
        opened.write("state", b"1")
        home.rename(tmp_path / "old")
        with pytest.raises(DirectoryChangedError):
            opened.write("state", b"2")
        home.mkdir()
        with pytest.raises(DirectoryChangedError):
            opened.write("state", b"2")
        with pytest.raises(DirectoryChangedError):
            opened.remove("state")
    assert (tmp_path / "old" / "state").read_bytes() == b"1"


def test_names_that_lead_out_of_the_directory_are_refused(tmp_path: Path) -> None:
    home = tmp_path / "kubelet"
    home.mkdir()
    with StateDirectory(home) as opened:
        for name in ("../state", "/etc/passwd", "a/b", "..", ""):
            with pytest.raises(StoreError, match="is not the path of a file"):
                opened.write(name, b"x")
            with pytest.raises(StoreError, match="is not the path of a file"):
                opened.create([name], b"x")
            with pytest.raises(StoreError, match="is not the path of a file"):
                opened.remove(name)
    assert os.listdir(tmp_path) == ["kubelet"]
    assert os.listdir(home) == []


def test_create_never_writes_over_anything(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").symlink_to("nowhere")
    with StateDirectory(tmp_path) as opened:
        assert opened.create(["a", "b", "c"], b"new") == "c"
        with pytest.raises(StoreError, match="2 further names are taken"):
            opened.create(["a", "b", "c"], b"new")
    assert (tmp_path / "a").read_bytes() == b"a"
    assert (tmp_path / "c").read_bytes() == b"new"
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "c"]


def test_create_where_the_file_system_has_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_kwargs: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "a").write_bytes(b"a")
    with StateDirectory(tmp_path) as opened:
        assert opened.create(["a", "b"], b"new") == "b"
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == {"a": b"a", "b": b"new"}


def test_remove_is_durable_and_says_whether_there_was_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "state").write_bytes(b"x")
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)

    assert remove_file(tmp_path / "state") is True
    assert len(synced) == 1
    assert remove_file(tmp_path / "state") is False
    assert os.listdir(tmp_path) == []


def test_remove_of_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"old")
    read = read_file(file)
    write_atomic(file, b"new")
    with pytest.raises(FileChangedError):
        remove_file(file, unless_changed_since=read)
    assert file.read_bytes() == b"new"


def test_many_writers_in_threads_share_one_open_directory(tmp_path: Path) -> None:
    contents = [bytes([n]) * 5000 for n in range(8)]
    with StateDirectory(tmp_path) as opened, ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda data: opened.write("state", data), contents))
        last = opened.read("state").data
    assert last in contents
    assert all(result.changed for result in results)
    assert os.listdir(tmp_path) == ["state"]
