# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The playbook preflight: really run on this machine, and its report for nodes of every kind."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.plugin_utils.preflight_report import preflight_report

from ..plugins.module_utils.agent.preflight.made_up_node import MadeUpNode
from .runner import LOCAL, UNREACHABLE, play

GONE = {"unreachable": True, "msg": "Failed to connect to the host via ssh:\n  No route to host", "changed": False}
BROKEN = {"failed": False, "msg": "The module is {{ not }} there.", "changed": False}


def made_up(folder: pathlib.Path) -> MadeUpNode:
    """A node with a driver on which nothing is wrong."""
    folder.mkdir()
    node = MadeUpNode(folder)
    node.driver()
    return node


def look_at(node: MadeUpNode) -> dict[str, t.Any]:
    """What node_info returns to root."""
    look = node.look("observe")
    for key in ("blockers", "findings"):
        look[key] = [one for one in look[key] if one["code"] != "not_root"]
    return {**look, "ready": not look["blockers"]}


@pytest.fixture
def looks(tmp_path: pathlib.Path) -> dict[str, dict[str, t.Any]]:
    """A node that is fit, one with a blocker and a warning, one that failed and one that is gone."""
    bad = made_up(tmp_path / "bad")
    bad.containerd("version = 2\n", "1.7.24")
    good = made_up(tmp_path / "good")
    return {"node-1": look_at(good), "node-2": look_at(bad), "node-3": BROKEN, "node-4": GONE}


@pytest.mark.report("F096")
@pytest.mark.report("F110")
def test_every_node_is_a_row_and_every_line_fits(looks: dict[str, t.Any]) -> None:
    report = preflight_report(looks)
    text = "\n".join(report["summary"])
    assert report["failed"] == ["node-2", "node-3", "node-4"]
    row = {line.split()[0]: line for line in report["summary"] if line.startswith("node-")}
    assert "node-4: The node cannot be reached: Failed to connect" in text
    assert " yes " in row["node-1"]
    assert " NO " in row["node-2"]
    assert "CDI_OFF" in row["node-2"]
    assert "OFF" in row["node-2"]
    assert "LOOK FAILED" in text
    assert "UNREACHABLE" in text
    assert "4 nodes: 1 ready, 1 not ready, 1 unreachable, 1 failed." in text
    lines = [*report["summary"], *(line for node in report["nodes"].values() for line in node)]
    assert max(map(len, lines)) <= 88, max(lines, key=len)


def test_the_table_of_a_node_starts_with_its_blockers_and_says_what_to_do(looks: dict[str, t.Any]) -> None:
    report = preflight_report(looks)
    lines = report["nodes"]["node-2"]
    assert lines[0] == "node-2 is NOT ready, 1 blocker (mode observe)"
    head = next(number for number, line in enumerate(lines) if line.startswith("SEVERITY"))
    assert lines[head + 1].split()[:2] == ["BLOCKER", "cdi_off"]
    assert "enable_cdi" in " ".join(lines)
    (problem,) = [text for text in report["problems"] if text.startswith("node-2")]
    assert "CDI is off in containerd 1.7.24" in problem
    assert "enable_cdi = true" in problem
    assert report["nodes"]["node-4"][0].startswith("node-4: The node cannot be reached: Failed to connect")


@pytest.mark.parametrize(
    ("fail_on", "failed"),
    [
        pytest.param("blocker", ["node-2", "node-3", "node-4"], id="blocker"),
        pytest.param("error", ["node-2", "node-3", "node-4"], id="error"),
        pytest.param("never", [], id="never"),
    ],
)
def test_what_fails_is_a_matter_of_choice(looks: dict[str, t.Any], fail_on: str, failed: list[str]) -> None:
    assert preflight_report(looks, fail_on)["failed"] == failed


def test_a_warning_fails_where_warnings_count(tmp_path: pathlib.Path) -> None:
    node = made_up(tmp_path / "node")
    node.stop(40)
    look = look_at(node)
    look["findings"] = [one for one in look["findings"] if one["severity"] == "warning"]
    look["blockers"] = []
    assert look["findings"]
    assert preflight_report({"n": look}, "error")["failed"] == []
    assert preflight_report({"n": look}, "warning")["failed"] == ["n"]


def test_an_unknown_choice_names_the_others() -> None:
    with pytest.raises(DraError, match="fail_on is 'all', expected one of blocker, error, warning, never"):
        preflight_report({}, "all")


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_playbook_shows_this_machine_and_a_node_that_is_gone(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "kubelet"
    root.mkdir()
    hosts = {"node-1": LOCAL, "node-2": UNREACHABLE}
    variables = {"preflight_mode": "none", "preflight_kubelet_root": str(root), "preflight_serial": 1}
    played = play("preflight", tmp_path, hosts, "--check", "--diff", variables=variables)
    assert played.status == 2, played.text
    summary = played.lines("Show all nodes")
    assert summary[0].split() == ["NODE", "READY", "KUBELET", "RUNTIME", "CDI", "GATE", "DRIVERS", "PROBLEMS"]
    assert any(line.startswith("node-2 ") and "UNREACHABLE" in line for line in summary), played.text
    assert any(line.startswith("node-1 is ") for line in played.lines("Show what was found on the node"))
    verdict = played.task("Stop if a node is not fit")
    assert "node-2: The node cannot be reached" in verdict
    assert "preflight_fail_on=blocker" in verdict
    assert played.count("node-1", "changed") == 0
    relaxed = play("preflight", tmp_path, hosts, variables={**variables, "preflight_fail_on": "never"})
    assert relaxed.status == 0, relaxed.text


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_an_inventory_without_nodes_is_told(tmp_path: pathlib.Path) -> None:
    played = play("preflight", tmp_path, {"node-1": LOCAL}, "-e", "preflight_hosts=gpu_nodes")
    assert played.status == 2
    assert "No node of the inventory matches preflight_hosts=gpu_nodes." in played.text
    assert "Put the nodes into a group dra_nodes" in played.text
