# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What nodeops.dra.claim_info says of the files of a node: every claim with who knows it, and every contradiction."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.claims import Device
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Json, Node, codes, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.checkpoint import vectors
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import NIC

WHO = ("in_manager", "in_kubelet", "in_drivers", "in_cdi", "in_api")


def known_by(result: Json) -> dict[str, dict[str, object]]:
    """UID to who knows the claim, CDI files by their number."""
    return {
        one["uid"]: {key: len(one[key]) if key == "in_cdi" else one[key] for key in WHO} for one in result["claims"]
    }


def test_an_empty_node_has_nothing_to_tell(node: Node) -> None:
    node.cdi.mkdir()
    tree = node.tree()
    assert node.look() == {"claims": [], "findings": []}
    assert node.tree() == tree


# Who knows what


@pytest.mark.report("F052")
def test_a_claim_that_all_files_know(node: Node) -> None:
    node.kubelet_has(recorded())
    node.manager_has(recorded())
    node.driver_has("u-1")
    node.spec("u-1")
    assert known_by(node.look()) == {
        "u-1": {"in_manager": True, "in_kubelet": True, "in_drivers": [GPU], "in_cdi": 1, "in_api": None}
    }


@pytest.mark.report("F052")
def test_a_claim_that_only_the_checkpoint_knows(node: Node) -> None:
    node.kubelet_has(recorded())
    node.driver_has()
    result = node.look()
    assert known_by(result)["u-1"] == {
        "in_manager": False,
        "in_kubelet": True,
        "in_drivers": [],
        "in_cdi": 0,
        "in_api": None,
    }
    assert codes(result, "u-1") == ["cdi_unresolved", "claim_unknown_to_driver"]
    assert result["claims"][0]["waits_for"] == "its CDI files"


@pytest.mark.report("F052", "F117")
def test_a_claim_that_only_cdi_files_know(node: Node) -> None:
    path = node.spec("u-77")
    result = node.look()
    (claim,) = result["claims"]
    assert (claim["uid"], claim["name"], claim["source"], claim["in_cdi"]) == ("u-77", "", "cdi", [str(path)])
    assert (claim["drivers"], claim["pods"], claim["waits_for"]) == ([], [], "")
    assert known_by(result)["u-77"]["in_kubelet"] is False
    assert codes(result, "u-77") == codes(result) == ["orphan_cdi"]
    assert "which no state file knows" in result["findings"][0]["text"], "the API was not asked"


@pytest.mark.report("F117")
def test_cdi_files_of_a_prepared_claim_are_no_orphans(node: Node) -> None:
    node.manager_has(recorded("u-77"))
    node.spec("u-77")
    assert "orphan_cdi" not in codes(node.look())


@pytest.mark.report("F052")
def test_a_claim_that_only_a_driver_knows(node: Node) -> None:
    node.driver_has("u-9")
    result = node.look()
    (claim,) = result["claims"]
    assert (claim["uid"], claim["source"], claim["in_drivers"]) == ("u-9", f"driver {GPU}", [GPU])
    assert codes(result, "u-9") == ["claim_only_in_driver"]


@pytest.mark.report("F095")
def test_devices_that_only_a_driver_knows_are_told(node: Node) -> None:
    folder = node.root / "plugins" / "gpu.example.com"
    folder.mkdir(parents=True)
    (folder / "checkpoint.json").write_bytes(vectors.read("dra-example-driver/v0.1-v0.2/one_claim.json"))
    (claim,) = node.look()["claims"]
    (driver,) = claim["drivers"]
    assert driver["name"] == "gpu.example.com"
    assert sorted(driver["devices"][0]) == ["cdi_devices", "device", "pool", "requests", "share_id"]
    assert driver["devices"][0]["device"]
    assert claim["cdi_devices"] == driver["devices"][0]["cdi_devices"] != []


