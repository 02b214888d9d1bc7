# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Owner and reservation checks (follow TestIsForPod and TestIsReservedForPod of resourceclaim)."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.resource import consumers, ownership, podgroup
from ansible_collections.nodeops.dra.plugins.module_utils.resource.consumers import Obstacle, Verdict
from ansible_collections.nodeops.dra.plugins.module_utils.resource.pod import (
    ClaimNotCreatedError,
    PodClaim,
    UnsupportedPodClaimError,
)
from ansible_collections.nodeops.dra.plugins.module_utils.resource.release import Release
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.resource import objects

R136 = Release(1, 36)
R130 = Release(1, 30)


def group_owner(name: str = "pg", version: str = "v1alpha2") -> dict[str, t.Any]:
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "PodGroup",
        "name": name,
        "uid": "u-pg",
        "controller": True,
    }


IN_GROUP = {"schedulingGroup": {"podGroupName": "pg"}}


@pytest.mark.parametrize(
    ("owners", "spec"),
    [
        pytest.param([objects.pod_owner()], {}, id="pod"),
        pytest.param([{"kind": "X", "uid": "z"}, objects.pod_owner()], {}, id="second reference"),
        pytest.param([group_owner()], IN_GROUP, id="its group"),
        pytest.param([group_owner(version="v1beta1")], IN_GROUP, id="its group in another version"),
        pytest.param([objects.pod_owner()], IN_GROUP, id="pod in a group"),
    ],
)
def test_owned_claims(owners: list[t.Any], spec: dict[str, t.Any]) -> None:
    pod, claim = objects.pod(spec=spec), objects.claim(metadata={"ownerReferences": owners})
    ownership.check_owner(pod, claim)
    assert ownership.is_owned_by_pod(pod, claim)


@pytest.mark.parametrize(
    ("owners", "spec", "text"),
    [
        pytest.param([], {}, r"was not created for Pod team-a/p-1 \(Pod is not owner\)", id="no owner"),
        pytest.param([objects.pod_owner(uid="u-old")], {}, "UID u-old, expected the pod's UID u-p1", id="earlier pod"),
        pytest.param([{**objects.pod_owner(), "controller": False}], {}, "Pod is not owner", id="not controlling"),
        pytest.param([group_owner()], {}, "Pod is not owner", id="group of another pod"),
        pytest.param([group_owner("pg2")], IN_GROUP, "neither Pod nor PodGroup pg is the owner", id="other group"),
        pytest.param([], IN_GROUP, "neither Pod nor PodGroup pg is the owner", id="group without owner"),
        pytest.param(
            [{**group_owner(), "apiVersion": "x.example/v1"}], IN_GROUP, "neither Pod nor", id="foreign kind PodGroup"
        ),
    ],
)
@pytest.mark.report("F004")
def test_claims_of_others_are_refused(owners: list[t.Any], spec: dict[str, t.Any], text: str) -> None:
    pod, claim = objects.pod(spec=spec), objects.claim(metadata={"ownerReferences": owners})
    with pytest.raises(ownership.NotOwnerError, match=text) as caught:
        ownership.check_owner(pod, claim)
    assert caught.value.facts["claim_uid"] == "u-1"
    assert not ownership.is_owned_by_pod(pod, claim)


def test_claim_of_another_namespace_is_refused() -> None:
    claim = objects.claim(metadata={"namespace": "team-b", "ownerReferences": [objects.pod_owner()]})
    with pytest.raises(ownership.NotOwnerError, match="is not in the same namespace as Pod team-a/p-1"):
        ownership.check_owner(objects.pod(), claim)


def test_objects_without_uid_do_not_match_each_other() -> None:
    claim = objects.claim(metadata={"ownerReferences": [{**objects.pod_owner(), "uid": ""}]})
    assert not ownership.is_owned_by_pod(objects.pod(metadata={"uid": ""}), claim)


def reserved(*entries: dict[str, t.Any], **status: t.Any) -> dict[str, t.Any]:
    return objects.claim(status={"allocation": objects.allocation(), "reservedFor": list(entries), **status})


