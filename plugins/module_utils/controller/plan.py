# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a decision comes to: requests in their order, each with its reason; what to tell people; what to ask first.

Plans are data. The daemon performs them, check mode shows them.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ..resource.deallocation import finalizer_patch
from ..resource.generated import claim_status_entries
from . import requests
from .references import name_of, namespace_of, uid_of
from .requests import Use
from .shapes import Json


@dataclasses.dataclass(frozen=True)
class CreateClaim:
    """Make the claim of one entry. ``body`` has its name already; ``owner`` is its pod or PodGroup."""

    use: t.ClassVar[Use] = requests.CREATE_CLAIM
    namespace: str
    name: str
    entry: str
    body: Json
    reason: str

    def shown(self) -> t.Any:
        """The body of the request."""
        return self.body


@dataclasses.dataclass(frozen=True)
class ApplyNames:
    """Server-side apply of ``status.resourceClaimStatuses``: always the whole list.

    ``names`` maps entries to claims, None where no claim is needed. An entry whose claim is made in the same plan gets
    the name that the creation really led to, or none if it led to nothing. ``published`` is the list as it is now.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    names: t.Mapping[str, str | None]
    published: t.Mapping[str, str | None]
    reason: str

    @property
    def use(self) -> Use:
        """That of the kind."""
        return requests.APPLY_POD_STATUS if self.kind == "Pod" else requests.APPLY_POD_GROUP_STATUS

    def shown(self) -> t.Any:
        """The part of the body that matters."""
        return {"status": {"resourceClaimStatuses": claim_status_entries(self.names)}}


@dataclasses.dataclass(frozen=True)
class _ChangeOfClaim:
    claim: Json

    @property
    def namespace(self) -> str:
        """Of the claim."""
        return namespace_of(self.claim)

    @property
    def name(self) -> str:
        """Of the claim."""
        return name_of(self.claim)


@dataclasses.dataclass(frozen=True)
class PatchClaimStatus(_ChangeOfClaim):
    """Change reservation, allocation or the request for deallocation; ``patch`` has the resourceVersion in it."""

    use: t.ClassVar[Use] = requests.PATCH_CLAIM_STATUS
    patch: Json
    reason: str

    def shown(self) -> t.Any:
        """The patch."""
        return self.patch


@dataclasses.dataclass(frozen=True)
class RemoveFinalizers(_ChangeOfClaim):
    """Take finalizers off a claim, in the state that the write before has led to."""

    use: t.ClassVar[Use] = requests.PATCH_CLAIM
    finalizers: tuple[str, ...]
    reason: str

    def shown(self) -> t.Any:
        """The patch, as it would be for the claim as it is now."""
        return finalizer_patch(self.claim, self.finalizers)


@dataclasses.dataclass(frozen=True)
class DeleteClaim(_ChangeOfClaim):
    """Delete this very claim, in the state that the writes before have led to."""

    use: t.ClassVar[Use] = requests.DELETE_CLAIM
    reason: str

    def shown(self) -> t.Any:
        """The precondition."""
        return {"preconditions": {"uid": uid_of(self.claim)}}


@dataclasses.dataclass(frozen=True)
class CreateContext:
    """Make the PodSchedulingContext that names the node of a pod."""

    use: t.ClassVar[Use] = requests.CREATE_CONTEXT
    namespace: str
    name: str
    body: Json
    reason: str

    def shown(self) -> t.Any:
        """The body of the request."""
        return self.body


@dataclasses.dataclass(frozen=True)
class SelectNode:
    """Name the node in a PodSchedulingContext that exists."""

    use: t.ClassVar[Use] = requests.PATCH_CONTEXT
    namespace: str
    name: str
    patch: Json
    reason: str

    def shown(self) -> t.Any:
        """The patch."""
        return self.patch


Step = t.Union[CreateClaim, ApplyNames, PatchClaimStatus, RemoveFinalizers, DeleteClaim, CreateContext, SelectNode]


@dataclasses.dataclass(frozen=True)
class Problem:
    """Something that keeps a pod or a PodGroup from its claims, worth an event.

    ``passing`` ones mostly go away by themselves within a moment, when the caches have caught up, and are only told
    when they do not.
    """

    reason: str
    message: str
    passing: bool = False


@dataclasses.dataclass(frozen=True)
class Question:
    """An object whose existence has to be asked of the API server, because no cache can tell."""

    kind: str
    namespace: str
    name: str

    @property
    def use(self) -> Use:
        """The request that answers it."""
        return _QUESTIONS[self.kind]


_QUESTIONS = {"Pod": requests.GET_POD, "PodGroup": requests.GET_POD_GROUP, "ResourceClaim": requests.GET_CLAIM}

#: What the API server has answered: None for an object that does not exist.
Answers = t.Mapping[Question, t.Optional[Json]]


@dataclasses.dataclass(frozen=True)
class Plan:
    """With ``questions`` it is no plan yet: decide again when they are answered."""

    steps: tuple[Step, ...] = ()
    problems: tuple[Problem, ...] = ()
    questions: tuple[Question, ...] = ()


NOTHING = Plan()


def describe(step: Step) -> Json:
    """A request of a plan as data: verb, resource, namespace, name, reason and body."""
    return {
        "verb": step.use.verb,
        "resource": f"{step.use.resource}.{step.use.group}" if step.use.group else step.use.resource,
        "namespace": step.namespace,
        "name": step.name,
        "reason": step.reason,
        "body": step.shown(),
    }
