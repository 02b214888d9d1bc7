# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What stands behind /metrics, /healthz and /readyz."""

from __future__ import annotations

import typing as t

from .health import Report
from .http_server import Answer, Endpoint
from .metrics import Metrics

#: Gives the report that an end point answers with.
Look = t.Callable[[], t.Awaitable[Report]]


class MetricsEndpoint:
    """Everything there is to count, for those who have the token."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def needs_token(self, _query: t.Mapping[str, str]) -> bool:
        """Always."""
        return True

    async def answer(self, _query: t.Mapping[str, str]) -> Answer:
        """All metrics in the text format."""
        body, content_type = self._metrics.text()
        return Answer(200, body, content_type)


class HealthEndpoint:
    """Yes or no; with ``?verbose`` one line for each check. The bare answer tells no names and needs no token."""

    def __init__(self, name: str, look: Look) -> None:
        self._name, self._look = name, look

    def needs_token(self, query: t.Mapping[str, str]) -> bool:
        """For the details only."""
        return "verbose" in query

    async def answer(self, query: t.Mapping[str, str]) -> Answer:
        """200 for yes, 503 for no."""
        report = await self._look()
        status = 503 if report.failed else 200
        verdict = "failed" if report.failed else "passed"
        if "verbose" not in query:
            return Answer(status, b"ok\n" if status == 200 else f"{self._name} failed\n".encode())
        lines = [*report.lines(), f"{self._name} check {verdict}"]
        return Answer(status, ("\n".join(lines) + "\n").encode())


def endpoints(metrics: Metrics, alive: Look, ready: Look) -> dict[str, Endpoint]:
    """The three paths."""
    return {
        "/metrics": MetricsEndpoint(metrics),
        "/healthz": HealthEndpoint("healthz", alive),
        "/readyz": HealthEndpoint("readyz", ready),
    }
