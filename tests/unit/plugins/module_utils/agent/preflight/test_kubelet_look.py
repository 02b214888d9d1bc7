# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The kubelet's root, version, gates and whether it runs, in the shapes that distributions give it."""

from __future__ import annotations

import builtins
import sys
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight.gates import DRA
from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight.kubelet_files import plain_settings
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError

from .made_up_node import CONFIGURATION, Json, MadeUpNode, codes, the

CONFIG_WITH_GATES = """\
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
# comment
authentication:
  anonymous:
    enabled: false
clusterDNS:
- 10.96.0.10
featureGates:
  DynamicResourceAllocation: true  # on
  "DRAAdminAccess": false
containerRuntimeEndpoint: "unix:///run/containerd/containerd.sock"
"""


def gate(result: Json, name: str = DRA) -> Json:
    """One gate."""
    return next(one for one in result["kubelet"]["gates"] if one["name"] == name)


def test_a_node_on_which_nothing_is_wrong(node: MadeUpNode) -> None:
    result = node.look()
    assert codes(result) == []
    assert {key: value for key, value in result["kubelet"].items() if key not in ("gates", "started_at")} == {
        "root": f"{node.root}/var/lib/kubelet",
        "root_source": "process",
        "root_reason": "default of kubelet, running as pid 40",
        "running": True,
        "version": "1.34.2",
        "distribution": "kubelet",
        "pid": 40,
        "unit": "kubelet.service",
        "in_container": False,
        "configuration_files": [CONFIGURATION],
        "runtime_endpoint": None,
        "prepares_claims": True,
    }
    assert gate(result) == {"name": DRA, "set": None, "stage": "ga", "on": True, "on_in_target": None}


@pytest.mark.parametrize(
    ("version", "config", "options", "on"),
    [
        pytest.param("1.33.5", "", (), False, id="beta, off"),
        pytest.param("1.33.5", CONFIG_WITH_GATES, (), True, id="in the file"),
        pytest.param("1.33.5", '{"featureGates": {"DynamicResourceAllocation": true}}', (), True, id="file in JSON"),
        pytest.param("1.33.5", "", (f"--feature-gates=X=false,{DRA}=true",), True, id="on the command line"),
        pytest.param("1.33.5", "", (f"--feature-gates={DRA}=true", "--feature-gates", "X=true"), True, id="twice"),
        pytest.param("1.33.5", CONFIG_WITH_GATES, ("--feature_gates", f"{DRA}=false"), False, id="command line wins"),
        pytest.param("1.34.0", f"featureGates: {{{DRA}: false}}", (), False, id="stable, off"),
        pytest.param("1.35.0", f"featureGates: {{{DRA}: false}}", (), True, id="locked"),
        pytest.param("1.33.5", "featureGates: [1]", (), None, id="no map"),
        pytest.param("1.33.5", "[", (), None, id="no YAML"),
        pytest.param("1.35.0", "[", (), True, id="no YAML, and it does not matter"),
        pytest.param(None, "", (), None, id="unknown release"),
        pytest.param(None, CONFIG_WITH_GATES, (), True, id="unknown release, set"),
    ],
)
def test_whether_the_kubelet_prepares_claims(
    node: MadeUpNode, version: str | None, config: str, options: tuple[str, ...], on: bool | None
) -> None:
    node.file(CONFIGURATION, config)
    node.kubelet(*options, version=version)
    result = node.look()
    assert result["kubelet"]["prepares_claims"] is on
    found = set(codes(result)) & {"gate_off", "gate_unknown"}
    assert found == {True: set(), False: {"gate_off"}, None: {"gate_unknown"}}[on]
    manage = node.look("manage")
    assert ("kubelet_prepares_too" in codes(manage)) is bool(on)
    assert "gate_off" not in codes(manage)


