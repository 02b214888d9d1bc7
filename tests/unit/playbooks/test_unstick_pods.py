# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The playbook unstick_pods, really run: the driver of two claims is gone."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.statefile import inspect, locate
from ansible_collections.nodeops.dra.plugins.plugin_utils.stuck_report import stuck_report

from .fake_node import FakeNode

Json = dict[str, t.Any]
GOOD = "1.35-1.36/one_claim_one_device.json"


def claim(**changes: t.Any) -> Json:
    """A stuck claim as claim_info returns it."""
    pod = {"uid": "p-1", "name": "training-0", "phase": "Running", "alive": True, "deleting_since": None}
    return {
        "uid": "u-1",
        "namespace": "team-a",
        "name": "training",
        "in_manager": False,
        "in_kubelet": True,
        "findings": ["driver_missing"],
        "drivers": [{"name": "gpu.example.com", "devices": None}],
        "pods": [{**pod, "deleting_since": "2026-01-02T03:04:05Z"}],
        **changes,
    }


@pytest.mark.report("F118")
def test_the_table_says_who_holds_what_since_when() -> None:
    looks = {
        "node-1": {"claims": [claim(), claim(uid="u-2", findings=[])]},
        "node-2": {"msg": "no route", "unreachable": True},
    }
    report = stuck_report(looks)
    text = "\n".join(report["summary"])
    assert "node-1  team-a/training  gpu.example.com  kubelet" in text
    assert "terminating since 2026-01-02T03:04:05Z" in " ".join(text.split())
    assert "node-2: The node cannot be reached: no route" in text
    assert "1 claim on 2 nodes wait for a driver that is gone." in text
    assert max(map(len, report["summary"])) <= 88
    assert report["forget"] == {node: {"manager": [], "kubelet": []} for node in looks}


@pytest.mark.parametrize("text", ["u-1", "team-a/training"])
def test_only_what_is_named_is_forgotten_where_it_is_recorded(text: str) -> None:
    look = {"claims": [claim(in_manager=True), claim(uid="u-2", name="other")]}
    report = stuck_report({"n": look}, [text, "team-a/none"])
    keys = {"uid": "u-1", "namespace": "team-a", "name": "training"}
    assert report["forget"] == {"n": {"manager": [{"metadata": keys}], "kubelet": [keys]}}
    assert report["unknown"] == ["team-a/none"]


@pytest.fixture
def node(tmp_path: pathlib.Path) -> t.Iterator[FakeNode]:
    """A node whose kubelet runs and has a claim of a driver that is not there, as the agent has another one."""
    made = FakeNode(tmp_path, GOOD)
    made.crash_loop()
    (made.root / "plugins_registry").mkdir()
    yield made
    made.end()


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.report("F118")
def test_a_claim_of_the_kubelet_is_shown_and_forgotten_when_it_is_named(node: FakeNode) -> None:
    state = node.folder / "state"
    variables = {
        "unstick_kubelet_root": str(node.root),
        "unstick_state_directory": str(state),
        "repair_target_version": "1.36",
        "repair_settle": 1,
    }
    shown = node.play("unstick_pods", **variables)
    assert shown.status == 0, shown.text
    assert any(line.startswith("node-1  default/claim-1") for line in shown.lines("Show what is stuck")), shown.text
    assert node.file.read_bytes() == node.before
    assert (node.calls, state.exists()) == ([], False)

    wanted = {**variables, "unstick_forget": ["default/claim-1"], "unstick_reason": "The cards were taken out."}
    planned = node.play("unstick_pods", "--check", **wanted)
    assert planned.status == 0, planned.text
    assert "drop_claim" in planned.task("Tell what is to be done")
    assert node.file.read_bytes() == node.before
    assert (node.calls, state.exists()) == ([], False)

    done = node.play("unstick_pods", **wanted)
    assert done.status == 0, done.text
    assert inspect(locate(kubelet_root=str(node.root)))["claims"] == []
    assert node.calls == ["stop", "start"]
    (entry,) = [json.loads(line) for line in (state / "dra_manager_audit.log").read_text().splitlines()]
    assert (entry["name"], entry["reason"]) == ("claim-1", "The cards were taken out.")


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"unstick_forget": ["a/b"]}, "unstick_reason=nothing (expected a text", id="no reason"),
        pytest.param({"unstick_forget": ["a/b"], "unstick_reason": "x"}, "Found no stuck claim a/b", id="not stuck"),
    ],
)
def test_nothing_is_forgotten_by_mistake(given: Json, said: str, node: FakeNode) -> None:
    played = node.play("unstick_pods", unstick_kubelet_root=str(node.root), **given)
    assert played.status == 2
    assert said in " ".join(played.text.split())
    assert node.file.read_bytes() == node.before
    assert node.calls == []
