# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The ring of last good copies: what is kept, what goes, what a crash or a full disk leaves."""

from __future__ import annotations

import asyncio
import errno
import os
import pathlib
import signal
import stat
import subprocess
import sys
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.kubelet_state import judge
from ansible_collections.nodeops.dra.plugins.module_utils.agent.ring import ForeignRingError, Ring, RingLimits
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.backups import RING_SOURCE, list_backups, ring_of
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.claims import assemble, encode
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.diagnosis import diagnose
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import StoreError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.restoring import plan_restore, why_not
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import recorded

START = 1_800_000_000
DAY = 86400.0


def content(*names: str) -> bytes:
    """A kubelet's file with a claim for each name."""
    return assemble([encode(recorded(f"u-{name}", name)) for name in names])


class Place:
    """A ring with a clock that a test turns; each store is a minute after the last."""

    def __init__(self, directory: pathlib.Path, **limits: t.Any) -> None:
        self.directory = directory / "ring"
        self.file = directory / "dra_manager_state"
        self.now = float(START)
        self.ring = self.again(**limits)

    def again(self, **limits: t.Any) -> Ring:
        """The ring of an agent that starts anew."""
        self.ring = Ring(str(self.directory), str(self.file), RingLimits(**limits), now=lambda: self.now)
        return self.ring

    def store(self, data: bytes) -> str | None:
        self.now += 60
        return self.ring.store(data, judge("", data).key)

    def files(self) -> list[bytes]:
        """Contents of the copies as restored finds them, newest first."""
        found = list_backups(self.file, ring=self.directory)
        assert all(one.time_in_name and one.origin == "ring" for one in found)
        return [pathlib.Path(one.path).read_bytes() for one in found]


@pytest.fixture
def place(tmp_path: pathlib.Path) -> Place:
    return Place(tmp_path)


def test_copies_are_found_by_restored_newest_first(place: Place) -> None:
    place.store(content("a"))
    place.store(content("a", "b"))
    assert place.files() == [content("a", "b"), content("a")]
    assert ring_of(place.file, place.directory) == str(place.directory)
    plan = plan_restore(str(place.file), b"", ring=str(place.directory))
    assert plan.plan.after == content("a", "b")


def test_a_copy_is_for_root_alone(place: Place) -> None:
    made = place.store(content("a"))
    assert made is not None
    assert stat.S_IMODE(os.stat(made).st_mode) == 0o600
    assert stat.S_IMODE(place.directory.stat().st_mode) == 0o700


def test_the_same_content_is_not_stored_twice(place: Place) -> None:
    assert place.store(content("a", "b")) is not None
    assert place.store(content("a", "b")) is None
    assert place.store(content("b", "a")) is None, "kubelets write claims in random order"
    assert len(place.files()) == 1


def test_a_content_that_comes_back_is_the_newest_and_is_there_once(place: Place) -> None:
    for data in (content("a"), content("b"), content("a")):
        place.store(data)
    assert place.files() == [content("a"), content("b")]


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        pytest.param({"copies": 2}, ["d", "c"], id="count"),
        pytest.param({"size": 2 * len(content("a"))}, ["d", "c"], id="bytes"),
        pytest.param({"age": 90.0}, ["d", "c"], id="age"),
        pytest.param({"copies": 1, "size": 1, "age": 1.0}, ["d"], id="never the last one"),
    ],
)
def test_limits(tmp_path: pathlib.Path, limits: dict[str, t.Any], kept: list[str]) -> None:
    place = Place(tmp_path, **limits)
    for name in "abcd":
        place.store(content(name))
    assert place.files() == [content(name) for name in kept]


def test_copies_get_too_old_without_a_new_one_and_the_last_stays(place: Place) -> None:
    for name in "ab":
        place.store(content(name))
    place.now += 31 * DAY
    place.ring.refresh()
    assert place.files() == [content("b")]


def test_the_last_good_copy_stays_where_newer_ones_have_rotted(tmp_path: pathlib.Path) -> None:
    place = Place(tmp_path, copies=2)
    place.store(content("a"))
    made = place.store(content("b"))
    assert made is not None
    pathlib.Path(made).write_bytes(content("b")[:-7])
    ring = place.again(copies=1)
    ring.refresh()
    assert place.files() == [content("a")]
    assert ring.newest is not None
    assert (ring.newest.problem, len(ring.copies)) == ("", 1)


def test_a_clock_that_was_set_back_does_not_make_the_newest_copy_look_old(place: Place) -> None:
    place.store(content("a"))
    place.now -= 10 * DAY
    place.store(content("b"))
    assert place.files() == [content("b"), content("a")]


