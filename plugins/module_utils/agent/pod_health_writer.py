# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Keeps the health of devices in the status of the pods that hold them, as a kubelet with health streams does.

Nobody waits for it: news of health, of pods and of prepared claims only put pods into a queue. One request at a time
goes out, at a limited rate, and many news of a pod in short order are one request.

Others write the same status. What they put there wins, and is put right again with growing pauses only: a kubelet that
does not know of these devices takes them out of the status within some ten seconds, each time (kubelet:
``status.manager.needsReconcile``), and an agent that insisted would fight with it for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.findings import Finding
from ..kube.errors import ConflictError, ForbiddenError, InvalidObjectError, NotFoundError
from ..kube.store import Handler
from ..kube.throttle import Throttle
from ..kube.workqueue import WorkQueue
from ..manager.device_health import HealthChange
from ..resource.view import JsonObject
from .api_claims import is_alive
from .claim_request import identity
from .node_pods import NodePods
from .pod_health import PodHealth, health_patch, known_health, same_health, shown_health, without_doubt
from .workplace import Workplace

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Pace:
    """How long the writer waits, in seconds.

    ``settle``: for more news of the same pod. ``doubt``: after the start, for the drivers' first reports, before a
    health that a status shows gives way to Unknown; as long as a report is good by default. ``overwritten`` to
    ``overwritten_limit``: before what somebody else has put in the place of a write is replaced; it begins anew after
    a write that has lasted ``lasting``. ``denied``: between tries while rights are missing. ``retry`` to
    ``retry_limit``: after failures.
    """

    settle: float = 0.2
    doubt: float = 30.0
    overwritten: float = 10.0
    overwritten_limit: float = 600.0
    lasting: float = 60.0
    denied: float = 600.0
    retry: float = 0.5
    retry_limit: float = 60.0
    requests_per_second: float = 10.0
    burst: int = 20


@dataclasses.dataclass
class _Written:
    """The last write of a pod: what was wanted, what the server made of it, and from which version to which.

    ``lost`` is when somebody was seen to have put something else there, ``overwritten`` how often that has happened.
    """

    wanted: PodHealth
    kept: PodHealth
    before: str
    version: str
    at: float
    overwritten: int = 0
    lost: float | None = None

    def is_newer_than(self, pod: JsonObject) -> bool:
        """Whether the watch has not brought the write yet. It began on the version before, so nothing is between."""
        return self.before != self.version and _version(pod) == self.before


