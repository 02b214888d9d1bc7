# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the parts of an observing agent share."""

from __future__ import annotations

import dataclasses
import typing as t

from ..driver.registry import DriverRegistry
from .events import EventLog
from .kubelet_follower import KubeletFollower
from .node_pods import NodePods
from .node_survey import NodeSurvey
from .ring_keeper import RingKeeper
from .workplace import Directories

Json = dict[str, t.Any]


@dataclasses.dataclass
class ObservedNode:
    """Made once all parts are open. ``ring`` and ``pods`` are None where they are switched off."""

    directories: Directories
    name: str
    kubelet: KubeletFollower
    registry: DriverRegistry
    survey: NodeSurvey
    events: EventLog
    ring: RingKeeper | None = None
    pods: NodePods | None = None

    def findings(self) -> list[Json]:
        """All findings, those of the last survey first."""
        own = [*self.kubelet.findings()]
        if self.ring is not None:
            own += self.ring.findings()
        if self.pods is not None:
            own += self.pods.findings()
        return [*self.survey.findings, *(finding.to_dict() for finding in own)]
