# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a kubelet does for its pods: claims are prepared when a pod appears, and given back when it has ended.

Each pod has a task of its own: a driver that hangs holds up the pods that need it and no other. Everything that fails
is tried again with growing pauses, at once when a driver of it registers or connects.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import typing as t

from ..checkpoint.errors import DraError
from ..kube.store import Handler
from ..manager.admission import BeingUnpreparedError
from ..manager.failures import BackingOffError, Backoff
from ..manager.manager import StoppedError
from ..resource.view import JsonObject
from .api_claims import is_alive
from .claim_request import PREPARED, ClaimRequest, gather, identity
from .node_pods import NodePods
from .workplace import Workplace

log = logging.getLogger(__name__)

RECONCILE_PERIOD = 60.0
"""Seconds between looks for claims that no pod holds (kubelet: reconcilePeriod)."""


class Keeper:
    """Keeps the claims of all pods of ``pods`` as they should be. `run` is the work, `drain` its end."""

    def __init__(
        self, place: Workplace, pods: NodePods, *, period: float = RECONCILE_PERIOD, backoff: Backoff | None = None
    ) -> None:
        self._place = place
        self._pods = pods
        self._period = period
        self._backoff = backoff or Backoff(cap=60.0)
        self._due = asyncio.Event()
        self._changed: dict[str, asyncio.Event] = {}
        self._prepared: dict[str, frozenset[str]] = {}
        self._failed: dict[str, tuple[int, str]] = {}
        self._busy: set[str] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._ending = False

    def use(self, *, period: float, backoff: Backoff) -> None:
        """Go on with these. The next look for claims that no pod holds comes at once."""
        self._period, self._backoff = period, backoff
        self._due.set()

    @property
    def pods(self) -> dict[str, int]:
        """How many pods are ``prepared``, and how many are ``waiting`` for something."""
        return {"prepared": len(self._prepared), "waiting": len(self._changed.keys() - self._prepared)}

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:

            def note(pod: JsonObject, _new: JsonObject | None = None) -> None:
                self._note(group, identity(pod)[0])

            unsubscribe = self._pods.store.subscribe(Handler(added=note, updated=note, deleted=note))
            try:
                await self._reconcile()
            finally:
                unsubscribe()

    async def drain(self) -> None:
        """Begin nothing new, and return when nothing is under way any more."""
        self._ending = True
        await self._idle.wait()

    def living(self, uid: str) -> JsonObject | None:
        """A pod that is kept here and may still run, None for any other."""
        pod = self._pods.store.by_uid(uid)
        return pod if pod is not None and is_alive(pod) else None

    def look_again(self) -> None:
        """Claims may have been taken from pods that still need them: those are prepared again."""
        states = {report.record.state.uid: report for report in self._place.manager.claims()}
        for uid, claims in list(self._prepared.items()):
            found = [states.get(claim) for claim in claims]
            if any(one is None or one.status != "prepared" or uid not in one.record.state.pod_uids for one in found):
                log.warning("claims were taken from a pod that still needs them pod=%s", uid)
                del self._prepared[uid]
                self._changed[uid].set()

    def driver_returned(self, name: str) -> None:
        """A driver can be called again: what waits may go on."""
        self._place.manager.driver_returned(name)
        self.try_at_once()

    def try_at_once(self) -> None:
        """What pods wait for may be there: do not wait for the next try."""
        for uid, changed in self._changed.items():
            if uid not in self._prepared:
                changed.set()

    # One pod

    def _note(self, group: asyncio.TaskGroup, uid: str) -> None:
        if uid in self._changed:
            self._changed[uid].set()
        elif not self._ending:
            self._changed[uid] = asyncio.Event()
            group.create_task(self._keep(uid), name=f"pod {uid}")

    async def _keep(self, uid: str) -> None:
        changed = self._changed[uid]
        while not self._ending:
            changed.clear()
            with self._working(uid):
                pause = await self._bring(uid)
            if self._pods.store.by_uid(uid) is None and not self._place.manager.pod_might_need_unprepare(uid):
                break
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await changed.wait()
        # No await since the last look: whatever comes now makes a new task.
        del self._changed[uid]
        self._prepared.pop(uid, None)
        self._failed.pop(uid, None)

    async def _bring(self, uid: str) -> float | None:
        """Do what is due for a pod; returns seconds until the next try, None: only a change helps."""
        pod = self._pods.store.by_uid(uid)
        try:
            if pod is None or not is_alive(pod):
                await self._release(uid, pod)
            elif uid not in self._prepared and not pod["metadata"].get("deletionTimestamp"):
                await self._prepare(uid, pod)
        except BackingOffError as error:
            return float(error.facts["retry_after"])
        except StoppedError as error:
            self._tell(uid, pod, error)
            return None
        except DraError as error:
            return self._tell(uid, pod, error)
        except Exception:
            # The edge of one pod's loop: an odd pod must not take all others with it.
            log.exception("pod ended by a bug, trying again later pod=%s uid=%s", _name(uid, pod), uid)
            return self._backoff.cap
        self._failed.pop(uid, None)
        return None

    async def _prepare(self, uid: str, pod: JsonObject) -> None:
        whole = await gather(ClaimRequest(PREPARED, pod), self._pods.fetch)
        manager = self._place.manager
        try:
            prepared = await manager.prepare(pod, whole.claims, obey_backoff=True)
        except BeingUnpreparedError as error:
            # Somebody began to take it from this pod and a driver failed: only the end of that makes it prepared again.
            await manager.unprepare_claims([error.facts["claim_uid"]], pod_uid=uid)
            prepared = await manager.prepare(pod, whole.claims, obey_backoff=True)
        now = self._pods.store.by_uid(uid)
        if now is None or not is_alive(now):
            return  # it ended meanwhile: the change that said so is noted, and gives all of it back
        self._prepared[uid] = frozenset(claim.uid for claim in prepared)
        log.info("pod prepared pod=%s uid=%s claims=%d", _name(uid, pod), uid, len(prepared))
        for claim in prepared:
            self._place.events.add("claim_prepared", f"{claim.full_name} ({claim.uid})", f"for pod {_name(uid, pod)}")

    async def _release(self, uid: str, pod: JsonObject | None) -> None:
        self._prepared.pop(uid, None)
        if not self._place.manager.pod_might_need_unprepare(uid):
            return
        labels = self._labels()
        released = await self._place.manager.unprepare(uid)
        log.info("pod released pod=%s uid=%s claims=%d", _name(uid, pod), uid, len(released.gone))
        for gone in released.gone:
            self._place.events.add("claim_unprepared", labels.get(gone, gone), f"for pod {_name(uid, pod)}")

    def _tell(self, uid: str, pod: JsonObject | None, error: DraError) -> float:
        count, before = self._failed.get(uid, (0, ""))
        self._failed[uid] = count + 1, error.message
        pause = self._backoff.delay(count + 1)
        if error.message != before:
            log.warning("pod cannot go on pod=%s uid=%s retry_in=%.1f error=%s", _name(uid, pod), uid, pause, error)
            self._place.events.add("claim_failed", f"pod {_name(uid, pod)} ({uid})", error.message)
        return pause

    # All pods

    async def _reconcile(self) -> t.NoReturn:
        """Give back what pods held that ended while nobody looked (kubelet: ``manager.reconcileLoop``)."""
        told = ""
        while True:
            # Before all pods were seen, every pod would look like one that is gone.
            if self._pods.synced and not self._ending:
                self.look_again()
                labels = self._labels()
                try:
                    with self._working(""):
                        done = await self._place.manager.reconcile(self._pods.active)
                except DraError as error:
                    failures, gone = [error], []
                else:
                    failures, gone = done.failures, done.gone
                for uid in gone:
                    log.info("claim released, no pod holds it claim=%s", labels.get(uid, uid))
                    self._place.events.add("claim_unprepared", labels.get(uid, uid), "no pod holds it any more")
                text = "; ".join(str(error) for error in failures)
                if text and text != told:
                    log.warning("claims could not be released, trying again error=%s", text)
                told = text
            self._due.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._period if self._pods.synced else 0.2):
                    await self._due.wait()

    def _labels(self) -> dict[str, str]:
        states = [report.record.state for report in self._place.manager.claims()]
        return {state.uid: f"{state.namespace}/{state.name} ({state.uid})" for state in states}

    @contextlib.contextmanager
    def _working(self, what: str) -> t.Iterator[None]:
        self._busy.add(what)
        self._idle.clear()
        try:
            yield
        finally:
            self._busy.discard(what)
            if not self._busy:
                self._idle.set()


def _name(uid: str, pod: JsonObject | None) -> str:
    if pod is None:
        return uid
    _uid, namespace, name = identity(pod)
    return f"{namespace}/{name}"
