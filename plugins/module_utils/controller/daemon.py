# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The daemon around the controller: one connection, one candidate for the lease, and the controller while it leads.

A lost lease ends the process, with a status of its own. The fence has stopped all writes by then, so going back to
standby would do as well for the cluster, but not for us: a lease is lost because the process was frozen, starved or cut
off, and whatever made it so, or came of it, ends with the process and not before. Whoever supervises it starts it
again, and it stands by.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import typing as t

from ..daemon.daemon_protocol import Context
from ..daemon.exit_codes import ExitCode
from ..daemon.health import Check, Degraded, Standby
from ..daemon.metrics import Metrics
from ..daemon.settings import Change, Settings
from ..daemon.version import VERSION
from ..kube import errors
from ..kube.backoff import Backoff
from ..kube.client import KubeClient
from ..kube.cluster import resolve
from ..kube.ending import end_all
from ..kube.fence import Fence
from ..kube.lease import Lease, own_identity
from ..resource.versions import NoUsableVersionError
from .coexistence import (
    LEASE_LABEL,
    LEASE_LABEL_VALUE,
    NAMESPACES_ANNOTATION,
    AnotherControllerError,
    Verdict,
    judge,
    look_for_siblings,
    refuse_others,
)
from .controller import Controller
from .daemon_health import Movement, check_api, check_caches, check_watches
from .daemon_metrics import CONTROLLER_METRICS, ApiMetrics, export
from .daemon_settings import SCHEMA, candidacy, connection, controller_settings, work
from .needs import check_rights
from .requests import election_rights
from .settings import ControllerSettings
from .target import Target, find_target

log = logging.getLogger(__name__)

#: What may pass by itself: the API server is away, does not know us yet, or does not serve claims yet.
PASSING: tuple[type[BaseException], ...] = (
    errors.UnreachableError,
    errors.MalformedAnswerError,
    errors.CredentialError,
    errors.UnauthorizedError,
    errors.TooManyRequestsError,
    errors.ServerFailureError,
    NoUsableVersionError,
)


#: How long a health check waits for what is about to happen: its first answers stay in the status for a while.
SOON = 2.0
#: A look at the cluster that is so many seconds old is not repeated when this replica begins to lead.
YOUNG = 30.0


class ControllerDaemon:
    """A ``daemon.daemon_protocol.Daemon``."""

    name = "nodeops-dra-controller"
    version = VERSION
    schema = SCHEMA
    metrics = CONTROLLER_METRICS
    passing = PASSING
    exit_codes: t.Mapping[type[BaseException], ExitCode] = {
        errors.LeaseLostError: ExitCode.LEASE_LOST,
        errors.FenceLostError: ExitCode.LEASE_LOST,
        errors.ConfigurationError: ExitCode.SETTINGS,
        errors.ForbiddenError: ExitCode.RIGHTS,
        AnotherControllerError: ExitCode.REFUSED,
    }

    def __init__(self) -> None:
        self._parts: _Parts | None = None

    async def start(self, context: Context) -> None:
        """Connect, look at the cluster and at our rights in it, and refuse where another controller is at work."""
        self._parts = None
        async with contextlib.AsyncExitStack() as stack:
            parts = await _started(context, stack)
            parts.closing = stack.pop_all()
            self._parts = parts

    def checks(self) -> t.Sequence[Check]:
        """Two live ones, and what being ready takes."""
        parts = self._running
        return (
            Check("queue", parts.probe_queue, "The work queue moves.", live=True),
            Check("watches", parts.probe_watches, "Every cache hears of the API server, or knows why not.", live=True),
            Check("api", parts.probe_api, "Claims can be read from the API server."),
            Check("lease", parts.probe_lease, "This replica leads, or stands by while another one does."),
            Check("caches", parts.probe_caches, "A leader has read the cluster and follows it."),
            Check("coexistence", parts.probe_coexistence, "No other controller was seen at work."),
        )

    async def work(self) -> None:
        """Stand by, lead, and end when the lease is lost."""
        await self._running.run()

    async def stop(self) -> None:
        """Let requests under way end, give up the lease, close the connection."""
        if self._parts is not None:
            await self._parts.stop()

    async def reload(self, settings: Settings, change: Change) -> None:
        """Take over the switches and the pause between sweeps."""
        await self._running.use(controller_settings(settings))

    @property
    def _running(self) -> _Parts:
        if self._parts is None:
            raise RuntimeError("the daemon was not started")
        return self._parts


