# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What nodeops.dra.claim_info says when it compares the files of a node with the API."""

from __future__ import annotations

import pytest
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Json, Node, codes, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim, device, pod


def phase(uid: str, value: str, *claims: str) -> Json:
    return {**pod(uid, *claims), "status": {"phase": value}}


def waiting(result: Json) -> dict[str, str]:
    return {one["uid"]: one["waits_for"] for one in result["claims"]}


@pytest.mark.report("F095")
def test_all_is_well(node: Node) -> None:
    node.kubelet_has(recorded())
    node.spec("u-1")
    result = node.look(claims=[claim()], pods=[phase("p-1", "Running")])
    (one,) = result["claims"]
    assert (one["in_api"], one["waits_for"], result["findings"]) == (True, "", [])
    assert one["pods"] == [
        {"uid": "p-1", "name": "name-of-p-1", "phase": "Running", "alive": True, "deleting_since": None}
    ]


@pytest.mark.report("F053")
def test_entries_of_deleted_claims(node: Node) -> None:
    """u-1: claim and pod are gone; u-2: made anew under its name; u-3: its pod is alive."""
    node.kubelet_has(
        recorded("u-1", "c1", "dev-1", pods=("p-1",)),
        recorded("u-2", "c2", "dev-2", pods=("p-2",)),
        recorded("u-3", "c3", "dev-3", pods=("p-3",)),
    )
    for uid in ("u-1", "u-2", "u-3"):
        node.spec(uid, uid.replace("u", "dev"))
    result = node.look(
        claims=[claim("c2", "u-20", device("dev-2"), pods=()), claim("c3", "u-3", device("dev-3"), pods=("p-3",))],
        pods=[phase("p-3", "Running", "c3")],
    )
    assert {uid: codes(result, uid) for uid in ("u-1", "u-2", "u-3")} == {
        "u-1": ["claim_orphaned"],
        "u-2": ["claim_replaced"],
        "u-3": [],
    }
    assert waiting(result) == {"u-1": "unprepare", "u-2": "unprepare", "u-3": ""}
    replaced = next(one for one in result["findings"] if one["code"] == "claim_replaced")
    assert replaced["facts"]["new_uid"] == "u-20"
    assert "u-20" in replaced["text"]
    for finding in result["findings"]:
        assert f"state_directory={node.root}" in finding["remedy"], "ours to release only in the kubelet's own file"


def test_the_remedy_for_what_our_manager_holds(node: Node) -> None:
    node.manager_has(recorded())
    node.spec("u-1")
    result = node.look(claims=[], pods=[])
    orphaned = next(one for one in result["findings"] if one["code"] == "claim_orphaned")
    assert orphaned["remedy"].endswith("nodeops.dra.claim (state=unprepared).")


@pytest.mark.parametrize("made", [[], [claim(pods=())]], ids=["never in the API", "in the API"])
def test_the_claim_of_a_running_service_is_not_taken_from_it(node: Node, made: list[Json]) -> None:
    """Of a holder that is no pod the API knows nothing, so that it knows no such pod says nothing."""
    node.manager_has(recorded(pods=("holder:training.service",)))
    node.spec("u-1")
    result = node.look(claims=made, pods=[])
    (one,) = result["claims"]
    assert one["pods"] == [
        {"uid": "holder:training.service", "name": None, "phase": None, "alive": None, "deleting_since": None}
    ]
    assert "unprepare" not in one["waits_for"]
    found = [item for item in result["findings"] if item["code"] != "claim_needs_prepare"]
    assert [(item["code"], item["severity"]) for item in found] == ([] if made else [("claim_not_in_api", "info")])
    assert all("holder training.service" in item["text"] for item in found)


@pytest.mark.report("F052")
def test_a_claim_in_all_but_the_api(node: Node) -> None:
    node.kubelet_has(recorded())
    node.driver_has("u-1")
    node.spec("u-1")
    result = node.look(claims=[], pods=[phase("p-1", "Running")])
    assert result["claims"][0]["in_api"] is False
    assert codes(result) == ["claim_not_in_api"]
    assert codes(node.look(claims=[], pods=[])) == ["claim_orphaned"]


@pytest.mark.report("F052")
def test_a_claim_of_the_api_with_cdi_files_that_nobody_recorded(node: Node) -> None:
    node.spec("u-1")
    result = node.look(claims=[claim()], pods=[])
    (one,) = result["claims"]
    assert (one["name"], one["source"], codes(result)) == ("c1", "api", ["claim_not_recorded"])


