# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a running daemon tells to the outside while it runs: its readiness, its watchdog, its metrics."""

from __future__ import annotations

import asyncio
import logging
import platform
import typing as t

from .daemon_protocol import Daemon
from .health import Health, Outcome, Report, State
from .log_output import LogOutput
from .metric_table import COMMON_METRICS
from .metrics import Metrics
from .notify import Notifier

log = logging.getLogger(__name__)

#: How often systemd is asked for patience during a slow start, and for how long each time.
PATIENCE_EVERY, PATIENCE_FOR = 10.0, 30.0
#: How often the checks are made for the status line and the metrics when nobody asks.
STATUS_EVERY = 30.0

_VALUES = {State.OK: 1.0, State.DEGRADED: 0.5, State.FAILED: 0.0}


class Telling:
    """``phase`` is what keeps the daemon from being ready at all ("starting", "stopping"), empty while it works.

    ``summary`` is what the last look at its health found, in one line.
    """

    def __init__(self, daemon: Daemon, notifier: Notifier, output: LogOutput, timeout: float) -> None:
        self.phase = "starting"
        self.summary = "ready"
        self.notifier = notifier
        self.metrics = Metrics((*COMMON_METRICS, *daemon.metrics))
        self.health = Health(timeout, self)
        self._is_active = False
        info = (daemon.name, daemon.version, platform.python_version())
        self.metrics.gauge("nodeops_dra_build_info").labels(*info).set(1)
        self.metrics.read_values("nodeops_dra_log_lines_total", lambda: _lines(output))
        self._requests = self.metrics.counter("nodeops_dra_http_requests_total")
        self._up = self.metrics.gauge("nodeops_dra_check_up")
        self._seconds = self.metrics.gauge("nodeops_dra_check_duration_seconds")
        self._ready = self.metrics.gauge("nodeops_dra_ready")
        self._ready.set(0)

    def checked(self, outcome: Outcome) -> None:
        """A health check has ended."""
        self._up.labels(outcome.check.name).set(_VALUES[outcome.state])
        self._seconds.labels(outcome.check.name).set(outcome.seconds)

    def answered(self, path: str, status: int) -> None:
        """The HTTP server has answered."""
        self._requests.labels(path, str(status)).inc()

    async def alive(self) -> Report:
        """For /healthz: a daemon that starts or stops is alive, however long it takes."""
        return await self.health.look(live_only=True)

    async def ready(self) -> Report:
        """For /readyz."""
        outcomes = () if self.phase else (await self.health.look()).outcomes
        report = Report(outcomes, self.phase)  # asked again: the end may have begun while the checks ran
        self._ready.set(0 if report.failed else 1)
        return report

    def active(self, status: str) -> None:
        """Tell systemd that the start is over, as far as it is concerned."""
        self._is_active = True
        self.notifier.ready(status)

    async def patience(self, timeout: float) -> None:
        """While the daemon starts: keep systemd from giving up, for ``timeout`` seconds; then count as started.

        A start that waits for something outside must not end in a row of restarts, nor hold up the boot for ever.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        while (left := until - loop.time()) > 0:
            self.notifier.extend(PATIENCE_FOR)
            await asyncio.sleep(min(PATIENCE_EVERY, left))
        log.warning("not ready yet, going on seconds=%.0f phase=%s", timeout, self.phase)
        self.active(f"degraded: {self.phase}")

    def progress(self, text: str) -> None:
        """What the start is at, or what it waits for."""
        self.phase = f"starting: {' '.join(text.split())}"
        self.notifier.status(f"degraded: {self.phase}" if self._is_active else self.phase)

    async def status(self) -> None:
        """While the daemon works: keep the status line of systemd and the metrics up to date."""
        while True:
            summary = (await self.ready()).summary()
            if not self.phase:
                self.notifier.status(summary)
                if summary != self.summary:
                    level = logging.INFO if summary == "ready" else logging.WARNING
                    log.log(level, "health changed health=%s", summary)
                    self.summary = summary
            await asyncio.sleep(STATUS_EVERY)

    async def watchdog(self) -> None:
        """Tell systemd at half of its watchdog's period that all is well, if the live checks say so."""
        period = self.notifier.watchdog / 2
        if period <= 0:
            return
        loop = asyncio.get_running_loop()
        turn = loop.time()
        while True:
            report = await self.health.look(live_only=True, longest=period)
            if report.failed:
                log.error("watchdog is not told that the daemon is alive health=%s", report.summary())
            else:
                self.notifier.alive()
            turn = max(turn + period, loop.time())
            await asyncio.sleep(turn - loop.time())


def _lines(output: LogOutput) -> t.Mapping[tuple[str, ...], float]:
    return {**{(level,): float(count) for level, count in output.written.items()}, ("lost",): float(output.lost)}
