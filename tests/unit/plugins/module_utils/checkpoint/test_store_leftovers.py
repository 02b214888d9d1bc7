# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Temporaries of killed writers are found, and removed only when somebody asks for it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import MissingFileError, StoreError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.leftovers import remove_stale, stale_temporaries

NOW = 1_000_000.0


def put(directory: Path, name: str, age: float, data: bytes = b"half") -> Path:
    path = directory / name
    path.write_bytes(data)
    os.utime(path, (NOW - age, NOW - age))
    return path


def test_temporaries_of_every_writer_are_listed_oldest_first(tmp_path: Path) -> None:
    put(tmp_path, ".1234567890", 100)
    put(tmp_path, "dra_health_state.tmp123", 300, b"")
    put(tmp_path, "tmp-checkpoint-77", 200, b"12345")
    put(tmp_path, ".9", 50)
    for other in ("dra_manager_state", "dra_health_state", ".12a", ".hidden", "1234", "x.tmp1", ".12.bak"):
        put(tmp_path, other, 1000)
    (tmp_path / ".555").symlink_to("dra_manager_state")
    (tmp_path / ".777").mkdir()

    found = stale_temporaries(tmp_path, now=lambda: NOW)

    assert [(one.name, one.kind, one.size, one.age) for one in found] == [
        ("dra_health_state.tmp123", "health", 0, 300.0),
        ("tmp-checkpoint-77", "example-driver", 5, 200.0),
        (".1234567890", "checkpoint", 4, 100.0),
        (".9", "checkpoint", 4, 50.0),
    ]
    assert found[0].path == str(tmp_path / "dra_health_state.tmp123")


def test_listing_removes_nothing(tmp_path: Path) -> None:
    put(tmp_path, ".1", 1000)
    stale_temporaries(tmp_path)
    assert os.listdir(tmp_path) == [".1"]


def test_only_old_ones_are_removed(tmp_path: Path) -> None:
    put(tmp_path, ".1", 59)
    put(tmp_path, ".2", 61)
    found = stale_temporaries(tmp_path, now=lambda: NOW)

    assert [one.name for one in remove_stale(tmp_path, found)] == [".2"]
    assert os.listdir(tmp_path) == [".1"]


def test_name_that_is_another_file_by_now_is_left_alone(tmp_path: Path) -> None:
    put(tmp_path, ".1", 1000)
    put(tmp_path, ".2", 1000)
    found = stale_temporaries(tmp_path, now=lambda: NOW)
    (tmp_path / ".2").unlink()
    put(tmp_path, "new", 0)
    (tmp_path / "new").rename(tmp_path / ".1")

    assert remove_stale(tmp_path, found) == []
    assert os.listdir(tmp_path) == [".1"]


def test_failing_removal_names_the_file_and_what_was_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, ".1", 3000)
    put(tmp_path, ".2", 2000)
    found = stale_temporaries(tmp_path, now=lambda: NOW)
    real = os.unlink

    def fail_on_second(name: str, **kwargs: int) -> None:
        if name == ".2":
            raise OSError(errno.EROFS, "Read-only file system")
        real(name, **kwargs)

    monkeypatch.setattr(os, "unlink", fail_on_second)
    with pytest.raises(StoreError) as error:
        remove_stale(tmp_path, found)
    assert error.value.facts == {"path": f"{tmp_path}/.2", "errno": "EROFS", "removed": [f"{tmp_path}/.1"]}


def test_missing_directory_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        stale_temporaries(tmp_path / "none")
