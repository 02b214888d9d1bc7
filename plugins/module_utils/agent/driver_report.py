# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The drivers of a node as modules return them."""

from __future__ import annotations

import datetime
import os
import time
import typing as t

from ..checkpoint.findings import Finding
from ..driver.scan import ScanReport, SocketReport, scan
from ..resource.view import JsonObject
from .node_slices import pools_of, slice_findings

Json = dict[str, t.Any]


async def driver_report(registry_directory: str, options: t.Mapping[str, t.Any]) -> Json:
    """One look at the registration sockets, and with ``with_api`` at what the drivers have published for ``node_name``.

    Raises `DraError` when the API does not answer, never for what it finds. The other ``options`` say how to reach it.
    """
    slices: list[JsonObject] | None = None
    if options["with_api"]:
        from .api_objects import connected

        async with connected(options) as api:
            slices = await api.slices_of(options["node_name"])
    return report_of(await scan(registry_directory), slices, now=time.time())


def report_of(found: ScanReport, slices: t.Iterable[JsonObject] | None = None, *, now: float = 0.0) -> Json:
    """A scan with JSON types only. ``slices`` are those of this node, None where nobody asked for them."""
    findings = [Finding(item.code, "error", found.directory, item.message, item.hint) for item in found.problems]
    for socket in found.sockets:
        facts = {"driver": socket.driver} if socket.driver else {}
        findings += [
            Finding(item.code, "error", socket.socket, item.message, item.hint, facts) for item in socket.problems
        ]
    pools = None if slices is None else pools_of(slices)
    if pools is not None:
        findings += slice_findings(pools, registered(found), now=now)
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
                "made_at": _made_at(socket.socket),
            }
            for socket in found.sockets
        ],
        "other_files": list(found.other_files),
        "slices": pools,
        "findings": [finding.to_dict() for finding in sorted(findings, key=lambda one: (one.place, one.code))],
    }


def _made_at(path: str) -> str | None:
    """When the socket was made, which is when its driver started; None when it has just gone."""
    try:
        made = os.lstat(path).st_mtime
    except OSError:
        return None
    return datetime.datetime.fromtimestamp(made, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


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
