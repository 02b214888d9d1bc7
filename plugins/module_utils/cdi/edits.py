# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a container would get: the edits of its devices, merged as the CDI library merges them into a container."""

from __future__ import annotations

import os
import posixpath
import stat
import typing as t
from dataclasses import dataclass

from ..checkpoint.findings import Finding
from . import codes
from .directories import printable

Edits = t.Mapping[str, t.Any]


@dataclass(frozen=True)
class ContainerEdits:
    """Merged edits. Device nodes have their defaults filled in; lists are in the order in which they take effect."""

    env: tuple[str, ...] = ()
    device_nodes: tuple[Edits, ...] = ()
    mounts: tuple[Edits, ...] = ()
    hooks: tuple[Edits, ...] = ()
    net_devices: tuple[Edits, ...] = ()
    intel_rdt: Edits | None = None
    additional_gids: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, t.Any]:
        """JSON types, with the field names of a spec."""
        return {
            "env": list(self.env),
            "deviceNodes": [dict(node) for node in self.device_nodes],
            "mounts": [dict(mount) for mount in self.mounts],
            "hooks": [dict(hook) for hook in self.hooks],
            "netDevices": [dict(device) for device in self.net_devices],
            "intelRdt": dict(self.intel_rdt) if self.intel_rdt is not None else None,
            "additionalGids": list(self.additional_gids),
        }


def merge_edits(parts: t.Iterable[Edits]) -> ContainerEdits:
    """The edits of ``parts`` one after the other.

    A later variable, node or mount replaces an earlier one of the same name or path; hooks add up; group 0 is never
    added. Mounts are ordered by depth, so that a parent is there before what is mounted into it.
    """
    env: dict[str, str] = {}
    nodes: dict[str, Edits] = {}
    mounts: dict[str, Edits] = {}
    net_devices: dict[str, Edits] = {}
    hooks: list[Edits] = []
    gids: dict[int, None] = {}
    intel_rdt: Edits | None = None
    for edits in parts:
        for variable in edits.get("env", ()):
            env[variable.split("=", 1)[0]] = variable
        for node in edits.get("deviceNodes", ()):
            nodes.pop(node["path"], None)
            nodes[node["path"]] = _with_defaults(node)
        for mount in edits.get("mounts", ()):
            mounts.pop(mount["containerPath"], None)
            mounts[mount["containerPath"]] = mount
        hooks += edits.get("hooks", ())
        for device in edits.get("netDevices", ()):
            net_devices[device["hostInterfaceName"]] = device
        intel_rdt = edits.get("intelRdt", intel_rdt)
        for gid in edits.get("additionalGids", ()):
            if gid:
                gids[int(gid)] = None
    return ContainerEdits(
        env=tuple(env.values()),
        device_nodes=tuple(nodes.values()),
        mounts=tuple(sorted(mounts.values(), key=lambda mount: _depth(mount["containerPath"]))),
        hooks=tuple(hooks),
        net_devices=tuple(net_devices.values()),
        intel_rdt=intel_rdt,
        additional_gids=tuple(gids),
    )


def _with_defaults(node: Edits) -> Edits:
    filled = {**node, "hostPath": node.get("hostPath") or node["path"]}
    if node.get("type", "") in ("", "b", "c") and not node.get("permissions"):
        filled["permissions"] = "rwm"
    return filled


def _depth(path: str) -> int:
    # As filepath.Clean; normpath would keep two slashes at the beginning.
    tidy = posixpath.normpath(path)
    return (tidy[1:] if tidy.startswith("//") else tidy).count("/")


def host_path_findings(edits: ContainerEdits, root: str = "/") -> list[Finding]:
    """What the edits take from the host and the host does not have: device nodes, mounted paths and hook programs.

    ``root`` is the root of the file system to look at.
    """
    findings = []
    for node in edits.device_nodes:
        # With type and number given, the runtime makes the node itself and never looks at the host.
        if node.get("type") and (node.get("major") or node["type"] == "p"):
            continue
        problem = _device_problem(_below(root, node["hostPath"]), node.get("type", ""))
        if problem:
            findings.append(_missing("device node", node["hostPath"], problem))
    for mount in edits.mounts:
        if mount["hostPath"].startswith("/") and not os.path.exists(_below(root, mount["hostPath"])):
            findings.append(_missing("mount source", mount["hostPath"], "does not exist"))
    for hook in edits.hooks:
        if not os.path.exists(_below(root, hook["path"])):
            findings.append(_missing("hook program", hook["path"], "does not exist"))
    return findings


def _below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))


def _device_problem(path: str, wanted: str) -> str:
    try:
        mode = os.lstat(path).st_mode
    except (OSError, ValueError):
        return "does not exist"
    found = "b" if stat.S_ISBLK(mode) else "c" if stat.S_ISCHR(mode) else "p" if stat.S_ISFIFO(mode) else ""
    if not found:
        return "is not a device node"
    if wanted and wanted != found:
        return f"is of type {found}, the spec says {wanted}"
    return ""


def _missing(what: str, path: str, problem: str) -> Finding:
    return Finding(
        codes.HOST_PATH_MISSING,
        "error",
        printable(path),
        f"The {what} {printable(path)} {problem} on this host: the container fails to start.",
        "Check that the device and its kernel driver are there; after a reboot or a driver update prepare the "
        "claim again.",
        {"path": printable(path), "what": what},
    )
