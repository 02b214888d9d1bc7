# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The machine, the rights and the Pythons of the node, and the programs that are asked."""

from __future__ import annotations

import os
import pathlib
import time

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight import machine
from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight.node import (
    Node,
    UnreadableError,
    answer_of,
    is_trusted,
    release,
)

from ...checkpoint.builders import crc_claim, crc_file
from .made_up_node import UPTIME, MadeUpNode, codes, the


def test_facts_of_the_machine(node: MadeUpNode) -> None:
    found = machine.look_at_machine(node.node, now=1_800_000_000.0)
    assert {key: value for key, value in found.items() if key not in ("boot_id", "clock_synchronised")} == {
        "booted_at": "2027-01-15T07:00:00Z",
        "seconds_since_boot": UPTIME,
        "time": "2027-01-15T08:00:00Z",
        "run_filesystem": "tmpfs",
        "var_run_is_run": True,
        "swap_bytes": 1024 * 1024,
        "systemd": {"running": True, "version": 252},
        "cgroup_version": 2,
    }


def test_a_machine_that_tells_nothing(tmp_path: pathlib.Path) -> None:
    found = machine.look_at_machine(Node(str(tmp_path), str(tmp_path)))
    unknown = {"boot_id", "booted_at", "seconds_since_boot", "run_filesystem", "var_run_is_run", "swap_bytes"}
    assert {key for key in found if found[key] is None} - {"clock_synchronised"} == {*unknown, "cgroup_version"}
    assert found["systemd"] == {"running": False, "version": None}


def test_the_clock_of_this_machine_is_asked() -> None:
    assert machine.clock_synchronised() in (True, False, None)


@pytest.mark.report("F005", "F050", "F109")
def test_claims_that_were_recorded_before_the_boot(node: MadeUpNode) -> None:
    file = node.file("/var/lib/kubelet/dra_manager_state", crc_file(crc_claim()).decode())
    assert codes(node.look()) == []
    before = time.time() - UPTIME - 1000
    os.utime(file, (before, before))
    assert the(node.look(), "state_before_boot")["facts"]["claims"] == 1
    file.write_bytes(crc_file())
    os.utime(file, (before, before))
    assert codes(node.look()) == [], "without claims it does not matter"


def test_the_newest_python_that_makes_environments_is_taken(node: MadeUpNode) -> None:
    node.program("/usr/local/bin/python3.13", "3 13 1 1 0")
    node.program("/usr/bin/python3.9", "3 9 18 1 1")
    node.link("/usr/bin/python3", "python3.9")
    node.program("/usr/bin/python3.14", "no version")
    result = node.look()
    assert [(one["version"], one["venv"]) for one in result["pythons"]] == [
        ("3.13.1", False),
        ("3.12.3", True),
        ("3.9.18", True),
    ]
    assert result["agent_python"]["program"] == "/usr/bin/python3.12"
    (node.root / "usr/bin/python3.12").unlink()
    assert the(node.look(), "venv_missing")["remedy"] == "apt-get install python3.13-venv"
    assert "venv_missing" not in codes(node.look("none"))


def test_directories_are_described(node: MadeUpNode) -> None:
    found = {one["place"]: one for one in node.look()["directories"]}
    one = found[f"{node.root}/var/lib/kubelet"]
    assert (one["exists"], one["writable"], one["mode"]) == (True, True, "0755")
    assert one["free_bytes"] > 0
    assert f"{node.root}/var/lib/nodeops-dra" in found
    places = [one["place"] for one in node.look("none")["directories"]]
    assert f"{node.root}/var/lib/nodeops-dra" not in places


# Programs


@pytest.mark.parametrize(
    ("prints", "version"),
    [
        ("containerd containerd.io 1.7.24 88bf19b2105c8b17560993bee28a01ddc2f97182", "1.7.24"),
        ("containerd github.com/containerd/containerd/v2 v2.1.4 75cb2b7193e4e490e9fbdc236c0e811ccaba3376", "2.1.4"),
        ("containerd github.com/containerd/containerd v1.7.23-k3s2", "1.7.23-k3s2"),
        ("Kubernetes v1.31.4+k0s", "1.31.4+k0s"),
        ("crio version 1.33.1\nGitCommit: unknown", "1.33.1"),
        ("podman version 4.9.4-rhel", "4.9.4-rhel"),
        ("nothing", None),
    ],
)
def test_versions_are_found_in_what_programs_print(node: MadeUpNode, prints: str, version: str | None) -> None:
    node.program("/opt/x", prints)
    assert node.node.version("/opt/x") == version


def test_releases() -> None:
    assert release("1.31.4+k3s1") == (1, 31)
    assert release(None) is release("") is None


def test_a_program_that_hangs_is_ended(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "hangs"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec tail -f /dev/null\n")
    program.chmod(0o755)
    assert answer_of([str(program)], timeout=1) is None
    started = tmp_path / "pid"  # on a busy machine it may not even have come to write this
    assert not started.exists() or not pathlib.Path("/proc", started.read_text().strip() or "none").exists()


def test_programs_that_fail_say_nothing(tmp_path: pathlib.Path) -> None:
    assert answer_of([str(tmp_path / "missing")]) is None
    assert answer_of(["/bin/sh", "-c", "echo 1.2.3; exit 1"]) is None


def test_only_programs_of_root_are_trusted(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "x"
    program.write_text("#!/bin/sh\n")
    for mode, trusted in ((0o755, True), (0o775, False), (0o757, False), (0o644, False)):
        program.chmod(mode)
        # For root a file without any x bit is not executable either.
        assert is_trusted(str(program)) is trusted, oct(mode)
    assert not is_trusted(str(tmp_path))


@pytest.mark.parametrize("kind", ["pipe", "large", "bytes", "directory"])
def test_files_that_are_none_are_refused(node: MadeUpNode, kind: str) -> None:
    path = node.root / "x"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.write_bytes(b"\xff\xfe" if kind == "bytes" else b"x" * (1024 * 1024 + 1))
    with pytest.raises(UnreadableError, match=r"^/x "):
        node.node.text("/x")


def test_a_look_that_fails_does_not_hide_the_others(node: MadeUpNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_unused: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(machine, "look_at_machine", broken)
    result = node.look()
    found = the(result, "look_failed")
    assert found["place"] == "the machine"
    assert "ZeroDivisionError" in found["text"]
    assert not result["ready"]
    assert result["agent_python"] is not None
    assert result["kubelet"]["version"] == "1.34.2"
