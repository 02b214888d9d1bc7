# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Everything that a preflight can find: each code with its severity, the modes in which it matters, and its meaning.

An error is a blocker. This is the one table. The guide repeats its words, and a test compares the two.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ...checkpoint.findings import Finding, Severity

Mode = t.Literal["manage", "observe", "none"]

ALWAYS: t.Final[frozenset[Mode]] = frozenset(("manage", "observe", "none"))
AGENT: t.Final[frozenset[Mode]] = frozenset(("manage", "observe"))
KUBELET: t.Final[frozenset[Mode]] = frozenset(("observe", "none"))
MANAGE: t.Final[frozenset[Mode]] = frozenset(("manage",))


@dataclasses.dataclass(frozen=True)
class Code:
    """What one code means. ``modes``: those in which it is told at all; in the others it is as it should be."""

    severity: Severity
    modes: frozenset[Mode]
    meaning: str


CODES: t.Final[t.Mapping[str, Code]] = {
    "cdi_off": Code(
        "error", ALWAYS, "The container runtime does not inject CDI devices, or says nothing and drops them."
    ),
    "cdi_unknown": Code("warning", ALWAYS, "Whether the container runtime injects CDI devices cannot be told."),
    "cgroup_v1": Code("warning", ALWAYS, "The node uses cgroup v1, with which kubelets from 1.35 on refuse to start."),
    "clock_unsynchronised": Code("warning", ALWAYS, "The kernel's clock is not synchronised with anything."),
    "clock_wrong": Code("error", ALWAYS, "The clock is earlier than files that this node wrote."),
    "cri_disabled": Code("error", KUBELET, "The part of containerd that serves kubelets is switched off."),
    "device_plugin_overlap": Code(
        "error", ALWAYS, "A device plugin of the same vendor hands out devices beside a DRA driver."
    ),
    "device_plugin_state_unreadable": Code(
        "warning", ALWAYS, "The kubelet's record of device plugins cannot be read, so an overlap would not be seen."
    ),
    "directory_not_writable": Code(
        "error", ALWAYS, "A directory that the agent or drivers write to cannot be written."
    ),
    "directory_unsafe": Code(
        "error", ALWAYS, "Others than root may put sockets or files where drivers are looked for."
    ),
    "disk_full": Code("error", ALWAYS, "The file system of a state file has no room left."),
    "driver_in_other_root": Code(
        "error", ALWAYS, "A driver put its socket below a root directory that nobody watches."
    ),
    "gate_off": Code("error", KUBELET, "The kubelet runs without the gate DynamicResourceAllocation."),
    "gate_off_in_target": Code(
        "error", KUBELET, "The gate DynamicResourceAllocation would be off in the target release."
    ),
    "gate_refused": Code("error", ALWAYS, "A kubelet of that release does not start with a gate that is set."),
    "gate_unknown": Code("warning", ALWAYS, "Whether the gate DynamicResourceAllocation is on cannot be told."),
    "kubelet_configuration_unreadable": Code("warning", ALWAYS, "A configuration file of the kubelet cannot be read."),
    "kubelet_not_found": Code("error", KUBELET, "No kubelet runs on this node, and there are no traces of one."),
    "kubelet_not_running": Code("warning", KUBELET, "The kubelet of this node does not run."),
    "kubelet_prepares_too": Code(
        "error", MANAGE, "The kubelet prepares claims itself, and the agent would do so as well."
    ),
    "kubelet_root_ambiguous": Code("error", ALWAYS, "More than one directory may be the kubelet's root."),
    "kubelet_root_differs": Code("error", ALWAYS, "The running kubelet has another root directory than the one given."),
    "kubelet_too_old": Code("error", KUBELET, "The kubelet is older than DRA."),
    "kubelet_version_unknown": Code("info", ALWAYS, "The version of the kubelet cannot be told."),
    "look_failed": Code("error", ALWAYS, "One of the looks failed, so something may have been missed."),
    "not_root": Code("error", ALWAYS, "The look was not taken as root, so something may have been missed."),
    "python_missing": Code("error", AGENT, "The node has no Python that the agent can run on."),
    "registry_missing": Code("warning", ALWAYS, "The directory where drivers register does not exist."),
    "run_survives": Code("info", ALWAYS, "/run is no memory file system, so sockets and specs of earlier boots stay."),
    "runtime_ambiguous": Code("warning", ALWAYS, "More than one container runtime may be the kubelet's."),
    "runtime_configuration_unreadable": Code("warning", ALWAYS, "A configuration file of the runtime cannot be read."),
    "runtime_not_found": Code("error", ALWAYS, "No container runtime was found, or not the one that was named."),
    "runtime_too_old": Code("error", ALWAYS, "The container runtime is older than its support for CDI."),
    "runtime_version_unknown": Code("info", ALWAYS, "The version of the container runtime cannot be told."),
    "selinux_enforcing": Code(
        "info", ALWAYS, "SELinux is enforced: a driver in a container needs a label for the sockets."
    ),
    "socket_path_too_long": Code("error", ALWAYS, "A socket of a driver has a path that no unix socket can have."),
    "socket_path_too_long_in_update": Code(
        "warning", ALWAYS, "The same, for the sockets that a driver with rolling updates makes for each of its pods."
    ),
    "socket_room_small": Code(
        "info", ALWAYS, "The kubelet's root directory is so long that not every driver name fits."
    ),
    "state_before_boot": Code("warning", ALWAYS, "The kubelet's claims were recorded before this boot of the node."),
    "systemd_missing": Code("error", AGENT, "systemd does not run here, and the agent is a systemd service."),
    "var_run_differs": Code("warning", ALWAYS, "/var/run and /run are two directories, and programs use either name."),
    "venv_missing": Code("error", AGENT, "The Python that fits cannot make virtual environments."),
}

#: Codes of other layers, which their own guides explain, that are blockers if they are errors.
BLOCKING_ELSEWHERE: t.Final[t.Mapping[str, frozenset[Mode]]] = {
    "cdi_directory_mismatch": ALWAYS,
    "cdi_directory_not_writable": ALWAYS,
    "kubelet_state_refused": KUBELET,
    "manager_state_unusable": MANAGE,
}


def finding(code: str, place: str, text: str, remedy: str, **facts: t.Any) -> Finding:
    """A finding with the severity that the table gives its code."""
    return Finding(code, CODES[code].severity, place, text, remedy, facts)


def matters(one: Finding, mode: Mode) -> bool:
    """Whether the finding is worth telling in this mode."""
    return one.code not in CODES or mode in CODES[one.code].modes


def is_blocker(one: Finding, mode: Mode) -> bool:
    """Whether a node with this finding is not ready for ``mode``."""
    modes = CODES[one.code].modes if one.code in CODES else BLOCKING_ELSEWHERE.get(one.code, frozenset())
    return one.severity == "error" and mode in modes
