# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Being the only one: leader election by a Lease, with a fence around everything that the leader writes.

The rules that make it safe:

- Others take the lease over when they have not seen it change for ``duration`` seconds on their own clock. We count
  from before a renewal is sent, and only ``renew_deadline`` seconds: what lies between is room for a request that is
  still on its way.
- The guarded work gets a ``Fence``. It closes by the clock, with no help of any task: a process that was frozen finds
  it closed when it wakes up.
- Renewal and work live and die together. If the work ends, for whatever reason, nothing renews any more.
- The lease is given up only after the last write has got its answer; otherwise it is left to run out.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import random
import socket
import time
import typing as t
import uuid

from . import errors
from .client import KubeClient
from .ending import end_all
from .fence import Fence, lease_clock
from .lease_record import LeaseObject, Observed, held_spec, observed, released_spec
from .resources import resource_of
from .shapes import decoder, encode

log = logging.getLogger(__name__)

Work = t.Callable[[Fence], t.Awaitable[None]]


@dataclasses.dataclass(frozen=True)
class LeaseSettings:
    """Times in seconds, by default those of Kubernetes' own controllers. ``retry`` is the rhythm of both sides."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0
    release_timeout: float = 5.0

    def __post_init__(self) -> None:
        """Refuse times that could not work."""
        if not 0 < self.retry < self.renew_deadline < self.duration or self.duration < 1:
            raise errors.ConfigurationError(
                f"A lease of {self.duration:g} s with renewal within {self.renew_deadline:g} s, tried every "
                f"{self.retry:g} s, cannot work.",
                "Choose duration > renew_deadline > retry > 0, and a duration of at least 1 s; 15, 10 and 2 are usual.",
            )


class LeaseObserver(t.Protocol):
    """Hears how the election goes, for metrics and logs."""

    def leading(self, is_leader: bool) -> None:
        """We became leader, or are not any more."""

    def holder_changed(self, identity: str) -> None:
        """Somebody else holds the lease now; empty for nobody."""


def own_identity() -> str:
    """A name for this life of this process: with a lasting one it would take its former lease for its own."""
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"


class Lease:
    """A candidate for the Lease ``namespace/name``, which bears ``labels`` and ``annotations`` while it is the leader.

    ``clock`` is for terms, ``now`` (wall time) only for the record.
    """

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        name: str,
        *,
        identity: str = "",
        labels: t.Mapping[str, str] | None = None,
        annotations: t.Mapping[str, str] | None = None,
        settings: LeaseSettings | None = None,
        observer: LeaseObserver | None = None,
        clock: t.Callable[[], float] = lease_clock,
        now: t.Callable[[], float] = time.time,
        rand: t.Callable[[], float] = random.random,
    ) -> None:
        self.namespace, self.name = namespace, name
        self.identity = identity or own_identity()
        self.settings = settings or LeaseSettings()
        about = {"labels": labels, "annotations": annotations}
        self._about = {key: dict(value) for key, value in about.items() if value}
        self._client = client.without_limits()
        self._resource = resource_of("Lease")
        self._observer, self._clock, self._now, self._rand = observer, clock, now, rand
        self._seen: Observed | None = None
        self._seen_at = float("-inf")
        self.holder = ""
        self.last_error = ""

    async def run(self, work: Work, *, healthy: t.Callable[[], bool] | None = None) -> None:
        """Wait for the lease, do ``work`` while it is held, give it up.

        Returns or raises what ``work`` does. When the lease is lost ``work`` is cancelled and ``LeaseLostError`` is
        raised; the process should then end. While ``healthy`` says no, nothing is renewed.
        """
        until = await self._acquire()
        fence = Fence(until, self._clock)
        log.info("lease acquired lease=%s/%s identity=%s", self.namespace, self.name, self.identity)
        self._tell(True)
        try:
            await self._lead(work, fence, healthy)
        finally:
            fence.revoke(fence.why or "the work has ended")
            self._tell(False)
            await self._give_up(fence)

    # Candidate

    async def _acquire(self) -> float:
        """Try until the lease is ours; gives the end of the first term on our clock."""
        while True:
            started = self._clock()
            try:
                if await self._take(self.settings.renew_deadline):
                    until = started + self.settings.renew_deadline
                    if until - self._clock() > self.settings.retry:
                        return until
                    continue  # the answer took so long that little is left of the term: renew before the work begins
                self.last_error = ""
            except errors.ConflictError:
                pass  # another candidate was faster; it is looked at again below
            except errors.KubeError as error:
                if error.message != self.last_error:
                    log.warning("lease cannot be had lease=%s/%s error=%s", self.namespace, self.name, error)
                self.last_error = error.message
            await asyncio.sleep(self.settings.retry * (1 + 0.2 * self._rand()))

    async def _take(self, timeout: float) -> bool:
        """Take or renew the lease if it is free, run out, or ours; False while another one holds it."""
        try:
            lease = t.cast(
                "LeaseObject",
                await self._client.get(self._resource, self.name, self.namespace, shape=LeaseObject, timeout=timeout),
            )
        except errors.NotServedError:
            raise
        except errors.NotFoundError:
            body = {
                "metadata": {"name": self.name, "namespace": self.namespace, **self._about},
                "spec": held_spec(self.identity, self.settings.duration, self._now(), None),
            }
            made = await self._client.create(self._resource, body, self.namespace, timeout=timeout)
            self._see(observed(decoder(LeaseObject)(encode(made))))
            return True
        found = observed(lease)
        self._see(found)
        taken_at = self._seen_at + max(found.duration, self.settings.duration)
        if found.holder not in ("", self.identity) and self._clock() < taken_at:
            return False
        await self._hold(found, timeout)
        return True

    def _see(self, found: Observed) -> None:
        """Note when the record last changed, by our own clock: the clocks of two hosts need not agree."""
        if found != self._seen:
            self._seen, self._seen_at = found, self._clock()
        if found.holder != self.holder:
            self.holder = found.holder
            if self._observer is not None:
                self._observer.holder_changed(found.holder)

    async def _hold(self, found: Observed, timeout: float) -> None:
        """Write ourselves into the record that was found; ``ConflictError`` when it changed meanwhile.

        A patch: fields that newer clusters put into a Lease stay.
        """
        spec = held_spec(self.identity, self.settings.duration, self._now(), found)
        await self._patch(spec, found, timeout)

    async def _patch(self, spec: dict[str, t.Any], found: Observed, timeout: float) -> None:
        body = {"metadata": {"resourceVersion": found.resource_version, **self._about}, "spec": spec}
        made = await self._client.patch(self._resource, body, self.name, self.namespace, timeout=timeout)
        self._see(observed(decoder(LeaseObject)(encode(made))))

    # Leader

    async def _lead(self, work: Work, fence: Fence, healthy: t.Callable[[], bool] | None) -> None:
        """Work and renewal side by side; the end of either ends the other."""
        working = asyncio.ensure_future(work(fence))
        renewing = asyncio.ensure_future(self._renew(fence, healthy))
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
            lost = not working.done()
            if lost:
                fence.revoke(fence.why or "it could not be renewed")
        finally:
            # Also when we are cancelled ourselves: the work may use what is left of the term to end in order.
            await end_all({working, renewing})
        failure = None if renewing.cancelled() else renewing.exception()
        if failure is not None and (lost or working.cancelled() or working.exception() is not None):
            raise failure  # what breaks in the work when the ground goes is no news
        working.result()

    async def _renew(self, fence: Fence, healthy: t.Callable[[], bool] | None) -> t.NoReturn:
        """Renew until it fails for too long, then raise ``LeaseLostError``."""
        why = ""
        while True:
            await asyncio.sleep(max(0.0, min(self.settings.retry, fence.remaining())))
            left = fence.remaining()
            if left <= 0:
                raise self._lost(why or "the process was held up")
            if healthy is not None and not healthy():
                why = "the work that it guards is not healthy"
                continue
            started = self._clock()
            try:
                await self._hold_on(left)
            except errors.LeaseLostError:
                fence.revoke(f"{self.holder} holds it")
                raise
            except errors.KubeError as error:
                why = error.message
                lease = f"{self.namespace}/{self.name}"
                log.warning("lease was not renewed lease=%s left=%.3g error=%s", lease, left, error)
                continue
            why = ""
            with contextlib.suppress(errors.FenceLostError):
                fence.extend(started + self.settings.renew_deadline)

    async def _hold_on(self, timeout: float) -> None:
        """Renew what we hold; raises ``LeaseLostError`` when somebody else holds it."""
        if self._seen is not None and self._seen.holder == self.identity:
            with contextlib.suppress(errors.ConflictError, errors.NotFoundError):
                await self._hold(self._seen, timeout)
                return
        # Somebody touched it, or the answer to our last renewal was lost: look.
        if not await self._take(timeout):
            raise self._lost(f"{self.holder} holds it")

    def _lost(self, why: str) -> errors.LeaseLostError:
        return errors.LeaseLostError(
            f"The lease {self.namespace}/{self.name} was lost: {why.rstrip('.')}.",
            "This process stops writing and ends; start it again, or let the other one go on.",
            namespace=self.namespace,
            name=self.name,
            identity=self.identity,
            holder=self.holder,
        )

    async def _give_up(self, fence: Fence) -> None:
        """Clear the holder, if it is still us and no write is on its way any more."""
        if not await fence.drained(self.settings.release_timeout):
            log.warning(
                "a write has no answer yet, leaving the lease to run out lease=%s/%s", self.namespace, self.name
            )
            return
        try:
            await self._release()
        except errors.KubeError as error:
            log.warning("lease was not released lease=%s/%s error=%s", self.namespace, self.name, error)

    async def _release(self) -> None:
        timeout = self.settings.release_timeout
        found = self._seen
        for last in (False, True):
            if found is None or found.holder != self.identity:
                return
            try:
                await self._patch(released_spec(self._now()), found, timeout)
                log.info("lease released lease=%s/%s", self.namespace, self.name)
                return
            except errors.ConflictError:
                if last:
                    raise
            # A renewal that was cut off may have gone through.
            answer = await self._client.get(
                self._resource, self.name, self.namespace, shape=LeaseObject, timeout=timeout
            )
            found = observed(answer)

    def _tell(self, is_leader: bool) -> None:
        if self._observer is not None:
            self._observer.leading(is_leader)
