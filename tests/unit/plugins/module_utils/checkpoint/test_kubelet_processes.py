# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Running kubelets are found in every distribution, with the root directory that each one uses."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import StoreError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.kubelet import (
    KubeletProcess,
    find_kubelets,
    how_to_stop,
    kubelet_on_root,
)

from .child_process import LAYER, TESTS, mount_namespace, named_child, run_python
from .fake_node import BOOT, FakeNode


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    return FakeNode(tmp_path)


def only(node: FakeNode) -> KubeletProcess:
    (found,) = find_kubelets(**node.options())
    return found


# Real processes


@pytest.mark.report("F098")
@pytest.mark.parametrize("form", ["--root-dir={}", "--root-dir {}", "--root_dir={}"])
@pytest.mark.parametrize("argv0", ["kubelet", "/usr/local/bin/kubelet"])
def test_real_process_is_found_with_its_root(tmp_path: Path, argv0: str, form: str) -> None:
    root = tmp_path / "fast"
    root.mkdir()
    with named_child(argv0, *form.format(root).split(), "--config=/etc/kubelet.yaml") as child:
        found = {one.pid: one for one in find_kubelets()}[child.pid]
        on_root = kubelet_on_root(root)
    after = kubelet_on_root(root)

    assert (found.root_dir, found.host_root, found.distribution) == (str(root), str(root), "kubelet")
    assert found.config_path == "/etc/kubelet.yaml"
    assert found.argv[0] == argv0
    assert found.in_container is False
    assert found.started_at is not None
    assert abs(found.started_at - time.time()) < 60
    assert on_root is not None
    assert on_root.pid == child.pid
    assert after is None, "it ended"


def test_real_process_on_a_linked_root_is_the_same_kubelet(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with named_child("kubelet", f"--root-dir={tmp_path}/link/") as child:
        for root in ("link", "real", "link/", "./real/../link"):
            found = kubelet_on_root(f"{tmp_path}/{root}")
            assert found is not None, root
            assert (found.pid, found.root_dir) == (child.pid, str(tmp_path / "real"))
        assert kubelet_on_root(tmp_path) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="changing the root directory needs root")
def test_real_process_with_another_root_is_told_apart(tmp_path: Path) -> None:
    """A kubelet in a container says /var/lib/kubelet as well, and means another directory."""
    other = tmp_path / "rootfs"
    (other / "var/lib/kubelet").mkdir(parents=True)
    code = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(15, b"kubelet", 0, 0, 0)  # PR_SET_NAME
