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

FindPod = t.Callable[[str, str, str], t.Optional[JsonObject]]
"""UID, namespace and name to the pod of this node as the API has it; the UID may be empty."""


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


def _no_pod(_uid: str, _namespace: str, _name: str) -> None:
    return None


@dataclasses.dataclass
class Workplace:
    """Made once the manager is open. ``more_findings`` are those of parts that came later, such as the API's."""

    directories: Directories
    manager: DraManager
    registry: DriverRegistry
    events: EventLog
    mode: str = "manage"
    node_name: str = ""
    fetch: Fetch = no_api
    find_pod: FindPod = _no_pod
    more_findings: list[t.Callable[[], list[Finding]]] = dataclasses.field(default_factory=list)
