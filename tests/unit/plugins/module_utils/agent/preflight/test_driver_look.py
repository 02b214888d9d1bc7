# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Drivers as their files show them: sockets and their lengths, claims, CDI specs, and device plugins beside them."""

from __future__ import annotations

import json
import os

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight.device_plugins import is_of_driver
from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight.driver_look import is_kind_of_driver
from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight.sockets import SocketRoom, socket_findings

from ...checkpoint.builders import crc_claim, crc_file
from .made_up_node import DRIVER, MadeUpNode, codes, the

POD = "b0d00001-aaaa-4bbb-8ccc-000000000001"
UID = "c0de0001-1111-4222-8333-000000000001"
SPEC = {
    "cdiVersion": "0.6.0",
    "kind": f"k8s.{DRIVER}/claim",
    "devices": [{"name": f"{UID}-dev-0", "containerEdits": {"env": ["A=b"]}}],
}


def test_a_driver_with_its_sockets(node: MadeUpNode) -> None:
    node.driver()
    node.socket(f"/var/lib/kubelet/plugins_registry/{DRIVER}-{POD}-reg.sock")
    node.socket(f"/var/lib/kubelet/plugins/{DRIVER}/dra-{POD}.sock")
    node.socket("/var/lib/kubelet/plugins_registry/csi.example.com-reg.sock")
    node.socket("/var/lib/kubelet/plugins/csi.example.com/csi.sock")
    result = node.look()
    root = f"{node.root}/var/lib/kubelet"
    assert result["drivers"] == [
        {
            "name": "csi.example.com",
            "is_dra": None,
            "registration_sockets": [f"{root}/plugins_registry/csi.example.com-reg.sock"],
            "service_sockets": [],
            "claims": 0,
            "spec_directories": [],
        },
        {
            "name": DRIVER,
            "is_dra": True,
            "registration_sockets": [
                f"{root}/plugins_registry/{DRIVER}-{POD}-reg.sock",
                f"{root}/plugins_registry/{DRIVER}-reg.sock",
            ],
            "service_sockets": [f"{root}/plugins/{DRIVER}/dra-{POD}.sock", f"{root}/plugins/{DRIVER}/dra.sock"],
            "claims": 0,
            "spec_directories": [],
        },
    ]
    assert codes(result) == []


@pytest.mark.report("F098")
def test_a_driver_below_a_root_that_nobody_watches(node: MadeUpNode) -> None:
    node.driver(root="/var/lib/k0s/kubelet")
    found = the(node.look(), "driver_in_other_root")
    assert found["facts"]["root"] == f"{node.root}/var/lib/kubelet"
    assert all(one.startswith(f"{node.root}/var/lib/k0s/kubelet/") for one in found["facts"]["sockets"])
    assert f"{node.root}/var/lib/kubelet" in found["text"]


def test_a_second_kubelet_watches_its_own_drivers(node: MadeUpNode) -> None:
    node.driver(root="/var/lib/k0s/kubelet")
    node.process(41, ["kubelet", "--root-dir=/var/lib/k0s/kubelet"])
    result = node.look(kubelet_root=f"{node.root}/var/lib/kubelet")
    assert "driver_in_other_root" not in codes(result)


def test_volumes_that_storage_drivers_mount_are_not_searched(node: MadeUpNode) -> None:
    node.socket("/var/lib/kubelet/plugins/kubernetes.io/csi/x.example.com/1/globalmount/dra.sock")
    node.socket("/var/lib/kubelet/plugins/x.example.com/deeper/dra.sock")
    node.file("/var/lib/kubelet/plugins/y.example.com/dra.sock", "no socket")
    assert node.look()["drivers"] == []


# Lengths of sockets


@pytest.mark.report("F026")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("d" * 27, [], id="107 bytes in an update"),
        pytest.param("d" * 28, ["socket_path_too_long_in_update"], id="108 bytes in an update"),
        pytest.param("d" * 64, ["socket_path_too_long_in_update"], id="107 bytes"),
        pytest.param("d" * 65, ["socket_path_too_long"], id="108 bytes"),
        pytest.param("\u00e9" * 14, ["socket_path_too_long_in_update"], id="bytes count, not characters"),
    ],
)
def test_names_of_drivers_that_fit(name: str, expected: list[str]) -> None:
    found = list(socket_findings("/var/lib/kubelet", [name]))
    assert [one.code for one in found] == expected
    for one in found:
        assert one.facts["length"] > one.facts["limit"] == 107
        assert f"{one.facts['length']} bytes" in one.text


