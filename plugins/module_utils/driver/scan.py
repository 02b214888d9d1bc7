# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A look at the drivers of a node that changes nothing: GetInfo and a connect, no registration, no call to the service.

For modules and preflight checks; needs no credentials beyond the right to connect to the sockets.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import typing as t

from ..checkpoint.errors import DraError
from .endpoint import EndpointError, check_length, is_socket
from .errors import RegistrationError
from .handshake import DRA_PLUGIN, PluginInfo, RegistrationCall, check_plugin, connect_problem
from .timings import Timings
from .watch import find_sockets

# A module's user waits for this. A driver that is alive answers in milliseconds, but on a node that is busy it may take
# seconds, and calling it dead would be worse than the wait.
SCAN_TIMINGS = Timings(dial=2.0, get_info=5.0, settle=8.0)


@dataclasses.dataclass(frozen=True)
class Problem:
    """One thing that is wrong: a stable code, what it is, and what to do.

    Codes: ``registry_missing``, ``registry_unreadable``, ``path_too_long``, ``stale_socket``, ``get_info_failed``,
    ``bad_endpoint``, ``no_common_service``, ``bad_name``, ``endpoint_missing``, ``endpoint_unreachable``,
    ``duplicate_endpoint``.
    """

    code: str
    message: str
    hint: str = ""


@dataclasses.dataclass(frozen=True)
class SocketReport:
    """One registration socket. Fields that could not be found out are empty or None.

    ``reachable``: GetInfo was answered. ``endpoint_reachable``: somebody listens on the socket of the service.
    ``service``: the advertised string that would be used, ``generation`` what it means.
    """

    socket: str
    reachable: bool
    plugin_type: str = ""
    driver: str = ""
    endpoint: str = ""
    endpoint_reachable: bool = False
    advertised: tuple[str, ...] = ()
    service: str = ""
    generation: str = ""
    health_service: str | None = None
    problems: tuple[Problem, ...] = ()


@dataclasses.dataclass(frozen=True)
class ScanReport:
    """The registry directory: its sockets sorted by path, files that are no sockets, and problems of the directory."""

    directory: str
    sockets: tuple[SocketReport, ...]
    other_files: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def drivers(self) -> dict[str, list[SocketReport]]:
        """The DRA drivers that answered, by name, with one report an instance."""
        found: dict[str, list[SocketReport]] = {}
        for report in self.sockets:
            if report.plugin_type == DRA_PLUGIN:
                found.setdefault(report.driver, []).append(report)
        return dict(sorted(found.items()))


async def scan(registry_dir: str | os.PathLike[str], timings: Timings = SCAN_TIMINGS) -> ScanReport:
    """Look at every registration socket, all at once. Never raises for what it finds: that is in the report."""
    directory = os.fspath(registry_dir)
    found = find_sockets(directory)
    problems = [
        Problem(
            "registry_unreadable",
            f"The directory {path} cannot be read: {why}.",
            "Check the path, and run this as root.",
        )
        for path, why in sorted(found.unreadable.items())
    ]
    if found.missing:
        problems.append(
            Problem(
                "registry_missing",
                f"The driver registry directory {directory} does not exist.",
                "Check the kubelet root directory; a kubelet makes this directory when it starts.",
            )
        )
    reports = await asyncio.gather(*(inspect(path, timings) for path in sorted(found.sockets)))
    return ScanReport(directory, tuple(_duplicates_told(reports)), tuple(sorted(found.other)), tuple(problems))


async def inspect(path: str, timings: Timings = SCAN_TIMINGS) -> SocketReport:
    """Look at one registration socket."""
    try:
        check_length(path)
    except EndpointError as error:
        return SocketReport(path, False, problems=(Problem("path_too_long", error.message, error.hint),))
    refused = connect_problem(path)
    try:
        async with RegistrationCall(path, timings) as call:
            info = await call.get_info()
    except RegistrationError as error:
        code = "stale_socket" if refused and connect_problem(path) else "get_info_failed"
        return SocketReport(path, False, problems=(Problem(code, error.message, error.hint),))
    if info.type != DRA_PLUGIN:
        return SocketReport(path, True, info.type, info.name, info.endpoint, advertised=info.versions)
    return _driver_report(path, info)


def _driver_report(path: str, info: PluginInfo) -> SocketReport:
    base = SocketReport(path, True, info.type, info.name, info.endpoint or path, advertised=info.versions)
    try:
        plugin = check_plugin(info, path)
    except DraError as error:
        code = "bad_endpoint" if isinstance(error, EndpointError) else "no_common_service"
        if "length" in error.facts:
            code = "path_too_long"
        if code == "no_common_service" and "versions" not in error.facts:
            code = "bad_name"
        return dataclasses.replace(base, problems=(Problem(code, error.message, error.hint),))
    problem = connect_problem(plugin.endpoint)
    problems: tuple[Problem, ...] = ()
    if problem:
        exists = is_socket(plugin.endpoint)
        problems = (
            Problem(
                "endpoint_unreachable" if exists else "endpoint_missing",
                f"The driver {plugin.name} answers on {path}, but not on its service socket {plugin.endpoint}: "
                f"{problem}.",
                "Restart the driver.",
            ),
        )
    return dataclasses.replace(
        base,
        endpoint=plugin.endpoint,
        endpoint_reachable=not problem,
        service=plugin.choice.service,
        generation=plugin.choice.generation,
        health_service=plugin.choice.health,
        problems=problems,
    )


def _duplicates_told(reports: t.Sequence[SocketReport]) -> t.Iterator[SocketReport]:
    """The reports, with a problem added to those that share driver and service socket."""
    seen: dict[tuple[str, str], str] = {}
    for report in reports:
        key = (report.driver, report.endpoint)
        if report.service and key in seen:
            problem = Problem(
                "duplicate_endpoint",
                f"The driver {report.driver} names the service socket {report.endpoint} in {seen[key]} and in "
                f"{report.socket}; the second one is refused.",
                "Give each instance a service socket of its own.",
            )
            report = dataclasses.replace(report, problems=(*report.problems, problem))
        elif report.service:
            seen[key] = report.socket
        yield report
