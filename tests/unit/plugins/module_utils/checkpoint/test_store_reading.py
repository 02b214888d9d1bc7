# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Reading a state file: whole, bounded, and never from something that is not a file."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import file_content
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import (
    FileChangedError,
    FileTooLargeError,
    MissingFileError,
    NotRegularFileError,
    StoreError,
    SymlinkRefusedError,
)
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.store import StateDirectory, read_file

from .child_process import python_child, rounds


def test_read_returns_the_bytes_and_the_facts_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "dra_manager_state"
    file.write_bytes(b'{"Data":""}')
    file.chmod(0o640)

    content = read_file(file)

    facts = file.stat()
    assert content.data == b'{"Data":""}'
    assert (content.mode, content.uid, content.gid) == (0o640, facts.st_uid, facts.st_gid)
    assert (content.inode, content.device, content.mtime_ns) == (facts.st_ino, facts.st_dev, facts.st_mtime_ns)
    assert (content.path, content.resolved, content.links) == (str(file), os.path.realpath(file), 1)
    assert content.is_same_as(facts)


@pytest.mark.parametrize("size", [0, 1, 4096, 3_000_000])
def test_read_returns_every_byte(tmp_path: Path, size: int) -> None:
    data = bytes(i % 251 for i in range(1000)) * (size // 1000 + 1)
    (tmp_path / "f").write_bytes(data[:size])

    assert read_file(tmp_path / "f").data == data[:size]


def test_missing_file_and_missing_directory_have_their_own_error(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError) as missing:
        read_file(tmp_path / "none")
    assert missing.value.facts == {"path": f"{os.path.realpath(tmp_path)}/none", "errno": "ENOENT"}

    with pytest.raises(MissingFileError, match="could not be opened as a directory"):
        read_file(tmp_path / "no" / "none")


def test_larger_than_the_limit_is_refused_and_exactly_the_limit_is_not(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 100)

    assert len(read_file(tmp_path / "f", limit=100).data) == 100
    with pytest.raises(FileTooLargeError) as error:
        read_file(tmp_path / "f", limit=99)
    assert (error.value.facts["size"], error.value.facts["limit"]) == (100, 99)


def test_file_that_grows_beyond_the_limit_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"x" * 50)
    real_read = os.read

    def grow_then_read(fd: int, count: int) -> bytes:
        with file.open("ab") as writer:
            writer.write(b"x" * 100)
        return real_read(fd, count)

    monkeypatch.setattr(os, "read", grow_then_read)
    with pytest.raises(FileTooLargeError):
        read_file(file, limit=120)


