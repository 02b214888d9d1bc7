# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import pathlib
import socket

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.driver import endpoint


@pytest.mark.report("F041")
@pytest.mark.parametrize("text", ["/run/x.sock", "unix:/run/x.sock", "unix:///run/x.sock", "//run/./x.sock"])
def test_accepted_spellings_are_one_path(text: str) -> None:
    assert endpoint.socket_path(text) == "/run/x.sock"


@pytest.mark.report("F041")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x.sock", "not an absolute path"),
        ("unix:x.sock", "not an absolute path"),
        ("unix://host/x.sock", "not an absolute path"),
        ("", "not an absolute path"),
        ("dns:///localhost:80", "not an absolute path"),
        ("@x", "abstract socket"),
        ("unix:@x", "abstract socket"),
        ("unix-abstract:x", "abstract socket"),
        ("\0x", "abstract socket"),
        ("/run/../etc/x.sock", "a .. component"),
        ("/run/\0x", "a NUL byte"),
    ],
)
def test_odd_spellings_are_refused_in_words(text: str, why: str) -> None:
    with pytest.raises(endpoint.EndpointError, match=why) as caught:
        endpoint.socket_path(text)
    assert caught.value.facts["endpoint"] == text
    assert caught.value.hint


def path_of(length: int) -> str:
    return "/" + "a" * (length - 1)


@pytest.mark.report("F026")
def test_107_bytes_fit_and_the_kernel_agrees(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    path = f"{folder}/" + "b" * (107 - len(f"{folder}/"))
    assert endpoint.socket_path(path) == path
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        assert endpoint.is_socket(path)
    with socket.socket(socket.AF_UNIX) as listener, pytest.raises(OSError, match="too long"):
        listener.bind(path + "b")


@pytest.mark.report("F026")
@pytest.mark.parametrize(
    "path", [path_of(108), path_of(200), "/" + "é" * 54 + "a" * 2], ids=["108", "200", "57 characters, 111 bytes"]
)
def test_longer_paths_are_refused_with_length_and_limit(path: str) -> None:
    with pytest.raises(endpoint.EndpointError) as caught:
        endpoint.socket_path(path)
    length = len(path.encode())
    assert caught.value.facts == {"endpoint": path, "length": length, "limit": 107}
    assert path in caught.value.message
    assert f"{length} bytes" in caught.value.message
    assert "107 at most" in caught.value.message


@pytest.mark.report("F026")
def test_length_counts_bytes_not_characters() -> None:
    path = "/" + "é" * 53  # 54 characters, 107 bytes
    assert endpoint.socket_path(path) == path
    with pytest.raises(endpoint.EndpointError, match="108 bytes"):
        endpoint.socket_path(path + "a")


def test_targets_escape_what_a_uri_would_misread() -> None:
    assert endpoint.grpc_target("/run/a b%20/é?#.sock") == "unix:/run/a%20b%2520/%C3%A9%3F%23.sock"


def test_socket_of_a_stranger_is_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "x.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        endpoint.check_owner(path, ())
        owner = os.stat(path).st_uid
        real = os.stat

        def stranger(name: str) -> object:
            return type("Stat", (), {"st_uid": 4242, "st_mode": real(name).st_mode})

        monkeypatch.setattr(endpoint.os, "stat", stranger)
        endpoint.check_owner(path, (4242,))
        with pytest.raises(endpoint.EndpointError, match="belongs to the user 4242") as caught:
            endpoint.check_owner(path, (owner,))
        assert caught.value.facts["owner"] == 4242