def test_drop_ins_win_over_the_file_in_their_order(node: MadeUpNode) -> None:
    node.file("/etc/kubernetes/kubelet.conf.d/20-on.conf", f"featureGates: {{{DRA}: true}}\n")
    node.file("/etc/kubernetes/kubelet.conf.d/10-off.conf", f"featureGates: {{{DRA}: false, DRAAdminAccess: true}}\n")
    node.file("/etc/kubernetes/kubelet.conf.d/30.yaml", "not read")
    node.kubelet("--config-dir=/etc/kubernetes/kubelet.conf.d", version="1.33.1")
    result = node.look()
    assert result["kubelet"]["prepares_claims"] is True
    assert gate(result, "DRAAdminAccess")["set"] is True
    assert result["kubelet"]["configuration_files"] == [
        CONFIGURATION,
        "/etc/kubernetes/kubelet.conf.d/10-off.conf",
        "/etc/kubernetes/kubelet.conf.d/20-on.conf",
    ]
    assert codes(result) == []


def test_a_file_that_is_missing_is_told(node: MadeUpNode) -> None:
    (node.root / CONFIGURATION.lstrip("/")).unlink()
    node.kubelet(version="1.33.1")
    result = node.look()
    assert the(result, "kubelet_configuration_unreadable")["place"] == CONFIGURATION
    assert "gate_unknown" in codes(result)


