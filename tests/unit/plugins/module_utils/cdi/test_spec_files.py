# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Spec files on disk: links, pipes, sizes, odd names."""

from __future__ import annotations

import json
import os
import pathlib
import socket
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.cdi import reading
from ansible_collections.nodeops.dra.plugins.module_utils.cdi import spec as spec_module
from ansible_collections.nodeops.dra.plugins.module_utils.cdi.spec import load_file, parse_spec
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.cdi.specs import (
    spec,
    write,
)


def test_file_is_loaded_with_its_signature(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, "a.json", spec())
    file = load_file(str(path), 1, [str(tmp_path)])
    assert file is not None
    assert file.spec is not None
    assert file.signature == reading.signature_of(path.stat())


def test_file_that_vanished_is_no_finding(tmp_path: pathlib.Path) -> None:
    assert load_file(str(tmp_path / "gone.json"), 0, [str(tmp_path)]) is None


def only_finding(path: pathlib.Path, *allowed: pathlib.Path) -> t.Any:
    file = load_file(str(path), 0, [os.path.realpath(a) for a in allowed or (path.parent,)])
    assert file is not None
    assert file.spec is None
    (finding,) = file.findings
    return finding


def test_link_inside_the_directories_is_followed(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "one", "real.json", spec())
    (tmp_path / "two").mkdir()
    link = tmp_path / "two" / "link.json"
    link.symlink_to("../one/real.json")
    file = load_file(str(link), 0, [str(tmp_path / "two"), str(tmp_path / "one")])
    assert file is not None
    assert file.spec is not None
    assert file.path == str(link)


def test_link_that_leads_out_is_not_followed(tmp_path: pathlib.Path) -> None:
    secret = write(tmp_path / "elsewhere", "secret.json", spec())
    (tmp_path / "cdi").mkdir()
    link = tmp_path / "cdi" / "link.json"
    link.symlink_to(secret)
    finding = only_finding(link)
    assert (finding.code, finding.severity) == ("cdi_unreadable", "warning")
    assert "leads out of the spec directories" in finding.text
    assert str(secret) in finding.text


def test_directory_with_the_same_beginning_is_still_outside(tmp_path: pathlib.Path) -> None:
    secret = write(tmp_path / "cdi-other", "a.json", spec())
    (tmp_path / "cdi").mkdir()
    link = tmp_path / "cdi" / "link.json"
    link.symlink_to(secret)
    assert "leads out" in only_finding(link).text


def test_dangling_and_circular_links_are_findings(tmp_path: pathlib.Path) -> None:
    dangling, circle = tmp_path / "a.json", tmp_path / "b.json"
    dangling.symlink_to("nowhere.json")
    circle.symlink_to("b.json")
    assert "symbolic link to a file that does not exist" in only_finding(dangling).text
    assert only_finding(circle).code == "cdi_unreadable"


def test_pipe_socket_and_directory_are_not_waited_on(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "p.json")
    (tmp_path / "d.json").mkdir()
    assert "a named pipe" in only_finding(tmp_path / "p.json").text
    assert "a directory" in only_finding(tmp_path / "d.json").text
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s.json")
        assert only_finding(tmp_path / "s.json").code == "cdi_unreadable"


def test_file_beyond_the_limit_is_not_read(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.json"
    with path.open("wb") as stream:
        stream.truncate(reading.MAX_BYTES + 1)
    assert f"has {reading.MAX_BYTES + 1} bytes" in only_finding(path).text
    with path.open("wb") as stream:
        stream.truncate(reading.MAX_BYTES)
    assert "NUL byte" in only_finding(path).text


def test_file_that_grows_while_it_is_read_is_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "a.json", b" " * 100)
    monkeypatch.setattr(reading, "MAX_BYTES", 50)
    real = os.fstat

    def small(descriptor: int) -> os.stat_result:
        status = real(descriptor)
        return os.stat_result((*status[:6], 10, *status[7:]))

    monkeypatch.setattr(os, "fstat", small)
    assert "grew beyond" in only_finding(path).text


def test_refused_access_is_a_finding(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "a.json", spec())

    def refuse(*_arguments: t.Any) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    finding = only_finding(path)
    assert (finding.code, finding.severity) == ("cdi_unreadable", "error")
    assert "Permission denied" in finding.text


def test_odd_file_names_are_printable(tmp_path: pathlib.Path) -> None:
    name = os.fsdecode(b"a\xff\n\x1b[31m.json")
    path = write(tmp_path, name, b"{")
    finding = only_finding(path)
    assert finding.text.isprintable()
    assert finding.place.isprintable()
    json.dumps(finding.to_dict()).encode("utf-8")


def test_excerpt_of_a_refused_file_is_bounded() -> None:
    file = parse_spec(b'{"x": "' + b"y" * 200_000, "/x/a.json")
    assert len(file.excerpt) == spec_module._EXCERPT
