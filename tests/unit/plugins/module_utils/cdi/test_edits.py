# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a container gets, merged as the CDI library does it."""

from __future__ import annotations

import os
import pathlib

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.cdi.edits import host_path_findings, merge_edits


def test_later_variable_replaces_the_earlier_in_its_place() -> None:
    assert merge_edits([{"env": ["A=1", "B=1"]}, {"env": ["A=2", "C=x=y"]}]).env == ("A=2", "B=1", "C=x=y")


def test_later_node_of_the_same_path_replaces_the_earlier() -> None:
    merged = merge_edits(
        [
            {"deviceNodes": [{"path": "/dev/a", "permissions": "r"}, {"path": "/dev/b", "type": "p"}]},
            {
                "deviceNodes": [
                    {"path": "/dev/a", "hostPath": "/dev/x", "type": "c"},
                    {"path": "/dev/c", "permissions": "none"},
                ]
            },
        ]
    )
    assert merged.device_nodes == (
        {"path": "/dev/b", "hostPath": "/dev/b", "type": "p"},
        {"path": "/dev/a", "hostPath": "/dev/x", "type": "c", "permissions": "rwm"},
        {"path": "/dev/c", "hostPath": "/dev/c", "permissions": "none"},
    )


def test_mounts_are_replaced_by_path_and_ordered_by_depth() -> None:
    mounts = [
        {"hostPath": "/1", "containerPath": "/a/b/c"},
        {"hostPath": "/2", "containerPath": "/z"},
        {"hostPath": "/3", "containerPath": "/a/b"},
        {"hostPath": "/4", "containerPath": "/z/"},
        {"hostPath": "/5", "containerPath": "/z"},
        {"hostPath": "/6", "containerPath": "//y"},
        {"hostPath": "/7", "containerPath": "relative"},
    ]
    assert [m["hostPath"] for m in merge_edits([{"mounts": mounts}]).mounts] == ["/7", "/4", "/5", "/6", "/3", "/1"]


def test_the_rest() -> None:
    hook = {"hookName": "poststop", "path": "/x"}
    merged = merge_edits(
        [
            {"hooks": [hook], "additionalGids": [0, 5, 6], "intelRdt": {"closID": "a"}},
            {"netDevices": [{"hostInterfaceName": "eth1", "name": "a"}]},
            {
                "hooks": [hook],
                "additionalGids": [6, 7],
                "intelRdt": {},
                "netDevices": [{"hostInterfaceName": "eth1", "name": "b"}],
            },
        ]
    )
    assert merged.to_dict() == {
        "env": [],
        "deviceNodes": [],
        "mounts": [],
        "hooks": [hook, hook],
        "netDevices": [{"hostInterfaceName": "eth1", "name": "b"}],
        "intelRdt": {},
        "additionalGids": [5, 6, 7],
    }


def test_nothing_gives_nothing() -> None:
    assert merge_edits([]).to_dict()["intelRdt"] is None


def test_inputs_stay_as_they_are() -> None:
    node = {"path": "/dev/a"}
    merge_edits([{"deviceNodes": [node]}])
    assert node == {"path": "/dev/a"}


@pytest.mark.report("F109")
def test_what_the_host_lacks(tmp_path: pathlib.Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "file").write_text("")
    os.mkfifo(tmp_path / "dev" / "pipe")
    (tmp_path / "lib").mkdir()
    merged = merge_edits(
        [
            {
                "deviceNodes": [
                    {"path": "/dev/gone"},
                    {"path": "/dev/file"},
                    {"path": "/dev/pipe"},
                    {"path": "/dev/x", "hostPath": "/dev/pipe", "type": "c"},
                    {"path": "/dev/made", "type": "c", "major": 195},
                    {"path": "/dev/fifo", "type": "p"},
                ],
                "mounts": [
                    {"hostPath": "/lib", "containerPath": "/a"},
                    {"hostPath": "/lib64", "containerPath": "/b"},
                    {"hostPath": "tmpfs", "containerPath": "/c", "type": "tmpfs"},
                ],
                "hooks": [{"hookName": "poststop", "path": "/usr/bin/gone"}, {"hookName": "poststop", "path": "/lib"}],
            }
        ]
    )
    found = [(f.place, f.text.split(" on this host")[0]) for f in host_path_findings(merged, str(tmp_path))]
    assert found == [
        ("/dev/gone", "The device node /dev/gone does not exist"),
        ("/dev/file", "The device node /dev/file is not a device node"),
        ("/dev/pipe", "The device node /dev/pipe is of type p, the spec says c"),
        ("/lib64", "The mount source /lib64 does not exist"),
        ("/usr/bin/gone", "The hook program /usr/bin/gone does not exist"),
    ]
    assert {f.code for f in host_path_findings(merged, str(tmp_path))} == {"cdi_host_path_missing"}


def test_nodes_of_this_machine_are_found() -> None:
    merged = merge_edits([{"deviceNodes": [{"path": "/dev/null"}, {"path": "/dev/zero", "type": "c"}]}])
    assert host_path_findings(merged) == []