def test_what_is_not_ours_is_left_alone(tmp_path: pathlib.Path) -> None:
    place = Place(tmp_path, copies=1)
    place.store(content("a"))
    (place.directory / "dra_manager_state.20200101T000000Z.mine").write_bytes(b"precious")
    (place.directory / "notes.txt").write_bytes(b"precious")
    place.store(content("b"))
    assert (place.directory / "dra_manager_state.20200101T000000Z.mine").read_bytes() == b"precious"
    assert (place.directory / "notes.txt").exists()
    assert [copy.problem for copy in place.ring.copies] == [""]


def test_a_ring_of_another_file_is_not_mixed_with_ours(place: Place, tmp_path: pathlib.Path) -> None:
    place.store(content("a"))
    other = Ring(str(place.directory), str(tmp_path / "other" / "dra_manager_state"), RingLimits())
    with pytest.raises(ForeignRingError, match=r"holds copies of .*, not of .*other"):
        other.store(content("b"), "key")
    assert place.files() == [content("a")]


def test_a_ring_that_somebody_cleared_is_filled_again(place: Place) -> None:
    place.store(content("a"))
    for path in place.directory.iterdir():
        path.unlink()
    place.directory.rmdir()
    assert place.store(content("a")) is not None
    assert place.files() == [content("a")]


def test_an_agent_that_starts_again_knows_what_is_there(place: Place) -> None:
    place.store(content("a"))
    place.store(content("b"))
    place.again()
    assert place.store(content("b")) is None
    assert place.store(content("a")) is not None
    assert place.files() == [content("a"), content("b")]


# Crashes and full disks


def test_what_a_killed_writer_left_is_removed(place: Place) -> None:
    place.store(content("a"))
    (place.directory / ".123456").write_bytes(content("b")[:10])
    place.again().refresh()
    assert sorted(path.name for path in place.directory.glob(".*")) == [RING_SOURCE]
    assert place.files() == [content("a")]


def test_killed_between_the_new_copy_and_the_old_one(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (content("a"), content("b")):
        place.store(data)
    with monkeypatch.context() as patched:
        patched.setattr(Ring, "_tidy", lambda *_unused: None)
        place.store(content("a"))
    assert place.files() == [content("a"), content("b"), content("a")]
    place.again().refresh()
    assert place.files() == [content("a"), content("b")]


@pytest.mark.parametrize("call", ["write", "fsync"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_failing_disk_leaves_the_ring_as_it_was(
    place: Place, call: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.store(content("a"))

    def fail(*_arguments: t.Any) -> t.NoReturn:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, fail)
        with pytest.raises(StoreError):
            place.store(content("b"))
    assert place.files() == [content("a")]
    assert sorted(path.name for path in place.directory.glob(".*")) == [RING_SOURCE]
    assert place.store(content("b")) is not None


WRITER = """
import itertools, sys
from ansible_collections.nodeops.dra.plugins.module_utils.agent.kubelet_state import judge
from ansible_collections.nodeops.dra.plugins.module_utils.agent.ring import Ring, RingLimits
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.test_ring import content
ring = Ring(sys.argv[1], sys.argv[2], RingLimits(copies=3))
contents = [content(*(f"{n}-{i}" for i in range(20))) for n in range(6)]
for number in itertools.count():
    data = contents[number % 6]
    ring.store(data, judge("", data).key)
    print(number, flush=True)
"""


@pytest.mark.asyncio
async def test_killed_at_any_moment_the_ring_holds_good_copies(tmp_path: pathlib.Path) -> None:
    directory, file = tmp_path / "ring", tmp_path / "dra_manager_state"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = (sys.executable, "-c", WRITER, str(directory), str(file))
    for kill in range(6):
        child = await asyncio.create_subprocess_exec(*command, env=environment, stdout=subprocess.PIPE)
        assert child.stdout is not None
        for _line in range(3 + kill):
            assert await child.stdout.readline()
        await asyncio.sleep(0)
        child.send_signal(signal.SIGKILL)
        await child.communicate()
        copies = list_backups(file, ring=directory)
        assert copies
        for copy in copies:
            assert why_not(diagnose(pathlib.Path(copy.path).read_bytes())) == "", copy.path
    ring = Ring(str(directory), str(file), RingLimits(copies=3))
    ring.refresh()
    assert sorted(path.name for path in directory.glob(".*")) == [RING_SOURCE]
    assert 1 <= len(ring.copies) <= 3
