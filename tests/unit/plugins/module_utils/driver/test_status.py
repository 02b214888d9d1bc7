# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""When a driver without a connection counts as gone."""

from __future__ import annotations

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.driver.status import DriverStatus, InstanceStatus


def instance(connected: bool, unchanged_for: float, changed_at: float = 1000.0) -> InstanceStatus:
    return InstanceStatus(
        endpoint="/e",
        registration_socket="/r",
        socket_exists=True,
        registration_socket_exists=True,
        connected=connected,
        changed_at=changed_at,
        unchanged_for=unchanged_for,
        connections_lost=1,
        registered_at=0.0,
        advertised=(),
        service="v1.DRAPlugin",
        health_service=None,
    )


@pytest.mark.parametrize(
    ("instances", "gone"),
    [
        pytest.param([instance(False, 29.0)], False, id="within the grace period"),
        pytest.param([instance(False, 31.0)], True, id="after it"),
        pytest.param([instance(False, 31.0), instance(False, 5.0)], False, id="one was there a moment ago"),
        pytest.param([instance(False, 31.0), instance(True, 5.0)], False, id="one is there"),
        pytest.param([instance(False, 5.0, changed_at=-1e9)], False, id="the clock was set forward by years"),
        pytest.param([instance(False, 31.0, changed_at=1e12)], True, id="the clock was set back"),
    ],
)
def test_a_driver_counts_as_gone_after_the_grace_period(instances: list[InstanceStatus], gone: bool) -> None:
    assert DriverStatus.of("gpu.example.com", instances, 30.0).gone is gone
