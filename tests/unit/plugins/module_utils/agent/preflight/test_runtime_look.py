# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Whether CDI devices reach containers, told from the runtime's version and configuration, or not told at all."""

from __future__ import annotations

import typing as t

import pytest

from . import configurations as conf
from .made_up_node import CONFIGURATION, Json, MadeUpNode, codes, the

DIRECTORIES = ["/etc/cdi", "/var/run/cdi"]
V2 = 'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\n'
V3 = 'version = 3\n[plugins."io.containerd.cri.v1.runtime"]\n'


def runtime(result: Json) -> Json:
    """The runtime that counts."""
    return t.cast("Json", result["runtimes"][0])


@pytest.mark.report("F096")
@pytest.mark.parametrize(
    ("version", "text", "cdi"),
    [
        pytest.param("1.7.24", conf.CONTAINERD_1_7, False, id="1.7 as it comes"),
        pytest.param("1.7.24", V2, False, id="1.7 without the key"),
        pytest.param("1.7.24", None, False, id="1.7 without a file"),
        pytest.param("1.7.24", V2 + "enable_cdi = true\n", True, id="1.7, switched on"),
        pytest.param("1.7.24", "[plugins.cri]\nenable_cdi = true\n", True, id="version 1 of the file"),
        pytest.param("1.6.38", V2 + "enable_cdi = true\n", False, id="1.6 knows no CDI"),
        pytest.param("2.1.4", conf.CONTAINERD_2, True, id="2 as it comes"),
        pytest.param("2.1.4", None, True, id="2 without a file"),
        pytest.param("2.1.4", V2, True, id="2 with an old file without the key"),
        pytest.param("2.1.4", V2 + "enable_cdi = false\n", False, id="2 with an old file that switches off"),
        pytest.param("2.1.4", V3 + "enable_cdi = false\n", False, id="2, switched off"),
        pytest.param("2.3.0", V3.replace("3", "4", 1), True, id="version 4 of the file"),
        pytest.param("2.4.0", V3 + "enable_cdi = false\n", None, id="2.4, where the switch may be gone"),
        pytest.param(None, V3, True, id="unknown release, file that needs 2.0"),
        pytest.param(None, V2, None, id="unknown release, old file"),
        pytest.param(None, V2 + "enable_cdi = true\n", True, id="unknown release, switched on"),
        pytest.param("2.1.4", V3 + 'enable_cdi = "yes"\n', None, id="no boolean"),
        pytest.param("2.1.4", "version = 3\n[plugins\n", None, id="broken file"),
    ],
)
def test_containerd(node: MadeUpNode, version: str | None, text: str | None, cdi: bool | None) -> None:
    (node.root / "etc/containerd/config.toml").unlink()
    node.containerd(text, version)
    result = node.look()
    assert runtime(result)["cdi"] is cdi
    assert result["cdi"]["enabled"] is cdi
    found = set(codes(result)) & {"cdi_off", "cdi_unknown", "runtime_too_old"}
    expected = {True: set(), False: {"cdi_off"}, None: {"cdi_unknown"}}[cdi]
    assert found == ({"runtime_too_old"} if version == "1.6.38" else expected)
    assert result["ready"] is (cdi is not False)


def test_imports_are_read_in_order_and_relative_to_the_file(node: MadeUpNode) -> None:
    node.file("/etc/containerd/conf.d/20-off.toml", V3 + "enable_cdi = false\n")
    node.file("/etc/containerd/conf.d/30-on.toml", V3 + "enable_cdi = true\n")
    node.file("/etc/containerd/conf.d/40.txt", "no toml")
    result = node.look()
    assert runtime(result)["configuration_files"] == [
        "/etc/containerd/config.toml",
        "/etc/containerd/conf.d/20-off.toml",
        "/etc/containerd/conf.d/30-on.toml",
    ]
    assert runtime(result)["cdi"] is True
    node.containerd("version = 3\nimports = ['conf.d/20-off.toml']\n")
    assert runtime(node.look())["cdi"] is False