os.chroot(sys.argv[1])
os.chdir("/")
print("ready", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, str(other), "--root-dir=/var/lib/kubelet"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = {one.pid: one for one in find_kubelets()}[child.pid]
        inside = kubelet_on_root(other / "var/lib/kubelet")
        outside = kubelet_on_root("/var/lib/kubelet")
        child.communicate()

    assert (found.in_container, found.root_dir, found.host_root) == (True, "/var/lib/kubelet", None)
    assert inside is not None, "but the directory itself is recognised by its inode"
    assert inside.pid == child.pid
    assert outside is None or outside.pid != child.pid
    assert "stop that container" in how_to_stop(found)


# A made-up node


@pytest.mark.report("F098")
@pytest.mark.parametrize(
    ("argv", "distribution", "root"),
    [
        pytest.param(["/usr/bin/kubelet", "--v=2"], "kubelet", "/var/lib/kubelet", id="plain"),
        pytest.param(["kubelet", "--root-dir=/a", "--root-dir=/b"], "kubelet", "/b", id="last option counts"),
        pytest.param(["kubelet", "--root-dir="], "kubelet", "/var/lib/kubelet", id="empty option"),
        pytest.param(["kubelet", "--root-dir"], "kubelet", "/var/lib/kubelet", id="option without value"),
        pytest.param(["kubelet", "--root-dir=/a/"], "kubelet", "/a", id="slash at the end"),
        pytest.param(["kubelet", "--root-dir=/with blank/x"], "kubelet", "/with blank/x", id="blank"),
        pytest.param(["kubelet", "--", "--root-dir=/a"], "kubelet", "/var/lib/kubelet", id="after the options"),
        pytest.param(["kubelet", "--volume-root-dir=/a"], "kubelet", "/var/lib/kubelet", id="another option"),
        pytest.param(["kubelet", "--root-dir=rel"], "kubelet", "/started/in/rel", id="relative"),
        pytest.param(["/hyperkube", "kubelet", "--root-dir=/a"], "kubelet", "/a", id="hyperkube"),
        pytest.param(["/usr/local/bin/k3s", "server"], "k3s", "/var/lib/kubelet", id="k3s"),
        pytest.param(["/usr/local/bin/k3s server"], "k3s", "/var/lib/kubelet", id="k3s with a hidden command line"),
        pytest.param(["k3s", "agent", "--kubelet-arg=root-dir=/a"], "k3s", "/a", id="k3s argument"),
        pytest.param(
            ["k3s", "agent", "--kubelet-arg", "v=2", "--kubelet-arg", "root-dir=/a"], "k3s", "/a", id="k3s two"
        ),
        pytest.param(["rke2", "agent"], "rke2", "/var/lib/kubelet", id="rke2"),
        pytest.param(["/usr/local/bin/k0s", "worker"], "k0s", "/var/lib/k0s/kubelet", id="k0s"),
        pytest.param(["k0s", "worker", "--data-dir=/data"], "k0s", "/data/kubelet", id="k0s data"),
        pytest.param(["k0s", "worker", "--kubelet-root-dir=/kr"], "k0s", "/kr", id="k0s root"),
        pytest.param(["k0s", "controller", "--single"], "k0s", "/var/lib/k0s/kubelet", id="k0s single"),
        pytest.param(["k0s", "controller", "--enable-worker"], "k0s", "/var/lib/k0s/kubelet", id="k0s both"),
        pytest.param(
            ["/snap/microk8s/1/kubelite", "--kubelet-args-file=/var/snap/microk8s/1/args/kubelet"],
            "microk8s",
            "/var/snap/microk8s/common/var/lib/kubelet",
            id="microk8s",
        ),
    ],
)
def test_distributions(node: FakeNode, argv: list[str], distribution: str, root: str) -> None:
    node.process(1, ["/sbin/init"])
    node.process(40, argv, cwd="/started/in")

    found = only(node)

    assert (found.pid, found.distribution, found.root_dir) == (40, distribution, root)
    assert found.host_root == str(node.root) + root


@pytest.mark.parametrize(
    "argv",
    [
        ["vim", "/etc/kubelet"],
        ["/bin/bash", "-c", "kubelet --root-dir=/a"],
        ["kubelet", "--version"],
        ["kubelet", "--help"],
        ["k3s", "kubectl", "get", "nodes"],
        ["k3s", "server", "--disable-agent"],
        ["k0s", "controller"],
        ["k0s", "status"],
        ["rke2", "--version"],
        ["kubelet-wrapper"],
        ["journalctl", "-u", "kubelet"],
        [],
    ],
    ids=" ".join,
)
def test_what_is_no_kubelet(node: FakeNode, argv: list[str]) -> None:
    node.process(40, argv)
    assert find_kubelets(**node.options()) == []


def test_found_by_name_or_program_when_argv_says_something_else(node: FakeNode) -> None:
    node.process(40, ["/bin/sh", "/opt/kubelet", "--root-dir=/a"], name="kubelet")
    node.process(41, ["renamed", "--root-dir=/b"], name="renamed", executable="/usr/bin/kubelet (deleted)")
    assert [(one.pid, one.root_dir) for one in find_kubelets(**node.options())] == [(40, "/a"), (41, "/b")]


def test_dead_and_vanished_processes_do_not_count(node: FakeNode) -> None:
    node.process(40, ["kubelet"], state="Z")
    (node.proc / "41").mkdir()
    (node.proc / "42").mkdir()
    (node.proc / "42" / "stat").write_text("nonsense")
    assert find_kubelets(**node.options()) == []


def test_supervisor_counts_only_without_its_kubelet(node: FakeNode) -> None:
    node.process(40, ["k0s", "worker"])
    assert only(node).pid == 40
    node.process(41, ["/var/lib/k0s/bin/kubelet", "--root-dir=/var/lib/k0s/kubelet"], parent=40)
    assert (only(node).pid, only(node).distribution, only(node).root_dir) == (41, "k0s", "/var/lib/k0s/kubelet")


def test_settings_of_k3s_count_where_its_command_line_is_hidden(node: FakeNode) -> None:
    node.file("/etc/rancher/k3s/config.yaml", 'kubelet-arg:\n  - "v=2"\n  - "root-dir=/data/kubelet"\n')
    node.process(40, ["/usr/local/bin/k3s server"])
    assert (only(node).root_dir, only(node).root_source) == ("/data/kubelet", "/etc/rancher/k3s/config.yaml")


def test_arguments_file_of_microk8s_counts(node: FakeNode) -> None:
    node.file("/var/snap/microk8s/7/args/kubelet", "--config=x\n# --root-dir=/no\n--root-dir=${SNAP_COMMON}/moved\n")
    node.process(40, ["/snap/microk8s/7/kubelite", "--kubelet-args-file=/var/snap/microk8s/7/args/kubelet"])
    assert only(node).root_dir == "/var/snap/microk8s/common/moved"


def test_links_on_the_way_are_resolved_inside_the_node(node: FakeNode) -> None:
    node.link("/var/lib/kubelet", "/mnt/fast/kubelet")
    node.link("/mnt/fast", "disk1")
    node.directory("/mnt/disk1/kubelet")
    node.process(40, ["kubelet"])

    assert only(node).root_dir == "/mnt/disk1/kubelet"
    assert kubelet_on_root(node.root / "mnt/disk1/kubelet", **node.options()) is not None
    assert kubelet_on_root(node.root / "mnt/disk1", **node.options()) is None


def test_circle_of_links_ends(node: FakeNode) -> None:
    node.link("/var/lib/kubelet", "kubelet")
    node.process(40, ["kubelet"])
    assert only(node).root_dir == "/var/lib/kubelet"


SHARED_DIRECTORY = f"""
import subprocess, sys
from pathlib import Path
from {LAYER}.kubelet import find_kubelets, kubelet_on_root
from {TESTS}.fake_node import FakeNode

directory = Path(sys.argv[1])
node = FakeNode(directory)
shared = node.directory("/var/lib/kubelet")
mounted = directory / "container/var/lib/kubelet"
mounted.mkdir(parents=True)
subprocess.run(["mount", "--bind", str(shared), str(mounted)], check=True)
node.process(40, ["kubelet"], root=directory / "container")
(found,) = find_kubelets(**node.options())
on_root = kubelet_on_root(shared, **node.options())
print(found.in_container, found.host_root == str(shared), on_root == found)
subprocess.run(["umount", str(mounted)], check=True)
"""


def test_container_that_shares_the_directory_is_a_kubelet_on_ours(tmp_path: Path) -> None:
    assert run_python(SHARED_DIRECTORY, str(tmp_path), prefix=mount_namespace()) == "True True True\n"


def test_container_with_its_own_directory_is_none_of_ours(node: FakeNode, tmp_path: Path) -> None:
    node.directory("/var/lib/kubelet")
    container = tmp_path / "container"
    (container / "var/lib/kubelet").mkdir(parents=True)
    node.process(40, ["kubelet"], root=container)

    assert only(node).host_root is None
    assert kubelet_on_root(node.root / "var/lib/kubelet", **node.options()) is None
    assert kubelet_on_root(container / "var/lib/kubelet", **node.options()) is not None


def test_where_we_may_not_look_a_kubelet_counts_as_one_on_our_files(node: FakeNode) -> None:
    node.directory("/var/lib/kubelet")
    node.process(40, ["kubelet"])
    (node.proc / "40" / "root").unlink()

    assert only(node).in_container is None
    assert kubelet_on_root(node.root / "var/lib/kubelet", **node.options()) is not None


def test_root_that_does_not_exist_is_compared_by_name(node: FakeNode) -> None:
    node.process(40, ["kubelet", "--root-dir=/later"])
    assert kubelet_on_root(node.root / "later", **node.options()) is not None
    assert kubelet_on_root(node.root / "never", **node.options()) is None


def test_facts_hide_secrets_and_tell_the_start(node: FakeNode) -> None:
    argv = ["k3s", "agent", "--token=abc", "--agent-token", "def", "--server=https://x", "--node-label=a\x1b"]
    node.process(40, argv, ticks=100 * os.sysconf("SC_CLK_TCK"))
    facts = only(node).as_facts()

    assert facts["argv"] == [
        "k3s", "agent", "--token=***", "--agent-token", "***", "--server=https://x", r"--node-label=a\x1b",
    ]  # fmt: skip
    assert facts["started_at"] == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(BOOT + 100))
    assert "abc" not in only(node).command
    assert "def" not in only(node).command
    assert len(KubeletProcess(**{**vars(only(node)), "argv": ("kubelet", "x" * 900)}).command) == 200


