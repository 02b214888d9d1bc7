# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A replaced file keeps its owner, mode, security label and access list."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_attributes import Attributes
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.store import read_file, write_atomic

AS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not AS_ROOT, reason="changing owners and security labels needs root")


def access_list(*, user: int) -> bytes:
    """An access list in the kernel's form: owner rw, one named user r, group none, mask r, others none."""
    entries = [
        (0x01, 6, 0xFFFFFFFF),
        (0x02, 4, user),
        (0x04, 0, 0xFFFFFFFF),
        (0x10, 4, 0xFFFFFFFF),
        (0x20, 0, 0xFFFFFFFF),
    ]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def set_or_skip(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        pytest.skip(f"this file system takes no {name}: {error}")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o400])
def test_mode_of_the_old_file_is_kept(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"old")
    file.chmod(mode)

    write_atomic(file, b"new")

    assert file.stat().st_mode & 0o7777 == mode
    assert file.read_bytes() == b"new"


@needs_root
def test_owner_of_the_old_file_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"old")
    os.chown(file, 1234, 4321)
    file.chmod(0o640)

    write_atomic(file, b"new")

    facts = file.stat()
    assert (facts.st_uid, facts.st_gid, facts.st_mode & 0o7777) == (1234, 4321, 0o640)


@needs_root
def test_new_file_belongs_to_the_owner_of_its_directory(tmp_path: Path) -> None:
    home = tmp_path / "rootless"
    home.mkdir()
    os.chown(home, 1234, 4321)

    write_atomic(home / "state", b"new")

    facts = (home / "state").stat()
    assert (facts.st_uid, facts.st_gid, facts.st_mode & 0o7777) == (1234, 4321, 0o600)


@needs_root
def test_security_label_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"old")
    label = b"system_u:object_r:container_file_t:s0\0"
    set_or_skip(file, "security.selinux", label)

    write_atomic(file, b"new")

    assert os.getxattr(file, "security.selinux") == label


def test_access_list_is_kept_so_that_the_group_gains_nothing(tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"old")
    set_or_skip(file, "system.posix_acl_access", access_list(user=1234))
    before = os.getxattr(file, "system.posix_acl_access")

    write_atomic(file, b"new")

    assert os.getxattr(file, "system.posix_acl_access") == before
    assert file.stat().st_mode & 0o777 == 0o640


def test_list_that_new_files_inherit_is_not_added_to_an_old_file(tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"old")
    file.chmod(0o600)
    set_or_skip(tmp_path, "system.posix_acl_default", access_list(user=1234))

    write_atomic(file, b"new")

    assert "system.posix_acl_access" not in os.listxattr(file)
    assert file.stat().st_mode & 0o777 == 0o600


def test_attributes_of_another_file_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"x")
    (tmp_path / "source").chmod(0o604)
    like = read_file(tmp_path / "source").attributes

    write_atomic(tmp_path / "state", b"new", like=like)
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o604

    # The same bytes with other attributes are a change, with the same ones they are not.
    assert write_atomic(tmp_path / "state", b"new", like=Attributes(0o600, None, None)).changed
    assert not write_atomic(tmp_path / "state", b"new", like=Attributes(0o600, None, None)).changed
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o600
