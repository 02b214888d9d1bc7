# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The index of a daemon: quick answers that stay right when files change."""

from __future__ import annotations

import gc
import os
import pathlib
import threading
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.cdi import index as index_module
from ansible_collections.nodeops.dra.plugins.module_utils.cdi.index import SpecIndex
from ansible_collections.nodeops.dra.plugins.module_utils.cdi.registry import Registry
from ansible_collections.nodeops.dra.plugins.module_utils.cdi.spec import SpecFile, load_file
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.cdi.specs import (
    UID_1,
    UID_2,
    device,
    spec,
    write,
)

KIND = "gpu.test.example/gpu"
NAME = f"{KIND}={UID_1}-gpu-0"


def claim_file(directory: pathlib.Path, uid: str = UID_1) -> pathlib.Path:
    return write(directory, f"gpu.test.example-gpu_{uid}.json", spec(device(f"{uid}-gpu-0")))


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Counts how often all directories are read."""
    seen: list[str] = []
    real = Registry.load.__func__  # type: ignore[attr-defined]

    def counted(cls: type[Registry], *arguments: object) -> Registry:
        seen.append("load")
        result: Registry = real(cls, *arguments)
        return result

    monkeypatch.setattr(Registry, "load", classmethod(counted))
    return seen


@pytest.mark.report("F109")
def test_name_is_missing_until_its_file_is_there(tmp_path: pathlib.Path) -> None:
    index = SpecIndex([str(tmp_path)])
    assert index.missing([NAME, NAME], UID_1) == [NAME]
    path = claim_file(tmp_path)
    assert index.missing([NAME], UID_1) == []
    path.unlink()
    assert index.missing([NAME], UID_1) == [NAME]
    assert index.registry().check({UID_1: [NAME]})[0].code == "cdi_unresolved"


def test_file_of_the_claim_is_found_without_reading_the_rest(tmp_path: pathlib.Path, loads: list[str]) -> None:
    claim_file(tmp_path)
    claim_file(tmp_path, UID_2)
    index = SpecIndex([f"{tmp_path}/none", f"{tmp_path}/"])
    assert index.missing([NAME], UID_1) == []
    assert loads == []
    assert index.missing([NAME]) == []
    assert loads == []
    assert index.missing([f"{KIND}={UID_2}-gpu-0"]) == []
    assert loads == ["load"]


def test_name_in_a_common_file_is_remembered(tmp_path: pathlib.Path, loads: list[str]) -> None:
    write(tmp_path, "common.json", spec(device("common")))
    index = SpecIndex([str(tmp_path)])
    assert index.missing([f"{KIND}=common"], UID_1) == []
    assert index.missing([f"{KIND}=common"], UID_2) == []
    assert loads == ["load"]


def test_unchanged_file_is_not_read_again(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim_file(tmp_path)
    index = SpecIndex([str(tmp_path)])
    assert index.missing([NAME], UID_1) == []

    def refuse(*_arguments: object) -> None:
        raise AssertionError("the file was read again")

    monkeypatch.setattr(index_module, "load_file", refuse)
    assert index.missing([NAME], UID_1) == []


def test_changed_file_is_read_again(tmp_path: pathlib.Path) -> None:
    path = claim_file(tmp_path)
    index = SpecIndex([str(tmp_path)])
    assert index.missing([NAME], UID_1) == []
    write(tmp_path, path.name, spec(device("something-else")))
    assert index.missing([NAME], UID_1) == [NAME]
    write(tmp_path, path.name, b"{")
    assert index.missing([NAME], UID_1) == [NAME]
    claim_file(tmp_path)
    assert index.missing([NAME], UID_1) == []


def test_file_replaced_with_equal_size_and_time_is_noticed(tmp_path: pathlib.Path) -> None:
    path = claim_file(tmp_path)
    index = SpecIndex([str(tmp_path)])
    assert index.missing([NAME], UID_1) == []
    status = path.stat()
    new = write(tmp_path, "new.tmp", spec(device(f"{UID_2}-gpu-0")))
    assert new.stat().st_size == status.st_size
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
    new.rename(path)
    assert index.missing([NAME], UID_1) == [NAME]


def test_files_of_claims_that_are_gone_are_not_kept(tmp_path: pathlib.Path) -> None:
    """A daemon prepares claims for months; what it knows must not grow with them."""

    def kept() -> int:
        return sum(isinstance(one, SpecFile) for one in gc.get_objects())

    index = SpecIndex([str(tmp_path)])
    standing = claim_file(tmp_path)
    assert index.missing([NAME], UID_1) == []
    before = kept()
    for number in range(700):
        uid = f"c1a10000-0000-4000-8000-{number:012d}"
        path = claim_file(tmp_path, uid)
        assert index.missing([f"{KIND}={uid}-gpu-0"], uid) == []
        path.unlink()
    assert kept() - before < 400
    assert index.missing([NAME], UID_1) == []
    standing.unlink()
    assert index.missing([NAME], UID_1) == [NAME]


@pytest.mark.parametrize("uid", ["../x", "", "a/b"])
def test_odd_claim_uids_leave_no_directory(tmp_path: pathlib.Path, uid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def counted(path: str, priority: int, allowed: t.Sequence[str]) -> SpecFile | None:
        tried.append(path)
        return load_file(path, priority, allowed)

    monkeypatch.setattr(index_module, "load_file", counted)
    assert SpecIndex([str(tmp_path)]).missing([NAME, "no-name"], uid) == [NAME, "no-name"]
    assert tried == []


def test_threads_may_share_an_index(tmp_path: pathlib.Path) -> None:
    for number in range(20):
        claim_file(tmp_path, f"11111111-2222-4333-8444-{number:012}")
    index = SpecIndex([str(tmp_path)])
    results: list[list[str]] = []

    def ask(number: int) -> None:
        uid = f"11111111-2222-4333-8444-{number:012}"
        results.append(index.missing([f"{KIND}={uid}-gpu-0"], uid if number % 2 else ""))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[]] * 20
