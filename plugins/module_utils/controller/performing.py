# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Carrying out a plan, request by request. Wherever it breaks off, the next pass goes on from what is there."""

from __future__ import annotations

import dataclasses
import typing as t

from ..checkpoint.errors import DraError
from ..kube import errors
from ..kube.client import Preconditions
from ..resource.deallocation import finalizer_patch
from ..resource.generated import claim_status_entries, has_same_origin
from .caches import Caches
from .gateway import Gateway
from .generation import FAILED_CREATION, says
from .metrics import Metrics
from .owners import GroupOwner, PodOwner
from .plan import (
    Answers,
    ApplyNames,
    CreateClaim,
    CreateContext,
    DeleteClaim,
    PatchClaimStatus,
    Plan,
    Problem,
    Question,
    RemoveFinalizers,
    SelectNode,
    Step,
)
from .shapes import Json


@dataclasses.dataclass
class Outcome:
    """What came of a plan. ``error`` is the first failure: the key has to come again."""

    done: list[Step] = dataclasses.field(default_factory=list)
    problems: list[Problem] = dataclasses.field(default_factory=list)
    error: DraError | None = None


class Performer:
    """Performs plans for one cluster; notes every answer in the caches at once."""

    def __init__(self, gateway: Gateway, metrics: Metrics) -> None:
        self._gateway, self._metrics = gateway, metrics

    async def answers(self, caches: Caches, questions: t.Iterable[Question]) -> Answers:
        """Ask the API server. What turns out to be gone is remembered; a claim that exists goes into the cache."""
        found: dict[Question, Json | None] = {}
        for question in questions:
            obj = found[question] = await self._gateway.ask(question)
            self._metrics.questions += 1
            cached = caches.get(question.kind, question.namespace, question.name)
            if obj is None and cached is not None and question.kind != "ResourceClaim":
                caches.gone.add(cached["metadata"]["uid"])
            if obj is not None and question.kind == "ResourceClaim":
                caches.wrote("ResourceClaim", obj)
        return found

    async def perform(self, caches: Caches, plan: Plan) -> Outcome:
        """Carry out the steps. Raises only ``FenceLostError``; other failures are in the outcome."""
        run = _Run(self._gateway, self._metrics, caches)
        for step in plan.steps:
            try:
                sent = await run.step(step)
            except errors.FenceLostError:
                raise
            except DraError as error:
                run.outcome.error = run.outcome.error or error
                if not isinstance(step, CreateClaim):
                    break
                # The claims that could be made are published all the same.
                run.failed_entries.add(step.entry)
            else:
                run.outcome.done += [step] if sent else []
        return run.outcome


