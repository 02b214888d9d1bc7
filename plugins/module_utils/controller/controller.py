# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The ResourceClaim controller: discovers the API, works, and starts over when the version it speaks goes away."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import typing as t

from ..kube import errors
from ..kube.backoff import Backoff
from ..kube.client import KubeClient
from ..kube.ending import end_all
from ..resource.versions import NoUsableVersionError
from .metrics import Metrics, Sample
from .needs import check_rights
from .session import Session
from .settings import ControllerSettings
from .target import Target, find_target

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class ReflectorState:
    """How a cache follows the cluster; ``lag`` is the seconds since anything was heard."""

    resource: str
    namespace: str
    synced: bool
    lag: float
    lists: int
    events: int
    last_error: str


@dataclasses.dataclass(frozen=True)
class Stats:
    """What goes on, for health and for people. ``version`` is empty before the first discovery."""

    ready: bool
    version: str = ""
    release: str = ""
    pod_groups: str = ""
    objects: t.Mapping[str, int] = dataclasses.field(default_factory=dict)
    waiting: int = 0
    delayed: int = 0
    retrying: int = 0
    oldest_waiting: float = 0.0
    in_trouble: int = 0
    questions: int = 0
    events_written: int = 0
    events_lost: int = 0
    sessions: int = 0
    reflectors: tuple[ReflectorState, ...] = ()


class Controller:
    """The controller on a connection.

    ``client`` should have a fence when a lease is used (``client.with_fence``): then nothing is written after the lease
    is lost. Either ``run`` it, or enter it as an asynchronous context manager: then it works until the end of the
    block, and ``failure`` tells why it ended before.
    """

    def __init__(self, client: KubeClient, settings: ControllerSettings | None = None) -> None:
        self.settings = settings or ControllerSettings()
        self.metrics = Metrics()
        self._client = client
        self._session: Session | None = None
        self._sessions = 0
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    # Running

    async def run(self) -> None:
        """Work until cancelled.

        Raises ``FenceLostError`` when the lease is lost; at the start also what stands against starting at all:
        ``NoUsableVersionError``, ``MissingRightsError``, ``UnreachableError`` and so on. Later such things are waited
        out.
        """
        backoff = Backoff(1.0, 30.0)
        while True:
            try:
                target = await find_target(
                    self._client, allow_alpha=self.settings.allow_alpha, pod_groups=self.settings.pod_groups
                )
                if self.settings.check_rights:
                    await check_rights(self._client, target, self.settings.namespaces)
                await self._work(target, backoff)
            except errors.FenceLostError:
                raise
            except (errors.KubeError, NoUsableVersionError) as error:
                if not self._sessions:
                    raise
                delay = backoff.next(getattr(error, "retry_after", None))
                log.warning("controller starts over retry_in=%.3g error=%s", delay, error)
                await asyncio.sleep(delay)

    async def _work(self, target: Target, backoff: Backoff) -> None:
        self.metrics.claims.clear()
        session = Session(self._client, target, self.settings, self.metrics)
        self._session = session
        self._sessions += 1
        log.info("controller starts version=%s release=%s", target.version.group_version, target.release)
        self._changed.set()
        settled = asyncio.ensure_future(self._settled(session, backoff))
        try:
            await session.run()
        finally:
            await end_all({settled})

    async def _settled(self, session: Session, backoff: Backoff) -> None:
        await session.ready.wait()
        backoff.reset()

    async def __aenter__(self) -> Controller:
        self._task = asyncio.create_task(self.run(), name="nodeops.dra controller")
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        task, self._task = self._task, None
        if task is None:
            return
        await end_all({task})
        if kind is None and not task.cancelled():
            task.result()  # nobody has seen yet why it failed

    # Looking

    @property
    def failure(self) -> BaseException | None:
        """Why the background work ended; None while it goes on."""
        task = self._task
        return task.exception() if task is not None and task.done() and not task.cancelled() else None

    @property
    def ready(self) -> bool:
        """Whether all caches are full and the work goes on."""
        return self._session is not None and self._session.ready.is_set()

    async def wait_ready(self) -> None:
        """Wait for ``ready``. Raises the failure when the background work ends before."""
        while not self.ready:
            waits: set[asyncio.Future[t.Any]] = {asyncio.ensure_future(self._ready_or_changed())}
            if self._task is not None:
                waits.add(self._task)
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits - {self._task}:
                    wait.cancel()
            if self._task is not None and self._task.done():
                self._task.result()

    async def _ready_or_changed(self) -> None:
        if self._session is None:
            await self._changed.wait()
        else:
            await self._session.ready.wait()

    @property
    def session(self) -> Session | None:
        """The work with the version of the API that is spoken now; None before the first discovery."""
        return self._session

    @property
    def target(self) -> Target | None:
        """What was found by discovery; None before."""
        return self._session.target if self._session is not None else None

    async def sweep(self) -> None:
        """Look at everything now."""
        if self._session is not None:
            await self._session.sweep()

    async def drained(self) -> None:
        """Wait until nothing is queued or worked on; what is put off after a failure does not count."""
        if self._session is not None:
            await self._session.queue.drained()

    def samples(self) -> list[Sample]:
        """All metrics, as the original of the cluster's release names them; nothing before the first discovery."""
        if self._session is None:
            return []
        return self.metrics.samples(self._session.target.release, self._session.queue)

    def stats(self) -> Stats:
        """What goes on now."""
        session = self._session
        if session is None:
            return Stats(ready=False)
        return Stats(
            ready=self.ready,
            version=session.target.version.name,
            release=str(session.target.release),
            pod_groups=session.target.pod_groups or "",
            objects=session.sizes(),
            waiting=len(session.queue),
            delayed=session.queue.delayed,
            retrying=session.queue.retrying,
            oldest_waiting=session.queue.oldest_waiting_seconds(),
            in_trouble=len(session.teller),
            questions=self.metrics.questions,
            events_written=session.recorder.stats.written,
            events_lost=session.recorder.stats.lost,
            sessions=self._sessions,
            reflectors=tuple(
                ReflectorState(
                    one.resource.full_name,
                    one.namespace,
                    one.synced.is_set(),
                    one.lag(),
                    one.stats.lists,
                    one.stats.events,
                    one.stats.last_error,
                )
                for one in session.reflectors
            ),
        )
