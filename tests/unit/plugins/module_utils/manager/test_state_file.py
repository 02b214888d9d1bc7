# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The state file on a real file system: small and large, with readers in the way and with a disk that fails."""

from __future__ import annotations

import dataclasses
import errno
import fcntl
import os
import pathlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.claims import (
    ClaimState,
    Device,
    EncodedClaim,
    assemble,
    claim_states,
    encode,
)
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.diagnosis import diagnose
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.document import Document
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import NotDurableError, StoreError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.formats import NEWEST
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.store import StateDirectory
from ansible_collections.nodeops.dra.plugins.module_utils.manager.state_file import StateFile

NAME = "dra_manager_state"
PLAIN, GRID = 10**9, 0


def claim(number: int, *, prepared: bool = True) -> ClaimState:
    devices = (Device("pool-0", f"dev-{number}", ("r0",), (f"k8s.gpu.test.example/claim=u-{number}",)),)
    return ClaimState(
        f"u-{number}", f"c{number}", "team-a", frozenset({"p-1"}), {"gpu.test.example": devices if prepared else None}
    )


class Bench:
    """A state file in its directory, and what its readers see."""

    def __init__(self, folder: pathlib.Path, grid_from: int) -> None:
        self.path = folder / NAME
        self.directory = StateDirectory(folder)
        self.file = StateFile(self.directory, NAME, [], grid_from=grid_from)

    def add(self, *numbers: int) -> None:
        self.file.write({f"u-{number}": claim(number) for number in numbers})

    def drop(self, *numbers: int) -> None:
        self.file.write({f"u-{number}": None for number in numbers})

    def seen(self) -> dict[str, ClaimState]:
        return claims_in(self.path.read_bytes())

    def others(self) -> list[str]:
        """What is in the directory beside the state file."""
        return sorted(set(os.listdir(self.path.parent)) - {NAME})


def claims_in(data: bytes) -> dict[str, ClaimState]:
    reading = Document(data).read_as(NEWEST)
    assert reading.ok, reading.go_message
    return {one.uid: one for one in claim_states(reading.claims)}


def numbered(*numbers: int) -> dict[str, ClaimState]:
    return {f"u-{number}": claim(number) for number in numbers}