class _Run:
    """One plan under way."""

    def __init__(self, gateway: Gateway, metrics: Metrics, caches: Caches) -> None:
        self._gateway, self._metrics, self._caches = gateway, metrics, caches
        self._made: dict[str, str] = {}
        self._latest: dict[str, Json | None] = {}
        self.failed_entries: set[str] = set()
        self.outcome = Outcome()

    async def step(self, step: Step) -> bool:
        """One request; False when it turned out that there is nothing to do."""
        if isinstance(step, CreateClaim):
            return await self._create(step)
        if isinstance(step, ApplyNames):
            return await self._publish(step)
        if isinstance(step, CreateContext):
            return await self._create_context(step)
        if isinstance(step, SelectNode):
            return await self._select_node(step)
        return await self._change_claim(step)

    # Claims that are made

    async def _create(self, step: CreateClaim) -> bool:
        try:
            made = await self._gateway.create(step.use, step.body, step.namespace)
        except errors.AlreadyExistsError as error:
            self._made[step.entry] = await self._met(step, error)
            return False
        except (errors.FenceLostError, errors.NotServedError):
            raise
        except errors.KubeError as error:
            self._metrics.created(step.body, False)
            prefix = GroupOwner.event_prefix if _is_for_group(step.body) else PodOwner.event_prefix
            said = error.facts.get("server_message") or error.message
            text = f"{prefix} {step.entry}: create ResourceClaim {step.name}: {said}"
            # Conflicts and overload pass; only what the server has against the claim itself is told at once.
            passing = not isinstance(error, (errors.InvalidObjectError, errors.ForbiddenError, errors.BadRequestError))
            self.outcome.problems.append(Problem(FAILED_CREATION, text, passing=passing))
            raise
        self._metrics.created(step.body, True)
        self._caches.wrote("ResourceClaim", made)
        self._made[step.entry] = made["metadata"]["name"]
        return True

    async def _met(self, step: CreateClaim, error: errors.AlreadyExistsError) -> str:
        """The name is taken: by the same claim, made before its answer was lost or by another controller, or not."""
        found = await self._gateway.ask(Question("ResourceClaim", step.namespace, step.name))
        if found is None:
            raise error
        self._caches.wrote("ResourceClaim", found)  # so that the next pass takes another name
        if not has_same_origin(found, step.body) or found["metadata"].get("deletionTimestamp"):
            raise error
        return step.name

    async def _publish(self, step: ApplyNames) -> bool:
        names: dict[str, str | None] = {
            entry: self._made.get(entry, name) for entry, name in step.names.items() if entry not in self.failed_entries
        }
        if says(step.published, names):
            return False
        body: Json = {
            "metadata": {"name": step.name, "namespace": step.namespace, "uid": step.uid},
            "status": {"resourceClaimStatuses": claim_status_entries(names)},
        }
        try:
            answer = await self._gateway.apply_status(step.use, body, step.name, step.namespace)
        except errors.NotServedError:
            raise
        except errors.NotFoundError:
            return False  # gone meanwhile; its claims go with it
        self._caches.wrote(step.kind, answer)
        return True

    # Claims that exist

    async def _change_claim(self, step: PatchClaimStatus | RemoveFinalizers | DeleteClaim) -> bool:
        claim = self._latest.get(step.name, step.claim)
        if claim is None:
            return False  # a step before has found it gone, or has been its end
        try:
            self._latest[step.name] = await self._changed(step, claim)
        except errors.NotServedError:
            raise
        except errors.NotFoundError:
            # Also how a deletion that no event told of comes to light; until a write is due, nothing hangs on it.
            self._latest[step.name] = None
        latest = self._latest[step.name]
        if latest is None:
            self._caches.removed("ResourceClaim", claim)
        else:
            self._caches.wrote("ResourceClaim", latest)
        return True

    async def _changed(self, step: PatchClaimStatus | RemoveFinalizers | DeleteClaim, claim: Json) -> Json | None:
        """The claim after the request; None when that was its end."""
        if isinstance(step, PatchClaimStatus):
            return await self._gateway.patch(step.use, step.patch, step.name, step.namespace)
        if isinstance(step, RemoveFinalizers):
            patch = finalizer_patch(claim, step.finalizers)
            answer = await self._gateway.patch(step.use, patch, step.name, step.namespace)
            metadata = answer["metadata"]
            ended = metadata.get("deletionTimestamp") and not metadata.get("finalizers")
            return None if ended else answer
        metadata = claim["metadata"]
        guard = Preconditions(metadata["uid"], metadata["resourceVersion"])
        answer = await self._gateway.delete(step.use, step.name, step.namespace, guard)
        left = answer.get("metadata") or {}
        if not left.get("deletionTimestamp") or not left.get("finalizers"):
            return None
        marks = {key: left[key] for key in ("deletionTimestamp", "resourceVersion")}
        return {**claim, "metadata": {**metadata, **marks}}

    # Scheduling

    async def _create_context(self, step: CreateContext) -> bool:
        try:
            answer = await self._gateway.create(step.use, step.body, step.namespace)
        except errors.AlreadyExistsError:
            return False  # its own event brings the pod here again
        self._caches.wrote("PodSchedulingContext", answer)
        return True

    async def _select_node(self, step: SelectNode) -> bool:
        answer = await self._gateway.patch(step.use, step.patch, step.name, step.namespace)
        self._caches.wrote("PodSchedulingContext", answer)
        return True


def _is_for_group(body: Json) -> bool:
    return any(owner.get("kind") == "PodGroup" for owner in body["metadata"].get("ownerReferences") or ())
