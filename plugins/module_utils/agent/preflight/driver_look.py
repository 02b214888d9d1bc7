# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The drivers of the node as their files show them, whether or not they run: sockets, claims, CDI specs.

No socket is connected to: nodeops.dra.driver_info does that, with grpcio.
"""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import typing as t

from ...cdi import codes
from ...cdi.directories import directory_findings, directory_mismatches
from ...cdi.registry import Registry
from ...checkpoint.file_errors import shown
from ...checkpoint.findings import Finding
from ...driver.watch import find_sockets
from ..sources import Sources
from .codes import finding
from .node import Node

#: Where drivers are known to write specs on one kind of node or another, beside what the runtime and the task name.
SPEC_DIRECTORIES: t.Final = ("/etc/cdi", "/var/run/cdi", "/run/cdi", "/var/cdi/static", "/var/cdi/dynamic")

_UID: t.Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_REGISTRATION: t.Final = re.compile(rf"(.+?)(?:-{_UID})?-reg\.sock")
_SERVICE: t.Final = re.compile(r"dra(-.+)?\.sock")


@dataclasses.dataclass
class Driver:
    """A driver. ``is_dra`` is None where only a registration socket is known, which may be that of another plugin.

    ``claims`` counts those that the kubelet or the manager of this collection holds for it.
    """

    name: str
    is_dra: bool | None = None
    registration_sockets: list[str] = dataclasses.field(default_factory=list)
    service_sockets: list[str] = dataclasses.field(default_factory=list)
    claims: int = 0
    spec_directories: list[str] = dataclasses.field(default_factory=list)

    def to_dict(self) -> dict[str, t.Any]:
        """As the module returns it."""
        return dataclasses.asdict(self)


class Drivers(dict[str, Driver]):
    """Drivers by name; one that is asked for is there."""

    def __missing__(self, name: str) -> Driver:
        self[name] = Driver(name)
        return self[name]

    def names(self) -> list[str]:
        """Those that are DRA drivers for sure, sorted."""
        return sorted(name for name, driver in self.items() if driver.is_dra)


def look_at_drivers(root: str, registry: str, sources: Sources | None) -> Drivers:
    """The drivers below a kubelet root, and those that hold claims."""
    drivers = Drivers()
    for path in find_sockets(registry).sockets:
        found = _REGISTRATION.fullmatch(os.path.basename(path))
        if found is not None:
            drivers[found[1]].registration_sockets.append(path)
    for path in _service_sockets(root):
        driver = drivers[os.path.basename(os.path.dirname(path))]
        driver.is_dra = True
        driver.service_sockets.append(path)
    for names in _claims(sources) if sources is not None else ():
        for name in names:
            drivers[name].is_dra = True
            drivers[name].claims += 1
    for driver in drivers.values():
        driver.registration_sockets.sort()
        driver.service_sockets.sort()
    return Drivers(sorted(drivers.items()))


def _claims(sources: Sources) -> t.Iterator[t.Iterable[str]]:
    """The drivers of each claim that is recorded; one that two know is counted once."""
    held: dict[str, set[str]] = {}
    for uid, entry in (sources.kubelet or {}).items():
        held.setdefault(uid, set()).update(entry.drivers())
    for uid, record in (sources.manager or {}).items():
        held.setdefault(uid, set()).update(record.state.drivers)
    yield from held.values()


def find_specs(node: Node, drivers: Drivers, directories: t.Iterable[str]) -> None:
    """Note in which directories the specs of each driver are."""
    # Of two names of one directory the last one counts, so the names that others use come last.
    searched = [*(node.named(path) for path in SPEC_DIRECTORIES), *directories]
    known = [path for path in searched if os.path.isdir(path)]
    for file in Registry.load(known).files if known else ():
        directory = os.path.dirname(file.path)
        for name in drivers.names():
            if file.spec is None or not is_kind_of_driver(file.spec.kind, name):
                continue
            if directory not in drivers[name].spec_directories:
                drivers[name].spec_directories.append(directory)


def is_kind_of_driver(kind: str, driver: str) -> bool:
    """Whether a CDI kind is one that a driver of that name uses: its own name, ``k8s.`` before it, or turned around."""
    vendor, _slash, class_name = kind.partition("/")
    return vendor in (driver, f"k8s.{driver}") or f"{class_name}.{vendor}" == driver


def unread_specs(drivers: Drivers, runtime: t.Sequence[str], ours: t.Sequence[str] | None) -> list[Finding]:
    """Drivers of which no spec is where the runtime looks, and directories of the task that it does not read."""
    lost = {
        driver.name: driver.spec_directories[-1]
        for driver in drivers.values()
        if driver.spec_directories
        and all(directory_mismatches(runtime, drivers={driver.name: one}) for one in driver.spec_directories)
    }
    return directory_mismatches(runtime, drivers=lost, ours=ours)


def writable_findings(directory: str) -> list[Finding]:
    """Whether specs can be written to a directory, or where it is missing, whether it can be made."""
    there = directory
    while not os.path.lexists(there) and there != "/":
        there = os.path.dirname(there)
    found = directory_findings(there, must_write=True)
    return [one for one in found if one.code == codes.DIRECTORY_NOT_WRITABLE]


def elsewhere(root: str, others: t.Iterable[str]) -> t.Iterator[Finding]:
    """Drivers that put their sockets below the root of a kubelet that is not this node's."""
    for other in others:
        found = find_sockets(os.path.join(other, "plugins_registry")).sockets
        paths = sorted([*found, *_service_sockets(other)])
        if paths:
            yield finding(
                "driver_in_other_root",
                shown(paths[0]),
                f"A driver has its socket {shown(paths[0])} below {shown(other)}, and the kubelet's root directory is "
                f"{shown(root)}: it is never registered.",
                "Set the kubelet directory of the driver (kubeletPlugin or kubeletRootDirectory in its chart) to the "
                "kubelet's root directory.",
                sockets=[shown(path) for path in paths],
                root=shown(root),
            )


def _service_sockets(root: str) -> t.Iterator[str]:
    """The sockets of DRA services. Nothing deeper is looked at: storage drivers mount whole volumes there."""
    for directory in _entries(os.path.join(root, "plugins")):
        if not directory.is_dir(follow_symlinks=False):
            continue
        for entry in _entries(directory.path):
            if _SERVICE.fullmatch(entry.name) and stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
                yield entry.path


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        return sorted(os.scandir(directory), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
