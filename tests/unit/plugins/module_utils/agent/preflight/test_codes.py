# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Every code of the table can be found on a node, tells its severity and place, and is explained by the guide."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import time
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight import look, machine
from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight.codes import ALWAYS, CODES
from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight.gates import DRA

from ...checkpoint.builders import crc_claim, crc_file
from . import configurations as conf
from .made_up_node import CONFIGURATION, DRIVER, UPTIME, Json, MadeUpNode, the

GUIDE = pathlib.Path(look.__file__).parents[4] / "docs" / "docsite" / "rst" / "preflight.rst"
OLD_FILE = 'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\n'
RECORD = '{"Data":{"RegisteredDevices":{"example.com/gpu":["a"]}},"Checksum":1}'

Change = t.Callable[[MadeUpNode, pytest.MonkeyPatch], t.Any]
SCENARIOS: dict[str, Change] = {}
"""Code to what makes it appear; it may return options of the look."""


def makes(code: str) -> t.Callable[[Change], Change]:
    """Register a change for a code."""

    def register(change: Change) -> Change:
        SCENARIOS[code] = change
        return change

    return register


@makes("cdi_off")
def cdi_off(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.containerd(conf.CONTAINERD_1_7, "1.7.24")


@makes("cdi_unknown")
def cdi_unknown(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.containerd(OLD_FILE, None)


@makes("runtime_version_unknown")
def runtime_version_unknown(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.containerd(conf.CONTAINERD_2, None)


@makes("runtime_too_old")
def runtime_too_old(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.containerd(OLD_FILE, "1.6.2")


@makes("runtime_configuration_unreadable")
def runtime_configuration_unreadable(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.containerd("version = \n")


@makes("runtime_ambiguous")
def runtime_ambiguous(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.process(51, ["/usr/bin/crio"])


@makes("runtime_not_found")
def runtime_not_found(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.stop(50)
    (node.root / "usr/bin/containerd").unlink()
    shutil.rmtree(node.root / "etc/containerd")


@makes("cri_disabled")
def cri_disabled(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.containerd(conf.DOCKER_PACKAGE)


@makes("kubelet_not_found")
def kubelet_not_found(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.no_kubelet()


@makes("kubelet_not_running")
def kubelet_not_running(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.stop(40)


@makes("kubelet_version_unknown")
def kubelet_version_unknown(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.kubelet(version=None)


@makes("kubelet_too_old")
def kubelet_too_old(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.kubelet(version="1.24.1")


@makes("kubelet_prepares_too")
def kubelet_prepares_too(_node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    """A node that is ready for the mode observe is not for manage."""


@makes("kubelet_root_ambiguous")
def kubelet_root_ambiguous(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.process(41, ["kubelet", "--root-dir=/other"])


@makes("kubelet_root_differs")
def kubelet_root_differs(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> Json:
    return {"kubelet_root": str(node.directory("/other"))}


@makes("kubelet_configuration_unreadable")
def kubelet_configuration_unreadable(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.file(CONFIGURATION, "[")


@makes("gate_off")
def gate_off(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.kubelet(version="1.33.1")


@makes("gate_unknown")
def gate_unknown(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.kubelet(version=None)


@makes("gate_off_in_target")
def gate_off_in_target(_node: MadeUpNode, _patch: pytest.MonkeyPatch) -> Json:
    return {"target_version": "1.33"}


@makes("gate_refused")
def gate_refused(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> Json:
    node.file(CONFIGURATION, f"featureGates: {{{DRA}: false}}")
    return {"target_version": "1.35"}


@makes("driver_in_other_root")
def driver_in_other_root(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.driver(root="/var/lib/k0s/kubelet")


@makes("registry_missing")
def registry_missing(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    (node.root / "var/lib/kubelet/plugins_registry").rmdir()


@makes("socket_path_too_long")
def socket_path_too_long(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.driver("d" * 90)


@makes("socket_path_too_long_in_update")
def socket_path_too_long_in_update(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.driver("d" * 28)


@makes("socket_room_small")
def socket_room_small(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.kubelet("--root-dir=/var/snap/microk8s/common/var/lib/kubelet")


@makes("device_plugin_overlap")
def device_plugin_overlap(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.driver(DRIVER)
    node.file("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", RECORD)


@makes("device_plugin_state_unreadable")
def device_plugin_state_unreadable(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.file("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", "{")


@makes("directory_unsafe")
def directory_unsafe(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    (node.root / "var/lib/kubelet/plugins_registry").chmod(0o777)


@makes("directory_not_writable")
def directory_not_writable(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    (node.root / "var/lib/nodeops-dra").rmdir()
    node.file("/var/lib/nodeops-dra", "a file")


@makes("disk_full")
def disk_full(_node: MadeUpNode, patch: pytest.MonkeyPatch) -> None:
    real = os.statvfs

    def full(path: str) -> os.statvfs_result:
        fields = list(real(path))
        fields[4] = 0  # f_bavail
        return os.statvfs_result(fields)

    patch.setattr(os, "statvfs", full)


@makes("not_root")
def not_root(_node: MadeUpNode, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(os, "geteuid", lambda: 4242)


@makes("selinux_enforcing")
def selinux_enforcing(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.file("/sys/fs/selinux/enforce", "1")


@makes("python_missing")
def python_missing(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    (node.root / "usr/bin/python3.12").unlink()
    node.program("/usr/bin/python3.9", "3 9 18 1 1")


@makes("venv_missing")
def venv_missing(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    node.program("/usr/bin/python3.12", "3 12 3 1 0")


@makes("systemd_missing")
def systemd_missing(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    (node.root / "run/systemd/system").rmdir()


@makes("cgroup_v1")
def cgroup_v1(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    (node.root / "sys/fs/cgroup/cgroup.controllers").unlink()
    node.directory("/sys/fs/cgroup/memory")


@makes("run_survives")
def run_survives(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    (node.proc / "self/mountinfo").write_text("20 1 8:1 / / rw - ext4 /dev/sda1 rw\n")


@makes("var_run_differs")
def var_run_differs(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    (node.root / "var/run").unlink()
    node.directory("/var/run/cdi")


@makes("clock_unsynchronised")
def clock_unsynchronised(_node: MadeUpNode, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(machine, "clock_synchronised", lambda: False)


@makes("clock_wrong")
def clock_wrong(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    file = node.file("/var/lib/nodeops-dra/dra_manager_state", crc_file().decode())
    tomorrow = time.time() + 86400
    os.utime(file, (tomorrow, tomorrow))


@makes("state_before_boot")
def state_before_boot(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    file = node.file("/var/lib/kubelet/dra_manager_state", crc_file(crc_claim()).decode())
    before = time.time() - UPTIME - 86400
    os.utime(file, (before, before))


@makes("look_failed")
def look_failed(node: MadeUpNode, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(node.proc)


@pytest.mark.parametrize("code", CODES)
def test_every_code_can_be_found(code: str, node: MadeUpNode, monkeypatch: pytest.MonkeyPatch) -> None:
    options = SCENARIOS[code](node, monkeypatch) or {}
    modes = [mode for mode in ("observe", "manage", "none") if mode in CODES[code].modes]
    result = node.look(modes[0], **options)
    found = [one for one in result["findings"] if one["code"] == code]
    assert found, [one["code"] for one in result["findings"]]
    for one in found:
        assert one["severity"] == CODES[code].severity
        assert one["place"]
        assert one["remedy"]
        assert one["text"].endswith(".")
        assert "{" not in one["text"]
    assert (found[0] in result["blockers"]) is (CODES[code].severity == "error")
    assert result["ready"] is (not result["blockers"])


@pytest.mark.parametrize("code", [code for code, one in CODES.items() if one.modes != ALWAYS])
def test_what_is_as_it_should_be_in_a_mode_is_not_told(
    code: str, node: MadeUpNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = SCENARIOS[code](node, monkeypatch) or {}
    for mode in ("manage", "observe", "none"):
        found = [one["code"] for one in node.look(mode, **options)["findings"]]
        assert (code in found) is (mode in CODES[code].modes), mode


def test_no_scenario_is_for_a_code_that_is_gone() -> None:
    assert set(SCENARIOS) == set(CODES)


def test_an_accepted_code_is_told_and_no_blocker(node: MadeUpNode) -> None:
    node.containerd(conf.CONTAINERD_1_7, "1.7.24")
    result = node.look(accept=["cdi_off"])
    assert the(result, "cdi_off")["severity"] == "error"
    assert not [one for one in result["blockers"] if one["code"] == "cdi_off"]


def test_the_guide_explains_every_code_in_the_words_of_the_table() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    explained = re.findall(r"^   \* - ``([a-z0-9_]+)``$", text, re.MULTILINE)
    assert explained == sorted(CODES)
    for code, one in CODES.items():
        modes = "always" if one.modes == ALWAYS else ", ".join(sorted(one.modes))
        assert f"   * - ``{code}``\n     - {one.severity}\n     - {modes}\n     - {one.meaning}\n" in text, code