@pytest.mark.report("F117")
def test_an_orphan_that_the_api_does_not_know_either(node: Node) -> None:
    node.spec("u-77")
    result = node.look(claims=[claim()], pods=[])
    assert codes(result) == ["orphan_cdi"]
    assert "which no state file and no API server knows" in result["findings"][0]["text"]


@pytest.mark.parametrize("value", ["Succeeded", "Failed"])
def test_a_claim_whose_pods_have_ended(node: Node, value: str) -> None:
    node.kubelet_has(recorded())
    node.spec("u-1")
    result = node.look(claims=[claim()], pods=[phase("p-1", value)])
    assert codes(result) == ["pods_gone"]
    assert waiting(result) == {"u-1": "unprepare"}


def test_a_claim_that_is_being_deleted(node: Node) -> None:
    node.kubelet_has(recorded())
    node.spec("u-1")
    deleted = claim()
    deleted["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    result = node.look(claims=[deleted], pods=[phase("p-1", "Running")])
    (found,) = result["findings"]
    assert (found["code"], found["facts"]["since"]) == ("claim_deleting", "2026-01-02T03:04:05Z")


@pytest.mark.parametrize("broken", [{"allocation": {"devices": {"results": []}}}, {"allocation": "yes"}])
def test_an_object_that_cannot_be_understood(node: Node, broken: Json) -> None:
    node.kubelet_has(recorded())
    node.spec("u-1")
    result = node.look(claims=[claim(**broken)], pods=[phase("p-1", "Running")])
    assert codes(result) == ["claim_malformed"]
    assert "team-a/c1" in result["findings"][0]["text"]


@pytest.mark.report("F003")
@pytest.mark.parametrize("admin", [True, False])
def test_only_the_api_knows_of_admin_access(node: Node, admin: bool) -> None:
    node.kubelet_has(recorded(), recorded("u-2", "c2", "dev-0", pods=("p-2",)))
    node.spec("u-1")
    node.spec("u-2")
    monitor = claim("c2", "u-2", device("dev-0", adminAccess=admin), pods=("p-2",))
    result = node.look(claims=[claim(), monitor], pods=[phase("p-1", "Running"), phase("p-2", "Running", "c2")])
    found = [(one["code"], one["severity"]) for one in result["findings"]]
    assert found == ([] if admin else [("device_held_twice", "error")])


# Claims that wait for this node


@pytest.mark.parametrize(
    ("made", "step"),
    [
        pytest.param(claim(allocation=None, reservedFor=[]), "allocation by the scheduler", id="not allocated"),
        pytest.param(claim(pods=()), "reservation for its pod", id="not reserved"),
        pytest.param(claim(), "prepare on this node", id="ready"),
        pytest.param(claim(allocation={}), "", id="malformed"),
    ],
)
def test_the_step_that_a_claim_of_a_pod_of_this_node_waits_for(node: Node, made: Json, step: str) -> None:
    pods = [phase("p-1", "Pending")]
    result = node.look(claims=[made, claim("c9", "u-9")], pods=pods, node_name="node-1")
    assert waiting(result)["u-1"] == step
    assert node.look(claims=[made], pods=pods)["claims"] == [], "whose pods these are is not known"
    ended = node.look(claims=[made], pods=[phase("p-1", "Failed")], node_name="node-1")
    assert ended["claims"] == [], "nothing waits any more"


@pytest.mark.report("F033")
def test_a_claim_that_waits_for_a_driver_that_is_gone(node: Node) -> None:
    result = node.look(claims=[claim()], pods=[phase("p-1", "Pending")], node_name="node-1", registered={})
    assert codes(result, "u-1") == ["driver_missing"]
    assert waiting(result) == {"u-1": "its driver to come back"}


def test_a_pod_of_another_node_may_be_alive(node: Node) -> None:
    shared = claim(pods=("p-1", "p-2"))
    result = node.look(claims=[shared], pods=[phase("p-1", "Pending")], node_name="node-1")
    assert [(one["uid"], one["alive"]) for one in result["claims"][0]["pods"]] == [("p-1", True), ("p-2", None)]


def test_a_pod_whose_claims_are_not_made_yet_is_no_obstacle(node: Node) -> None:
    early = phase("p-2", "Pending")
    early["spec"]["resourceClaims"] = [{"name": "ref", "resourceClaimTemplateName": "t"}]
    result = node.look(claims=[claim()], pods=[early, phase("p-1", "Pending")], node_name="node-1")
    assert waiting(result) == {"u-1": "prepare on this node"}
    assert result["claims"][0]["drivers"] == [{"name": GPU, "devices": None}]
