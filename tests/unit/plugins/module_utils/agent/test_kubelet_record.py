# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which entries a kubelet's state file has lost, and what is still known of them."""

from __future__ import annotations

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.selection import Selection
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.statefile import Request, change, inspect, locate
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Json, Node, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim, device, pod


def phase(uid: str, value: str, *claims: str) -> Json:
    return {**pod(uid, *claims), "status": {"phase": value}}


def lost(node: Node, one: Json, *pods: Json, node_name: str = "node-1") -> Json | None:
    """What is said of the claim u-1."""
    result = node.look(claims=[one], pods=list(pods), node_name=node_name)
    found: dict[str, Json | None] = {item["uid"]: item["lost_record"] for item in result["claims"]}
    return found.get("u-1")


@pytest.mark.report("F052")
def test_an_entry_that_is_lost_is_made_of_the_api_and_the_cdi_file(node: Node) -> None:
    node.kubelet_has()
    node.spec("u-1")
    record = lost(node, claim(), phase("p-1", "Running", "c1"))
    (kept,) = inspect(locate(str(node.kubelet_has(recorded()))))["claims"]
    assert record is not None
    assert record | {"drivers": None} == {key: kept[key] for key in record} | {"drivers": None}
    (made,), (real,) = record["drivers"], kept["drivers"]
    assert [one["cdi_devices"] for one in made["devices"]] == [one["cdi_devices"] for one in real["devices"]]
    assert [(one["pool"], one["device"]) for one in made["devices"]] == [("pool-0", "dev-0")]


def test_the_module_for_the_file_takes_what_is_said(node: Node) -> None:
    path = node.kubelet_has()
    node.spec("u-1")
    record = lost(node, claim(), phase("p-1", "Running", "c1"))
    assert record is not None
    done = change(locate(str(path)), Request(state="repaired", selection=Selection(add=[record])), check=False)
    assert done["changed"]
    assert lost(node, claim(), phase("p-1", "Running", "c1")) is None
    assert inspect(locate(str(path)))["status"] == "sound"


def test_several_devices_get_the_names_that_are_their_own(node: Node) -> None:
    node.kubelet_has()
    node.spec("u-1", "dev-0", "dev-1")
    record = lost(node, claim("c1", "u-1", device("dev-0"), device("dev-1")), phase("p-1", "Running", "c1"))
    assert record is not None
    assert [(one["device"], one["cdi_devices"]) for one in record["drivers"][0]["devices"]] == [
        ("dev-0", [f"k8s.{GPU}/claim=u-1-dev-0"]),
        ("dev-1", [f"k8s.{GPU}/claim=u-1-dev-1"]),
    ]


def test_devices_whose_names_nobody_knows_are_left_to_the_driver(node: Node) -> None:
    node.kubelet_has()
    record = lost(node, claim(), phase("p-1", "Running", "c1"))
    assert record is not None
    assert record["drivers"] == [{"name": GPU, "devices": None}]


@pytest.mark.parametrize(
    ("one", "pods"),
    [
        pytest.param(claim(), [phase("p-1", "Pending", "c1")], id="never prepared"),
        pytest.param(claim(), [phase("p-1", "Succeeded", "c1")], id="pod has ended"),
        pytest.param(claim(), [], id="pod of another node"),
        pytest.param(claim(pods=()), [phase("p-1", "Running")], id="not reserved"),
    ],
)
def test_nothing_is_missing(node: Node, one: Json, pods: list[Json]) -> None:
    node.kubelet_has()
    assert lost(node, one, *pods) is None


def test_nothing_is_said_without_the_name_of_the_node_or_of_what_the_kubelet_has(node: Node) -> None:
    running = phase("p-1", "Running", "c1")
    node.kubelet_has()
    node.spec("u-1")
    assert lost(node, claim(), running, node_name="") is None
    node.kubelet_has(recorded())
    assert lost(node, claim(), running) is None
