# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The controller at work with one version of the API, until it ends or the version is served no more."""

from __future__ import annotations

import asyncio
import logging
import typing as t

from ..kube.client import KubeClient
from ..kube.ending import end_all
from ..kube.recorder import EventRecorder
from ..kube.reflector import Reflector
from ..kube.workers import run_workers
from ..kube.workqueue import WorkQueue
from .caches import Caches
from .deciding import decide
from .gateway import Gateway
from .keys import CLAIM, GROUP, KINDS, POD, Key
from .metrics import QUEUE_NAME, Metrics
from .owners import reference_of
from .performing import Performer
from .plan import NOTHING, Plan, Question
from .settings import ControllerSettings
from .shapes import Json
from .target import Target
from .telling import Teller
from .triggers import Triggers

log = logging.getLogger(__name__)

COMPONENT = "resource_claim"
#: After this many keys a sweep lets others work, for this long.
_SWEEP_TURN, _SWEEP_PAUSE = 200, 0.1
#: Answers can lead to further questions, but not often.
_ROUNDS = 4


class Session:
    """Caches, queue and workers for one ``target``. ``run`` is the work; ``ready`` is set when all caches are full."""

    def __init__(self, client: KubeClient, target: Target, settings: ControllerSettings, metrics: Metrics) -> None:
        self.target, self.settings = target, settings
        self.ready = asyncio.Event()
        self.queue: WorkQueue[Key] = WorkQueue(QUEUE_NAME, longest_delay=settings.longest_delay, observer=metrics.queue)
        self.recorder = EventRecorder(client, COMPONENT, host=settings.host)
        self.teller = Teller(self.recorder, settings.grace, settings.tell_again)
        self.caches = {name: Caches(target, name) for name in settings.namespaces or ("",)}
        self.reflectors: list[Reflector[Json]] = []
        for caches in self.caches.values():
            Triggers(caches, self.queue, metrics.claims, self.teller.forget)
            self.reflectors += caches.reflectors(client, settings.reflector)
        self._performer = Performer(Gateway(client, target), metrics)
        self._doubted: set[Key] = set()
        self._stopping = False

    async def run(self) -> None:
        """Work until cancelled. Raises ``NotServedError`` when the version is not served any more, ``FenceLostError``
        when nothing may be written any more."""
        tasks: set[asyncio.Future[t.Any]] = {asyncio.ensure_future(one.run()) for one in self.reflectors}
        tasks.add(asyncio.ensure_future(self.recorder.run()))
        working: asyncio.Future[None] | None = None
        try:
            synced = asyncio.ensure_future(self._synced())
            tasks.add(synced)
            await _until(synced, tasks - {synced})
            log.info("caches are full version=%s objects=%s", self.target.version.name, self.sizes())
            self.ready.set()
            working = asyncio.ensure_future(run_workers(self.queue, self.sync, self.settings.workers))
            tasks.add(asyncio.ensure_future(self._sweep()))
            await _until(working, tasks)
        finally:
            self.ready.clear()
            self._stopping = True
            self.queue.shut_down()
            try:
                if working is not None:
                    tasks.add(working)
                    await asyncio.wait({working}, timeout=self.settings.drain)
            finally:
                await end_all(tasks)

    async def _synced(self) -> None:
        for reflector in self.reflectors:
            await reflector.synced.wait()

    def sizes(self) -> dict[str, int]:
        """How many objects of each kind are kept."""
        found: dict[str, int] = {}
        for caches in self.caches.values():
            for kind, store in caches.stores.items():
                found[kind] = found.get(kind, 0) + len(store)
        return found

    # Work

    async def sync(self, key: Key) -> None:
        """Look at one key and do what is due. Raises what makes it come again."""
        if self._stopping:
            return
        caches = self.caches.get(key.namespace) or self.caches.get("")
        if caches is None:
            return
        plan = await self._plan(caches, key)
        outcome = await self._performer.perform(caches, plan)
        for step in outcome.done:
            log.info(
                "done verb=%s resource=%s object=%s/%s reason=%s",
                step.use.verb,
                step.use.resource,
                step.namespace,
                step.name,
                step.reason,
            )
        self._tell(caches, key, plan, outcome.problems)
        if outcome.error is not None:
            raise outcome.error

    async def _plan(self, caches: Caches, key: Key) -> Plan:
        doubt = key in self._doubted
        self._doubted.discard(key)
        answers: dict[Question, Json | None] = {}
        switches = self.settings.switches
        for _unused in range(_ROUNDS):
            plan = decide(caches, key, switches, answers, doubt=doubt)
            if not plan.questions:
                return plan
            answers.update(await self._performer.answers(caches, plan.questions))
        return NOTHING

    def _tell(self, caches: Caches, key: Key, plan: Plan, problems: t.Sequence[t.Any]) -> None:
        if key.what == CLAIM:
            return
        obj = caches.get(KINDS[key.what], key.namespace, key.name)
        if obj is None:
            self.teller.forget(key)
            return
        wait = self.teller.report(key, reference_of(KINDS[key.what], obj, self.target), (*plan.problems, *problems))
        if wait is not None:
            self.queue.add_after(key, wait)

    # Sweep

    async def _sweep(self) -> t.NoReturn:
        """From time to time look at everything, whatever events have been missed."""
        while True:
            await asyncio.sleep(self.settings.sweep)
            await self.sweep()

    async def sweep(self) -> None:
        """Queue every object once. Claims that should have been gone are looked at with doubt in the caches."""
        number = 0
        for caches in self.caches.values():
            for what in (GROUP, POD, CLAIM):
                store = caches.stores.get(KINDS[what])
                for namespace, name in store.keys() if store is not None else ():
                    key = Key(what, namespace, name)
                    if what == CLAIM and _should_be_gone(caches.claim(namespace, name)):
                        self._doubted.add(key)
                    self.queue.add(key)
                    number += 1
                    if number % _SWEEP_TURN == 0:
                        await asyncio.sleep(_SWEEP_PAUSE)


def _should_be_gone(claim: Json | None) -> bool:
    return claim is not None and bool(
        claim["metadata"].get("deletionTimestamp") and (claim.get("status") or {}).get("reservedFor")
    )


async def _until(wanted: asyncio.Future[None], others: t.Collection[asyncio.Future[t.Any]]) -> None:
    """Wait for one thing; raises when another one fails before."""
    waiting: set[asyncio.Future[t.Any]] = {wanted, *others}
    while not wanted.done():
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done - {wanted}:
            task.result()
    wanted.result()
