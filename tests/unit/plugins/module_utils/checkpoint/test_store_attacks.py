# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Links put in the way of a reader or writer lead nowhere."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import (
    MissingFileError,
    NotRegularFileError,
    SymlinkRefusedError,
)
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.store import (
    StateDirectory,
    read_file,
    remove_file,
    write_atomic,
)

from .child_process import python_child, rounds

# Swaps the name "state" between a link to the secret and a harmless file, as fast as it can.
SWAPPER = """
import os, select, sys
os.chdir(sys.argv[1])
os.symlink("../secret", "link.kept")
open("file.kept", "w").write("harmless")
print("ready", flush=True)
while not select.select([0], [], [], 0)[0]:
    for kept in ("link.kept", "file.kept"):
        os.link(kept, "next", follow_symlinks=False)
        os.rename("next", "state")
        try:
            os.unlink("next")
        except FileNotFoundError:
            pass
"""


def outside(tmp_path: Path) -> tuple[Path, Path]:
    home, secret = tmp_path / "kubelet", tmp_path / "secret"
    home.mkdir()
    secret.write_bytes(b"secret")
    return home, secret


def test_write_refuses_a_link_and_touches_neither_link_nor_target(tmp_path: Path) -> None:
    home, secret = outside(tmp_path)
    (home / "state").symlink_to(secret)

    with pytest.raises(SymlinkRefusedError) as error:
        write_atomic(home / "state", b"new")

    assert error.value.facts == {"path": str(home / "state"), "target": str(secret)}
    assert secret.read_bytes() == b"secret"
    assert os.readlink(home / "state") == str(secret)
    assert os.listdir(home) == ["state"]


def test_write_and_remove_refuse_a_link_that_points_nowhere(tmp_path: Path) -> None:
    (tmp_path / "state").symlink_to("created by accident")
    with pytest.raises(SymlinkRefusedError):
        write_atomic(tmp_path / "state", b"new")
    with pytest.raises(SymlinkRefusedError):
        remove_file(tmp_path / "state")
    assert os.listdir(tmp_path) == ["state"]


def test_reader_never_returns_what_a_swapped_link_points_to(tmp_path: Path) -> None:
    home, _unused = outside(tmp_path)
    seen: set[bytes] = set()
    with python_child(SWAPPER, str(home)):
        for _unused in rounds(400, lambda: len(seen) >= 2):
            try:
                seen.add(read_file(home / "state").data)
            except SymlinkRefusedError:
                seen.add(b"refused")
            except MissingFileError:
                pass  # not there yet
    assert seen == {b"harmless", b"refused"}, "only one of them: the name was never swapped, so nothing was tested"


def test_writer_never_writes_through_a_swapped_link(tmp_path: Path) -> None:
    home, secret = outside(tmp_path)
    outcomes: set[object] = set()
    with python_child(SWAPPER, str(home)):
        for n in rounds(200, lambda: {True, "refused"} <= outcomes):
            try:
                outcomes.add(write_atomic(home / "state", b"%d" % n).changed)
            except SymlinkRefusedError:
                outcomes.add("refused")
    assert secret.read_bytes() == b"secret"
    assert {True, "refused"} <= outcomes, "the name was never swapped, so nothing was tested"
    assert sorted(name for name in os.listdir(home) if name.startswith(".")) == []


def test_link_that_appears_after_the_check_is_replaced_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, secret = outside(tmp_path)
    real = os.rename

    def swap_then_rename(*args: t.Any, **kwargs: t.Any) -> None:
        (home / "state").symlink_to(secret)
        real(*args, **kwargs)

    monkeypatch.setattr(os, "rename", swap_then_rename)
    write_atomic(home / "state", b"new")

    assert secret.read_bytes() == b"secret"
    assert not (home / "state").is_symlink()
    assert (home / "state").read_bytes() == b"new"


@pytest.mark.parametrize(
    ("make", "refusal"),
    [
        pytest.param(lambda path: path.symlink_to("../secret"), SymlinkRefusedError, id="link"),
        pytest.param(os.mkfifo, NotRegularFileError, id="pipe"),
    ],
)
def test_what_appears_between_look_and_open_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: t.Callable[[Path], None], refusal: type[Exception]
) -> None:
    home, _unused = outside(tmp_path)
    (home / "state").write_bytes(b"x")
    real = os.open

    def swap_then_open(path: str, *args: int, **kwargs: int) -> int:
        if path == "state":
            (home / "state").unlink()
            make(home / "state")
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", swap_then_open)
    with pytest.raises(refusal):
        read_file(home / "state")


def test_temporary_name_prepared_as_a_link_is_not_written_through(tmp_path: Path) -> None:
    home, secret = outside(tmp_path)
    (home / ".1").symlink_to(secret)
    (home / ".2").symlink_to("../not there yet")
    numbers = iter([1, 2, 3])
    with StateDirectory(home, random_bits=lambda _count: next(numbers)) as opened:
        opened.write("state", b"new")

    assert secret.read_bytes() == b"secret"
    assert sorted(os.listdir(tmp_path)) == ["kubelet", "secret"]
    assert (home / "state").read_bytes() == b"new"


def test_directory_swapped_for_a_link_while_open_is_noticed(tmp_path: Path) -> None:
    home, _unused = outside(tmp_path)
    trap = tmp_path / "trap"
    trap.mkdir()
    with StateDirectory(home) as opened:
        home.rename(tmp_path / "moved")
        home.symlink_to(trap)
        with pytest.raises(Exception, match="no longer the directory"):
            opened.write("state", b"new")
    assert os.listdir(trap) == []
