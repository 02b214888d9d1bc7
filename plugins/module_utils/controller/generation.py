# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which claim stands behind each template entry of a pod or PodGroup: published, found again, or to be made."""

from __future__ import annotations

import dataclasses
import typing as t

from ..resource.generated import CreationRefusedError, check_template_allowed
from ..resource.names import derived_name, deterministic_name
from ..resource.pod import PodClaim
from .caches import Caches
from .owners import Owner
from .plan import Answers, ApplyNames, CreateClaim, DeleteClaim, Problem, Question
from .references import name_of
from .settings import Switches
from .shapes import Json

FAILED_CREATION = "FailedResourceClaimCreation"
#: A name taken by somebody else so often in a row is no accident; the next pass goes on from there.
_ATTEMPTS = 20


@dataclasses.dataclass
class Generation:
    """What becomes of the entries of one owner. ``names`` is the whole list for its status."""

    caches: Caches
    owner: Owner
    switches: Switches
    answers: Answers
    names: dict[str, str | None] = dataclasses.field(default_factory=dict)
    creations: list[CreateClaim] = dataclasses.field(default_factory=list)
    problems: list[Problem] = dataclasses.field(default_factory=list)
    questions: list[Question] = dataclasses.field(default_factory=list)
    #: Published names of claims that belong to somebody else.
    foreign: set[str] = dataclasses.field(default_factory=set)

    def settle(self, entry: PodClaim) -> None:
        """Find or plan the claim of a template entry."""
        if self.caches.target.deterministic_names:
            self._settle_fixed(entry)
            return
        published = self.owner.published
        if entry.name in published:
            # Whatever becomes of the entry: a name that was left out of the next apply would be removed.
            self.names[entry.name] = published[entry.name]
            if self._holds(published[entry.name], entry.name):
                return
        if self.questions:
            return
        claims = self.caches.claims_of(self.owner.uid)
        found = self.owner.find(entry, claims)
        if found is not None:
            self.names[entry.name] = found["metadata"]["name"]
        else:
            self._create(entry)

    def _holds(self, name: str | None, entry: str) -> bool:
        """Whether a published name stands: no claim needed, or there is one; or nobody knows yet."""
        if name is None:
            return True
        claim = self.caches.claim(self.owner.namespace, name)
        if claim is None:
            # The status can be newer than our cache of claims: another claim in its place could be one too many.
            question = Question("ResourceClaim", self.owner.namespace, name)
            if question not in self.answers:
                self.questions.append(question)
                return True
            claim = self.answers[question]
            if claim is None:
                return False
        complaint = self.owner.complaint(claim)
        if complaint:
            self.foreign.add(name)
            self.problem(complaint, entry)
        return True

    def _settle_fixed(self, entry: PodClaim) -> None:
        """Up to 1.27 the name alone ties claim and pod together."""
        name = deterministic_name(self.owner.name, entry.name)
        claim = self.caches.claim(self.owner.namespace, name)
        if claim is None:
            self._create(entry)
            return
        complaint = self.owner.complaint(claim)
        if complaint:
            self.problem(complaint, entry.name)
        else:
            self.names[entry.name] = name

    def _create(self, entry: PodClaim) -> None:
        template_name = entry.template_name or ""
        template = self.caches.template(self.owner.namespace, template_name)
        if template is None:
            self.problem(
                f'resource claim template "{template_name}": resourceclaimtemplate.resource.k8s.io "{template_name}" '
                "not found",
                entry.name,
            )
            return
        switches = self.switches
        try:
            check_template_allowed(
                template, admin_access=switches.admin_access, prioritized_list=switches.prioritized_list
            )
        except CreationRefusedError as error:
            self.problem(error.message, entry.name)
            return
        body = self.owner.claim_from(entry, template)
        name = body["metadata"].get("name") or self._free_name(body, entry)
        body["metadata"]["name"] = name
        reason = f"{self.owner.described} needs a claim for {entry.name}, from ResourceClaimTemplate {template_name}"
        self.creations.append(CreateClaim(self.owner.namespace, name, entry.name, body, reason))
        self.names[entry.name] = name

    def _free_name(self, body: Json, entry: PodClaim) -> str:
        """The first derived name that no other claim has, also none that is just being deleted."""
        base, name = body["metadata"]["generateName"], ""
        for attempt in range(_ATTEMPTS):
            name = derived_name(base, self.owner.uid, entry.name, attempt)
            if self.caches.claim(self.owner.namespace, name) is None:
                break
        return name

    def problem(self, text: str, entry: str) -> None:
        """Note what keeps an entry from its claim, in the words of the original's events."""
        self.problems.append(Problem(FAILED_CREATION, f"{self.owner.event_prefix} {entry}: {text}"))

    def duplicates(self) -> list[DeleteClaim]:
        """Claims that were made twice, which takes a crash or another controller: where the status names one of them
        and it is there, those that nobody has begun to use are to go."""
        published, found = self.owner.published, []
        claims = [claim for claim in self.caches.claims_of(self.owner.uid) if _is_unused(claim)]
        if not claims:
            return []
        for entry in self.owner.entries():
            name = published.get(entry.name)
            named = self.caches.claim(self.owner.namespace, name) if name else None
            if named is None or self.names.get(entry.name) != name or self.owner.find(entry, [named]) is None:
                continue
            for claim in claims:
                if name_of(claim) != name and self.owner.find(entry, [claim]) is not None:
                    reason = f"{self.owner.described} uses {name} for {entry.name}; this one was made twice"
                    found.append(DeleteClaim(claim, reason))
        return found

    def publication(self) -> list[ApplyNames]:
        """The status write, if the status does not say all that already."""
        published = self.owner.published
        if self.caches.target.deterministic_names:
            return []
        if says(published, self.names):
            return []
        owner = self.owner
        reason = f"the status of {owner.described} has to name all its generated claims"
        return [ApplyNames(owner.kind, owner.namespace, owner.name, owner.uid, dict(self.names), published, reason)]


def says(published: t.Mapping[str, str | None], names: t.Mapping[str, str | None]) -> bool:
    """Whether a status names all these claims already."""
    return all(entry in published and published[entry] == name for entry, name in names.items())


def _is_unused(claim: Json) -> bool:
    status = claim.get("status") or {}
    return status.get("allocation") is None and not status.get("reservedFor")