@pytest.mark.report("F026")
def test_the_room_below_a_long_root() -> None:
    assert SocketRoom.below("/var/lib/kubelet") == SocketRoom(64, 27)
    microk8s = "/var/snap/microk8s/common/var/lib/kubelet"
    assert SocketRoom.below(microk8s) == SocketRoom(39, 2)
    found = list(socket_findings(microk8s, ["gpu.example.com"]))
    assert [one.code for one in found] == ["socket_path_too_long_in_update", "socket_room_small"]
    assert SocketRoom.below("/" + "x" * 200) == SocketRoom(0, 0)


# Claims and specs


def test_claims_in_use_are_counted_for_each_driver(node: MadeUpNode) -> None:
    node.file("/var/lib/kubelet/dra_manager_state", crc_file(crc_claim(1), crc_claim(2)).decode())
    result = node.look()
    assert [(one["name"], one["claims"], one["registration_sockets"]) for one in result["drivers"]] == [(DRIVER, 2, [])]


@pytest.mark.report("F115")
def test_a_driver_that_writes_where_the_runtime_does_not_look(node: MadeUpNode) -> None:
    node.driver()
    directories = '["/var/cdi/static", "/var/cdi/dynamic"]'
    node.containerd(f'version = 3\n[plugins."io.containerd.cri.v1.runtime"]\ncdi_spec_dirs = {directories}\n')
    node.directory("/var/cdi/static")
    node.directory("/var/cdi/dynamic")
    node.file(f"/run/cdi/k8s.{DRIVER}-claim_{UID}.json", json.dumps(SPEC))
    result = node.look()
    found = the(result, "cdi_directory_mismatch")
    assert (found["severity"], found["facts"]["driver"]) == ("error", DRIVER)
    assert not result["ready"]
    node.file(f"/var/cdi/dynamic/k8s.{DRIVER}-claim_{UID}.json", json.dumps(SPEC))
    assert codes(node.look()) == [], "what it left elsewhere does no harm"


@pytest.mark.report("F115")
def test_run_and_var_run_are_one_where_linked(node: MadeUpNode) -> None:
    node.driver()
    node.file(f"/run/cdi/k8s.{DRIVER}-claim_{UID}.json", json.dumps(SPEC))
    result = node.look()
    assert codes(result) == []
    assert [one["specs"] for one in result["cdi"]["directories"]] == [0, 1]
    assert result["drivers"][0]["spec_directories"] == [f"{node.root}/var/run/cdi"]


@pytest.mark.report("F115", "F116")
def test_directories_of_the_task_that_the_runtime_does_not_read(node: MadeUpNode) -> None:
    etc, run = f"{node.root}/etc/cdi", f"{node.root}/var/run/cdi"
    assert codes(node.look(cdi_directories=[f"{etc}/", f"{run}//."])) == []
    other = str(node.directory("/srv/cdi with blanks"))
    result = node.look(cdi_directories=[etc, run, other + "/"])
    found = the(result, "cdi_directory_mismatch")
    assert (found["severity"], found["place"]) == ("warning", other)
    assert result["ready"]
    # Where one of its specs is read, others of a driver do no harm.
    node.driver()
    for path in ("/run/cdi", "/srv/cdi with blanks"):
        node.file(f"{path}/k8s.{DRIVER}-claim_{UID}.json", json.dumps(SPEC))
    result = node.look(cdi_directories=[etc, run, other])
    assert result["drivers"][0]["spec_directories"] == [run, other]
    assert the(result, "cdi_directory_mismatch")["severity"] == "warning"


