# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Decisions as what they are: from what the caches hold to a plan, with no server and no clock."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.controller.caches import Caches, GoneUids
from ansible_collections.nodeops.dra.plugins.module_utils.controller.claim_decision import decide_claim
from ansible_collections.nodeops.dra.plugins.module_utils.controller.deciding import decide
from ansible_collections.nodeops.dra.plugins.module_utils.controller.keys import CLAIM, POD, Key
from ansible_collections.nodeops.dra.plugins.module_utils.controller.plan import NOTHING, Question, describe
from ansible_collections.nodeops.dra.plugins.module_utils.controller.pod_decision import decide_pod, decide_pod_group
from ansible_collections.nodeops.dra.plugins.module_utils.controller.settings import Switches
from ansible_collections.nodeops.dra.plugins.module_utils.controller.target import Target
from ansible_collections.nodeops.dra.plugins.module_utils.resource.names import POD_CLAIM_ANNOTATION, derived_name
from ansible_collections.nodeops.dra.plugins.module_utils.resource.release import Release
from ansible_collections.nodeops.dra.plugins.module_utils.resource.versions import api_version
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.resource import objects

Json = dict[str, t.Any]
V1 = Target(api_version("v1"), Release(1, 36), pod_groups="v1alpha2")
OLD = Target(api_version("v1alpha2"), Release(1, 30), contexts=True)
OLDEST = Target(api_version("v1alpha2"), Release(1, 27), contexts=True)
ON = Switches()
TEMPLATE = {"name": "gpu", "resourceClaimTemplateName": "t1"}
NAMED = {"name": "gpu", "resourceClaimName": "c1"}
PROTECTED = ["resource.kubernetes.io/delete-protection"]


def known(*things: Json, target: Target = V1) -> Caches:
    """Caches that hold these objects."""
    caches = Caches(target)
    for thing in things:
        kind = thing.get("kind") or "Pod"
        metadata = {"resourceVersion": "5", "namespace": "team-a", **thing["metadata"]}
        caches.stores[kind].put({**thing, "metadata": metadata})
    return caches


def made_for(entry: str = "gpu", name: str = "p-1-gpu-abcde", uid: str = "u-p1", **parts: t.Any) -> Json:
    """A claim generated for an entry of pod p-1."""
    metadata = {
        "ownerReferences": [objects.pod_owner(uid=uid)],
        "annotations": {POD_CLAIM_ANNOTATION: entry},
        "creationTimestamp": "2026-01-01T00:00:00Z",
        **parts.pop("metadata", {}),
    }
    return objects.claim(name, f"u-{name}", metadata=metadata, **parts)


def requests(plan: t.Any) -> list[str]:
    """Verb, resource and name of each request."""
    return [f"{step.use.verb} {step.use.resource} {step.name}" for step in plan.steps]


def pod(*claims: Json, published: t.Mapping[str, str | None] | None = None, **parts: t.Any) -> Json:
    """Pod p-1 with entries and the names that its status gives."""
    entries = [
        {"name": entry, **({"resourceClaimName": claim} if claim else {})} for entry, claim in (published or {}).items()
    ]
    status = {**({"resourceClaimStatuses": entries} if published else {}), **parts.pop("status", {})}
    return objects.pod(claims=claims, status=status, **parts)


NAME = derived_name("p-1-gpu-", "u-p1", "gpu")


# Pods


def test_a_pod_with_a_template_gets_a_claim_and_its_name() -> None:
    plan = decide_pod(known(objects.template()), pod(TEMPLATE), ON)
    assert requests(plan) == [f"create resourceclaims {NAME}", "patch pods/status p-1"]
    shown = [describe(step) for step in plan.steps]
    assert shown[0]["reason"] == "Pod team-a/p-1 needs a claim for gpu, from ResourceClaimTemplate t1"
    assert shown[0]["resource"] == "resourceclaims.resource.k8s.io"
    assert shown[0]["body"]["metadata"]["generateName"] == "p-1-gpu-"
    assert shown[1]["body"] == {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": NAME}]}}


def test_the_name_follows_from_the_pod_and_steps_aside_for_others() -> None:
    taken = objects.claim(NAME, "u-other")
    plan = decide_pod(known(objects.template(), taken), pod(TEMPLATE), ON)
    assert requests(plan)[0] == f"create resourceclaims {derived_name('p-1-gpu-', 'u-p1', 'gpu', 1)}"
    assert derived_name("p-1-gpu-", "u-p2", "gpu") != NAME
    assert derived_name("p-1-gpu-", "u-p1", "nic") != NAME


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"status": {"phase": "Succeeded"}}, id="succeeded"),
        pytest.param({"status": {"phase": "Failed"}}, id="failed"),
        pytest.param({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, id="deleted"),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"nodeName": "n"}}, id="terminating"
        ),
    ],
)
def test_a_pod_that_will_not_run_gets_nothing(parts: Json) -> None:
    assert decide_pod(known(objects.template()), pod(TEMPLATE, **parts), ON) == NOTHING