async def _started(context: Context, stack: contextlib.AsyncExitStack) -> _Parts:
    """All parts, with their resources on ``stack``."""
    chosen, place = work(context.settings), candidacy(context.settings)
    times = place.times()
    access = resolve(connection(context.settings))
    log.info("connecting server=%s from=%s", access.server, access.origin)
    client = await stack.enter_async_context(KubeClient.connect(access, observer=ApiMetrics(context.metrics)))
    context.progress("looking at the cluster")
    target = await find_target(client)
    await check_rights(client, target, chosen.namespaces, election_rights(place.namespace, place.name))
    context.progress("looking for another controller")
    own_lease = f"{place.namespace}/{place.name}"
    verdict = await refuse_others(client, target, chosen.namespaces, own_lease, allowed=chosen.allow_coexistence)
    identity = place.identity or own_identity()
    election = Election(context.metrics, place.name, identity)
    lease = Lease(
        client,
        place.namespace,
        place.name,
        identity=identity,
        labels={LEASE_LABEL: LEASE_LABEL_VALUE},
        annotations={NAMESPACES_ANNOTATION: ",".join(chosen.namespaces)},
        settings=times,
        observer=election,
    )
    log.info("candidate for the lease lease=%s/%s identity=%s", place.namespace, place.name, lease.identity)
    return _Parts(client, target, lease, election, verdict, controller_settings(context.settings), context.metrics,
                  chosen.allow_coexistence)  # fmt: skip


class Election:
    """A ``kube.lease.LeaseObserver``: who leads, for health and metrics. ``decided`` is set once that is known."""

    def __init__(self, metrics: Metrics, name: str, identity: str) -> None:
        self.leads = False
        self.decided = asyncio.Event()
        self._identity = identity
        self.fence: Fence | None = None
        self._status = metrics.gauge("leader_election_master_status").labels(name)
        self._status.set(0)
        self._changes = metrics.counter("nodeops_dra_lease_holder_changes_total")
        metrics.read_values("nodeops_dra_lease_remaining_seconds", lambda: {(): self.remaining})

    @property
    def remaining(self) -> float:
        """What is left of our term, in seconds."""
        return self.fence.remaining() if self.fence is not None else 0.0

    def leading(self, is_leader: bool) -> None:
        """We became leader, or are not any more."""
        self.leads = is_leader
        self.decided.set()
        self._status.set(1 if is_leader else 0)

    def holder_changed(self, identity: str) -> None:
        """Somebody else holds the lease now; empty for nobody."""
        self._changes.inc()
        if identity not in ("", self._identity):
            self.decided.set()
        log.info("lease has another holder holder=%s", identity or "nobody")


