# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What node_info returns is what it documents, on nodes of all kinds and on this machine."""

from __future__ import annotations

import json
import pathlib
import re
import shlex
import typing as t

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.nodeops.dra.plugins.modules import node_info

from ...test_documentation import ADDED_BY_ANSIBLE, Json, differences
from ..module_utils.agent.preflight.made_up_node import CONFIGURATION, MadeUpNode

RETURN: Json = yaml.safe_load(node_info.RETURN)
OPTIONS: Json = yaml.safe_load(node_info.DOCUMENTATION)["options"]
GUIDE = pathlib.Path(__file__).resolve().parents[4] / "docs" / "docsite" / "rst" / "preflight.rst"
RECORD = '{"Data":{"RegisteredDevices":{"example.com/gpu":["a"]}},"Checksum":1}'


def whole(node: MadeUpNode) -> None:
    """Something of everything."""
    node.driver()
    node.file("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", RECORD)
    node.file(CONFIGURATION, "featureGates: {DRAAdminAccess: true}\n")
    node.program("/usr/bin/podman", "podman version 4.9.4")


def bare(node: MadeUpNode) -> None:
    """Nothing of anything."""
    node.no_kubelet()
    node.stop(50)
    for path in ("usr/bin/containerd", "etc/containerd/config.toml", "usr/bin/python3.12"):
        (node.root / path).unlink()
    (node.root / "var/lib/nodeops-dra").rmdir()


def hidden(node: MadeUpNode) -> None:
    """Much that cannot be told."""
    node.kubelet(version=None)
    node.containerd("version = ", None)
    node.process(41, ["kubelet", "--root-dir=/other"])
    (node.proc / "uptime").unlink()


@pytest.mark.parametrize("mode", ["manage", "observe", "none"])
@pytest.mark.parametrize("change", [whole, bare, hidden], ids=lambda change: change.__name__)
def test_made_up_nodes(change: t.Callable[[MadeUpNode], None], mode: str, tmp_path: pathlib.Path) -> None:
    node = MadeUpNode(tmp_path)
    change(node)
    returned = node.look(mode, target_version="1.35")
    json.dumps(returned)
    assert list(differences({key: returned[key] for key in returned if key not in ADDED_BY_ANSIBLE}, RETURN)) == []


@pytest.mark.parametrize("check", [True, False], ids=["check", "real"])
def test_this_machine(check: bool, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = {"kubelet_root": str(tmp_path), "mode": "none", "_ansible_check_mode": check}
    with patch_module_args(options), pytest.raises(SystemExit):
        node_info.main()
    returned = json.loads(capsys.readouterr().out)
    assert returned["changed"] is False
    assert returned["kubelet"]["root"] == str(tmp_path)
    assert list(differences({key: returned[key] for key in returned if key not in ADDED_BY_ANSIBLE}, RETURN)) == []


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        pytest.param("target_version", "latest", "'latest' is not a Kubernetes version", id="no release"),
        pytest.param("cdi_directories", ["etc/cdi"], "is not an absolute path", id="relative directory"),
        pytest.param("accept", ["cdi_of"], "accept has cdi_of", id="unknown code"),
        pytest.param("kubelet_root", "kubelet", "absolute", id="relative root"),
        pytest.param("state_directory", "state", "absolute", id="relative state directory"),
    ],
)
def test_options_that_cannot_be_used(option: str, value: t.Any, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with patch_module_args({option: value}), pytest.raises(SystemExit):
        node_info.main()
    returned = json.loads(capsys.readouterr().out)
    assert returned["failed"]
    assert said in returned["msg"]


def test_the_guide_uses_options_and_results_that_there_are() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    commands = re.findall(r"^    \$ (ansible .+)$", text, re.MULTILINE)
    assert len(commands) == 2
    used = [word for line in commands for word in shlex.split(shlex.split(line)[-1])]
    given = dict(word.split("=", 1) for word in used)
    blocks = re.findall(r"code-block:: yaml\n\n((?:    .*\n|\n)+)", text)
    tasks = [task for block in blocks for task in yaml.safe_load(block)]
    assert len(tasks) == 3
    for task in tasks:
        given.update(task.get("nodeops.dra.node_info", {}))
    assert set(given) <= {*OPTIONS, "kubelet_root"}
    assert given["mode"] in OPTIONS["mode"]["choices"]
    assert set(re.findall(r"node\.(\w+)", "".join(blocks))) <= set(RETURN)
    named = set(re.findall(r"``([a-z_]+)``", text.partition("What the findings mean")[0]))
    known = {*OPTIONS, *OPTIONS["mode"]["choices"], *RETURN, *RETURN["drivers"]["contains"]}
    assert named <= known
