# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which state file is this? Told from its path where that is certain, else from what stands at its two ends."""

from __future__ import annotations

import posixpath
import re
import typing as t

MANAGER = "dra_manager_state"
HEALTH = "dra_health_state"
NVIDIA = "nvidia"
EXAMPLE_DRIVER = "example-driver"
UNKNOWN = "unknown"

Kind = t.Literal["dra_manager_state", "dra_health_state", "nvidia", "example-driver", "unknown"]

_HEAD = 1 << 16
_TAIL = 1 << 12
_KUBELET_FILE = re.compile(r"(dra_manager_state|dra_health_state)(?![A-Za-z0-9_])|(dra_health_state)\.tmp")
_WS = r"[ \t\r\n]*"


def _key(name: str, value: str = "") -> str:
    return rf'"{name}"{_WS}:{_WS}{value}'


# In this order; keys match in any case, as they do in Go.
_MARKS: t.Sequence[tuple[Kind, str]] = (
    ("example-driver", r"checkpoint\.internal\.example\.com/"),
    ("dra_manager_state", _key("Data", r'"\{|checkpoint\.dra\.kubelet\.k8s\.io/')),
    ("dra_manager_state", r"checkpoint\.dra\.kubelet\.k8s\.io/"),
    ("nvidia", _key("(?:preparedDevices|checkpointState|nodeBootID|configState|mpsControlDaemonID)")),
    ("example-driver", _key("(?:request_names|pool_name|device_name|cdi_device_ids|ContainerEdits)")),
    ("nvidia", _key("v2", r"\{")),
    ("dra_manager_state", _key("(?:ClaimInfoStateList|ClaimUID|PodUIDs|CDIDevices)")),
    ("dra_manager_state", _key("version", r'"v1"')),
    ("dra_manager_state", _key("Data")),
    ("dra_health_state", _key("(?:LastUpdated|HealthCheckTimeout|Health)")),
    ("dra_health_state", rf'^{_WS}\{{{_WS}"[^"\\]*"{_WS}:{_WS}(?:null{_WS}[,}}]|\{{{_WS}(?:\}}|{_key("Devices")}))'),
    ("example-driver", _key("preparedClaims", r"\[")),
    ("nvidia", _key("preparedClaims")),
    ("nvidia", _key("v1", r"\{")),
    ("dra_manager_state", f"(?-i:{_key('Checksum')})"),
)
_PATTERNS = tuple((kind, re.compile(mark.encode(), re.IGNORECASE)) for kind, mark in _MARKS)


def detect(data: bytes, path: str = "") -> Kind:
    """The kind of a state file.

    The kubelet's own two names decide, also with something after them as a backup has; the kubelet reads a file by its
    name and not by what is in it. So does ``checkpoint.json`` in a folder of NVIDIA's drivers. Everything else goes by
    content, for which the first 64 KiB and the end are looked at. An empty file with a checksum and an empty ``v1`` may
    be NVIDIA's or the example driver's; it counts as NVIDIA's unless the folder says otherwise. Raises nothing.
    """
    name = posixpath.basename(path)
    match = _KUBELET_FILE.match(name)
    if match is not None:
        return "dra_manager_state" if match.group(1) == MANAGER else "dra_health_state"
    folder = posixpath.basename(posixpath.dirname(path))
    if folder in ("gpu.nvidia.com", "compute-domain.nvidia.com") and name.startswith("checkpoint.json"):
        return "nvidia"
    head = data[:_HEAD]
    ends = head + b"\n" + data[-_TAIL:] if len(data) > _HEAD else head
    for kind, pattern in _PATTERNS:
        if pattern.search(ends) is not None:
            return "example-driver" if kind == NVIDIA and folder == "gpu.example.com" else kind
    return "example-driver" if folder == "gpu.example.com" and name.startswith("checkpoint.json") else "unknown"
