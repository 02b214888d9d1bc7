# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The drivers of a node as modules return them."""

from __future__ import annotations

import typing as t

from ..checkpoint.findings import Finding
from ..driver.scan import ScanReport, SocketReport, scan

Json = dict[str, t.Any]


async def driver_report(registry_directory: str) -> Json:
    """One look at the registration sockets. Never raises for what it finds."""
    return report_of(await scan(registry_directory))


def report_of(found: ScanReport) -> Json:
    """A scan with JSON types only."""
    findings = [Finding(item.code, "error", found.directory, item.message, item.hint) for item in found.problems]
    for socket in found.sockets:
        facts = {"driver": socket.driver} if socket.driver else {}
        findings += [
            Finding(item.code, "error", socket.socket, item.message, item.hint, facts) for item in socket.problems
        ]
    return {
        "registry_directory": found.directory,
        "drivers": [
            {
                "name": name,
                "reachable": any(instance.endpoint_reachable for instance in instances),
                "instances": [_instance(instance) for instance in instances],
            }
            for name, instances in found.drivers.items()
        ],
        "sockets": [
            {
                "path": socket.socket,
                "answers": socket.reachable,
                "plugin_type": socket.plugin_type,
                "driver": socket.driver,
            }
            for socket in found.sockets
        ],
        "other_files": list(found.other_files),
        "findings": [finding.to_dict() for finding in sorted(findings, key=lambda one: (one.place, one.code))],
    }


def registered(found: ScanReport) -> dict[str, bool]:
    """Driver to whether one of its instances can be reached."""
    return {name: any(one.endpoint_reachable for one in instances) for name, instances in found.drivers.items()}


def _instance(socket: SocketReport) -> Json:
    return {
        "registration_socket": socket.socket,
        "endpoint": socket.endpoint,
        "endpoint_reachable": socket.endpoint_reachable,
        "advertised": list(socket.advertised),
        "service": socket.service,
        "generation": socket.generation,
        "health_service": socket.health_service,
    }
