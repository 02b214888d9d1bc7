# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Without a path the state file of this node's kubelet is meant, wherever that keeps it, running or not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import StoreError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.kubelet_command import root_in_text
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.kubelet_root import (
    AmbiguousRootError,
    default_state_path,
)

from .fake_node import FakeNode

pytestmark = pytest.mark.report("F098")


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    return FakeNode(tmp_path)


def found(node: FakeNode) -> tuple[str, str, str]:
    """Root as the node sees it, source and reason."""
    answer = default_state_path(**node.options())
    assert answer.path == f"{answer.kubelet_root}/dra_manager_state"
    assert answer.kubelet_root.startswith(f"{node.root}/")
    return answer.kubelet_root[len(str(node.root)) :], answer.source, answer.reason


def test_given_root_wins(node: FakeNode, tmp_path: Path) -> None:
    node.process(40, ["kubelet", "--root-dir=/other"])
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    answer = default_state_path(f"{tmp_path}/link//", **node.options())

    assert (answer.path, answer.source) == (f"{tmp_path}/real/dra_manager_state", "option")


def test_relative_root_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_state_path("kubelet").kubelet_root == f"{os.path.realpath(tmp_path)}/kubelet"


@pytest.mark.parametrize("root", ["", "a\0b"])
def test_impossible_root_is_a_clear_error(root: str) -> None:
    with pytest.raises(StoreError, match="is not the path of a directory"):
        default_state_path(root)


def test_running_kubelet_tells_the_root(node: FakeNode) -> None:
    node.file("/var/lib/kubelet/dra_manager_state")
    node.file("/etc/default/kubelet", "KUBELET_EXTRA_ARGS=--root-dir=/settings\n")
    node.process(40, ["kubelet", "--root-dir=/mnt/fast/kubelet"])
    assert found(node) == ("/mnt/fast/kubelet", "process", "command line of pid 40")


def test_running_kubelet_with_defaults(node: FakeNode) -> None:
    node.process(40, ["k0s", "worker"])
    assert found(node) == ("/var/lib/k0s/kubelet", "process", "default of k0s, running as pid 40")


def test_two_running_kubelets_are_told_apart_by_their_state_files(node: FakeNode) -> None:
    node.process(40, ["kubelet", "--root-dir=/a"])
    node.process(41, ["kubelet", "--root-dir=/b"])
    with pytest.raises(AmbiguousRootError) as error:
        found(node)
    assert [one["root"] for one in error.value.facts["candidates"]] == [f"{node.root}/a", f"{node.root}/b"]
    assert "command line of pid 41" in error.value.message
    assert "kubelet_root" in error.value.hint

    node.file("/b/dra_manager_state")
    assert found(node)[0] == "/b"


def test_kubelet_in_a_container_does_not_tell_our_root(node: FakeNode, tmp_path: Path) -> None:
    (tmp_path / "container/own").mkdir(parents=True)
    node.process(40, ["kubelet", "--root-dir=/own"], root=tmp_path / "container")
    assert found(node)[:2] == ("/var/lib/kubelet", "default")


@pytest.mark.parametrize(
    ("path", "text", "root"),
    [
        ("/etc/default/kubelet", 'KUBELET_EXTRA_ARGS="--v=2 --root-dir=/a --x"\n', "/a"),
        ("/etc/sysconfig/kubelet", "KUBELET_EXTRA_ARGS=--root-dir=/a/\n", "/a"),
        ("/var/lib/kubelet/kubeadm-flags.env", 'KUBELET_KUBEADM_ARGS="--root-dir /a"\n', "/a"),
        ("/etc/systemd/system/kubelet.service", "ExecStart=/bin/kubelet --v=2 \\\n  --root-dir=/a \\\n --x\n", "/a"),
        ("/usr/lib/systemd/system/kubelet.service", "ExecStart=/usr/bin/kubelet --root_dir=/a\n", "/a"),
        ("/etc/systemd/system/kubelet.service.d/20-root.conf", 'Environment="ARGS=--root-dir=/a"\n', "/a"),
        ("/etc/rancher/k3s/config.yaml", "kubelet-arg:\n- root-dir=/a\n- v=2\n", "/a"),
        ("/etc/rancher/k3s/config.yaml.d/10.yaml", "kubelet-arg+: ['v=2', 'root-dir=/a']\n", "/a"),
        ("/etc/rancher/rke2/config.yaml", 'kubelet-arg: "root-dir=/a"\n', "/a"),
        ("/etc/systemd/system/k3s.service", "ExecStart=/bin/k3s server '--kubelet-arg' 'root-dir=/a'\n", "/a"),
        ("/etc/systemd/system/k0sworker.service", "ExecStart=/usr/bin/k0s worker --data-dir=/data\n", "/data/kubelet"),
        ("/etc/systemd/system/k0scontroller.service", "k0s controller --kubelet-root-dir /kr --data-dir=/d\n", "/kr"),
        ("/var/snap/microk8s/current/args/kubelet", "--root-dir=${SNAP_COMMON}/var/lib/kubelet\n",
         "/var/snap/microk8s/common/var/lib/kubelet"),
    ],
)  # fmt: skip
def test_settings_tell_the_root_of_a_kubelet_that_is_down(node: FakeNode, path: str, text: str, root: str) -> None:
    """A kubelet that refuses its state file is down, so this is the case on call."""
    node.file(path, text)
    assert found(node) == (root, "configuration", path)


