# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a pod or PodGroup needs: its claims, their names in its status, and for a bound pod its reservations."""

from __future__ import annotations

import typing as t

from ..resource.consumers import (
    explain_obstacle,
    is_reserved_for,
    pod_consumer,
    pod_group_consumer,
    reservation_obstacle,
    with_consumer,
)
from ..resource.deallocation import reservation_patch
from ..resource.pod import (
    ClaimNotCreatedError,
    PodClaim,
    UnsupportedPodClaimError,
    claim_name_for,
    extended_resource_claim,
    is_done,
    node_name,
    pod_view,
)
from ..resource.podgroup import binds_to_pod_group, pod_group_claim_name_for, pod_group_name
from ..resource.scheduling import belongs_to, needs_scheduling_context, scheduling_context, selected_node
from .caches import Caches
from .generation import FAILED_CREATION, Generation
from .owners import GroupOwner, PodOwner
from .plan import NOTHING, Answers, CreateContext, PatchClaimStatus, Plan, Problem, Question, SelectNode, Step
from .settings import Switches
from .shapes import Json

FAILED_RESERVATION = "FailedResourceClaimReservation"


def decide_pod(caches: Caches, pod: Json, switches: Switches, answers: Answers | None = None) -> Plan:
    """The plan for a pod (controller: syncPod). A pod that is done or being deleted gets nothing any more."""
    if pod_view(pod).is_deleted or is_done(pod):
        return NOTHING
    owner = PodOwner(pod, caches.target)
    generation = Generation(caches, owner, switches, answers or {})
    group: Json | None = None
    wanted = pod_group_name(pod) if caches.target.pod_groups else ""
    if wanted:
        group = caches.pod_group(owner.namespace, wanted)
        if group is None:
            # Which claims are the group's and which the pod's own can only be said with the group.
            text = f"PodGroup {owner.namespace}/{wanted} of the pod was not found"
            return Plan(problems=(Problem(FAILED_CREATION, text, passing=True),))
    entries = owner.entries()
    shared = {entry.name for entry in entries if binds_to_pod_group(pod, entry, group)}
    for entry in entries:
        if entry.name in shared and group is not None:
            _take_from_group(generation, group, entry)
        elif entry.template_name:
            generation.settle(entry)
        elif not entry.claim_name:
            _report_unsupported(generation, entry)
    if generation.questions:
        return Plan(questions=tuple(generation.questions))
    steps: list[Step] = [*generation.creations, *generation.publication(), *generation.duplicates()]
    if node_name(pod):
        uses = _uses(pod, entries, generation.names)
        steps += _Binding(caches, pod, group, shared, generation).steps(uses)
    return Plan(tuple(steps), tuple(generation.problems))


def decide_pod_group(caches: Caches, group: Json, switches: Switches, answers: Answers | None = None) -> Plan:
    """The plan for a PodGroup: claims from its templates, named in its status."""
    owner = GroupOwner(group, caches.target)
    if group["metadata"].get("deletionTimestamp"):
        return NOTHING
    generation = Generation(caches, owner, switches, answers or {})
    for entry in owner.entries():
        if entry.template_name:
            generation.settle(entry)
    if generation.questions:
        return Plan(questions=tuple(generation.questions))
    steps: list[Step] = [*generation.creations, *generation.publication(), *generation.duplicates()]
    return Plan(tuple(steps), tuple(generation.problems))


def _take_from_group(generation: Generation, group: Json, entry: PodClaim) -> None:
    """The pod's status names the group's claim too: that is where the kubelet looks."""
    if not entry.template_name:
        return
    try:
        generation.names[entry.name] = pod_group_claim_name_for(group, entry).name
    except ClaimNotCreatedError:
        # The group's own events tell why; its next change brings the pod here again.
        published = generation.owner.published
        if entry.name in published:
            generation.names[entry.name] = published[entry.name]


def _report_unsupported(generation: Generation, entry: PodClaim) -> None:
    try:
        claim_name_for(generation.owner.obj, entry)
    except UnsupportedPodClaimError as error:
        generation.problem(error.message, entry.name)


def _uses(pod: Json, entries: t.Sequence[PodClaim], names: t.Mapping[str, str | None]) -> dict[str, str]:
    """Claims that the pod uses, each with the entry that names it first; that of extended resources has none."""
    uses: dict[str, str] = {}
    for entry in entries:
        name = entry.claim_name or names.get(entry.name)
        if name:
            uses.setdefault(name, entry.name)
    extended = extended_resource_claim(pod)
    if extended is not None:
        uses.setdefault(extended.claim_name, "")
    return uses


class _Binding:
    """Reservations of a pod that has a node already, which the scheduler has not made."""

    def __init__(
        self, caches: Caches, pod: Json, group: Json | None, shared: t.Collection[str], generation: Generation
    ) -> None:
        self._caches, self._pod, self._group, self._shared = caches, pod, group, shared
        self._generation = generation
        self._planned = {step.name: step.body for step in generation.creations}
        self._problems: list[Problem] = generation.problems

    def steps(self, uses: t.Mapping[str, str]) -> list[Step]:
        """What is due for these claims."""
        owner, steps = self._generation.owner, list[Step]()
        needs_context = False
        for name, entry in uses.items():
            claim = self._planned.get(name) or self._known(name)
            if claim is None or (name not in self._planned and is_reserved_for(self._pod, claim)):
                continue
            if self._caches.target.contexts and needs_scheduling_context(self._pod, claim):
                needs_context = True
            elif name not in self._planned:
                steps += self._reservation(claim, entry, owner.described)
        return [*steps, *self._context()] if needs_context else steps

    def _known(self, name: str) -> Json | None:
        namespace = self._generation.owner.namespace
        if name in self._generation.foreign:
            return None
        found = self._caches.claim(namespace, name)
        return found or self._generation.answers.get(Question("ResourceClaim", namespace, name))

    def _reservation(self, claim: Json, entry: str, described: str) -> list[Step]:
        release = self._caches.target.release
        obstacle = reservation_obstacle(claim, release)
        if obstacle is not None:
            label = f"PodResourceClaim {entry}" if entry else "extended resources"
            text = f"{label}: {explain_obstacle(obstacle, claim, release)}"
            self._problems.append(Problem(FAILED_RESERVATION, text, passing=True))
            return []
        if entry in self._shared and self._group is not None:
            consumer = pod_group_consumer(self._group)
        else:
            consumer = pod_consumer(self._pod)
        reason = f"{described} runs on node {node_name(self._pod)} and is not among the consumers"
        return [PatchClaimStatus(claim, reservation_patch(claim, with_consumer(claim, consumer)), reason)]

    def _context(self) -> list[Step]:
        """The PodSchedulingContext that names the pod's node to the driver's controller."""
        owner, version = self._generation.owner, self._caches.target.version
        node = node_name(self._pod)
        reason = f"{owner.described} runs on node {node} and its claim waits for a consumer"
        context = self._caches.context(owner.namespace, owner.name)
        if context is None:
            return [CreateContext(owner.namespace, owner.name, scheduling_context(self._pod, version), reason)]
        if not belongs_to(context, self._pod, version):
            text = f"PodSchedulingContext {owner.namespace}/{owner.name} belongs to an earlier pod of the same name"
            self._problems.append(Problem(FAILED_RESERVATION, text, passing=True))
            return []
        if selected_node(context, version) == node:
            return []
        guard = {"resourceVersion": context["metadata"]["resourceVersion"]}
        patch = {"metadata": guard, "spec": {"selectedNode": node}}
        return [SelectNode(owner.namespace, owner.name, patch, reason)]
