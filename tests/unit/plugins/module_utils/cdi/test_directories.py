# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Spec directories in every spelling."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.cdi import directories
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError


@pytest.mark.report("F116")
@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("/var/run/cdi", "/var/run/cdi"),
        ("/var/run/cdi/", "/var/run/cdi"),
        ("/var/run//cdi///", "/var/run/cdi"),
        ("//var/run/cdi", "/var/run/cdi"),
        ("/var/./run/x/../cdi", "/var/run/cdi"),
        ("/var/my specs/cdi ", "/var/my specs/cdi "),
        ("/", "/"),
        ("/../..", "/"),
    ],
)
def test_spellings(spelling: str, expected: str) -> None:
    assert directories.normalised(spelling) == expected


@pytest.mark.parametrize("spelling", ["", "cdi", "./cdi", "~/cdi", "/a\x00b"])
def test_paths_that_mean_nothing_certain_are_refused(spelling: str) -> None:
    with pytest.raises(DraError, match="not an absolute path") as caught:
        directories.normalised(spelling)
    assert str(caught.value).isprintable()


def test_defaults_in_rising_priority() -> None:
    found = directories.spec_directories()
    assert [(d.path, d.priority) for d in found] == [("/etc/cdi", 0), ("/var/run/cdi", 1)]


@pytest.mark.report("F115")
def test_one_directory_under_two_names_counts_once_with_the_higher_priority(tmp_path: pathlib.Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "run").symlink_to("../run")
    first, second, other = f"{tmp_path}/run/cdi", f"{tmp_path}/var/run/cdi/", f"{tmp_path}/etc"
    assert directories.same_directory(first, second)
    assert not directories.same_directory(first, other)
    found = directories.spec_directories([first, other, second])
    assert [d.path for d in found] == [other, f"{tmp_path}/var/run/cdi"]
    assert [d.priority for d in found] == [0, 1]
    assert found[1].real_path == f"{os.path.realpath(tmp_path)}/run/cdi"


def test_hard_same_directory_by_file_system_identity(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert not directories.same_directory(f"{tmp_path}/a", f"{tmp_path}/b")
    # A bind mount cannot be made here; it shows as one identity under two real paths.
    monkeypatch.setattr(os.path, "samefile", lambda _one, _other: True)
    assert directories.same_directory(f"{tmp_path}/a", f"{tmp_path}/b")


def codes_of(findings: list[t.Any]) -> list[tuple[str, str]]:
    return [(finding.code, finding.severity) for finding in findings]


def test_sound_directory_has_no_findings(tmp_path: pathlib.Path) -> None:
    assert directories.directory_findings(f"{tmp_path}/", must_write=True) == []


def test_missing_directory(tmp_path: pathlib.Path) -> None:
    missing = f"{tmp_path}/none/cdi"
    assert codes_of(directories.directory_findings(missing)) == [("cdi_directory_missing", "info")]
    assert codes_of(directories.directory_findings(missing, must_write=True)) == [("cdi_directory_missing", "error")]


def test_file_instead_of_a_directory(tmp_path: pathlib.Path) -> None:
    (tmp_path / "cdi").write_text("")
    for path in (f"{tmp_path}/cdi", f"{tmp_path}/cdi/sub"):
        assert codes_of(directories.directory_findings(path)) == [("cdi_unreadable", "error")]


def test_directory_that_is_a_link_is_not_read_by_runtimes(tmp_path: pathlib.Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "cdi").symlink_to("real")
    (finding,) = directories.directory_findings(f"{tmp_path}/cdi")
    assert (finding.code, finding.severity) == ("cdi_ignored_directory", "warning")
    assert "does not follow it" in finding.text


@pytest.mark.report("F115")
def test_directory_that_cannot_be_written(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: real(path, mode) and not mode & os.W_OK)
    assert directories.directory_findings(str(tmp_path)) == []
    (finding,) = directories.directory_findings(str(tmp_path), must_write=True)
    assert (finding.code, finding.severity) == ("cdi_directory_not_writable", "error")
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    assert codes_of(directories.directory_findings(str(tmp_path))) == [("cdi_unreadable", "error")]


@pytest.mark.report("F115")
def test_driver_that_writes_where_the_runtime_does_not_read() -> None:
    runtime = ["/var/cdi/static", "/var/cdi/dynamic/"]
    (finding,) = directories.directory_mismatches(runtime, drivers={"gpu.test.example": "/var/run/cdi"})
    assert (finding.code, finding.severity) == ("cdi_directory_mismatch", "error")
    assert "gpu.test.example writes its CDI specs to /var/run/cdi" in finding.text
    assert "/var/cdi/static, /var/cdi/dynamic" in finding.text
    assert directories.directory_mismatches(runtime, drivers={"gpu.test.example": "/var/cdi/dynamic"}) == []


@pytest.mark.report("F115")
def test_run_and_var_run_are_equal_when_linked(tmp_path: pathlib.Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "var").mkdir()
    runtime, driver = [f"{tmp_path}/run/cdi"], {"d": f"{tmp_path}/var/run/cdi"}
    assert codes_of(directories.directory_mismatches(runtime, drivers=driver)) == [("cdi_directory_mismatch", "error")]
    (tmp_path / "var" / "run").symlink_to("../run")
    assert directories.directory_mismatches(runtime, drivers=driver) == []


def test_our_directories_are_compared_both_ways() -> None:
    found = directories.directory_mismatches(["/a", "/b"], ours=["/b", "/c"])
    assert [(f.severity, f.place) for f in found] == [("warning", "/c"), ("warning", "/a")]
    assert directories.directory_mismatches(["/a", "/b"], ours=["/b/", "/a"]) == []
    assert len(directories.directory_mismatches(["/a"], ours=[])) == 1
    assert directories.directory_mismatches(["/a"]) == []


def test_paths_in_messages_are_printable() -> None:
    assert directories.printable("/a b/ü") == "/a b/ü"
    assert directories.printable(os.fsdecode(b"/\xff\n\x1b")) == "/\\xff\\n\\x1b"
