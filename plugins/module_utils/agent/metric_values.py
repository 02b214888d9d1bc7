# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Values of metrics that the agent has in every mode, by their labels."""

from __future__ import annotations

import collections
import typing as t

from ..driver.registry import DriverRegistry

Values = dict[tuple[str, ...], float]


def driver_values(registry: DriverRegistry) -> Values:
    """nodeops_dra_drivers: how many can be called."""
    connected = [one.connected for one in registry.drivers()]
    return {("connected",): float(sum(connected)), ("not_connected",): float(len(connected) - sum(connected))}


def finding_values(findings: t.Iterable[tuple[str, str]]) -> Values:
    """nodeops_dra_findings, from code and severity of each."""
    return {key: float(count) for key, count in collections.Counter(findings).items()}