class PodHealthWriter:
    """Writes for the pods of ``pods``; `run` is the work. ``count`` is told the result of each write."""

    def __init__(
        self, place: Workplace, pods: NodePods, count: t.Callable[[str], None], *, pace: Pace | None = None
    ) -> None:
        self._place, self._pods, self._count = place, pods, count
        self._pace = pace or Pace()
        self._queue: WorkQueue[str] = WorkQueue(
            "pod_health", first_delay=self._pace.retry, longest_delay=self._pace.retry_limit
        )
        self._throttle = Throttle(self._pace.requests_per_second, self._pace.burst)
        self._written: dict[str, _Written] = {}
        self._not_before: dict[str, float] = {}  # after failures: news of the pod do not make it any sooner
        self._in_doubt = True
        self._denied: ForbiddenError | None = None
        self._denied_until = 0.0
        self._dropped = False

    async def run(self) -> None:
        """Work until cancelled."""
        store, health = self._pods.store, self._place.manager.health
        handler = Handler(added=self._pod_seen, updated=lambda _old, pod: self._pod_seen(pod), deleted=self._pod_seen)
        with contextlib.ExitStack() as stack:
            stack.callback(self._queue.shut_down)
            stack.callback(health.listen(self._health_changed))
            stack.callback(store.subscribe(handler))
            async with asyncio.TaskGroup() as group:
                group.create_task(self._end_of_doubt())
                group.create_task(self._follow_claims())
                group.create_task(self._work())

    def findings(self) -> list[Finding]:
        """What keeps the health of devices out of the status of pods."""
        node = f"node {self._place.node_name}"
        found = []
        if self._denied is not None:
            remedy = "Allow the agent to patch pods/status, or set kubernetes.publish_health to false."
            found.append(Finding("pod_health_denied", "warning", node, self._denied.message, remedy))
        if self._dropped:
            text = "The API server takes the health of devices in the status of pods, and does not keep it."
            remedy = "Its feature gate ResourceHealthStatus is off, or it is older than 1.31."
            found.append(Finding("pod_health_not_kept", "warning", node, text, remedy))
        fought_over = [uid for uid, one in self._written.items() if one.overwritten > 1 and not self._lasts(one)]
        again = sorted(map(self._name, fought_over))
        if again:
            text = f"Somebody takes the health of devices out of the status of {len(again)} pods, such as {again[0]}."
            remedy = "A kubelet whose feature gate ResourceHealthStatus is off does this. The agent goes on slowly."
            found.append(Finding("pod_health_overwritten", "warning", node, text, remedy, {"pods": again[:20]}))
        return found

    # News

    def _pod_seen(self, pod: JsonObject) -> None:
        self._queue.add_after(identity(pod)[0], self._pace.settle)

    def _health_changed(self, changes: t.Sequence[HealthChange]) -> None:
        """Look at the pods that hold one of these devices (kubelet: ``HandleWatchResourcesStream``)."""
        changed = {(one.driver, one.pool, one.device) for one in changes}
        for report in self._place.manager.claims():
            state = report.record.state
            devices = {
                (driver, one.pool_name, one.device_name)
                for driver, listed in state.drivers.items()
                for one in listed or ()
            }
            if not devices.isdisjoint(changed):
                for uid in state.pod_uids:
                    self._queue.add_after(uid, self._pace.settle)

    async def _follow_claims(self) -> None:
        """Look at all pods when a claim was prepared: containers may have had a status before."""
        async for event in self._place.events.follow(self._place.events.last):
            if event.kind == "claim_prepared":
                self._look_at_all()

    async def _end_of_doubt(self) -> None:
        await asyncio.sleep(self._pace.doubt)
        self._in_doubt = False
        self._look_at_all()

    def _look_at_all(self) -> None:
        for pod in self._pods.alive():
            self._pod_seen(pod)

    # One pod

    async def _work(self) -> t.NoReturn:
        while True:
            async with self._queue.item() as uid:
                try:
                    await self._bring(uid)
                except DraError as error:
                    self._failed(uid, error)
                except Exception:
                    # The edge of one pod's work: an odd pod must not take all others with it.
                    log.exception("pod health ended by a bug, trying again later pod=%s", self._name(uid))
                    self._queue.add_after(uid, self._pace.retry_limit)

    async def _bring(self, uid: str) -> None:
        """Do what is due for a pod."""
        pod = self._pods.store.by_uid(uid)
        if pod is None:
            self._forget(uid)
            return
        if not is_alive(pod):
            return  # what is known of a device when its pod ends stays in the status
        last = self._written.get(uid)
        if last is not None and last.is_newer_than(pod):
            return  # it comes again with what was written
        try:
            wanted = known_health(pod, self._place.manager.allocated_resources_status)
        except DraError as error:
            log.debug("the health of a pod is not known pod=%s error=%s", self._name(uid), error)
            return
        shown = shown_health(pod, wanted)
        if self._in_doubt:
            wanted = without_doubt(wanted, shown)
        if shown == wanted or (last is not None and (last.wanted, last.kept) == (wanted, shown)):
            self._queue.forget(uid)
            if last is not None:
                last.lost = None
            return
        now = asyncio.get_running_loop().time()
        due = max(self._denied_until, self._not_before.get(uid, 0.0))
        if last is not None and last.wanted == wanted:
            due = max(due, self._overwritten(last, now))
        if due > now:
            self._queue.add_after(uid, due - now)
            return
        await self._write(uid, pod, wanted)

    def _overwritten(self, last: _Written, now: float) -> float:
        """When to replace what somebody has put in the place of a write."""
        pace = self._pace
        if last.lost is None:
            last.lost = now
            if now - last.at >= pace.lasting:
                last.overwritten = 0
        return last.lost + min(pace.overwritten_limit, pace.overwritten * 2.0 ** min(last.overwritten, 64))

    async def _write(self, uid: str, pod: JsonObject, wanted: PodHealth) -> None:
        loop = asyncio.get_running_loop()
        await self._throttle.take(float("inf"))
        try:
            answer = await self._pods.patch_status(pod, health_patch(pod, wanted))
        except NotFoundError:
            self._count("gone")  # the watch will say so too
            return
        except ForbiddenError as error:
            self._deny(uid, error)
            return
        except (ConflictError, InvalidObjectError) as error:
            if " is invalid: " in str(error.facts.get("server_message", "")):
                raise  # the server does not like the content
            self._count("conflict")  # somebody was faster: once more, on what the pod is by then
            self._queue.add_rate_limited(uid)
            return
        last = self._written.get(uid)
        again = 0 if last is None else last.overwritten + (last.lost is not None)
        kept = shown_health(answer, wanted)
        self._written[uid] = _Written(wanted, kept, _version(pod), _version(answer), loop.time(), again)
        self._not_before.pop(uid, None)
        self._queue.forget(uid)
        self._allowed()
        self._tell(uid, same_health(kept, wanted), again)

    def _forget(self, uid: str) -> None:
        self._written.pop(uid, None)
        self._not_before.pop(uid, None)
        self._queue.forget(uid)

    # Telling

    def _tell(self, uid: str, is_kept: bool, again: int) -> None:
        self._count("success" if is_kept else "not_kept")
        if self._dropped == is_kept:
            self._dropped = not is_kept
            if self._dropped:
                log.warning("the API server does not keep the health of devices, is ResourceHealthStatus off there?")
        if again == 2:
            log.warning("somebody takes the health of devices out of a status again and again pod=%s", self._name(uid))
        log.debug("pod health written pod=%s kept=%s", self._name(uid), is_kept)

    def _failed(self, uid: str, error: DraError) -> None:
        self._count("failure")
        first = self._queue.failures(uid) == 0
        delay = self._queue.add_rate_limited(uid)
        self._not_before[uid] = asyncio.get_running_loop().time() + delay
        if first:
            log.warning("pod health could not be written pod=%s retry_in=%.1f error=%s", self._name(uid), delay, error)

    def _deny(self, uid: str, error: ForbiddenError) -> None:
        self._count("denied")
        if self._denied is None:
            log.warning("the health of devices is not written, rights are missing error=%s", error)
        self._denied = error
        self._denied_until = asyncio.get_running_loop().time() + self._pace.denied
        self._queue.add_after(uid, self._pace.denied)

    def _allowed(self) -> None:
        if self._denied is not None:
            log.info("the health of devices is written, rights are there")
        self._denied, self._denied_until = None, 0.0

    def _lasts(self, written: _Written) -> bool:
        return written.lost is None and asyncio.get_running_loop().time() - written.at >= self._pace.lasting

    def _name(self, uid: str) -> str:
        pod = self._pods.store.by_uid(uid)
        return uid if pod is None else "/".join(identity(pod)[1:])


def _version(pod: JsonObject) -> str:
    return str(pod["metadata"].get("resourceVersion", ""))
