# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The playbook upgrade_check: its report, and a run against this machine with a simulated driver."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.statefile import inspect, locate
from ansible_collections.nodeops.dra.plugins.module_utils.resource.release import parse_release
from ansible_collections.nodeops.dra.plugins.plugin_utils.upgrade_report import accepts, api_of_kubelet, upgrade_report

from .runner import LOCAL, play

Json = dict[str, t.Any]
FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "checkpoint"


def answer(tmp_path: pathlib.Path, source: str, *advertised: str, now: str = "1.30.4", target: str = "1.34") -> Json:
    """What a node with that state file and a driver that speaks this answers."""
    file = tmp_path / "dra_manager_state"
    file.write_bytes((FIXTURES / source).read_bytes())
    node = {"ready": True, "blockers": [], "drivers": [{"name": "d"}], "kubelet": {"version": now}}
    drivers = {"drivers": [{"name": "gpu.example.com", "instances": [{"advertised": list(advertised)}]}]}
    return {"node": node, "file": inspect(locate(str(file)), target=target), "drivers": drivers}


def codes(report: Json) -> list[str]:
    return [line.split()[1] for line in report["nodes"]["n"] if line.startswith(("BLOCKER", "note"))]


@pytest.mark.report("F042")
def test_a_file_that_the_new_kubelet_refuses_stands_against_it(tmp_path: pathlib.Path) -> None:
    found = answer(tmp_path, "1.30/one_claim_one_device.json", "v1.DRAPlugin")
    report = upgrade_report({"n": found}, "1.34")
    assert codes(report) == ["file_refused", "api_version"]
    (problem,) = report["problems"]
    assert "state=converted and target_version=1.34" in problem
    assert "FILE_REFUSED, api_version" in " ".join(report["summary"])
    assert max(len(line) for line in [*report["summary"], *report["nodes"]["n"]]) <= 88


@pytest.mark.report("F028")
@pytest.mark.parametrize(
    ("advertised", "target", "found"),
    [
        pytest.param(["v1.DRAPlugin", "v1beta1.DRAPlugin"], "1.34", [], id="helper of 1.34"),
        pytest.param(["v1alpha3.NodeService"], "1.34", ["driver_too_old"], id="helper of 1.32 alone"),
        pytest.param(["1.0.0"], "1.36", ["driver_too_old"], id="helper of 1.31"),
        pytest.param(["1.0.0"], "1.33", ["driver_version_unclear"], id="old and still spoken"),
        pytest.param(["v1.DRAPlugin"], "1.33", ["driver_too_old"], id="not yet spoken"),
    ],
)
def test_what_a_driver_speaks_is_compared_with_the_kubelet_of_the_release(
    advertised: list[str], target: str, found: list[str], tmp_path: pathlib.Path
) -> None:
    given = answer(tmp_path, "1.35-1.36/multi_driver.json", *advertised, now=f"{target}.0", target=target)
    assert codes(upgrade_report({"n": given}, target)) == found


def test_nodes_without_an_answer_are_rows(tmp_path: pathlib.Path) -> None:
    good = answer(tmp_path, "1.35-1.36/multi_driver.json", "v1.DRAPlugin", now="1.34.0")
    gone = {"unreachable": True, "msg": "no route"}
    silent = {**good, "drivers": {"msg": "grpcio is missing"}}
    report = upgrade_report({"n": silent, "gone": {"node": gone, "file": gone, "drivers": gone}, "good": good}, "1.34")
    assert codes(report) == ["drivers_unknown"]
    assert report["problems"] == ["gone: The node cannot be reached: no route"]
    assert "3 nodes for Kubernetes 1.34: 2 ready." in report["summary"][-1]


def test_kubelets_read_claims_and_speak_to_drivers_as_released() -> None:
    versions = {text: api_of_kubelet(parse_release(text)) for text in ("1.27", "1.30", "1.31", "1.33", "1.34", "1.36")}
    assert list(versions.values()) == ["v1alpha2", "v1alpha2", "v1alpha3", "v1beta1", "v1", "v1"]
    assert accepts(parse_release("1.33"), "v1.DRAPlugin") is False
    assert accepts(parse_release("1.32"), "v1alpha3.NodeService") is True


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_playbook_names_the_file_and_changes_nothing(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "kubelet"
    (root / "plugins_registry").mkdir(parents=True)
    file = root / "dra_manager_state"
    file.write_bytes((FIXTURES / "1.30/one_claim_one_device.json").read_bytes())
    before = file.read_bytes()
    variables = {"upgrade_target_version": "1.34", "upgrade_kubelet_root": str(root)}
    played = play("upgrade_check", tmp_path, {"node-1": LOCAL}, "--check", variables=variables)
    assert played.status == 2, played.text
    assert "FILE_REFUSED" in played.task("Show all nodes")
    assert "Not ready for Kubernetes 1.34: node-1" in played.task("Stop if a node is not ready for the release")
    assert played.count("node-1", "changed") == 0
    assert file.read_bytes() == before


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_release_must_be_given(tmp_path: pathlib.Path) -> None:
    played = play("upgrade_check", tmp_path, {"node-1": LOCAL})
    assert played.status == 2
    assert "Found upgrade_target_version=nothing (expected a release such as 1.34)" in played.text
