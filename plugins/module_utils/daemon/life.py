# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The life of a daemon between its settings and its exit status: start, work, reload, drain."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.file_errors import from_os_error
from ..checkpoint.lock import Lock, take_lock
from .common_settings import HttpSettings, LifeSettings, LogSettings
from .daemon_protocol import Context, Daemon
from .endpoints import endpoints
from .exit_codes import ExitCode
from .http_server import HttpServer
from .log_output import LogOutput
from .notify import Notifier
from .problems import SettingsError
from .settings import Settings, changed
from .telling import Telling

log = logging.getLogger(__name__)

#: Pauses between attempts to start, in seconds: the first one, doubled each time, up to the last one.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
#: How much longer than the drain itself the rest of the end may take before the process is ended by force.
GRACE = 5.0


class StillWorkingError(DraError):
    """Work under way did not end in time after the daemon was asked to end."""


class Life:
    """One life of ``daemon``. ``load`` reads the settings again."""

    def __init__(
        self, daemon: Daemon, settings: Settings, load: t.Callable[[], Settings], output: LogOutput, notifier: Notifier
    ) -> None:
        self._daemon, self._settings, self._load, self._output = daemon, settings, load, output
        self._notifier = notifier
        self._tell = Telling(daemon, notifier, output, self._life.check_timeout)
        self._asked = asyncio.Event()
        self._hangup = asyncio.Event()
        self._started = asyncio.Event()
        self._ending = False

    @property
    def _life(self) -> LifeSettings:
        return self._settings.section(LifeSettings, "life")

    async def run(self) -> None:
        """Live. Returns after an end that was asked for; raises what made the daemon end otherwise."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_loop_error)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end_asked, number)
        loop.add_signal_handler(signal.SIGHUP, self._hangup.set)
        with self._only_one():
            async with self._http():
                await self._live()

    # Parts around the work

    @contextlib.contextmanager
    def _only_one(self) -> t.Iterator[Lock]:
        directory = self._life.run_directory
        try:
            os.makedirs(directory, mode=0o755, exist_ok=True)
        except OSError as error:
            raise from_os_error(error, directory, "could not be made as run directory") from error
        with take_lock(os.path.join(directory, self._daemon.name), timeout=0) as lock:
            yield lock

    @contextlib.asynccontextmanager
    async def _http(self) -> t.AsyncIterator[None]:
        settings = self._settings.section(HttpSettings, "http")
        if not settings.enabled:
            yield
            return
        paths = endpoints(self._tell.metrics, self._tell.alive, self._tell.ready)
        server = HttpServer(settings, paths, self._tell.answered)
        await server.start()
        try:
            yield
        finally:
            await server.stop()

    # Work

    async def _live(self) -> None:
        work = asyncio.create_task(self._work(), name="work")
        reloads = asyncio.create_task(self._reloads(), name="reloads")
        watchdog = asyncio.create_task(self._tell.watchdog(), name="watchdog")
        asked = asyncio.create_task(self._asked.wait(), name="signals")
        try:
            watched: set[asyncio.Task[t.Any]] = {work, asked, reloads, watchdog}
            while not (work.done() or asked.done()):
                done, watched = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
                for task in done - {work}:
                    task.result()  # a bug in what runs beside the work ends the daemon like one in the work
        finally:
            try:
                await self._drain(work, reloads)
            finally:
                await _ended([asked, watchdog])
                await self._tell.health.close()

    async def _work(self) -> None:
        async with _background(self._tell.patience(self._life.start_timeout)):
            await self._start()
        checks = self._daemon.checks()
        if not any(check.live for check in checks):
            raise TypeError(f"{self._daemon.name} has no live check: its watchdog would be told of an empty loop")
        self._tell.health.use(checks)
        self._tell.phase = ""
        self._started.set()
        self._tell.active("ready")
        log.info("ready daemon=%s version=%s", self._daemon.name, self._daemon.version)
        async with _background(self._tell.status()):
            await self._daemon.work()
        if not self._ending:
            raise DraError(f"The work of {self._daemon.name} came to an end by itself.", "See the lines before.")

    async def _start(self) -> None:
        attempts = self._tell.metrics.counter("nodeops_dra_start_attempts_total")
        pause = FIRST_PAUSE
        while True:
            attempts.inc()
            try:
                await self._daemon.start(Context(self._settings, self._tell.metrics, self._tell.progress))
                return
            except self._daemon.passing as error:
                log.warning("start failed, trying again retry_in=%.1f error=%s", pause, error)
                self._tell.progress(str(error))
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    # Reload

    async def _reloads(self) -> None:
        while True:
            await self._hangup.wait()
            await self._started.wait()
            self._hangup.clear()
            self._notifier.reloading()
            result = await self._reload()
            self._tell.metrics.counter("nodeops_dra_reloads_total").labels(result).inc()
            self._notifier.ready(self._tell.summary if result == "success" else f"reload: {result}, see the log")

    async def _reload(self) -> str:
        try:
            new = await asyncio.to_thread(self._load)
            effective, change = changed(self._settings, new)
            await self._daemon.reload(effective, change)
        except SettingsError as error:
            for problem in error.problems:
                log.error("reload failed, the former settings stay in use problem=%s", problem)
            return "failure"
        except DraError as error:
            log.error("reload failed, the former settings stay in use error=%s", error)
            return "failure"
        self._settings = effective
        self._output.use(effective.section(LogSettings, "log"))
        self._tell.health.timeout = self._life.check_timeout
        log.info("settings reloaded changed=%s", ",".join(setting.key for setting in change.applied) or "none")
        for setting in change.pending:
            log.warning("setting has changed but takes effect only by a restart key=%s", setting.key)
        return "pending" if change.pending else "success"

    # End

    def _end_asked(self, number: signal.Signals) -> None:
        if self._asked.is_set():
            log.critical("asked again, ending at once signal=%s", number.name)
            end_by_signal(number)
        log.info(
            "asked to end, finishing what is under way signal=%s timeout=%.0f", number.name, self._life.drain_timeout
        )
        self._asked.set()

    async def _drain(self, work: asyncio.Task[None], reloads: asyncio.Task[None]) -> None:
        """Let the daemon stop, then end its work; raises what either raised."""
        timeout = self._life.drain_timeout
        self._ending = True
        self._tell.phase = "stopping"
        self._notifier.stopping()
        self._notifier.extend(timeout + 2 * GRACE)
        force = threading.Timer(timeout + GRACE, _end_by_force)
        force.daemon = True
        force.start()
        # Nobody is told "ready" any more by the end of a reload, and a start does not go on.
        await _ended([reloads] if self._started.is_set() else [reloads, work])
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                await self._daemon.stop()
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise StillWorkingError(
                f"Work under way did not end within {timeout:g} s.",
                "Look for what it waits for in the lines before, or set life.drain_timeout higher.",
            ) from error
        finally:
            await _ended([work])
            failure = None if work.cancelled() else work.exception()
            if failure is not None:
                raise failure  # the first cause goes before whatever came of it


@contextlib.asynccontextmanager
async def _background(coroutine: t.Coroutine[t.Any, t.Any, None]) -> t.AsyncIterator[None]:
    """Run ``coroutine`` for the length of a block. It is told, not raised, when it fails: the block is the work."""
    task = asyncio.create_task(coroutine)
    await asyncio.sleep(0)  # it goes first: the block may keep the loop busy
    try:
        yield
    finally:
        await _ended([task])
        if not task.cancelled() and task.exception() is not None:
            log.error("something beside the work ended by a bug", exc_info=task.exception())


async def _ended(tasks: t.Sequence[asyncio.Task[t.Any]]) -> None:
    """Cancel tasks and wait until they are over. What they raised stays with them."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


def _loop_error(_loop: asyncio.AbstractEventLoop, context: dict[str, t.Any]) -> None:
    error = context.get("exception")
    log.error("a task or callback ended by a bug what=%s", context.get("message", "unknown"), exc_info=error)


def _end_by_force() -> None:
    log.critical("the end took too long, ending by force exit_code=%d", ExitCode.DRAIN_TIMEOUT)
    os._exit(ExitCode.DRAIN_TIMEOUT)


def end_by_signal(number: signal.Signals) -> None:
    """Die of the signal, as a process without a handler would."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    # The first process of a container does not die of its own signals.
    os._exit(128 + number)