def test_a_pod_that_has_everything_costs_nothing() -> None:
    caches = known(objects.template(), made_for())
    assert decide_pod(caches, pod(TEMPLATE, published={"gpu": "p-1-gpu-abcde"}), ON) == NOTHING
    assert decide_pod(caches, pod(TEMPLATE, published={"gpu": None}), ON) == NOTHING


def test_an_orphan_is_adopted_and_the_oldest_wins() -> None:
    younger = made_for(name="b", metadata={"creationTimestamp": "2026-01-02T00:00:00Z"})
    caches = known(objects.template(), younger, made_for(name="c"))
    plan = decide_pod(caches, pod(TEMPLATE), ON)
    assert requests(plan) == ["patch pods/status p-1"]
    assert plan.steps[0].names == {"gpu": "c"}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("target", "adopted"), [(OLD, True), (V1, False)], ids=["1.30 takes a claim without annotation", "1.36 does not"]
)
def test_a_claim_without_annotation(target: Target, adopted: bool) -> None:
    bare = made_for(name="p-1-gpu", metadata={"annotations": None})
    plan = decide_pod(known(objects.template(), bare, target=target), pod(TEMPLATE), ON)
    assert (len(plan.steps) == 1) is adopted


def test_a_claim_that_is_being_deleted_is_not_adopted() -> None:
    dying = made_for(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert requests(decide_pod(known(objects.template(), dying), pod(TEMPLATE), ON))[0].startswith("create")


def test_a_published_claim_that_no_cache_shows_is_asked_for_before_it_is_replaced() -> None:
    caches = known(objects.template())
    waiting = pod(TEMPLATE, published={"gpu": "seen-by-others"})
    question = Question("ResourceClaim", "team-a", "seen-by-others")
    assert decide_pod(caches, waiting, ON).questions == (question,)
    there = made_for(name="seen-by-others")
    assert decide_pod(caches, waiting, ON, {question: there}) == NOTHING
    plan = decide_pod(caches, waiting, ON, {question: None})
    assert requests(plan) == [f"create resourceclaims {NAME}", "patch pods/status p-1"]


def test_a_published_claim_of_somebody_else_is_told_and_not_touched() -> None:
    caches = known(objects.template(), objects.claim("c9", "u-9"))
    plan = decide_pod(caches, pod(TEMPLATE, published={"gpu": "c9"}, spec={"nodeName": "n"}), ON)
    assert plan.steps == ()
    assert "c9 was not created for Pod team-a/p-1" in plan.problems[0].message


@pytest.mark.report("F061")
def test_names_published_before_stay_in_every_list() -> None:
    entries = [{"name": name, "resourceClaimTemplateName": of} for name, of in (("a", "t0"), ("b", "t1"), ("c", "t2"))]
    caches = known(objects.template(), made_for("a", "claim-a"))
    plan = decide_pod(caches, pod(*entries, published={"a": "claim-a"}), ON)
    assert plan.steps[-1].names == {"a": "claim-a", "b": derived_name("p-1-b-", "u-p1", "b")}  # type: ignore[union-attr]
    assert [problem.message for problem in plan.problems] == [
        'PodResourceClaim c: resource claim template "t2": resourceclaimtemplate.resource.k8s.io "t2" not found'
    ]


def test_switches() -> None:
    request = {"name": "gpu", "firstAvailable": [{"name": "a", "deviceClassName": "x"}]}
    choice = objects.template(spec={"devices": {"requests": [request]}})
    admin = objects.template(
        spec={"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "x", "adminAccess": True}}]}}
    )
    for template, text in (
        (choice, "template includes a prioritized list of subrequests, but the feature is disabled"),
        (admin, "admin access is requested, but the feature is disabled"),
    ):
        off = decide_pod(known(template), pod(TEMPLATE), Switches(False, False))
        assert off.steps == ()
        assert text in off.problems[0].message
        assert len(decide_pod(known(template), pod(TEMPLATE), ON).steps) == 2


def test_up_to_1_27_the_fixed_name_is_all_there_is() -> None:
    entry = {"name": "gpu", "source": {"resourceClaimTemplateName": "t1"}}
    caches = known(objects.template(), target=OLDEST)
    assert requests(decide_pod(caches, pod(entry), ON)) == ["create resourceclaims p-1-gpu"]
    mine = objects.classic_claim("p-1-gpu", metadata={"ownerReferences": [objects.pod_owner()]})
    assert decide_pod(known(objects.template(), mine, target=OLDEST), pod(entry), ON) == NOTHING
    foreign = known(objects.template(), objects.classic_claim("p-1-gpu"), target=OLDEST)
    assert "was not created for Pod" in decide_pod(foreign, pod(entry), ON).problems[0].message


# Reservations


@pytest.mark.report("F077")
def test_a_bound_pod_is_added_to_the_consumers() -> None:
    other = {"apiGroup": "jobs.test", "resource": "jobs", "name": "j", "uid": "u-j", "future": 1}
    claim = objects.claim(status={"allocation": objects.allocation(), "reservedFor": [other]})
    plan = decide_pod(known(claim), pod(NAMED, spec={"nodeName": "n"}), ON)
    assert requests(plan) == ["patch resourceclaims/status c1"]
    assert plan.steps[0].shown() == {
        "metadata": {"resourceVersion": "7"},
        "status": {"reservedFor": [other, objects.pod_entry()]},
    }
    assert decide_pod(known(claim), pod(NAMED), ON) == NOTHING
    done = objects.claim(status={"allocation": objects.allocation(), "reservedFor": [objects.pod_entry()]})
    assert decide_pod(known(done), pod(NAMED, spec={"nodeName": "n"}), ON) == NOTHING


@pytest.mark.parametrize(
    ("status", "text"),
    [
        pytest.param({}, "is not allocated", marks=pytest.mark.report("F077")),
        pytest.param(
            {"allocation": {}, "reservedFor": [objects.pod_entry(f"x{n}", f"u-{n}") for n in range(256)]},
            "has 256 consumers, the limit is 256",
            marks=pytest.mark.report("F078"),
        ),
    ],
)
def test_what_stands_against_a_reservation_is_told_when_it_lasts(status: Json, text: str) -> None:
    plan = decide_pod(known(objects.claim(status=status)), pod(NAMED, spec={"nodeName": "n"}), ON)
    assert plan.steps == ()
    (problem,) = plan.problems
    assert text in problem.message
    assert problem.passing


def test_the_claim_of_extended_resources_is_reserved_like_any_other() -> None:
    claim = objects.claim("x1", status={"allocation": objects.allocation()})
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "x1", "requestMappings": []}}
    assert requests(decide_pod(known(claim), pod(status=status, spec={"nodeName": "n"}), ON)) == [
        "patch resourceclaims/status x1"
    ]


