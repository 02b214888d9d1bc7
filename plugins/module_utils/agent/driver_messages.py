# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The drivers of a registry as the local API tells them."""

from __future__ import annotations

import typing as t

from ..driver.registry import DriverRegistry
from .local_messages import message


def drivers_response(registry: DriverRegistry, claims: t.Mapping[str, int]) -> t.Any:
    """ListDriversResponse. ``claims`` maps drivers to how many claims they hold."""
    drivers = [
        message(
            "Driver",
            name=one.name,
            connected=one.connected,
            changed_at=one.changed_at,
            claims=claims.get(one.name, 0),
            instances=[
                message(
                    "DriverInstance",
                    endpoint=instance.endpoint,
                    registration_socket=instance.registration_socket,
                    connected=instance.connected,
                    registered_at=instance.registered_at,
                    service=instance.service,
                    health_service=instance.health_service or "",
                )
                for instance in one.instances
            ],
        )
        for one in registry.drivers()
    ]
    registrations = [
        message("Registration", socket=one.socket, state=one.state.value, driver=one.driver, error=one.error)
        for one in registry.registrations()
    ]
    return message("ListDriversResponse", drivers=drivers, registrations=registrations)