@pytest.mark.parametrize("library", [True, False], ids=["with PyYAML", "without PyYAML"])
def test_the_file_is_understood_without_a_library(
    node: MadeUpNode, library: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.file(CONFIGURATION, CONFIG_WITH_GATES)
    node.kubelet(version="1.33.1")
    if not library:
        without_yaml(monkeypatch)
    result = node.look()
    assert result["kubelet"]["prepares_claims"] is True
    assert gate(result, "DRAAdminAccess")["set"] is False
    assert result["kubelet"]["runtime_endpoint"] == "unix:///run/containerd/containerd.sock"


def test_what_needs_a_library_is_unknown_without_it(node: MadeUpNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.file(CONFIGURATION, f"featureGates: {{\n  {DRA}: true}}\n")
    node.kubelet(version="1.33.1")
    without_yaml(monkeypatch)
    result = node.look()
    assert result["kubelet"]["prepares_claims"] is None
    assert "PyYAML" in the(result, "kubelet_configuration_unreadable")["text"]


def without_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let imports of yaml fail, as on a bare node."""
    real = builtins.__import__

    def refuse(name: str, *rest: t.Any, **more: t.Any) -> t.Any:
        if name.partition(".")[0] == "yaml":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    monkeypatch.delitem(sys.modules, "yaml", raising=False)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("featureGates: {A: true, B: {}}\n", id="nested flow style"),
        pytest.param("featureGates: {A: true,\n  B: true}\n", id="flow style over two lines"),
        pytest.param("featureGates: {A: true, A: false}\n", id="flow style, twice"),
        pytest.param("featureGates: &x\n  A: true\n", id="anchor"),
        pytest.param("featureGates:\n  A: yes\n", id="another word"),
        pytest.param("featureGates:\n  A: true\n    B: true\n", id="other depth"),
        pytest.param("featureGates:\n  A: true\n  A: false\n", id="twice"),
        pytest.param("featureGates:\n  A: true\nfeatureGates:\n  B: true\n", id="key twice"),
        pytest.param("a: 1\n---\nb: 2\n", id="two documents"),
        pytest.param("<<: *x\n", id="merge key"),
        pytest.param("kubelet-arg: [v=2]\n", id="list in flow style"),
        pytest.param("kubelet-arg:\n  - - v=2\n", id="list in a list"),
        pytest.param("kubelet-arg:\n  v: 2\n", id="map for a list"),
        pytest.param("containerRuntimeEndpoint: |\n  /x\n", id="block text"),
        pytest.param("containerRuntimeEndpoint:\n  /x\n", id="text on the next line"),
    ],
)
def test_the_small_reader_guesses_nothing(text: str) -> None:
    assert plain_settings(text) is None


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        pytest.param("featureGates: {}\nkind: X\n", {"featureGates": {}}, id="none"),
        pytest.param("featureGates:\nkind: X\n", {"featureGates": {}}, id="nothing"),
        pytest.param(
            "featureGates: { A: true, 'B': false }\n", {"featureGates": {"A": True, "B": False}}, id="flow style"
        ),
        pytest.param("kubelet-arg:\n- v=2\n- 'a=b'\n", {"kubelet-arg": ["v=2", "a=b"]}, id="list"),
        pytest.param("kubelet-arg: v=2\n", {"kubelet-arg": ["v=2"]}, id="one for a list"),
        pytest.param("", {}, id="empty"),
    ],
)
def test_what_the_small_reader_reads(text: str, settings: Json) -> None:
    assert plain_settings(text) == settings
    yaml = pytest.importorskip("yaml", reason="the reader is looked at above; PyYAML, to compare it with, is not here")
    whole = yaml.safe_load(text) or {}
    assert {key: whole[key] or {} for key in settings} == {
        key: value if key != "kubelet-arg" or isinstance(whole[key], list) else value[0]
        for key, value in settings.items()
    }


@pytest.mark.parametrize(
    ("target", "config", "expected"),
    [
        pytest.param("1.33", "", {"gate_off_in_target"}, id="off by default there"),
        pytest.param("v1.33.2", CONFIG_WITH_GATES, set(), id="set"),
        pytest.param("1.35", "", set(), id="always on there"),
        pytest.param("1.36", CONFIG_WITH_GATES, {"gate_refused"}, id="another gate is locked there"),
        pytest.param(
            "1.32", "featureGates: {DRAExtendedResource: true}", {"gate_refused", "gate_off_in_target"}, id="back"
        ),
        pytest.param("1.35", f"featureGates: {{{DRA}: false}}", {"gate_refused", "gate_off"}, id="locked there"),
    ],
)
def test_the_gates_of_the_target_release(node: MadeUpNode, target: str, config: str, expected: set[str]) -> None:
    node.file(CONFIGURATION, config)
    result = node.look(target_version=target)
    assert set(codes(result)) == expected
    assert result["target_version"] == target.lstrip("v")[:4]
    assert result["ready"] is (not expected)


def test_the_target_has_to_be_a_release(node: MadeUpNode) -> None:
    with pytest.raises(DraError, match="'latest' is not a Kubernetes version"):
        node.look(target_version="latest")


@pytest.mark.report("F098")
def test_a_root_that_is_not_the_running_kubelets(node: MadeUpNode) -> None:
    node.kubelet("--root-dir=/mnt/fast/kubelet")
    node.directory("/mnt/fast/kubelet/plugins_registry")
    assert node.look()["kubelet"]["root"] == f"{node.root}/mnt/fast/kubelet"
    given = f"{node.root}/var/lib/kubelet"
    result = node.look(kubelet_root=given)
    assert the(result, "kubelet_root_differs")["facts"] == {"given": given, "running": f"{node.root}/mnt/fast/kubelet"}
    assert not result["ready"]


@pytest.mark.report("F098")
def test_a_root_through_a_link_is_the_same(node: MadeUpNode) -> None:
    node.link("/data", "var/lib/kubelet")
    node.kubelet("--root-dir=/data/")
    result = node.look(kubelet_root=f"{node.root}/data")
    assert codes(result) == []


def test_a_kubelet_of_a_node_within_the_node_is_not_meant(node: MadeUpNode) -> None:
    node.no_kubelet()
    inner = node.directory("/containers/1")
    node.process(41, ["/usr/bin/kubelet"], executable="/usr/bin/kubelet", root=inner)
    assert codes(node.look(), "error") == ["kubelet_not_found"]
    assert codes(node.look("manage")) == []


def test_two_kubelets_are_too_many(node: MadeUpNode) -> None:
    node.process(41, ["kubelet", "--root-dir=/other"])
    result = node.look()
    assert len(the(result, "kubelet_root_ambiguous")["facts"]["candidates"]) == 2
    assert result["kubelet"]["root"] is None
    assert result["runtimes"], "the other looks go on"


def test_a_kubelet_that_is_down(node: MadeUpNode) -> None:
    node.stop(40)
    node.file(CONFIGURATION, CONFIG_WITH_GATES)
    node.program("/usr/bin/kubelet", "Kubernetes v1.33.1")
    result = node.look()
    assert codes(result) == ["kubelet_not_running"]
    assert result["ready"]
    assert (result["kubelet"]["version"], result["kubelet"]["running"]) == ("1.33.1", False)
    # What its command line will say is not known.
    node.file(CONFIGURATION, "")
    assert codes(node.look()) == ["gate_unknown", "kubelet_not_running"]
    # It would not start with these.
    node.program("/usr/bin/kubelet", "Kubernetes v1.36.0")
    node.file(CONFIGURATION, CONFIG_WITH_GATES)
    assert codes(node.look()) == ["gate_refused", "kubelet_not_running"]


def test_no_kubelet(node: MadeUpNode) -> None:
    node.no_kubelet()
    result = node.look()
    assert codes(result, "error") == ["kubelet_not_found"]
    assert node.look("manage")["ready"]


def test_a_kubelet_from_before_dra(node: MadeUpNode) -> None:
    node.kubelet(version="1.25.9")
    assert codes(node.look(), "error") == ["kubelet_too_old"]


def test_k3s_shows_no_command_line_but_its_file(node: MadeUpNode) -> None:
    node.no_kubelet()
    node.process(40, ["/usr/local/bin/k3s server"], name="k3s-server", executable="/usr/local/bin/k3s")
    node.program("/usr/local/bin/k3s", "k3s version v1.33.1+k3s1 (abc)")
    assert "gate_unknown" in codes(node.look())
    node.file("/etc/rancher/k3s/config.yaml", f"kubelet-arg:\n  - feature-gates={DRA}=true\n")
    result = node.look()
    assert result["kubelet"]["prepares_claims"] is True
    assert result["kubelet"]["configuration_files"] == ["/etc/rancher/k3s/config.yaml"]


def test_k3s_with_a_command_line(node: MadeUpNode) -> None:
    node.no_kubelet()
    words = ["/usr/local/bin/k3s", "agent", f"--kubelet-arg=feature-gates={DRA}=true", "--kubelet-arg", "v=2"]
    node.process(40, words, executable="/usr/local/bin/k3s")
    node.program("/usr/local/bin/k3s", "k3s version v1.33.1+k3s1 (abc)")
    assert node.look()["kubelet"]["prepares_claims"] is True


def test_microk8s_has_a_file_of_arguments(node: MadeUpNode) -> None:
    node.no_kubelet()
    arguments = "/var/snap/microk8s/current/args/kubelet"
    node.file(arguments, f"# comment\n--root-dir=/var/lib/kubelet\n--feature-gates={DRA}=true\n")
    words = ["/snap/microk8s/1/kubelite", f"--kubelet-args-file={arguments}"]
    node.process(40, words, name="kubelite")
    assert node.look()["kubelet"]["prepares_claims"] is True


def test_a_kubelet_in_a_container_is_read_as_it_sees_its_files(node: MadeUpNode) -> None:
    inner = node.root / "containers" / "1"
    (inner / "etc").mkdir(parents=True)
    (inner / "etc" / "kubelet.yaml").write_text(f"featureGates: {{{DRA}: true}}\n")
    (inner / "var/lib").mkdir(parents=True)
    # Both have the directory, as with a bind mount.
    (node.root / "var/lib/kubelet").rename(inner / "var/lib/kubelet")
    node.link("/var/lib/kubelet", "../../containers/1/var/lib/kubelet")
    node.stop(40)
    node.process(40, ["kubelet", "--config=/etc/kubelet.yaml"], executable="/usr/bin/kubelet", root=inner)
    result = node.look(kubelet_root=f"{node.root}/var/lib/kubelet")
    assert result["kubelet"]["prepares_claims"] is True
    assert result["kubelet"]["version"] is None, "its program needs the files of its container"