def test_no_proc_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="could not be listed"):
        find_kubelets(proc_root=tmp_path / "none")
    with pytest.raises(StoreError, match="is not the path of a directory"):
        kubelet_on_root("")


@pytest.mark.parametrize(
    ("argv", "cgroup", "systemd", "expected"),
    [
        pytest.param(
            ["kubelet"], "0::/system.slice/kubelet.service\n", True, "systemctl stop kubelet.service", id="v2"
        ),
        pytest.param(
            ["kubelet"],
            "2:cpu:/x\n1:name=systemd:/system.slice/kubelet.service\n",
            True,
            "systemctl stop kubelet",
            id="v1",
        ),
        pytest.param(
            ["k3s", "agent"],
            "0::/system.slice/k3s-agent.service/init\n",
            True,
            "systemctl stop k3s-agent.service",
            id="sub",
        ),
        pytest.param(
            ["kubelet"], "0::/user.slice/user@0.service/session-1.scope\n", True, "kill 40", id="user session"
        ),
        pytest.param(["kubelet"], "0::/system.slice/kubelet.service\n", False, "kill 40", id="no systemd"),
        pytest.param(["kubelet"], "0::/\n", True, "kill 40", id="no unit"),
        pytest.param(["k3s", "server"], "0::/\n", False, "rc-service k3s stop", id="k3s"),
        pytest.param(["k0s", "worker"], "0::/\n", False, "k0s stop", id="k0s"),
        pytest.param(["rke2", "server"], "0::/\n", False, "systemctl stop rke2-server", id="rke2"),
        pytest.param(["kubelite"], "0::/\n", False, "snap stop microk8s.daemon-kubelite", id="microk8s"),
    ],
)
def test_how_to_stop_it(node: FakeNode, argv: list[str], cgroup: str, systemd: bool, expected: str) -> None:
    if systemd:
        node.directory("/run/systemd/system")
    node.process(40, argv, cgroup=cgroup)
    assert expected in how_to_stop(only(node), fs_root=node.root)


def test_odd_unit_name_cannot_become_a_command(node: FakeNode) -> None:
    node.directory("/run/systemd/system")
    node.process(40, ["kubelet"], cgroup="0::/system.slice/a;reboot.service\n")
    assert "systemctl stop 'a;reboot.service'" in how_to_stop(only(node), fs_root=node.root)


def test_names_with_blanks_and_parentheses_do_not_confuse_the_scan(node: FakeNode) -> None:
    node.process(400, ["kubelet"], name="a) Z 1 (b c")
    assert only(node).pid == 400
    assert only(node).started_at == BOOT
