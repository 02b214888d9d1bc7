# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The mode ``observe``: beside a kubelet that prepares claims itself. Reads only, and keeps copies of its state file.

No driver is registered, and none is told to prepare or to unprepare; nothing is written outside the state directory.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.file_errors import from_os_error
from ..checkpoint.statefile import locate
from ..daemon.daemon_protocol import Context
from ..daemon.settings import Settings
from ..driver.registry import DriverRegistry
from ..kube.store import Handler
from ..manager.device_health import HealthTable
from ..manager.health_streams import follow_all
from .events import EventLog
from .health_news import HealthNews
from .kubelet_follower import KubeletFollower
from .kubelet_state import KubeletState
from .mode import Job
from .node_events import NodeEvents
from .node_pods import NodePods
from .node_survey import NodeSurvey
from .observe_checks import ObserveChecks
from .observe_metrics import export
from .observe_news import ObserveNews
from .observe_service import ObserveService
from .observe_settings import ObserveSettings, RingSettings
from .observed_node import ObservedNode
from .ring import Ring, RingLimits
from .ring_keeper import RingKeeper
from .settings import KubernetesSettings, NodeSettings, kubernetes_settings
from .workplace import Directories

if t.TYPE_CHECKING:
    from ..daemon.health import Check

log = logging.getLogger(__name__)


class InKubeletRootError(DraError):
    """The agent's own directory is that of the kubelet. Facts: ``directory``."""


class ObserveMode:
    """The `mode.Mode` of that name. Neither the API server nor the kubelet is waited for."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._stack = contextlib.AsyncExitStack()
        self._open: _Open | None = None

    # Life

    async def __aenter__(self) -> ObserveMode:
        """Read the kubelet's file once, look for drivers."""
        settings = self._context.settings
        node = settings.section(NodeSettings, "node")
        observe = settings.section(ObserveSettings, "observe")
        directories = await asyncio.to_thread(_directories, node)
        name = node.name or socket.gethostname().lower()
        kubelet = KubeletFollower(directories.kubelet_root, observe.poll_period, self._changed)
        pods, node_events = _cluster(name, kubernetes_settings(settings))
        news = ObserveNews(self._context.metrics, node_events)
        async with contextlib.AsyncExitStack() as stack:
            registry = await stack.enter_async_context(DriverRegistry(directories.registry, notify=False))
            self._context.progress(f"reading {kubelet.state.path}")
            await kubelet.start()
            survey = NodeSurvey(directories, kubelet, registry, period=observe.survey_period, pods=pods)
            ring = _ring(directories.state, kubelet.state.path, settings.section(RingSettings, "ring"), news)
            seen = ObservedNode(directories, name, kubelet, registry, survey, news.events, ring, pods)
            self._open = _Open(seen, news, node_events)
            if observe.health_streams:
                self._open.health = table = HealthTable()
                stack.callback(table.close)
                stack.callback(table.listen(HealthNews(news.events, news.health_changed)))
            self._stack = stack.pop_all()
        export(self._context.metrics, seen)
        state = kubelet.state
        log.info("observing path=%s status=%s claims=%d", state.path, state.status, len(state.claims))
        self._changed(KubeletState(state.path), state)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._stack.aclose()

    async def reload(self, settings: Settings) -> None:
        """Use the section ``ring``."""
        keeper = self._parts.node.ring
        if keeper is not None:
            ring = settings.section(RingSettings, "ring")
            await keeper.use(_limits(ring), settle=ring.settle, interval=ring.interval)

    def jobs(self) -> list[Job]:
        """Follow the kubelet's files, drivers, CDI specs, and the API."""
        parts = self._parts
        node = parts.node
        jobs: list[Job] = [
            node.kubelet.run(),
            node.survey.run(),
            parts.news.follow_drivers(node.registry, lambda: node.survey.changed(drivers=True)),
        ]
        if node.ring is not None:
            jobs.append(node.ring.run())
        if parts.health is not None:
            jobs.append(follow_all(node.registry, parts.health))
        if node.pods is not None:
            jobs += [node.pods.run(), _follow_pods(node.pods, node.survey)]
        if parts.node_events is not None:
            jobs.append(parts.node_events.run())
        return jobs

    async def drain(self) -> None:
        """Keep what is not copied yet."""
        if self._open is not None and self._open.node.ring is not None:
            await self._open.node.ring.flush()

    # What the daemon asks for

    @property
    def service(self) -> ObserveService:
        """What the local API does."""
        return ObserveService(self._parts.node)

    @property
    def events(self) -> EventLog:
        """What happens on this node."""
        return self._parts.news.events

    def checks(self) -> list[Check]:
        """The way to the kubelet's file, drivers, the ring, and the API server."""
        return ObserveChecks(self._parts.node).all()

    # Inside

    def _changed(self, before: KubeletState, now: KubeletState) -> None:
        """The kubelet's file has another content."""
        parts = self._parts
        parts.news.state_changed(before, now)
        if parts.node.ring is not None:
            parts.node.ring.take(now)
        parts.node.survey.changed()

    @property
    def _parts(self) -> _Open:
        if self._open is None:
            raise DraError("The agent is not started.", "Start it first.")
        return self._open


class _Open:
    """The parts of an open mode."""

    def __init__(self, node: ObservedNode, news: ObserveNews, node_events: NodeEvents | None) -> None:
        self.node, self.news, self.node_events = node, news, node_events
        self.health: HealthTable | None = None


def _cluster(name: str, kubernetes: KubernetesSettings) -> tuple[NodePods | None, NodeEvents | None]:
    if not kubernetes.enabled:
        return None, None
    options = kubernetes.connection
    return NodePods(name, options), NodeEvents(name, options) if kubernetes.node_events else None


def _ring(state_directory: str, source: str, settings: RingSettings, news: ObserveNews) -> RingKeeper | None:
    if not settings.enabled:
        return None
    ring = Ring(os.path.join(state_directory, "ring"), source, _limits(settings))
    return RingKeeper(ring, news, settle=settings.settle, interval=settings.interval)


def _limits(settings: RingSettings) -> RingLimits:
    return RingLimits(settings.copies, settings.bytes, settings.age)


async def _follow_pods(pods: NodePods, survey: NodeSurvey) -> None:
    """What the API says of pods goes into the findings."""

    def note(_pod: t.Any, _new: t.Any = None) -> None:
        survey.changed()

    unsubscribe = pods.store.subscribe(Handler(added=note, updated=note, deleted=note))
    try:
        await asyncio.Event().wait()
    finally:
        unsubscribe()


def _directories(node: NodeSettings) -> Directories:
    """The directories; the state directory is made. Blocks."""
    root = locate(kubelet_root=node.kubelet_root).root
    if os.path.realpath(node.state_directory) == os.path.realpath(root):
        raise InKubeletRootError(
            f"node.state_directory is {node.state_directory}, the root directory of the kubelet: an agent that "
            "observes writes nothing there.",
            "Give it a directory of its own; the default is /var/lib/nodeops-dra.",
            directory=node.state_directory,
        )
    try:
        os.makedirs(node.state_directory, mode=0o700, exist_ok=True)
    except OSError as error:
        raise from_os_error(error, node.state_directory, "could not be made as state directory") from error
    registry = node.registry_directory or os.path.join(root, "plugins_registry")
    return Directories(node.state_directory, root, registry, node.cdi_directories)