def test_what_releases_merge_differently_is_not_told(node: MadeUpNode) -> None:
    # One release takes the imported table whole, with the default of the missing key, another keeps the first file's.
    node.file("/etc/containerd/config.toml", 'imports = ["/x.toml"]\n' + V3 + "enable_cdi = false\n")
    node.file("/x.toml", V3 + 'cdi_spec_dirs = ["/a"]\n')
    found = runtime(node.look())
    assert found["cdi"] is None
    assert found["cdi_directories"] == ["/a"]
    node.file("/etc/containerd/config.toml", 'imports = ["/x.toml"]\n' + V3 + 'cdi_spec_dirs = ["/b"]\n')
    found = runtime(node.look())
    assert found["cdi"] is True
    assert found["cdi_directories"] is None


@pytest.mark.parametrize(
    "imports",
    [
        pytest.param('["/missing.toml"]', id="not there"),
        pytest.param('["/etc/*/x.toml"]', id="star in a directory"),
    ],
)
def test_an_import_that_cannot_be_followed_leaves_it_open(node: MadeUpNode, imports: str) -> None:
    node.containerd(f"version = 3\nimports = {imports}\n")
    result = node.look()
    assert runtime(result)["cdi"] is None
    assert {"runtime_configuration_unreadable", "cdi_unknown"} <= set(codes(result))


def test_imports_in_a_circle_end(node: MadeUpNode) -> None:
    node.containerd('version = 3\nimports = ["/etc/containerd/config.toml"]\n')
    assert runtime(node.look())["cdi"] is True


def test_the_package_of_docker_serves_no_kubelet(node: MadeUpNode) -> None:
    node.containerd(conf.DOCKER_PACKAGE)
    result = node.look()
    assert the(result, "cri_disabled")["place"] == "/etc/containerd/config.toml"
    assert not result["ready"]


@pytest.mark.report("F096")
def test_k3s_is_told_to_use_its_template(node: MadeUpNode) -> None:
    node.no_kubelet()
    node.stop(50)
    (node.root / "usr/bin/containerd").unlink()
    file = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"
    node.file(file, conf.K3S)
    program = "/var/lib/rancher/k3s/data/current/bin/containerd"
    node.program(program, "containerd github.com/k3s-io/containerd v1.7.23-k3s2 abc")
    node.process(60, ["/usr/local/bin/k3s server"], name="k3s-server", executable="/usr/local/bin/k3s")
    node.program("/usr/local/bin/k3s", "k3s version v1.32.1+k3s1 (abc)\ngo version go1.23")
    node.process(
        61, ["containerd", "-c", file, "-a", "/run/k3s/containerd/containerd.sock"], executable=program, parent=60
    )
    result = node.look()
    assert result["kubelet"]["version"] == "1.32.1+k3s1"
    found = runtime(result)
    assert (found["name"], found["version"], found["distribution"]) == ("containerd", "1.7.23-k3s2", "k3s")
    assert found["used_by_kubelet"] is True
    assert "config.toml.tmpl" in the(result, "cdi_off")["remedy"]


def test_k0s_imports_what_it_generates(node: MadeUpNode) -> None:
    node.stop(40)
    node.stop(50)
    node.file("/etc/k0s/containerd.toml", conf.K0S)
    node.file("/run/k0s/containerd-cri.toml", conf.K0S_CRI)
    node.program("/var/lib/k0s/bin/containerd", "containerd github.com/containerd/containerd v1.7.25 abc")
    node.program("/var/lib/k0s/bin/kubelet", "Kubernetes v1.32.2+k0s")
    node.directory("/var/lib/k0s/kubelet/plugins_registry")
    node.process(60, ["k0s", "worker"])
    node.process(
        61,
        ["/var/lib/k0s/bin/kubelet", "--root-dir=/var/lib/k0s/kubelet"],
        parent=60,
        executable="/var/lib/k0s/bin/kubelet",
    )
    words = ["/var/lib/k0s/bin/containerd", "--root=/var/lib/k0s/containerd", "--config=/etc/k0s/containerd.toml"]
    node.process(62, words, parent=60, executable="/var/lib/k0s/bin/containerd")
    result = node.look()
    assert result["kubelet"]["distribution"] == "k0s"
    assert runtime(result)["cdi"] is True
    assert runtime(result)["configuration_files"] == ["/etc/k0s/containerd.toml", "/run/k0s/containerd-cri.toml"]


