# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the parts of a running agent share: its manager, its drivers, its directories, and what it knows of the API."""

from __future__ import annotations

import dataclasses
import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.findings import Finding
from ..driver.registry import DriverRegistry
from ..manager.manager import DraManager
from ..resource.view import JsonObject
from .claim_request import Fetch
from .events import EventLog
from .pod_sources import GivenPods, PodSource


@dataclasses.dataclass(frozen=True)
class Directories:
    """Where an agent works. ``cdi`` is None for the directories that container runtimes read by default."""

    state: str
    kubelet_root: str
    registry: str
    cdi: tuple[str, ...] | None = None


async def no_api(kind: str, namespace: str, name: str) -> JsonObject:
    """A `Fetch` where the agent does not follow the API."""
    raise DraError(
        f"{kind} {namespace}/{name} was given without its content, and this agent does not follow the API.",
        f"Give the whole {kind}, or let the agent follow the API (the section kubernetes of its settings).",
        kind=kind,
    )


async def nobody_waits() -> None:
    """Nobody makes anything of the pods that are known."""


class PodKeeper(t.Protocol):
    """Who has the claims of living pods prepared (`keeping.Keeper`)."""

    def living(self, uid: str) -> JsonObject | None:
        """A pod that it keeps and that may still run."""

    def look_again(self) -> None:
        """Somebody else has changed what is prepared."""


@dataclasses.dataclass
class Workplace:
    """Made once the manager is open. ``more_findings`` are those of parts that came later, such as the API's.

    ``pod_sources`` go from the best informed to the last; ``given_pods`` is always the last. ``pods_changed`` is to be
    awaited when a pod was given.
    """

    directories: Directories
    manager: DraManager
    registry: DriverRegistry
    events: EventLog
    mode: str = "manage"
    node_name: str = ""
    fetch: Fetch = no_api
    more_findings: list[t.Callable[[], list[Finding]]] = dataclasses.field(default_factory=list)
    given_pods: GivenPods = dataclasses.field(init=False)
    pod_sources: list[PodSource] = dataclasses.field(init=False)
    keeper: PodKeeper | None = None
    pods_changed: t.Callable[[], t.Awaitable[None]] = nobody_waits

    def __post_init__(self) -> None:
        self.given_pods = GivenPods(self.manager.pod_might_need_unprepare)
        self.pod_sources = [self.given_pods]

    def find_pod(self, uid: str, namespace: str, name: str) -> JsonObject | None:
        """A pod of this node by its UID, or by namespace and name if that is empty."""
        found = (source.find(uid, namespace, name) for source in self.pod_sources)
        return next((pod for pod in found if pod is not None), None)