@pytest.mark.parametrize("planned", [True, False], ids=["claim to be made", "claim there"])
def test_a_classic_claim_of_a_bound_pod_gets_its_node_named(planned: bool) -> None:
    template = objects.template(spec={"devices": None, "resourceClassName": "gpu"})
    template["spec"]["spec"] = {"resourceClassName": "gpu", "allocationMode": "WaitForFirstConsumer"}
    entry = {"name": "gpu", "source": {"resourceClaimTemplateName": "t1"}}
    claim = objects.classic_claim(
        "g1",
        metadata={"ownerReferences": [objects.pod_owner()], "annotations": {POD_CLAIM_ANNOTATION: "gpu"}},
    )
    published = {} if planned else {"gpu": "g1"}
    bound = pod(entry, published=published, spec={"nodeName": "node-7"})
    plan = decide_pod(known(template, *([] if planned else [claim]), target=OLD), bound, ON)
    assert requests(plan)[-1] == "create podschedulingcontexts p-1"
    assert plan.steps[-1].shown()["spec"] == {"selectedNode": "node-7"}


def test_a_scheduling_context_that_exists() -> None:
    def plan(owner_uid: str, node: str) -> t.Any:
        context = {
            "kind": "PodSchedulingContext",
            "metadata": {"name": "p-1", "uid": "u-x", "ownerReferences": [objects.pod_owner(uid=owner_uid)]},
            "spec": {"selectedNode": node},
        }
        bound = pod({"name": "gpu", "source": {"resourceClaimName": "c1"}}, spec={"nodeName": "node-7"})
        return decide_pod(known(objects.classic_claim(), context, target=OLD), bound, ON)

    assert plan("u-p1", "node-7") == NOTHING
    (step,) = plan("u-p1", "node-1").steps
    assert step.shown() == {"metadata": {"resourceVersion": "5"}, "spec": {"selectedNode": "node-7"}}
    assert "belongs to an earlier pod" in plan("u-old", "node-1").problems[0].message