def test_microk8s_with_a_version_that_cannot_be_asked(node: MadeUpNode) -> None:
    node.stop(40)
    node.stop(50)
    node.file("/var/snap/microk8s/current/args/kubelet", "--root-dir=${SNAP_COMMON}/var/lib/kubelet\n")
    node.file("/var/snap/microk8s/1/args/containerd.toml", conf.MICROK8S)
    node.directory("/var/snap/microk8s/common/var/lib/kubelet/plugins_registry")
    words = ["/snap/microk8s/1/kubelite", "--kubelet-args-file=/var/snap/microk8s/current/args/kubelet"]
    node.process(60, words, name="kubelite")
    words = ["/snap/microk8s/1/bin/containerd", "--config", "/var/snap/microk8s/1/args/containerd.toml"]
    node.process(61, words, executable="/snap/microk8s/1/bin/containerd")
    result = node.look()
    assert (result["kubelet"]["distribution"], result["kubelet"]["version"]) == ("microk8s", None)
    assert runtime(result)["cdi"] is None
    assert {"runtime_version_unknown", "cdi_unknown", "kubelet_version_unknown", "gate_unknown"} <= set(codes(result))


def crio(node: MadeUpNode, *options: str, version: str | None = "1.33.1") -> None:
    """Run CRI-O instead of containerd."""
    node.stop(50)
    (node.root / "usr/bin/containerd").unlink()
    (node.root / "etc/containerd/config.toml").unlink()
    node.program("/usr/bin/crio", f"crio version {version}", 0 if version else 1)
    node.file("/etc/crio/crio.conf", conf.CRIO)
    node.process(50, ["/usr/bin/crio", *options], executable="/usr/bin/crio")


@pytest.mark.parametrize(
    ("files", "options", "version", "cdi", "directories"),
    [
        pytest.param({}, (), "1.33.1", True, DIRECTORIES, id="as it comes"),
        pytest.param({}, (), "1.23.5", False, None, id="too old"),
        pytest.param({}, (), None, None, DIRECTORIES, id="unknown release"),
        pytest.param(
            {"10-x.conf": '["/a/"]', "20-x.conf": '["/b"]'}, (), "1.33.1", True, ["/b"], id="the last file wins"
        ),
        pytest.param({"10-x.conf": '["/a"]'}, (), None, True, ["/a"], id="who sets it knows it"),
        pytest.param({"10-x.conf": "[]"}, (), "1.33.1", False, [], id="no directory"),
        pytest.param({"10-x.conf": "7"}, (), "1.33.1", None, None, id="no list"),
        pytest.param({"10-x.conf": '["a"]'}, (), "1.33.1", True, None, id="relative"),
        pytest.param({"10-x.conf": '["/a"]'}, ("--cdi-spec-dirs=/c,/d",), "1.33.1", True, ["/c", "/d"], id="option"),
    ],
)
def test_crio(
    node: MadeUpNode,
    files: dict[str, str],
    options: tuple[str, ...],
    version: str | None,
    cdi: bool | None,
    directories: list[str] | None,
) -> None:
    crio(node, *options, version=version)
    for name, value in files.items():
        node.file(f"/etc/crio/crio.conf.d/{name}", f"[crio.runtime]\ncdi_spec_dirs = {value}\n")
    found = runtime(node.look())
    assert (found["name"], found["cdi"], found["cdi_directories"]) == ("cri-o", cdi, directories)
    assert found["used_by_kubelet"] is True


def test_podman_alone(node: MadeUpNode) -> None:
    node.no_kubelet()
    crio(node)
    node.stop(50)
    (node.root / "usr/bin/crio").unlink()
    (node.root / "etc/crio/crio.conf").unlink()
    (node.root / "etc/crio").rmdir()
    node.program("/usr/bin/podman", "podman version 4.9.4-rhel")
    node.file("/usr/share/containers/containers.conf", conf.PODMAN)
    result = node.look("manage")
    assert result["cdi"]["enabled"] is True
    assert runtime(result)["running"] is False
    assert result["ready"], result["blockers"]
    node.file("/etc/containers/containers.conf.d/cdi.conf", '[engine]\ncdi_spec_dirs = ["/srv/cdi"]\n')
    assert runtime(node.look("manage"))["cdi_directories"] == ["/srv/cdi"]
    node.program("/usr/bin/podman", "podman version 3.4.4")
    assert "runtime_too_old" in codes(node.look("manage"))


