# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What is written when consumers go (follows syncClaim of the controller)."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.resource import deallocation
from ansible_collections.nodeops.dra.plugins.module_utils.resource.deallocation import ReleasePlan, plan_release
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.resource import objects

NEW = "resource.kubernetes.io/delete-protection"
OLD = "dra.k8s.io/delete-protection"
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
A, B = objects.pod_entry("a", "u-a"), objects.pod_entry("b", "u-b")


def claim(
    *entries: dict[str, t.Any],
    finalizers: t.Sequence[str] = (NEW,),
    deleted: bool = False,
    allocated: bool = True,
    classic: bool = False,
    spec: dict[str, t.Any] | None = None,
    **status: t.Any,
) -> dict[str, t.Any]:
    """A claim reserved for ``entries``."""
    build = objects.classic_claim if classic else objects.claim
    given: dict[str, t.Any] = {"allocation": {} if classic else objects.allocation()} if allocated else {}
    return build(
        metadata={"finalizers": list(finalizers), **(DELETED if deleted else {})},
        spec=spec or {},
        status={**given, "reservedFor": list(entries), **status},
    )


@pytest.mark.report("F059", "F060", "F064")
@pytest.mark.parametrize(
    ("before", "keep", "plan"),
    [
        pytest.param(claim(A, B), {"u-a", "u-b"}, ReleasePlan(), id="all alive"),
        pytest.param(claim(A, B), {"u-a"}, ReleasePlan((A,)), id="one of two gone"),
        pytest.param(
            claim(A), (), ReleasePlan((), clear_allocation=True, remove_finalizers=(NEW,)), id="last one gone"
        ),
        pytest.param(
            claim(A, deleted=True),
            (),
            ReleasePlan((), clear_allocation=True, remove_finalizers=(NEW,)),
            id="deleted, last one gone (zombie)",
        ),
        pytest.param(
            claim(deleted=True),
            (),
            ReleasePlan(clear_allocation=True, remove_finalizers=(NEW,)),
            id="deleted, unused, allocated",
        ),
        pytest.param(
            claim(deleted=True, allocated=False), (), ReleasePlan(remove_finalizers=(NEW,)), id="deleted, empty"
        ),
        pytest.param(claim(A, deleted=True), {"u-a"}, ReleasePlan(), id="deleted, in use"),
        pytest.param(claim(), (), ReleasePlan(), id="unused but allocated stays"),
        pytest.param(claim(allocated=False), (), ReleasePlan(), id="finalizer set before allocation stays"),
        pytest.param(claim(A, finalizers=()), (), ReleasePlan(()), id="no finalizer: only the reservation"),
        pytest.param(
            claim(A, finalizers=("x/y", OLD)),
            (),
            ReleasePlan((), clear_allocation=True, remove_finalizers=(OLD,)),
            id="finalizer of 1.30",
        ),
        pytest.param(
            claim(A, classic=True, finalizers=(OLD,), spec={"allocationMode": "Immediate"}),
            (),
            ReleasePlan(()),
            id="immediate stays allocated",
        ),
        pytest.param(
            claim(A, classic=True, finalizers=(OLD,), spec={"allocationMode": "Immediate"}, deleted=True),
            (),
            ReleasePlan((), clear_allocation=True, remove_finalizers=(OLD,)),
            id="immediate, deleted",
        ),
        pytest.param(
            claim(A, classic=True, finalizers=("d.example/deletion-protection",)),
            (),
            ReleasePlan((), request_deallocation=True),
            id="classic driver deallocates",
        ),
        pytest.param(
            claim(A, classic=True, finalizers=(), spec={"allocationMode": "Immediate"}),
            (),
            ReleasePlan(()),
            id="classic driver, immediate",
        ),
        pytest.param(
            claim(A, classic=True, finalizers=(), deallocationRequested=True),
            (),
            ReleasePlan(()),
            id="classic driver, asked before",
        ),
        pytest.param(
            claim(A, finalizers=(), spec={"controller": "d.example"}),
            (),
            ReleasePlan((), request_deallocation=True),
            id="1.31 with controller",
        ),
        pytest.param(claim(A, B, classic=True, finalizers=()), {"u-b"}, ReleasePlan((B,)), id="classic, one left"),
    ],
)
def test_plan(before: dict[str, t.Any], keep: t.Collection[str], plan: ReleasePlan) -> None:
    assert plan_release(before, keep) == plan
    assert bool(plan) is (plan != ReleasePlan())
    assert plan.changes_status is (plan not in (ReleasePlan(), ReleasePlan(remove_finalizers=plan.remove_finalizers)))


def test_status_write_is_guarded_and_complete() -> None:
    before = claim(A)
    patch = deallocation.status_patch(before, plan_release(before, ()))
    assert patch == {"metadata": {"resourceVersion": "7"}, "status": {"reservedFor": None, "allocation": None}}
    before = claim(A, B, classic=True, finalizers=())
    assert deallocation.status_patch(before, plan_release(before, {"u-b"}))["status"] == {"reservedFor": [B]}
    assert deallocation.status_patch(before, plan_release(before, ()))["status"] == {
        "reservedFor": None,
        "deallocationRequested": True,
    }


@pytest.mark.report("F071", "F078")
def test_unknown_consumers_are_written_back_as_they_were() -> None:
    odd = {"apiGroup": "jobs.test", "resource": "jobs", "name": "j", "uid": "u-j", "future": {"x": 1}}
    before = claim(A, odd)
    assert deallocation.status_patch(before, plan_release(before, {"u-j"}))["status"] == {"reservedFor": [odd]}


def test_finalizer_write_keeps_the_others() -> None:
    answer = claim(finalizers=("x/y", NEW))
    assert deallocation.finalizer_patch(answer, (NEW,)) == {"metadata": {"resourceVersion": "7", "finalizers": ["x/y"]}}
    assert deallocation.finalizer_patch(claim(), (NEW,))["metadata"]["finalizers"] is None


def test_reservation_write() -> None:
    assert deallocation.reservation_patch(claim(A), [A, B]) == {
        "metadata": {"resourceVersion": "7"},
        "status": {"reservedFor": [A, B]},
    }


@pytest.mark.report("F064")
@pytest.mark.parametrize(
    ("owner", "entries", "pod", "expected"),
    [
        pytest.param(objects.pod_owner(), [], objects.pod(status={"phase": "Succeeded"}), True, id="pod finished"),
        pytest.param(objects.pod_owner(), [], objects.pod(uid="u-new"), True, id="pod replaced"),
        pytest.param(objects.pod_owner(), [], objects.pod(), False, id="pod alive"),
        pytest.param(objects.pod_owner(), [], None, False, id="pod unknown"),
        pytest.param(None, [], objects.pod(status={"phase": "Succeeded"}), False, id="claim of a user"),
        pytest.param(objects.pod_owner(), [A], objects.pod(status={"phase": "Failed"}), False, id="still reserved"),
    ],
)
def test_generated_claims_of_done_pods_are_obsolete(owner: t.Any, entries: t.Any, pod: t.Any, expected: bool) -> None:
    subject = objects.claim(
        metadata={"ownerReferences": [owner] if owner else []}, status={"reservedFor": list(entries)}
    )
    assert deallocation.is_obsolete(subject, pod) is expected


@pytest.mark.report("F060")
def test_holders_say_why_a_deleted_claim_stays() -> None:
    assert deallocation.holders(claim(A, objects.group_entry(), deleted=True)) == {
        "finalizers": [NEW],
        "consumers": ["pods/a (u-a)", "podgroups.scheduling.k8s.io/pg (u-pg)"],
    }
