# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a claim needs: consumers that are gone dropped, then deallocation, then its finalizer, then its end."""

from __future__ import annotations

import typing as t

from ..resource.consumers import Consumer, Verdict, consumer_verdict, consumers
from ..resource.deallocation import ReleasePlan, is_obsolete, plan_release, status_patch
from ..resource.ownership import claim_view, owning_pod
from .caches import Caches
from .plan import Answers, DeleteClaim, PatchClaimStatus, Plan, Question, RemoveFinalizers, Step
from .references import namespace_of
from .shapes import Json


def decide_claim(caches: Caches, claim: Json, answers: Answers | None = None, *, doubt: bool = False) -> Plan:
    """The plan for a claim (controller: syncClaim).

    With ``doubt`` the caches are not believed when they say that a consumer exists: the API server is asked. That is
    for claims which should have been gone long ago.
    """
    given = answers or {}
    keep: set[str] = set()
    questions: list[Question] = []
    for consumer in consumers(claim):
        verdict = _verdict(caches, claim, consumer, given, doubt)
        if verdict is Verdict.KEEP:
            keep.add(consumer.uid)
        elif verdict is Verdict.ASK:
            questions.append(_question(claim, consumer))
    if questions:
        return Plan(questions=tuple(questions))
    release = plan_release(claim, keep)
    steps: list[Step] = []
    if release.changes_status:
        steps.append(PatchClaimStatus(claim, status_patch(claim, release), _release_reason(claim, keep, release)))
    if release.remove_finalizers:
        reason = "nothing is allocated any more that it protects"
        steps.append(RemoveFinalizers(claim, release.remove_finalizers, reason))
    if not keep and not claim_view(claim).is_deleted:
        reason = _end_reason(caches, claim)
        if reason:
            steps.append(DeleteClaim(claim, reason))
    return Plan(tuple(steps))


def _verdict(caches: Caches, claim: Json, consumer: Consumer, answers: Answers, doubt: bool) -> Verdict:
    if consumer.is_pod_group and not caches.target.pod_groups:
        return Verdict.KEEP  # a kind that this cluster does not show us is like one that nobody knows
    question = _question(claim, consumer)
    if question in answers:
        return consumer_verdict(consumer, answers[question], is_live_answer=True)
    found = caches.get(question.kind, question.namespace, question.name)
    verdict = consumer_verdict(consumer, found, known_deleted=caches.gone)
    is_ours = consumer.is_pod or consumer.is_pod_group
    return Verdict.ASK if doubt and is_ours and verdict is Verdict.KEEP else verdict


def _question(claim: Json, consumer: Consumer) -> Question:
    return Question("PodGroup" if consumer.is_pod_group else "Pod", namespace_of(claim), consumer.name)


def _release_reason(claim: Json, keep: t.Collection[str], release: ReleasePlan) -> str:
    lost = [str(consumer) for consumer in consumers(claim) if consumer.uid not in keep]
    shown = ", ".join(lost[:3]) + (f" and {len(lost) - 3} more" if len(lost) > 3 else "")
    if not lost:
        return "the claim is being deleted and nobody uses it"
    done = "" if keep else "; nobody is left"
    if release.request_deallocation:
        done += ", its driver has to deallocate it"
    return f"{shown} needs it no more{done}"


def _end_reason(caches: Caches, claim: Json) -> str:
    """Why a claim without consumers is to be deleted; empty when it stays."""
    owner = owning_pod(claim)
    if owner is None:
        return ""
    namespace = namespace_of(claim)
    unreserved = {**claim, "status": {**(claim.get("status") or {}), "reservedFor": []}}
    if is_obsolete(unreserved, caches.pod(namespace, owner.name)):
        return f"Pod {namespace}/{owner.name}, which it was generated for, is done or was replaced"
    return ""