@pytest.mark.report("F095")
def test_two_claims_with_three_devices_one_of_them_shared(node: Node) -> None:
    shared = Device("pool-0", "dev-2", ("r1",), ("example.com/gpu=dev-2",))
    first = recorded("u-1", "c1", "dev-0")
    second = recorded("u-2", "c2", "dev-1", pods=("p-3", "p-2"))
    first = dataclasses.replace(
        first, drivers={GPU: (*(first.drivers[GPU] or ()), dataclasses.replace(shared, share_id="s-1"))}
    )
    second = dataclasses.replace(
        second, drivers={GPU: (dataclasses.replace(shared, share_id="s-2"), *(second.drivers[GPU] or ()))}
    )
    node.manager_has(second, first)
    result = node.look()

    rows = [
        (one["name"], driver["name"], device["pool"], device["device"], device["share_id"], device["requests"])
        for one in result["claims"]
        for driver in one["drivers"]
        for device in driver["devices"]
    ]
    assert rows == [
        ("c1", GPU, "pool-0", "dev-0", None, ["r0"]),
        ("c1", GPU, "pool-0", "dev-2", "s-1", ["r1"]),
        ("c2", GPU, "pool-0", "dev-2", "s-2", ["r1"]),
        ("c2", GPU, "pool-0", "dev-1", None, ["r0"]),
    ]
    assert [[pod["uid"] for pod in one["pods"]] for one in result["claims"]] == [["p-1"], ["p-2", "p-3"]]
    assert [one["source"] for one in result["claims"]] == ["manager"] * 2
    assert [one["prepared"] for one in result["claims"]] == [False] * 2, "nobody knows in which boot that was"
    assert result["claims"][0]["device_arguments"] == [
        f"--device=k8s.{GPU}/claim=u-1-dev-0",
        "--device=example.com/gpu=dev-2",
    ]
    assert "device_held_twice" not in codes(result), "shares exclude nobody"


@pytest.mark.parametrize("folder", ["1.27", "1.28-1.29", "1.30", "1.31-1.34", "1.35-1.36"])
def test_claims_of_every_release_of_the_kubelet(node: Node, folder: str) -> None:
    (node.root / "dra_manager_state").write_bytes(vectors.read(f"{folder}/one_claim_one_device.json"))
    (claim,) = node.look()["claims"]
    assert (claim["source"], claim["name"], len(claim["cdi_devices"])) == ("kubelet", "claim-1", 1)


# Contradictions


@pytest.mark.report("F003")
@pytest.mark.parametrize("second", ["manager", "kubelet"])
def test_a_device_that_two_claims_hold(node: Node, second: str) -> None:
    one, two = recorded("u-1", "c1", "dev-0"), recorded("u-2", "c2", "dev-0")
    if second == "manager":
        node.manager_has(one, two)
    else:
        node.manager_has(one)
        node.kubelet_has(two)
    result = node.look()
    (found,) = [finding for finding in result["findings"] if finding["code"] == "device_held_twice"]
    assert found["facts"] == {"claim_uid": "u-2", "device": f"{GPU}/pool-0/dev-0", "other_uid": "u-1"}
    for part in (f"{GPU}/pool-0/dev-0", "team-a/c1 (u-1)", "team-a/c2 (u-2)"):
        assert part in found["text"], part
    assert all("device_held_twice" in one["findings"] for one in result["claims"])
    # The kubelet does not record admin access: only the API could tell.
    assert found["severity"] == ("error" if second == "manager" else "warning")


def test_a_claim_of_both_is_no_device_held_twice(node: Node) -> None:
    node.manager_has(recorded())
    node.kubelet_has(recorded())
    assert "device_held_twice" not in codes(node.look())


@pytest.mark.report("F109")
def test_a_cdi_name_that_does_not_resolve(node: Node) -> None:
    node.kubelet_has(recorded())
    node.spec("u-1", "dev-7")
    result = node.look()
    (found,) = [finding for finding in result["findings"] if finding["code"] == "cdi_unresolved"]
    assert f"k8s.{GPU}/claim=u-1-dev-0" in found["text"]
    assert f"k8s.{GPU}/claim=u-1-dev-7" in found["text"], "what is there instead"
    assert str(node.cdi) in found["text"]
    node.spec("u-1", "dev-0")
    assert codes(node.look()) == []


@pytest.mark.report("F050")
def test_a_claim_of_an_earlier_boot_needs_to_be_prepared_again(node: Node) -> None:
    node.manager_has(recorded())
    node.spec("u-1")
    result = node.look()
    assert codes(result, "u-1") == ["claim_needs_prepare"]
    assert result["claims"][0]["waits_for"] == "prepare, again after a boot"


def test_a_claim_whose_driver_has_not_answered(node: Node) -> None:
    node.kubelet_has(dataclasses.replace(recorded(), drivers={GPU: None}))
    (claim,) = node.look()["claims"]
    assert claim["drivers"] == [{"name": GPU, "devices": None}]
    assert claim["waits_for"] == "the driver's answer to prepare"


