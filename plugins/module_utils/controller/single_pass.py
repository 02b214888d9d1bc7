# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One pass of the controller over some objects, by the decisions of the daemon: planned only, or carried out."""

from __future__ import annotations

import asyncio
import dataclasses
import typing as t

from ..checkpoint.errors import DraError
from ..kube.client import KubeClient
from .caches import Caches
from .deciding import decide
from .gateway import Gateway
from .keys import CLAIM, GROUP, KINDS, POD, Key, claim_key, pod_key
from .metrics import Metrics
from .needs import check_rights
from .performing import Performer
from .plan import Plan, Problem, Question, Step
from .references import claim_names, group_names, uid_of
from .rehearsal import Rehearsal
from .settings import ControllerSettings
from .shapes import Json
from .target import Target, find_target

#: One key leads to the next step at most so often; more would mean that somebody else undoes it.
_ROUNDS = 8


@dataclasses.dataclass(frozen=True)
class Selection:
    """What to look at: namespaces, or pods and claims as (namespace, name). Nothing at all means everything.

    A pod brings the claims and the PodGroup along that it uses.
    """

    namespaces: tuple[str, ...] = ()
    pods: tuple[tuple[str, str], ...] = ()
    claims: tuple[tuple[str, str], ...] = ()

    @property
    def caches(self) -> tuple[str, ...]:
        """The namespaces that have to be read; "" for all of them."""
        named = {namespace for namespace, _name in (*self.pods, *self.claims)}
        return tuple(sorted({*self.namespaces, *named})) or ("",)


@dataclasses.dataclass(frozen=True)
class KeyResult:
    """What is due for one object, or was done. ``error`` is why it could not be done."""

    key: Key
    steps: tuple[Step, ...] = ()
    problems: tuple[Problem, ...] = ()
    error: DraError | None = None


@dataclasses.dataclass(frozen=True)
class PassResult:
    """``results`` holds the objects for which something is due or wrong. ``missing`` were asked for and do not exist,
    or are pods without claims."""

    target: Target
    results: tuple[KeyResult, ...]
    missing: tuple[Key, ...]
    looked_at: int

    @property
    def steps(self) -> list[Step]:
        """All requests in their order."""
        return [step for result in self.results for step in result.steps]


async def run_pass(
    client: KubeClient, selection: Selection, settings: ControllerSettings | None = None, *, perform: bool = True
) -> PassResult:
    """Look at everything that is selected, once, and do what is due unless ``perform`` is off.

    PodGroups come first, then pods, then claims. A failure with one object does not keep the others from their turn.
    Raises what stands against the whole pass: no usable API version, missing rights, no connection.
    """
    settings = settings or ControllerSettings()
    target = await find_target(client, allow_alpha=settings.allow_alpha, pod_groups=settings.pod_groups)
    if settings.check_rights and perform:
        await check_rights(client, target, tuple(name for name in selection.caches if name))
    everything = {name: Caches(target, name) for name in selection.caches}
    for caches in everything.values():
        await caches.fill(client, settings.reflector.page_size)
    keys, missing = _keys(everything, selection)
    make = Performer if perform else Rehearsal
    worker = _Worker(everything, make(Gateway(client, target), Metrics()), settings)
    results: list[KeyResult] = []
    for what in (GROUP, POD, CLAIM):
        results += await worker.work([key for key in keys if key.what == what])
    shown = tuple(result for result in results if result.steps or result.problems or result.error)
    return PassResult(target, shown, tuple(missing), len(keys))


class _Worker:
    def __init__(self, caches: t.Mapping[str, Caches], performer: Performer, settings: ControllerSettings) -> None:
        self._caches, self._performer, self._settings = caches, performer, settings
        self._turns = asyncio.Semaphore(settings.workers)

    async def work(self, keys: t.Sequence[Key]) -> list[KeyResult]:
        """All keys, some at a time, results in the order of the keys."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._one(key)) for key in keys]
        return [task.result() for task in tasks]

    async def _one(self, key: Key) -> KeyResult:
        caches = self._caches.get(key.namespace) or self._caches[""]
        steps: list[Step] = []
        problems: tuple[Problem, ...] = ()
        async with self._turns:
            try:
                for _unused in range(_ROUNDS):
                    plan = await self._plan(caches, key)
                    problems = plan.problems
                    if not plan.steps:
                        break
                    outcome = await self._performer.perform(caches, plan)
                    steps += outcome.done
                    if outcome.error is not None:
                        problems = (*problems, *outcome.problems)
                        return KeyResult(key, tuple(steps), problems, outcome.error)
            except DraError as error:
                return KeyResult(key, tuple(steps), problems, error)
        return KeyResult(key, tuple(steps), problems)

    async def _plan(self, caches: Caches, key: Key) -> Plan:
        answers: dict[Question, Json | None] = {}
        while True:
            plan = decide(caches, key, self._settings.switches, answers)
            new = [question for question in plan.questions if question not in answers]
            if not new:
                return plan
            answers.update(await self._performer.answers(caches, new))


def _keys(everything: t.Mapping[str, Caches], selection: Selection) -> tuple[list[Key], list[Key]]:
    """What to look at, each once and in order; and what was asked for but is not there."""
    keys: dict[Key, None] = {}
    missing: list[Key] = []
    whole = selection.namespaces or (() if selection.pods or selection.claims else ("",))
    for name in whole:
        for what in (GROUP, POD, CLAIM):
            store = everything[name].stores.get(KINDS[what])
            keys.update(dict.fromkeys(Key(what, *key) for key in sorted(store.keys() if store is not None else ())))
    for namespace, name in selection.pods:
        pod = everything[namespace].pod(namespace, name)
        if pod is None:
            missing.append(Key(POD, namespace, name))
        else:
            keys.update(dict.fromkeys(_around(everything[namespace], pod)))
    for namespace, name in selection.claims:
        claim = everything[namespace].claim(namespace, name)
        if claim is None:
            missing.append(Key(CLAIM, namespace, name))
            continue
        keys[claim_key(claim)] = None
    return list(keys), missing


def _around(caches: Caches, pod: Json) -> t.Iterator[Key]:
    """A pod with what it uses."""
    for group in group_names(pod):
        yield Key(GROUP, *group)
    yield pod_key(pod)
    for named in sorted(claim_names(pod, caches.target.deterministic_names)):
        yield Key(CLAIM, *named)
    for claim in (*caches.claims_of(uid_of(pod)), *caches.claims_reserved_for(uid_of(pod))):
        yield claim_key(claim)
