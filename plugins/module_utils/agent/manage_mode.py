# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The mode ``manage``: the agent does what a kubelet does for claims. It registers drivers, prepares and unprepares."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket

from ..checkpoint.errors import DraError
from ..checkpoint.file_errors import from_os_error
from ..checkpoint.statefile import locate
from ..daemon.daemon_protocol import Context
from ..daemon.health import Check, Degraded
from ..daemon.settings import Settings
from ..driver.registry import DriverRegistry
from ..manager import opening
from ..manager.failures import Backoff
from ..manager.health_streams import follow_all
from ..manager.manager import DraManager
from .agent_metrics import AgentObserver, export
from .claim_request import ClaimRequest
from .container_files import ContainerFiles
from .driver_events import follow_drivers
from .events import EventLog
from .health_news import HealthNews
from .keeping import Keeper
from .kubelet_claims import read_kubelet_claims
from .local_service import LocalService
from .mode import Job
from .node_pods import NodePods
from .pod_health_writer import PodHealthWriter
from .pod_resources import PodResources
from .pod_resources_api import PodResourcesApi, refuse_beside_kubelet
from .settings import ClaimSettings, KubernetesSettings, NodeSettings, kubernetes_settings
from .state_recovery import keep_state_usable
from .workplace import Directories, Workplace

log = logging.getLogger(__name__)


class OfKubeletError(DraError):
    """The state directory is that of a kubelet that runs. Facts: ``file``, ``kubelet``."""