def test_drop_in_wins_over_its_unit(node: FakeNode) -> None:
    node.file("/etc/systemd/system/kubelet.service", "ExecStart=/usr/bin/kubelet --root-dir=/unit\n")
    node.file("/usr/lib/systemd/system/kubelet.service", "ExecStart=/usr/bin/kubelet --root-dir=/vendor\n")
    assert found(node)[0] == "/unit"
    node.file("/etc/systemd/system/kubelet.service.d/10.conf", "ExecStart=/usr/bin/kubelet --root-dir=/ten\n")
    node.file("/etc/systemd/system/kubelet.service.d/20.conf", "ExecStart=/usr/bin/kubelet --root-dir=/twenty\n")
    assert found(node)[0] == "/twenty"


def test_settings_of_two_distributions_are_narrowed_to_the_one_with_a_state_file(node: FakeNode) -> None:
    node.file("/etc/default/kubelet", "--root-dir=/a\n")
    node.file("/etc/rancher/k3s/config.yaml", "kubelet-arg: root-dir=/b\n")
    with pytest.raises(AmbiguousRootError):
        found(node)
    node.file("/a/dra_manager_state")
    assert found(node)[0] == "/a"


@pytest.mark.parametrize(
    "root", ["/var/lib/kubelet", "/var/lib/k0s/kubelet", "/var/snap/microk8s/common/var/lib/kubelet"]
)
def test_known_place_that_holds_a_state_file(node: FakeNode, root: str) -> None:
    node.file(f"{root}/dra_manager_state")
    assert found(node)[:2] == (root, "found")


def test_two_known_places_are_not_guessed_between(node: FakeNode) -> None:
    node.file("/var/lib/kubelet/dra_manager_state")
    node.file("/var/lib/k0s/kubelet/dra_manager_state")
    with pytest.raises(AmbiguousRootError):
        found(node)


def test_two_names_of_one_place_are_one(node: FakeNode) -> None:
    node.file("/var/lib/kubelet/dra_manager_state")
    node.link("/var/lib/k0s/kubelet", "/var/lib/kubelet")
    assert found(node)[0] == "/var/lib/kubelet"


def test_default_with_links_resolved(node: FakeNode) -> None:
    assert found(node)[:2] == ("/var/lib/kubelet", "default")
    node.link("/var/lib/kubelet", "../../mnt/kubelet")
    assert found(node)[:2] == ("/mnt/kubelet", "default")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--root-dir=/a\n--root-dir=/b", "/b"),
        ("# --root-dir=/a", None),
        ("; --root-dir=/a", None),
        ("--root-dir=$HOME/x", None),
        ("--containerd-root-dir=/a", None),
        ("--root-directory=/a", None),
        ('--root-dir="/with blank/x" --v=2', "/with blank/x"),
        ("--root-dir='/a'", "/a"),
        ("--root-dir=", None),
        ("", None),
        ("--data-dir=/d", None),
        ("\0\0\0", None),
    ],
)
def test_option_in_text(text: str, expected: str | None) -> None:
    assert root_in_text(text) == expected


def test_unreadable_settings_are_passed_over(node: FakeNode) -> None:
    node.directory("/etc/default/kubelet")
    node.file("/etc/rancher/k3s/config.yaml.d", "not a directory")
    (node.root / "etc/rancher/k3s/config.yaml").write_bytes(b"\xff\xfe--root-dir=rel\n")
    assert found(node)[1] == "default"