@pytest.mark.parametrize("kind", ["directory", "pipe", "socket", "device"])
def test_what_is_not_a_file_is_refused_without_waiting(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    if kind == "directory":
        os.mkdir("f")
    elif kind == "pipe":
        os.mkfifo("f")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("f")
    else:
        try:
            os.mknod("f", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("device nodes need root")

    with pytest.raises(NotRegularFileError, match="expected a regular file"):
        read_file("f")


def test_link_is_refused_with_both_names_unless_following_is_asked_for(tmp_path: Path) -> None:
    real = tmp_path / "elsewhere" / "state"
    real.parent.mkdir()
    real.write_bytes(b"{}")
    link = tmp_path / "dra_manager_state"
    link.symlink_to(real)

    with pytest.raises(SymlinkRefusedError) as refused:
        read_file(link)
    assert refused.value.facts == {"path": str(link), "target": str(real)}
    assert str(real) in refused.value.hint

    followed = read_file(link, follow=True)
    assert (followed.data, followed.path, followed.resolved) == (b"{}", str(link), str(real))


def test_link_to_nothing_and_circle_of_links(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")

    with pytest.raises(MissingFileError):
        read_file(tmp_path / "dangling", follow=True)
    with pytest.raises(StoreError):
        read_file(tmp_path / "circle", follow=True)


@pytest.mark.report("F116")
def test_directory_on_the_way_may_be_a_link_and_hold_blanks(tmp_path: Path) -> None:
    real = tmp_path / "fast disk"
    real.mkdir()
    (real / "state").write_bytes(b"1")
    (tmp_path / "kubelet").symlink_to(real)

    content = read_file(f"{tmp_path}/kubelet//state")

    assert content.resolved == str(real / "state")


@pytest.mark.parametrize("path", ["", "/", "dir/", ".", "..", "a/..", "a\0b", "a\0/b", "\ud800"])
def test_what_cannot_be_the_path_of_a_file_is_a_clear_error(path: str) -> None:
    with pytest.raises(StoreError) as error:
        read_file(path)
    assert "is not the path of a file" in error.value.message
    str(error.value).encode()


def test_name_with_control_characters_is_shown_escaped(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError) as error:
        read_file(tmp_path / "a\x1b[31m\nb")
    assert r"a\x1b[31m\nb" in error.value.message


def test_replaced_while_read_gives_one_of_the_contents(tmp_path: Path) -> None:
    """The kubelet replaces the file all the time; a mixture of two contents must never be seen."""
    file = tmp_path / "state"
    file.write_bytes(b"a" * 10)
    code = (
        "import os,sys,select\n"
        "print('ready', flush=True)\n"
        "n=0\n"
        "while not select.select([0],[],[],0)[0]:\n"
        "    n+=1; letter=b'ab'[n%2:n%2+1]\n"
        "    open(sys.argv[1]+'.t','wb').write(letter*(10+n%7*40000)); os.rename(sys.argv[1]+'.t',sys.argv[1])\n"
    )
    seen: set[tuple[bytes, int]] = set()
    with python_child(code, str(file)):
        for _unused in rounds(300, lambda: len(seen) > 1):
            data = read_file(file).data
            assert data == data[:1] * len(data)
            seen.add((data[:1], len(data)))
    assert len(seen) > 1, "the file was never replaced, so nothing was tested"


def test_written_in_place_while_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"old old old")
    real_read = os.read
    reads: list[bytes] = []

    def write_in_the_middle(fd: int, count: int) -> bytes:
        data = real_read(fd, min(count, 4))
        if not reads:
            with file.open("r+b") as writer:
                writer.write(b"new new new")
            os.utime(file, ns=(1, 1))
        reads.append(data)
        return data

    monkeypatch.setattr(os, "read", write_in_the_middle)
    assert read_file(file).data == b"new new new"


def test_written_in_place_without_end_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"x")
    real_read = os.read
    times = iter(range(1, 100))

    def touch_then_read(fd: int, count: int) -> bytes:
        os.utime(file, ns=(1, next(times)))
        return real_read(fd, count)

    monkeypatch.setattr(os, "read", touch_then_read)
    with pytest.raises(FileChangedError, match="written to during each of 5 reads"):
        read_file(file)


def test_read_error_of_the_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "state").write_bytes(b"x")

    def fail(_fd: int, _count: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", fail)
    with pytest.raises(StoreError) as error:
        read_file(tmp_path / "state")
    assert error.value.facts["errno"] == "EIO"
    assert "dmesg" in error.value.hint


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"x")
    before = sorted(os.listdir("/proc/self/fd"))
    with StateDirectory(tmp_path) as opened:
        opened.read("state")
        with pytest.raises(MissingFileError):
            opened.read("none")
        with pytest.raises(FileTooLargeError):
            opened.read("state", limit=0)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_comparing_blocks_is_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_content, "_BLOCK", 4)
    (tmp_path / "f").write_bytes(b"abcdefghij")
    with (tmp_path / "f").open("rb") as file:
        facts = os.fstat(file.fileno())
        assert file_content.holds(file.fileno(), facts, memoryview(b"abcdefghij"))
        assert not file_content.holds(file.fileno(), facts, memoryview(b"abcdefghiX"))
        assert not file_content.holds(file.fileno(), facts, memoryview(b"abcdefghijk"))
        assert not file_content.holds(file.fileno(), facts, memoryview(b"abcd"))