# PodGroups

GROUP = objects.pod_group(claims=[TEMPLATE])
MEMBER: Json = {"schedulingGroup": {"podGroupName": "pg"}}


def test_a_pod_group_gets_its_claims() -> None:
    plan = decide_pod_group(known(objects.template(), GROUP), GROUP, ON)
    name = derived_name("pg-gpu-", "u-pg", "gpu")
    assert requests(plan) == [f"create resourceclaims {name}", "patch podgroups/status pg"]
    owner = plan.steps[0].shown()["metadata"]["ownerReferences"][0]
    assert (owner["apiVersion"], owner["kind"]) == ("scheduling.k8s.io/v1alpha2", "PodGroup")
    missing = decide_pod_group(known(GROUP), GROUP, ON)
    assert missing.problems[0].message.startswith('PodGroupResourceClaim gpu: resource claim template "t1"')


def test_a_member_waits_for_its_group_and_then_names_the_groups_claim() -> None:
    member = pod(TEMPLATE, spec=MEMBER)
    assert (
        "PodGroup team-a/pg of the pod was not found"
        in decide_pod(known(objects.template()), member, ON).problems[0].message
    )
    assert decide_pod(known(objects.template(), GROUP), member, ON) == NOTHING
    named = objects.pod_group(
        claims=[TEMPLATE], status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "pg-1"}]}
    )
    plan = decide_pod(known(objects.template(), named), member, ON)
    assert requests(plan) == ["patch pods/status p-1"]
    assert plan.steps[0].names == {"gpu": "pg-1"}  # type: ignore[union-attr]


def test_a_bound_member_reserves_for_its_group() -> None:
    group = objects.pod_group(claims=[NAMED])
    claim = objects.claim(status={"allocation": objects.allocation()})
    bound = pod(NAMED, spec={**MEMBER, "nodeName": "n"})
    (step,) = decide_pod(known(group, claim), bound, ON).steps
    assert step.shown()["status"]["reservedFor"] == [objects.group_entry()]
    own = objects.pod_group(claims=[{"name": "other", "resourceClaimName": "c1"}])
    (step,) = decide_pod(known(own, claim), bound, ON).steps
    assert step.shown()["status"]["reservedFor"] == [objects.pod_entry()]


# Claims


def used(*consumers: Json, **parts: t.Any) -> Json:
    """An allocated claim with consumers."""
    metadata = {"finalizers": PROTECTED, **parts.pop("metadata", {})}
    status = {"allocation": objects.allocation(), "reservedFor": list(consumers)}
    return objects.claim(metadata=metadata, status=status, **parts)


def test_a_consumer_that_nobody_knows_is_asked_for_unless_it_was_seen_to_go() -> None:
    claim, caches = used(objects.pod_entry()), known()
    question = Question("Pod", "team-a", "p-1")
    assert decide_claim(caches, claim).questions == (question,)
    released = ["patch resourceclaims/status c1", "patch resourceclaims c1"]
    assert requests(decide_claim(caches, claim, {question: None})) == released
    assert requests(decide_claim(caches, claim, {question: objects.pod(uid="u-new")})) == released
    assert decide_claim(caches, claim, {question: objects.pod()}) == NOTHING
    caches.gone.add("u-p1")
    assert requests(decide_claim(caches, claim)) == released


def test_with_doubt_the_caches_are_not_believed() -> None:
    caches = known(pod(NAMED))
    assert decide_claim(caches, used(objects.pod_entry())) == NOTHING
    assert decide_claim(caches, used(objects.pod_entry()), doubt=True).questions == (Question("Pod", "team-a", "p-1"),)