class ManageMode:
    """The `mode.Mode` of that name. The API server is not waited for."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._stack = contextlib.AsyncExitStack()
        self._place: Workplace | None = None
        self._pods: NodePods | None = None
        self._keeper: Keeper | None = None
        self._pod_health: PodHealthWriter | None = None
        self._files: ContainerFiles | None = None

    # Life

    async def __aenter__(self) -> ManageMode:
        """Open the files, look for drivers."""
        context = self._context
        node = context.settings.section(NodeSettings, "node")
        claims = context.settings.section(ClaimSettings, "claims")
        kubernetes = kubernetes_settings(context.settings)
        directories = await asyncio.to_thread(_directories, node)
        async with contextlib.AsyncExitStack() as stack:
            registry = await stack.enter_async_context(DriverRegistry(directories.registry, notify=True))
            context.progress(f"reading {directories.state}")
            observer = AgentObserver(context.metrics)
            settings = _manager_settings(directories, claims)
            manager = await stack.enter_async_context(await DraManager.open(settings, registry, observer=observer))
            observer.claims_in_use(manager.claims_in_use)
            place = Workplace(directories, manager, registry, EventLog(), mode=node.mode)
            stack.callback(manager.health.listen(HealthNews(place.events, observer.health_changed)))
            if kubernetes.enabled:
                self._follow(place, node, claims, kubernetes)
            if node.container_files is not None:
                self._files = await self._keep_files(stack, place, observer, node.container_files)
            if node.pod_resources_socket is not None:
                await self._serve_pod_resources(stack, place, node.pod_resources_socket)
            self._stack = stack.pop_all()
        self._place = place
        export(context.metrics, place, self._pods, self._keeper)
        if manager.degraded is not None:
            log.error("degraded, nothing is prepared or unprepared error=%s", manager.degraded)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._stack.aclose()

    def _follow(
        self, place: Workplace, node: NodeSettings, claims: ClaimSettings, kubernetes: KubernetesSettings
    ) -> None:
        place.node_name = node.name or socket.gethostname().lower()
        self._pods = NodePods(place.node_name, kubernetes.connection)
        place.fetch = self._pods.fetch
        place.pod_sources.insert(0, self._pods)
        place.more_findings.append(self._pods.findings)
        if kubernetes.publish_health:
            updates = self._context.metrics.counter("nodeops_dra_pod_health_updates_total")
            self._pod_health = PodHealthWriter(place, self._pods, lambda result: updates.labels(result).inc())
            place.more_findings.append(self._pod_health.findings)
        backoff = Backoff(cap=claims.retry_limit)
        self._keeper = place.keeper = Keeper(place, self._pods, period=claims.reconcile_period, backoff=backoff)

    async def _keep_files(
        self, stack: contextlib.AsyncExitStack, place: Workplace, observer: AgentObserver, directory: str
    ) -> ContainerFiles:
        files = ContainerFiles(directory)
        stack.push_async_callback(files.close)
        observer.files, place.pods_changed = files, files.changed
        place.more_findings.append(files.findings)
        self._context.metrics.read_values("nodeops_dra_container_files", lambda: {(): float(files.count)})
        await files.serve(place)
        return files

    async def _serve_pod_resources(self, stack: contextlib.AsyncExitStack, place: Workplace, path: str) -> None:
        await asyncio.to_thread(refuse_beside_kubelet, path, place.directories.kubelet_root)
        api = await stack.enter_async_context(PodResourcesApi(path, PodResources(place)))
        self._context.metrics.read_values("nodeops_dra_pod_resources_requests_total", lambda: {**api.calls})

    async def reload(self, settings: Settings) -> None:
        """Use the section ``claims``."""
        claims = settings.section(ClaimSettings, "claims")
        backoff = Backoff(cap=claims.retry_limit)
        self._running.manager.use(timeout=claims.timeout, backoff=backoff, cdi_policy=claims.cdi_policy)
        if self._keeper is not None:
            self._keeper.use(period=claims.reconcile_period, backoff=backoff)

    def jobs(self) -> list[Job]:
        """Follow pods and drivers."""
        place = self._running
        returned = place.manager.driver_returned if self._keeper is None else self._keeper.driver_returned
        jobs: list[Job] = [
            follow_all(place.registry, place.manager.health),
            follow_drivers(place, returned),
            keep_state_usable(place, self._state_recovered),
        ]
        if self._pods is not None and self._keeper is not None:
            jobs += [self._pods.run(), self._keeper.run()]
        if self._files is not None:
            jobs.append(self._files.run())
        if self._pod_health is not None:
            jobs.append(self._pod_health.run())
        return jobs

    def _state_recovered(self) -> None:
        if self._files is not None:
            self._files.look()
        if self._keeper is not None:
            self._keeper.try_at_once()

    async def drain(self) -> None:
        """Finish what is under way."""
        if self._keeper is not None:
            await self._keeper.drain()

    @property
    def service(self) -> LocalService:
        """What the local API does."""
        return LocalService(self._running)

    @property
    def events(self) -> EventLog:
        """What happens on this node."""
        return self._running.events

    @property
    def _running(self) -> Workplace:
        if self._place is None:
            raise DraError("The agent is not started.", "Start it first.")
        return self._place

    # Health

    def checks(self) -> list[Check]:
        """The state, drivers, and the API server."""
        found = [
            Check("state", self._probe_state, "What is prepared can be read and written."),
            Check("drivers", self._probe_drivers, "Every registered driver can be called."),
            Check("claims", self._probe_claims, "Nothing that has to be prepared or unprepared keeps failing."),
        ]
        if self._files is not None:
            found.append(Check("container_files", self._files.probe, "Files for containers are up to date."))
        if self._pods is not None:
            found.append(Check("kubernetes", self._probe_kubernetes, "The pods of this node are followed."))
        return found

    async def _probe_state(self) -> str:
        degraded = self._running.manager.degraded
        if degraded is not None:
            raise degraded
        return f"{len(self._running.manager.claims())} claims"

    async def _probe_drivers(self) -> str | Degraded:
        drivers = self._running.registry.drivers()
        away = [one.name for one in drivers if not one.connected]
        if away:
            return Degraded(f"registered, but not connected: {', '.join(away)}")
        return f"{len(drivers)} connected"

    async def _probe_claims(self) -> str | Degraded:
        failing = self._running.manager.failures()
        if not failing:
            return "nothing keeps failing"
        worst = failing[0]
        return Degraded(f"{len(failing)} keep failing, such as: {worst.operation} of {worst.claim}: {worst.text}")

    async def _probe_kubernetes(self) -> str:
        pods = self._pods
        problem = pods.problem() if pods is not None else ""
        if problem:
            raise DraError(problem)
        return f"{0 if pods is None else len(pods.store)} pods with claims"


def _directories(node: NodeSettings) -> Directories:
    """The directories, made where they are the agent's own. Blocks."""
    try:
        os.makedirs(node.state_directory, mode=0o700, exist_ok=True)
    except OSError as error:
        raise from_os_error(error, node.state_directory, "could not be made as state directory") from error
    root = locate(kubelet_root=node.kubelet_root).root
    request = ClaimRequest("", state_directory=node.state_directory, kubelet_root=root)
    try:
        held = read_kubelet_claims(request)
    except DraError as error:
        raise OfKubeletError(error.message, error.hint, **error.facts) from error
    if held.running is not None and held.entries:
        log.warning("a kubelet that prepares claims itself runs here pid=%d file=%s", held.running.pid, held.path)
    registry = node.registry_directory or os.path.join(root, "plugins_registry")
    return Directories(node.state_directory, root, registry, node.cdi_directories)


def _manager_settings(directories: Directories, claims: ClaimSettings) -> opening.Settings:
    return opening.Settings(
        directories.state,
        timeout=claims.timeout,
        backoff=Backoff(cap=claims.retry_limit),
        cdi_policy=claims.cdi_policy,
        cdi_directories=directories.cdi,
        own_directory=True,
    )