@pytest.fixture(params=[PLAIN, GRID], ids=["small", "large"])
def bench(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> t.Iterator[Bench]:
    made = Bench(tmp_path, request.param)
    yield made
    made.file.close()
    made.directory.close()


@pytest.fixture
def large(tmp_path: pathlib.Path) -> t.Iterator[Bench]:
    made = Bench(tmp_path, GRID)
    yield made
    made.file.close()
    made.directory.close()


def test_readers_see_every_change(bench: Bench) -> None:
    bench.add(1, 2, 3)
    bench.drop(2)
    bench.file.write({"u-1": None, "u-4": claim(4), "u-3": claim(3, prepared=False)})
    assert bench.seen() == {"u-4": claim(4), "u-3": claim(3, prepared=False)}
    bench.drop(3, 4)
    assert bench.seen() == {}


def test_what_drivers_were_asked_for_is_read_again_and_minded_by_no_kubelet(bench: Bench) -> None:
    asked = dataclasses.replace(
        claim(1, prepared=False),
        planned=frozenset({("gpu.test.example", "pool-0", "dev-\u00fc", None), ("nic", "p", "d", "s-1")}),
    )
    bench.file.write({"u-1": asked, "u-2": claim(2)})
    data = bench.path.read_bytes()
    assert claims_in(data) == {"u-1": asked, "u-2": claim(2)}
    diagnosis = diagnose(data)
    assert {release: verdict for release, verdict in diagnosis.verdicts.items() if verdict == "ok:2"}.keys() == {
        f"1.{minor}" for minor in range(31, 37)
    }
    assert {fault.code for fault in diagnosis.faults} == {"devices_pending", "unknown_field"}


@pytest.mark.parametrize(
    "found",
    [
        "5",
        '"dev"',
        "{}",
        "null",
        "[5]",
        '[["d","p"]]',
        '[["d","p","x",{}]]',
        pytest.param("[" * 5000 + "]" * 5000, id="deep"),
    ],
)
def test_a_field_of_that_name_by_somebody_else_is_passed_over(found: str) -> None:
    text = encode(claim(1)).inner.decode()[:-1] + f',"nodeops.dra/planned":{found}}}'
    assert claims_in(assemble([EncodedClaim.of(text)])) == numbered(1)


def test_a_small_file_is_what_a_kubelet_writes(tmp_path: pathlib.Path) -> None:
    bench = Bench(tmp_path, PLAIN)
    bench.add(1, 2)
    assert bench.path.read_bytes() == assemble([encode(claim(1)), encode(claim(2))])
    assert bench.path.stat().st_mode & 0o777 == 0o600


def test_a_large_file_is_tidy_once_it_is_closed(large: Bench) -> None:
    for number in range(5):
        large.add(number)
    large.file.close()
    assert large.path.read_bytes() == assemble(encode(claim(number)) for number in range(5))
    assert large.others() == []


def test_a_change_of_a_large_file_costs_the_same_whatever_its_size(large: Bench) -> None:
    costs = []
    for count in (50, 3000):
        large.add(*range(large.file._claims.__len__(), count))
        large.add(100_001)  # the second copy is written once
        before = large.file.bytes_written, large.file.syncs
        large.drop(100_001)
        costs.append((large.file.bytes_written - before[0], large.file.syncs - before[1]))
    assert costs[0] == costs[1]
    assert costs[0][0] < 2500


def test_the_file_changes_its_way_when_it_grows_and_shrinks(tmp_path: pathlib.Path) -> None:
    bench = Bench(tmp_path, 4000)
    bench.add(*range(5))
    assert len(bench.path.read_bytes()) < 4000
    bench.add(*range(5, 20))
    assert b"\\t" in bench.path.read_bytes()
    bench.drop(*range(1, 20))
    assert bench.path.read_bytes() == assemble([encode(claim(0))])
    assert bench.others() == []
    bench.directory.close()


def test_a_reader_keeps_the_content_that_it_opened(large: Bench) -> None:
    large.add(1)
    large.add(2)
    opened = [(large.path.open("rb"), numbered(1, 2))]
    expected = [1, 2]
    for number in range(3, 9):
        large.add(number)
        expected.append(number)
        opened.append((large.path.open("rb"), numbered(*expected)))
    for file, claims in opened:
        with file:
            assert claims_in(file.read()) == claims


def test_a_copy_that_shares_the_inode_keeps_its_content(large: Bench) -> None:
    large.add(1)
    large.add(2)
    backup = large.path.with_name("backup")
    os.link(large.path, backup)
    for number in range(3, 6):
        large.add(number)
    assert claims_in(backup.read_bytes()) == numbered(1, 2)
    backup.unlink()


def test_owner_and_mode_are_kept(large: Bench) -> None:
    large.add(1)
    large.path.chmod(0o640)
    for number in range(2, 6):
        large.add(number)
        assert large.path.stat().st_mode & 0o777 == 0o640


def test_without_leases_every_change_is_written_in_full(large: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int, command: int, *rest: t.Any) -> t.Any:
        raise OSError(errno.EINVAL, "no leases here")

    large.add(1)
    monkeypatch.setattr(fcntl, "fcntl", refuse)
    for number in range(2, 5):
        large.add(number)
    assert large.seen() == numbered(1, 2, 3, 4)


def test_without_hard_links_every_change_is_written_in_full(large: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: t.Any, **_options: t.Any) -> t.Any:
        raise OSError(errno.EPERM, "no links here")

    large.add(1)
    monkeypatch.setattr(os, "link", refuse)
    for number in range(2, 5):
        large.add(number)
    assert large.seen() == numbered(1, 2, 3, 4)
    assert large.others() == []


def test_a_file_that_was_removed_comes_back(bench: Bench) -> None:
    bench.add(1)
    bench.add(2)
    bench.path.unlink()
    bench.add(3)
    assert bench.seen() == numbered(1, 2, 3)


def test_what_a_killed_process_left_is_removed(tmp_path: pathlib.Path) -> None:
    for letter in "ab":
        (tmp_path / f".{NAME}.twin-{letter}").write_text("rest")
    bench = Bench(tmp_path, GRID)
    assert bench.others() == []
    bench.directory.close()


CALLS = ["open", "write", "pwrite", "fsync", "fdatasync", "link", "rename"]


@pytest.mark.report("F046")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EIO])
def test_a_failing_disk_leaves_the_file_as_it_was(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    bench.add(1)
    bench.add(2)
    bench.add(3)
    before = bench.path.read_bytes()
    with monkeypatch.context() as patched:
        happened = fail(patched, call, code)
        error = failure_of(bench, 4)
    if error is None:
        # Not a call of this way of writing, or one for which there is another way.
        assert not happened or call in ("link", "open")
        return
    assert str(bench.path) in error.message
    assert errno.errorcode[code] in error.message
    if not isinstance(error, NotDurableError):
        assert bench.path.read_bytes() == before
        assert bench.others() == []
    else:
        # The rename is done and only its sync failed: the one case in which the new content may be seen.
        assert call == "fsync"
    bench.add(5)
    assert bench.seen() == numbered(1, 2, 3, 5)


def failure_of(bench: Bench, number: int) -> StoreError | None:
    try:
        bench.add(number)
    except StoreError as error:
        return error
    return None


def fail(patched: pytest.MonkeyPatch, call: str, code: int) -> list[str]:
    """Make a system call fail when it is to change something; the list tells whether it was met."""
    met: list[str] = []
    original = getattr(os, call)

    def failing(*args: t.Any, **options: t.Any) -> t.Any:
        if call == "open" and not args[1] & (os.O_WRONLY | os.O_RDWR):
            return original(*args, **options)
        met.append(call)
        raise OSError(code, os.strerror(code))

    patched.setattr(os, call, failing)
    return met


@pytest.mark.report("F046")
def test_a_write_cut_short_is_not_seen(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.add(1)
    bench.add(2)
    bench.add(3)
    before = bench.path.read_bytes()
    for name in ("write", "pwrite"):
        original, calls = getattr(os, name), iter([True])

        def short(fd: int, data: t.Any, *rest: t.Any, original: t.Any = original, calls: t.Any = calls) -> int:
            if next(calls, False):
                return int(original(fd, data[:7], *rest))
            raise OSError(errno.ENOSPC, "full")

        monkeypatch.setattr(os, name, short)
    with pytest.raises(StoreError, match="ENOSPC"):
        bench.add(4)
    monkeypatch.undo()
    assert bench.path.read_bytes() == before
    bench.add(5)
    assert bench.seen() == numbered(1, 2, 3, 5)