@pytest.mark.parametrize(
    ("entries", "spec", "expected"),
    [
        pytest.param([], {}, False, id="nobody"),
        pytest.param([objects.pod_entry()], {}, True, id="the pod"),
        pytest.param([objects.pod_entry("x", "u-x"), objects.pod_entry()], {}, True, id="several"),
        pytest.param([objects.pod_entry(uid="u-old")], {}, False, id="earlier pod of the same name"),
        pytest.param([{"uid": "u-p1"}], {}, True, id="only a UID"),
        pytest.param([objects.group_entry()], IN_GROUP, True, id="its group by name"),
        pytest.param([objects.group_entry(uid="u-other")], IN_GROUP, True, id="its group, UID not compared"),
        pytest.param([objects.group_entry("pg2")], IN_GROUP, False, id="another group"),
        pytest.param([objects.group_entry()], {}, False, id="pod in no group"),
        pytest.param([{**objects.pod_entry("pg", "u-x")}], IN_GROUP, False, id="pod that is called like the group"),
        pytest.param([objects.group_entry("")], {}, False, id="empty names do not match"),
    ],
)
@pytest.mark.report("F019")
def test_reserved_for(entries: list[t.Any], spec: dict[str, t.Any], expected: bool) -> None:
    assert consumers.is_reserved_for(objects.pod(spec=spec), reserved(*entries)) is expected


@pytest.mark.report("F019")
def test_refusal_names_pod_claim_and_reserved_uids_and_points_to_the_control_plane() -> None:
    with pytest.raises(consumers.NotReservedError) as caught:
        consumers.check_reserved_for(objects.pod(uid="uid-new"), reserved(objects.pod_entry("p-9", "uid-old")))
    assert "pod p-1 (uid-new) is not allowed to use ResourceClaim c1 (u-1)" in caught.value.message
    assert "uid-old" in caught.value.message
    assert "scheduler" in caught.value.hint
    assert "controller" in caught.value.hint
    assert caught.value.facts["reserved_uids"] == ["uid-old"]


@pytest.mark.report("F019")
def test_refusal_tells_a_left_over_reservation_of_the_same_name() -> None:
    with pytest.raises(consumers.NotReservedError) as caught:
        consumers.check_reserved_for(objects.pod(uid="uid-new"), reserved(objects.pod_entry("p-1", "uid-old")))
    assert "earlier pod of the same name" in caught.value.hint


def test_reserved_pod_passes() -> None:
    consumers.check_reserved_for(objects.pod(), reserved(objects.pod_entry()))


def crowd(count: int) -> list[dict[str, str]]:
    return [objects.pod_entry(f"p{i}", f"u{i}") for i in range(count)]


@pytest.mark.report("F077", "F078")
@pytest.mark.parametrize(
    ("claim", "release", "expected"),
    [
        pytest.param(objects.claim(), R136, Obstacle.NOT_ALLOCATED, id="not allocated"),
        pytest.param(reserved(), R136, None, id="free"),
        pytest.param(reserved(*crowd(255)), R136, None, id="255 of 256"),
        pytest.param(reserved(*crowd(256)), R136, Obstacle.FULL, id="256 of 256"),
        pytest.param(reserved(*crowd(32)), Release(1, 32, 0), Obstacle.FULL, id="32 of 32 in 1.32.0"),
        pytest.param(reserved(*crowd(32)), Release(1, 32, 1), None, id="32 of 256 in 1.32.1"),
        pytest.param(reserved(deallocationRequested=True), Release(1, 31), Obstacle.DEALLOCATING, id="deallocating"),
        pytest.param(
            objects.claim(metadata={"deletionTimestamp": "t"}, status={"allocation": objects.allocation()}),
            R136,
            Obstacle.DELETED,
            id="deleted",
        ),
        pytest.param(
            objects.classic_claim(status={"allocation": {}, "reservedFor": crowd(1)}),
            R130,
            Obstacle.NOT_SHAREABLE,
            id="classic not shareable",
        ),
        pytest.param(
            objects.classic_claim(status={"allocation": {"shareable": True}, "reservedFor": crowd(1)}),
            R130,
            None,
            id="classic shareable",
        ),
        pytest.param(objects.classic_claim(status={"allocation": {}}), R130, None, id="classic first consumer"),
    ],
)
def test_reservation_obstacles(claim: dict[str, t.Any], release: Release, expected: Obstacle | None) -> None:
    assert consumers.reservation_obstacle(claim, release) is expected
    assert consumers.can_be_reserved(claim, release) is (expected is None)
    if expected is not None:
        assert "ResourceClaim team-a/c1" in consumers.explain_obstacle(expected, claim, release)


@pytest.mark.report("F071", "F077", "F078")
def test_new_consumer_goes_to_the_end_once() -> None:
    unknown = {"apiGroup": "jobs.test", "resource": "jobs", "name": "j", "uid": "u-j", "future": 1}
    claim = reserved(unknown)
    entry = consumers.pod_consumer(objects.pod())
    assert entry == {"resource": "pods", "name": "p-1", "uid": "u-p1"}
    assert consumers.with_consumer(claim, entry) == [unknown, entry]
    assert consumers.with_consumer(reserved(entry), entry) == [entry]