@pytest.mark.report("F078")
def test_consumers_of_unknown_kinds_stay() -> None:
    job = {"apiGroup": "jobs.test", "resource": "jobs", "name": "j", "uid": "u-j"}
    caches = known(pod(NAMED, status={"phase": "Failed"}))
    (step,) = decide_claim(caches, used(objects.pod_entry(), job)).steps
    assert step.shown()["status"] == {"reservedFor": [job]}
    assert step.reason == "pods/p-1 (u-p1) needs it no more"


def test_consumers_of_pod_groups() -> None:
    claim = used(objects.group_entry())
    assert decide_claim(known(GROUP), claim) == NOTHING
    assert decide_claim(known(), claim).questions == (Question("PodGroup", "team-a", "pg"),)
    unserved = Target(api_version("v1"), Release(1, 35))
    assert decide_claim(known(target=unserved), claim) == NOTHING


@pytest.mark.report("F064")
def test_the_generated_claim_of_a_finished_pod_is_released_and_deleted() -> None:
    caches = known(pod(TEMPLATE, status={"phase": "Succeeded"}))
    metadata = {"ownerReferences": [objects.pod_owner()], "annotations": {POD_CLAIM_ANNOTATION: "gpu"}}
    plan = decide_claim(caches, used(objects.pod_entry(), metadata=metadata))
    assert requests(plan) == [
        "patch resourceclaims/status c1", "patch resourceclaims c1", "delete resourceclaims c1",
    ]  # fmt: skip
    assert requests(decide_claim(caches, objects.claim(metadata=metadata))) == ["delete resourceclaims c1"]
    assert requests(decide_claim(caches, used(objects.pod_entry())))[-1] == "patch resourceclaims c1"


def test_a_classic_claim_is_handed_to_its_driver() -> None:
    allocation = {"resourceHandles": [{"driverName": "d", "data": "x"}]}
    claim = objects.classic_claim(status={"allocation": allocation, "reservedFor": [objects.pod_entry()]})
    caches = known(target=OLD)
    caches.gone.add("u-p1")
    (step,) = decide_claim(caches, claim).steps
    assert step.shown()["status"] == {"reservedFor": None, "deallocationRequested": True}
    assert "its driver has to deallocate it" in step.reason


@pytest.mark.parametrize(
    ("parts", "deleted"),
    [
        pytest.param({}, True, id="unused"),
        pytest.param({"status": {"allocation": {}}}, False, id="allocated"),
        pytest.param({"metadata": {"annotations": {POD_CLAIM_ANNOTATION: "nic"}}}, False, id="for another entry"),
        pytest.param({"metadata": {"ownerReferences": [objects.pod_owner(uid="u-2")]}}, False, id="of an earlier pod"),
        pytest.param({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, False, id="on its way out"),
    ],
)
def test_a_duplicate_is_deleted_when_nobody_uses_it(parts: Json, deleted: bool) -> None:
    waiting = pod(TEMPLATE, published={"gpu": "winner"})
    caches = known(waiting, made_for(name="winner"), made_for(name="loser", **parts))
    assert requests(decide_pod(caches, waiting, ON)) == (["delete resourceclaims loser"] if deleted else [])
    gone = known(waiting, made_for(name="loser", **parts))
    question = Question("ResourceClaim", "team-a", "winner")
    assert "delete resourceclaims loser" not in requests(decide_pod(gone, waiting, ON, {question: None}))


def test_the_claim_of_an_earlier_pod_of_the_name_is_deleted() -> None:
    caches = known(pod(TEMPLATE, uid="u-2"))
    assert requests(decide_claim(caches, made_for())) == ["delete resourceclaims p-1-gpu-abcde"]


def test_a_key_without_an_object_is_nothing() -> None:
    assert decide(known(), Key(POD, "team-a", "p"), ON) == NOTHING
    assert decide(known(), Key(CLAIM, "team-a", "c"), ON) == NOTHING
    assert str(Key(POD, "team-a", "p")) == "pod:team-a/p"


def test_the_last_deleted_uids_are_remembered() -> None:
    gone = GoneUids(limit=2)
    for uid in ("a", "b", "a", "c"):
        gone.add(uid)
    assert [uid in gone for uid in "abc"] == [True, False, True]
    assert len(gone) == 2