@pytest.mark.report("F001")
@pytest.mark.parametrize(
    ("registered", "text"), [({}, "is not registered"), ({GPU: False}, "is registered but does not answer")]
)
@pytest.mark.parametrize(("holder", "way_out"), [("manager", "state=forgotten"), ("kubelet", "nodeops.dra.checkpoint")])
def test_a_driver_that_is_gone(node: Node, registered: dict[str, bool], text: str, holder: str, way_out: str) -> None:
    (node.manager_has if holder == "manager" else node.kubelet_has)(recorded())
    result = node.look(registered=registered)
    (found,) = [finding for finding in result["findings"] if finding["code"] == "driver_missing"]
    for part in (GPU, "team-a/c1 (u-1)", text):
        assert part in found["text"], part
    assert way_out in found["remedy"]
    assert result["claims"][0]["waits_for"] == "its driver to come back"
    assert "driver_missing" not in codes(node.look(registered={GPU: True, NIC: False}))


# Files that cannot be read: nothing is concluded from what they do not show


def test_a_damaged_file_of_our_manager(node: Node) -> None:
    path = node.manager_has(recorded())
    path.write_bytes(path.read_bytes().replace(b"u-1", b"u-2"))
    node.spec("u-1")
    result = node.look()
    assert codes(result) == ["manager_state_unusable"]
    (claim,) = result["claims"]
    assert (claim["uid"], claim["in_manager"], claim["in_kubelet"]) == ("u-1", None, False)
    assert result["findings"][0]["place"] == str(path)


def test_notes_that_cannot_be_read(node: Node) -> None:
    node.manager_has(recorded())
    (node.state_directory / "dra_manager_notes").write_text("{")
    assert "manager_notes_unusable" in codes(node.look())


def test_a_file_of_the_kubelet_that_cannot_be_read(node: Node) -> None:
    (node.root / "dra_manager_state").mkdir()
    node.spec("u-1")
    node.driver_has("u-9")
    result = node.look()
    assert codes(result) == ["kubelet_state_unreadable"], "nobody is called an orphan"
    assert [one["in_kubelet"] for one in result["claims"]] == [None, None]


@pytest.mark.report("F048")
def test_a_file_that_the_kubelet_refuses(node: Node) -> None:
    path = node.kubelet_has(recorded(), recorded("u-2", "c2", "dev-1"))
    path.write_bytes(path.read_bytes()[:-60])
    node.spec("u-2")
    result = node.look()
    assert "kubelet_state_refused" in codes(result)
    assert "orphan_cdi" not in codes(result), "u-2 may stand in what was cut off"
    found = next(one for one in result["findings"] if one["code"] == "kubelet_state_refused")
    assert str(path) in found["text"]
    assert "nodeops.dra.checkpoint" in found["remedy"]


def test_a_file_of_the_kubelet_with_a_wrong_checksum_still_tells_its_claims(node: Node) -> None:
    path = node.kubelet_has(recorded())
    path.write_bytes(path.read_bytes().replace(b'"Checksum":', b'"Checksum":1'))
    node.spec("u-77")
    result = node.look()
    assert {"kubelet_state_refused", "orphan_cdi"} <= set(codes(result))
    assert known_by(result)["u-1"]["in_kubelet"] is True


def test_a_file_of_a_driver_that_cannot_be_read(node: Node) -> None:
    path = node.driver_has()
    path.unlink()
    path.mkdir()
    node.spec("u-1")
    assert codes(node.look()) == ["driver_state_unreadable"]


def test_a_damaged_file_of_a_driver_proves_nothing_missing(node: Node) -> None:
    node.kubelet_has(recorded())
    node.spec("u-1")
    path = node.driver_has("u-1")
    path.write_bytes(path.read_bytes()[:-40])
    assert "claim_unknown_to_driver" not in codes(node.look())
    assert codes(node.look()), "the damage itself is told"


def test_a_relative_cdi_directory_is_a_finding(node: Node) -> None:
    from ansible_collections.nodeops.dra.plugins.module_utils.agent.sources import read_sources

    sources = read_sources(
        state_directory=str(node.state_directory), kubelet_root=str(node.root), cdi_directories=["cdi"]
    )
    assert [finding.code for finding in sources.findings] == ["cdi_unreadable"]