def test_group_consumer_has_its_group() -> None:
    assert consumers.pod_group_consumer(objects.pod_group()) == objects.group_entry()


RUNNING = objects.pod(spec={"nodeName": "n"}, status={"phase": "Running"})


@pytest.mark.report("F060", "F064", "F078")
@pytest.mark.parametrize(
    ("entry", "found", "options", "expected"),
    [
        pytest.param(objects.pod_entry(), RUNNING, {}, Verdict.KEEP, id="alive"),
        pytest.param(objects.pod_entry(), RUNNING, {"known_deleted": {"u-p1"}}, Verdict.DROP, id="seen to go"),
        pytest.param(objects.pod_entry(), None, {}, Verdict.ASK, id="not in the cache"),
        pytest.param(objects.pod_entry(), None, {"is_live_answer": True}, Verdict.DROP, id="404"),
        pytest.param(objects.pod_entry(uid="u-old"), RUNNING, {}, Verdict.DROP, id="replaced"),
        pytest.param(objects.pod_entry(), objects.pod(status={"phase": "Failed"}), {}, Verdict.DROP, id="failed"),
        pytest.param(
            objects.pod_entry(),
            objects.pod(metadata={"deletionTimestamp": "t"}),
            {},
            Verdict.DROP,
            id="deleted before scheduling",
        ),
        pytest.param(
            {"apiGroup": "jobs.test", "resource": "jobs", "uid": "u-p1"}, None, {}, Verdict.KEEP, id="unknown kind"
        ),
        pytest.param(
            {"apiGroup": "jobs.test", "resource": "pods", "uid": "u-p1"}, None, {}, Verdict.KEEP, id="foreign group"
        ),
        pytest.param(objects.group_entry(), objects.pod_group(), {}, Verdict.KEEP, id="group alive"),
        pytest.param(objects.group_entry(), None, {}, Verdict.ASK, id="group unknown"),
        pytest.param(objects.group_entry(), objects.pod_group(uid="u-2"), {}, Verdict.DROP, id="group replaced"),
    ],
)
def test_what_becomes_of_a_consumer(entry: t.Any, found: t.Any, options: t.Any, expected: Verdict) -> None:
    consumer = consumers.consumers(reserved(entry))[0]
    assert consumers.consumer_verdict(consumer, found, **options) is expected


ENTRY = {"name": "gpu", "resourceClaimTemplateName": "t1"}


@pytest.mark.parametrize(
    ("pod_spec", "group", "expected"),
    [
        pytest.param(IN_GROUP, objects.pod_group(claims=[ENTRY]), True, id="same entry"),
        pytest.param(IN_GROUP, objects.pod_group(claims=[{**ENTRY, "name": "x"}]), False, id="other name"),
        pytest.param(
            IN_GROUP, objects.pod_group(claims=[{"name": "gpu", "resourceClaimName": "t1"}]), False, id="other source"
        ),
        pytest.param(IN_GROUP, objects.pod_group(), False, id="no entries"),
        pytest.param(IN_GROUP, objects.pod_group("pg2", claims=[ENTRY]), False, id="other group"),
        pytest.param(
            IN_GROUP, objects.pod_group(claims=[ENTRY], metadata={"namespace": "b"}), False, id="other namespace"
        ),
        pytest.param({}, objects.pod_group(claims=[ENTRY]), False, id="pod in no group"),
        pytest.param(IN_GROUP, None, False, id="group not found"),
    ],
)
def test_binding_of_a_pod_claim_to_its_group(pod_spec: t.Any, group: t.Any, expected: bool) -> None:
    claim = PodClaim("gpu", None, "t1", 0)
    assert podgroup.binds_to_pod_group(objects.pod(spec=pod_spec), claim, group) is expected


def test_claim_names_of_a_pod_group() -> None:
    group = objects.pod_group(
        claims=[ENTRY, {"name": "own", "resourceClaimName": "c1"}, {"name": "odd"}, {**ENTRY, "name": "late"}],
        status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "pg-gpu-abcde"}]},
    )
    generated, own, odd, late = podgroup.pod_group_claims(group)
    assert podgroup.pod_group_claim_name_for(group, generated).name == "pg-gpu-abcde"
    assert podgroup.pod_group_claim_name_for(group, generated).must_check_owner
    assert podgroup.pod_group_claim_name_for(group, own).name == "c1"
    with pytest.raises(UnsupportedPodClaimError):
        podgroup.pod_group_claim_name_for(group, odd)
    with pytest.raises(ClaimNotCreatedError, match="PodGroup team-a/pg: ResourceClaim not created yet"):
        podgroup.pod_group_claim_name_for(group, late)