def test_the_kubelet_says_which_runtime_it_uses(node: MadeUpNode) -> None:
    node.program("/usr/bin/crio", "crio version 1.33.1")
    node.process(51, ["/usr/bin/crio"], executable="/usr/bin/crio")
    result = node.look()
    assert "runtime_ambiguous" in codes(result)
    assert result["cdi"]["enabled"] is None
    node.file(CONFIGURATION, "containerRuntimeEndpoint: unix:///var/run/crio/crio.sock\n")
    result = node.look()
    assert [(one["name"], one["used_by_kubelet"]) for one in result["runtimes"]] == [
        ("cri-o", True),
        ("containerd", False),
    ]
    node.kubelet("--container-runtime-endpoint=unix:///run/containerd/containerd.sock")
    assert runtime(node.look())["name"] == "containerd"


def test_containerd_of_docker_is_not_meant(node: MadeUpNode) -> None:
    words = ["containerd", "--config", "/var/run/docker/containerd/containerd.toml"]
    node.process(51, words, executable="/usr/bin/containerd")
    node.process(52, ["/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io"])
    assert [one["pid"] for one in node.look()["runtimes"]] == [50]


def test_programs_that_others_can_replace_are_not_run(node: MadeUpNode) -> None:
    trap = node.root / "trap"
    for place in ("usr/bin/containerd", "usr/bin/kubelet"):
        (node.root / place).write_text(f"#!/bin/sh\ntouch {trap}\necho v1.34.0\n")
        (node.root / place).chmod(0o777)
    result = node.look()
    assert not trap.exists()
    assert runtime(result)["version"] is None
    assert result["kubelet"]["version"] is None


def test_a_containerd_that_does_not_run_is_seen(node: MadeUpNode) -> None:
    node.stop(50)
    found = runtime(node.look())
    assert (found["running"], found["version"], found["used_by_kubelet"]) == (False, "2.1.4", True)


def test_the_runtime_can_be_named(node: MadeUpNode) -> None:
    node.program("/usr/bin/podman", "podman version 3.4.4")
    node.kubelet(version="1.33.1")
    assert "runtime_ambiguous" in codes(node.look("manage"))
    assert node.look("manage")["cdi"]["enabled"] is None
    assert node.look("observe")["cdi"]["runtime"] == "containerd"
    result = node.look("manage", runtime="podman")
    assert result["cdi"]["runtime"] == "podman"
    assert "runtime_too_old" in codes(result)
    assert node.look("manage", runtime="containerd")["ready"]
    assert "runtime_not_found" in codes(node.look("manage", runtime="cri-o"), "error")


def test_podman_serves_no_kubelet(node: MadeUpNode) -> None:
    node.stop(50)
    (node.root / "usr/bin/containerd").unlink()
    (node.root / "etc/containerd/config.toml").unlink()
    node.program("/usr/bin/podman", "podman version 4.9.4")
    assert node.look("observe")["cdi"]["enabled"] is None
    assert node.look("manage")["cdi"]["enabled"] is True


def test_a_runtime_in_a_container_serves_that_container(node: MadeUpNode) -> None:
    inner = node.directory("/containers/1")
    node.process(51, ["/usr/bin/containerd"], executable="/usr/bin/containerd", root=inner)
    assert [one["pid"] for one in node.look()["runtimes"]] == [50]


def test_the_running_program_is_asked_and_not_its_successor(node: MadeUpNode) -> None:
    image = node.program("/usr/bin/containerd.old", "containerd containerd.io 1.7.24 abc")
    link = node.proc / "50" / "exe"
    link.unlink()
    link.symlink_to(image)
    assert runtime(node.look())["version"] == "1.7.24"


@pytest.mark.parametrize(
    ("dropped_in", "cdi"),
    [
        pytest.param("enable_cdi = false\n", None, id="it matters whether they are read"),
        pytest.param("enable_selinux = true\n", True, id="it does not matter"),
        pytest.param("enable_cdi = \n", None, id="broken"),
    ],
)
def test_without_a_main_file_some_releases_import(node: MadeUpNode, dropped_in: str, cdi: bool | None) -> None:
    (node.root / "etc/containerd/config.toml").unlink()
    node.file("/etc/containerd/conf.d/x.toml", V3 + dropped_in)
    assert runtime(node.look())["cdi"] is cdi
