# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a daemon has to offer so that :func:`.command.run_daemon` can give it a life."""

from __future__ import annotations

import dataclasses
import typing as t

from .exit_codes import ExitCode
from .health import Check
from .metric_table import Metric
from .metrics import Metrics
from .schema import Schema
from .settings import Change, Settings


@dataclasses.dataclass(frozen=True)
class Context:
    """What a daemon gets when it starts. ``progress`` tells people, in one line, what a slow start is at."""

    settings: Settings
    metrics: Metrics
    progress: t.Callable[[str], None]


class Daemon(t.Protocol):
    """A daemon: what it is called, what can be set, and its work.

    Calls come one at a time and in this order: ``start`` (again after it raised one of ``passing``), then ``work``
    with ``reload`` any number of times beside it, then ``stop`` in every case, then ``work`` is cancelled.
    """

    @property
    def name(self) -> str:
        """The name of the service, ``nodeops-dra-agent``: in messages, variables, the lock and the status."""

    @property
    def version(self) -> str:
        """The version of the collection."""

    @property
    def schema(self) -> Schema:
        """Made by :func:`.common_settings.daemon_schema`."""

    @property
    def metrics(self) -> t.Sequence[Metric]:
        """Its own metrics, beside those that both daemons have."""

    @property
    def exit_codes(self) -> t.Mapping[type[BaseException], ExitCode]:
        """Exit statuses of error types that this layer does not know, such as a lost lease."""

    @property
    def passing(self) -> tuple[type[BaseException], ...]:
        """Errors of ``start`` that may pass by themselves: it is tried again, and the process stays."""

    def checks(self) -> t.Sequence[Check]:
        """Its health checks, at least one of them live; asked for once ``start`` is over.

        They go through what its real work goes through.
        """

    async def start(self, context: Context) -> None:
        """Get everything ready and return when the daemon can work. Whoever raises has cleaned up after himself."""

    async def work(self) -> None:
        """Work until cancelled. What is raised ends the process."""

    async def stop(self) -> None:
        """Take nothing new and let what is under way end. Cancelled when ``life.drain_timeout`` is over."""

    async def reload(self, settings: Settings, change: Change) -> None:
        """Use ``settings``, in which only reloadable ones (``change.applied``) are others than before."""