@dataclasses.dataclass
class _Parts:
    """What a daemon that was started consists of."""

    client: KubeClient
    target: Target
    lease: Lease
    election: Election
    verdict: Verdict
    settings: ControllerSettings
    metrics: Metrics
    allow_coexistence: bool
    closing: contextlib.AsyncExitStack = dataclasses.field(default_factory=contextlib.AsyncExitStack)
    controller: Controller | None = None
    task: asyncio.Task[None] | None = None
    looked: float = 0.0
    movement: Movement = dataclasses.field(default_factory=Movement)

    def __post_init__(self) -> None:
        self.looked = asyncio.get_running_loop().time()
        export(self.metrics, lambda: self.controller)
        self.metrics.read_values(
            "nodeops_dra_other_controller_evidence", lambda: {(): float(len(self.verdict.against))}
        )

    # Work

    async def run(self) -> None:
        """Until the lease is lost, or ``stop``."""
        election = self.lease.run(self._lead, healthy=lambda: self.movement.moves(self.controller))
        self.task = asyncio.create_task(election, name="election")
        await self.task

    async def stop(self) -> None:
        """End the work in order."""
        if self.task is not None:
            await end_all({self.task})
        await self.closing.aclose()

    async def _lead(self, fence: Fence) -> None:
        """One term."""
        self.election.fence = fence
        client = self.client.with_fence(fence)
        backoff = Backoff(0.5, 5.0)
        while True:
            try:
                await self._look_again(client)
                self.controller = Controller(client, self.settings)
                await self.controller.run()
            except PASSING as error:
                delay = backoff.next(getattr(error, "retry_after", None))
                log.warning("the controller cannot begin yet retry_in=%.3g error=%s", delay, error)
                await asyncio.sleep(delay)

    async def _look_again(self, client: KubeClient) -> None:
        """A standby may have waited for weeks: who else is there now, and which version is served?

        Another controller of this collection may have begun at the same moment as we. It is looked for in any case:
        whoever of the two looks last, sees the other's Lease.
        """
        now = asyncio.get_running_loop().time()
        namespaces, own_lease = self.settings.namespaces, f"{self.lease.namespace}/{self.lease.name}"
        if now - self.looked < YOUNG:
            siblings = await look_for_siblings(client, namespaces, own_lease)
            judge(Verdict(tuple(siblings)), allowed=self.allow_coexistence)
            self.verdict = Verdict(tuple(dict.fromkeys((*self.verdict.evidence, *siblings))))
            return
        self.target = await find_target(client)
        self.verdict = await refuse_others(client, self.target, namespaces, own_lease, allowed=self.allow_coexistence)
        self.looked = asyncio.get_running_loop().time()

    async def use(self, settings: ControllerSettings) -> None:
        """Go on with settings of which only the reloadable ones are others."""
        before, self.settings = self.settings, settings
        controller = self.controller
        if controller is None:
            return
        controller.settings = settings
        if controller.session is not None:
            controller.session.settings = settings
        if settings.switches != before.switches:
            await controller.sweep()  # what was refused may be allowed now

    # Health

    async def probe_queue(self) -> str:
        """Live: the queue moves."""
        return self.movement.check(self.controller)

    async def probe_watches(self) -> str:
        """Live: no cache is silent."""
        return check_watches(self.controller)

    async def probe_api(self) -> str:
        """A real read."""
        # Once: what another try would bring, the next look will tell.
        return await check_api(
            self.client.without_limits(), self.target.resource("ResourceClaim"), self.settings.namespaces
        )

    async def probe_lease(self) -> str | Standby | Degraded:
        """Leader, standby, or neither."""
        await _soon(self.election.decided.wait())
        if self.election.leads:
            return f"leading, {self.election.remaining:.0f} s left to renew"
        if self.lease.last_error:
            return Degraded(f"not leading, and the lease cannot be had: {self.lease.last_error}")
        return Standby(f"{self.lease.holder or 'nobody'} holds the lease {self.lease.namespace}/{self.lease.name}")

    async def probe_caches(self) -> str:
        """The leader's caches."""
        await _soon(self.election.decided.wait())
        if not self.election.leads:
            return "not leading"
        if self.controller is not None:
            await _soon(self.controller.wait_ready())
        return check_caches(self.controller)

    async def probe_coexistence(self) -> str | Degraded:
        """As of the last look, which was before this replica began to lead."""
        found = self.verdict.against
        return Degraded("; ".join(map(str, found))) if found else "nobody else was seen"


async def _soon(happens: t.Coroutine[t.Any, t.Any, t.Any]) -> None:
    """Wait for something, but not for long."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SOON):
            await happens
