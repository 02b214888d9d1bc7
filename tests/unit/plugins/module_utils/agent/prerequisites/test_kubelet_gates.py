# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Gates are set where the kubelet's release needs them, and taken back to the byte."""

from __future__ import annotations

import pathlib
import stat

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.prerequisites.kubelet_gates import (
    set_gates,
    take_back_gates,
)
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError

DRA = "DynamicResourceAllocation"
KUBEADM = """\
apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
clusterDNS:
- 10.96.0.10
kind: KubeletConfiguration
logging:
  flushFrequency: 0
  options:
    json:
      infoBufferSize: "0"
"""


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "config.yaml"
    path.write_text(KUBEADM)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    ("version", "text", "changed"),
    [
        *((f"1.{minor}", KUBEADM, True) for minor in range(26, 34)),
        *((f"v1.{minor}.1", KUBEADM, False) for minor in range(34, 38)),
        ("1.33", f"{KUBEADM}featureGates:\n  {DRA}: true\n", False),
        ("1.34", f"{KUBEADM}featureGates:\n  {DRA}: false\n", True),
        ("1.33", f"{KUBEADM}featureGates:\n  AllBeta: true\n", False),
    ],
)
def test_the_gate_is_set_where_the_release_needs_it(file: pathlib.Path, version: str, text: str, changed: bool) -> None:
    file.write_text(text)
    for check in (True, False):
        assert set_gates(str(file), [DRA], version, check=check)["changed"] is changed
        assert (file.read_text() == text) is (check or not changed)
    between = file.read_text()
    assert set_gates(str(file), [DRA], version, check=False)["changed"] is False
    assert (f"  {DRA}: true  # nodeops.dra\n" in between) is changed
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in file.parent.iterdir()) == [
        "config.yaml",
        *(["config.yaml.nodeops-dra.bak"] if changed else []),
    ]
    assert take_back_gates(str(file), check=False)["changed"] is changed
    assert file.read_text() == text
    assert [path.name for path in file.parent.iterdir()] == ["config.yaml"]


def test_a_gate_that_the_next_release_locks_is_taken_back(file: pathlib.Path) -> None:
    set_gates(str(file), [DRA], "1.33", check=False)
    assert set_gates(str(file), [DRA], "1.35", check=False)["files"][0]["action"] == "restored"
    assert file.read_text() == KUBEADM


@pytest.mark.parametrize(
    ("gates", "version", "text", "said"),
    [
        pytest.param([DRA], "1.25", KUBEADM, "older than DRA", id="too old"),
        pytest.param([DRA], None, KUBEADM, "not known", id="unknown version"),
        pytest.param(["DRAConsumableCapacity"], "1.33", KUBEADM, "1.33 does not know it", id="unknown gate"),
        pytest.param([DRA], "1.33", '{"kind": "KubeletConfiguration"}', "is JSON", id="JSON"),
        pytest.param([DRA], "1.33", "kind: KubeletConfiguration\nfeatureGates: [a]\n", "no map", id="no map"),
    ],
)
def test_what_cannot_work_is_refused(
    file: pathlib.Path, gates: list[str], version: str | None, text: str, said: str
) -> None:
    pytest.importorskip("yaml")
    file.write_text(text)
    with pytest.raises(DraError) as caught:
        set_gates(str(file), gates, version, check=False)
    assert said in str(caught.value)
    assert file.read_text() == text
    assert [path.name for path in file.parent.iterdir()] == ["config.yaml"]


def test_a_file_that_is_not_there_is_not_made(tmp_path: pathlib.Path) -> None:
    with pytest.raises(DraError, match="does not exist"):
        set_gates(str(tmp_path / "none"), [DRA], "1.33", check=False)
    assert take_back_gates(str(tmp_path / "none"), check=False)["changed"] is False


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/00-k3s-defaults.conf", "/etc/rancher/k3s/config.yaml"),
        ("/var/lib/rancher/rke2/agent/etc/kubelet.conf", "/etc/rancher/rke2/config.yaml"),
        ("/var/lib/k0s/kubelet-config.yaml", "worker profile"),
        ("/var/snap/microk8s/current/args/kubelet.yaml", "--feature-gates=DynamicResourceAllocation=true"),
    ],
)
def test_generated_files_are_refused_with_what_to_do(path: str, remedy: str) -> None:
    with pytest.raises(DraError) as caught:
        set_gates(path, [DRA], "1.33", check=True)
    assert remedy in str(caught.value)
