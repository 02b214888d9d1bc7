# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The embedded API server: start it in a test or as a process, look at what it was asked, and make it misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import pathlib
import tempfile
import typing as t

from ...checkpoint.errors import DraError
from . import creation, intake
from .allocator import Allocator
from .certificates import make_certificate, server_context
from .cluster import Cluster
from .collector import Collector
from .control import Control
from .faults import Fault, Faults, parse_fault
from .front import Front
from .journal import Journal
from .json_text import Json, from_bytes
from .kind_table import Served
from .kubeconfig import kubeconfig, write_private
from .recorder import Recorder
from .request import ApiRequest
from .rights import ADMIN
from .settings import ServerSettings

if t.TYPE_CHECKING:
    from aiohttp import web


class ApiServer:
    """An API server in this process. An async context manager; ``url`` is known once it is entered.

    ``faults`` and ``recorder`` may be used at any time; ``cluster.store`` holds the objects.
    """

    def __init__(self, settings: ServerSettings | None = None) -> None:
        self.settings = settings or ServerSettings()
        self.cluster = Cluster(self.settings)
        self.recorder = Recorder()
        self.faults = Faults()
        self.journal = Journal(self.cluster)
        self.control = Control(self.cluster, self.faults, self.recorder, self.journal)
        self.url = ""
        self.collector: Collector | None = None
        self.allocator: Allocator | None = None
        self._certificate: bytes | None = None
        self._front = Front(self.cluster, self.control, self.recorder)
        self._tasks: list[asyncio.Task[None]] = []
        self._runner: web.ServerRunner | None = None

    async def __aenter__(self) -> ApiServer:
        await self.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen. DraError when the address is taken or TLS cannot be set up."""
        from aiohttp import web

        settings = self.settings
        context = None
        if settings.tls:
            with tempfile.TemporaryDirectory(prefix="dra-tls-") as folder:
                if settings.certificate is not None and settings.private_key is not None:
                    certificate, key = settings.certificate, settings.private_key
                else:
                    certificate, key = await asyncio.to_thread(make_certificate, pathlib.Path(folder), settings.host)
                context = server_context(certificate, key)
                self._certificate = certificate.read_bytes()
        server = web.Server(self._front.handle, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, settings.host, settings.port, ssl_context=context).start()
        except OSError as error:
            await self._runner.cleanup()
            why = "it is in use" if error.errno == errno.EADDRINUSE else str(error)
            raise DraError(
                f"The API server cannot listen on {settings.host} port {settings.port}: {why}.",
                "Choose another port, or 0 for any free one.",
                host=settings.host,
                port=settings.port,
            ) from error
        port = self._runner.addresses[0][1]
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        self.url = f"{'https' if context else 'http'}://{host}:{port}"
        if settings.garbage_collection:
            self.collector = Collector(self.cluster)
            self._tasks.append(asyncio.create_task(self.collector.run(), name="sandbox garbage collection"))
        if settings.allocator:
            self.allocator = Allocator(self.cluster)
            self._tasks.append(asyncio.create_task(self.allocator.run(), name="sandbox allocator"))

    async def stop(self) -> None:
        """End watches, connections and background work."""
        self._front.stopping.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self.cluster.store.listeners.clear()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def token(self) -> str:
        """A token that may do everything, or the first one there is."""
        tokens = self.settings.tokens
        return next((token for token, user in tokens.items() if user is ADMIN), next(iter(tokens), ""))

    def kubeconfig(self, token: str = "", namespace: str = "default") -> Json:
        """A kubeconfig as data; ``token`` "" takes that of the administrator."""
        return kubeconfig(self.url, token or self.token, self._certificate, namespace)

    def write_kubeconfig(self, path: pathlib.Path, token: str = "", namespace: str = "default") -> None:
        """The same as a file of mode 0600."""
        write_private(path, self.kubeconfig(token, namespace))

    def add_fault(self, fault: Fault | str) -> Fault:
        """Set a fault, given as such or as text."""
        return self.control.add_fault(parse_fault(fault) if isinstance(fault, str) else fault)

    @contextlib.contextmanager
    def fault(self, fault: Fault | str) -> t.Iterator[Fault]:
        """A fault for the length of a with block."""
        made = self.add_fault(fault)
        try:
            yield made
        finally:
            self.faults.remove(made)

    def served(self, api_version: str, plural: str) -> Served:
        """What is served under these names. DraError when nothing is."""
        group, _slash, version = api_version.rpartition("/")
        found = self.cluster.table.by_path.get((group, version, plural))
        if found is None:
            raise DraError(
                f"The embedded API server does not serve {plural} of {api_version}.",
                "Name a served version, or set `versions` and `release`.",
            )
        return found

    def seed(self, api_version: str, plural: str, value: Json, namespace: str = "") -> Json:
        """Create an object without a request, by the same rules. Returns it as a client would see it."""
        served = self.served(api_version, plural)
        request = ApiRequest("create", served, namespace, "", "", {}, ADMIN, "seed")
        cleaned, _warnings = intake.clean(self.cluster, request, value)
        return t.cast(Json, from_bytes(creation.create_object(self.cluster, request, cleaned).body))

    async def settled(self) -> None:
        """Wait until garbage collection and allocation have nothing to do."""
        while True:
            version = self.cluster.store.version
            for worker in (self.collector, self.allocator):
                if worker is not None:
                    await worker.settled()
            if version == self.cluster.store.version:
                return