@pytest.mark.report("F115")
@pytest.mark.parametrize("missing", [True, False], ids=["missing", "there"])
def test_a_directory_that_drivers_cannot_write(
    node: MadeUpNode, missing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, real = f"{node.root}/var/run", os.access
    if missing:
        (node.root / "run/cdi").rmdir()
    # A read-only file system; root may write everywhere else.
    monkeypatch.setattr(
        os, "access", lambda path, mode: real(path, mode) and not (mode & os.W_OK and str(path).startswith(run))
    )
    result = node.look()
    assert the(result, "cdi_directory_not_writable")["place"] == (run if missing else f"{run}/cdi")
    assert not result["ready"]


def test_a_spec_directory_that_others_can_write(node: MadeUpNode) -> None:
    (node.root / "etc/cdi").chmod(0o777)
    result = node.look()
    assert the(result, "directory_unsafe")["place"] == f"{node.root}/etc/cdi"
    assert not result["ready"]


def test_a_spec_directory_that_is_none(node: MadeUpNode) -> None:
    (node.root / "run/cdi").rmdir()
    node.file("/run/cdi", "a file")
    assert [one["code"] for one in node.look()["blockers"]] == ["directory_not_writable"]


@pytest.mark.report("F112")
def test_a_spec_that_runtimes_refuse_is_told(node: MadeUpNode) -> None:
    node.file("/etc/cdi/x.json", '{"cdiVersion": "0.6.0"}')
    result = node.look()
    assert "cdi_invalid_spec" in codes(result)
    assert result["ready"], "it is the trouble of one driver, not of the node"


@pytest.mark.parametrize(
    ("kind", "driver", "same"),
    [
        ("k8s.gpu.nvidia.com/claim", "gpu.nvidia.com", True),
        ("gpu.example.com/metadata", "gpu.example.com", True),
        ("intel.com/gpu", "gpu.intel.com", True),
        ("nvidia.com/gpu", "compute-domain.nvidia.com", False),
        ("k8s.gpu.nvidia.com/claim", "nvidia.com", False),
    ],
)
def test_whose_a_kind_is(kind: str, driver: str, same: bool) -> None:
    assert is_kind_of_driver(kind, driver) is same


# Device plugins


@pytest.mark.report("F100")
def test_a_device_plugin_beside_a_driver_of_the_same_vendor(node: MadeUpNode) -> None:
    node.driver("gpu.nvidia.test")
    record = {
        "Data": {
            "PodDeviceEntries": [
                {"PodUID": POD, "ContainerName": name, "ResourceName": "nvidia.test/gpu", "DeviceIDs": {"-1": ["a"]}}
                for name in ("one", "two")
            ],
            "RegisteredDevices": {"nvidia.test/gpu": ["a", "b", "c", "d"], "other.test/nic": ["x"]},
        },
        "Checksum": 1,
    }
    node.file("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", json.dumps(record))
    result = node.look()
    assert result["device_plugins"] == [
        {"resource": "nvidia.test/gpu", "devices": 4, "pods": 1},
        {"resource": "other.test/nic", "devices": 1, "pods": 0},
    ]
    found = the(result, "device_plugin_overlap")
    assert found["facts"] == {"driver": "gpu.nvidia.test", "resources": ["nvidia.test/gpu"], "pods": 1}
    assert [one["code"] for one in result["blockers"]] == ["device_plugin_overlap"]
    accepted = node.look(accept=["device_plugin_overlap"])
    assert accepted["ready"]
    assert accepted["findings"] == result["findings"]


@pytest.mark.report("F100")
@pytest.mark.parametrize(
    ("driver", "devices"),
    [
        pytest.param("compute-domain.nvidia.com", ["a"], id="the driver has other devices"),
        pytest.param("gpu.nvidia.com", [], id="the plugin has none left"),
    ],
)
def test_a_device_plugin_that_takes_nothing_from_the_driver(node: MadeUpNode, driver: str, devices: list[str]) -> None:
    node.driver(driver)
    record = {"Data": {"RegisteredDevices": {"nvidia.com/gpu": devices}}, "Checksum": 1}
    node.file("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", json.dumps(record))
    assert codes(node.look()) == []


@pytest.mark.parametrize(
    "text",
    [pytest.param("{", id="no JSON"), pytest.param("[]", id="a list"), pytest.param('{"Data": 7}', id="no data")],
)
def test_a_record_of_device_plugins_that_cannot_be_read(node: MadeUpNode, text: str) -> None:
    node.file("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", text)
    result = node.look()
    assert codes(result) == ["device_plugin_state_unreadable"]
    assert result["device_plugins"] == []


@pytest.mark.parametrize(
    ("resource", "driver", "same"),
    [
        ("nvidia.com/gpu", "gpu.nvidia.com", True),
        ("gpu.intel.com/i915", "gpu.intel.com", True),
        ("amd.com/gpu", "gpu.nvidia.com", False),
        ("dia.com/gpu", "gpu.nvidia.com", False),
        ("com/gpu", "gpu.nvidia.com", False),
        ("cpu", "gpu.nvidia.com", False),
    ],
)
def test_whose_a_resource_is(resource: str, driver: str, same: bool) -> None:
    assert is_of_driver(resource, driver) is same
