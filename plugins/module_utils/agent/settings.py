# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The settings of the node agent: their schema, which is also their documentation, and their types."""

from __future__ import annotations

import dataclasses
import typing as t

from ..daemon.common_settings import daemon_schema
from ..daemon.schema import Schema
from ..daemon.settings import Settings
from ..kube.connection_settings import connection_options, connection_section
from ..kube.options import ConnectionOptions
from .claim_request import DEFAULT_STATE_DIRECTORY
from .local_socket import DEFAULT_SOCKET
from .observe_settings import OBSERVE, RING

NAME = "nodeops-dra-agent"
HTTP_PORT = 9465


def _path(default: str | None, example: str, description: str) -> Schema:
    return {
        "type": "string" if default else ["string", "null"],
        "pattern": "^/",
        "x-expected": "an absolute path",
        "default": default,
        "examples": [example],
        "description": description,
    }


def _seconds(default: float, description: str) -> Schema:
    more = {"type": "number", "exclusiveMinimum": 0, "maximum": 86400, "x-unit": "seconds"}
    return {**more, "default": default, "description": description}


_NODE: Schema = {
    "type": "object",
    "description": "The node that the agent works on.",
    "additionalProperties": False,
    "properties": {
        "mode": {
            "enum": ["manage", "observe"],
            "default": "manage",
            "description": "manage: the agent does what a kubelet does for claims. It registers drivers, prepares and "
            "unprepares. Do not use it beside a kubelet that does so itself. observe: the kubelet does it, and the "
            "agent only reads: it follows the kubelet's state file, keeps copies of it, and tells what is not as it "
            "should be.",
        },
        "name": {
            "type": ["string", "null"],
            "minLength": 1,
            "default": None,
            "examples": ["node-1"],
            "description": "Name of the node in the API. Absent: the host name in lower case, as kubelets have it.",
        },
        "state_directory": _path(
            DEFAULT_STATE_DIRECTORY,
            "/data/nodeops-dra",
            "Where the agent keeps what it has prepared. It is made when missing. It must survive a reboot.",
        ),
        "kubelet_root": _path(
            None,
            "/var/lib/k0s/kubelet",
            "The kubelet's root directory, below which drivers put their sockets. Absent: that of the kubelet of this "
            "node if one can be found, else /var/lib/kubelet.",
        ),
        "registry_directory": _path(
            None, "/run/dra/plugins_registry", "Where drivers register. Absent: plugins_registry below kubelet_root."
        ),
        "cdi_directories": {
            "type": ["array", "null"],
            "items": {"type": "string", "pattern": "^/", "x-expected": "an absolute path"},
            "uniqueItems": True,
            "default": None,
            "examples": [["/etc/cdi", "/var/run/cdi"]],
            "description": "The directories from which the container runtime reads CDI specs. Absent: /etc/cdi and "
            "/var/run/cdi. A prepared name that does not resolve there is a finding.",
        },
        "socket": _path(
            DEFAULT_SOCKET,
            "/run/dra/agent.sock",
            "The socket of the local API. Only root and the agent's own user may use it.",
        ),
        "container_files": _path(
            None,
            "/run/nodeops-dra/containers",
            "A directory of its own in which the agent keeps, for what is prepared, files for podman quadlets and "
            "systemd units. It is made when missing, and best on a memory file system. Absent: no files. In the mode "
            "manage.",
        ),
        "pod_resources_socket": _path(
            None,
            "/var/lib/kubelet/pod-resources/kubelet.sock",
            "Where to serve the PodResources API, from which monitoring agents learn which container has which device. "
            "Absent: nowhere. On a node without a kubelet give the path where they look for it, that of the example; "
            "the agent refuses it while a kubelet runs there. Only root and the agent's own user may use it.",
        ),
    },
}

_CLAIMS: Schema = {
    "type": "object",
    "description": "How claims are prepared and unprepared. Used in the mode manage.",
    "additionalProperties": False,
    "x-reloadable": True,
    "properties": {
        "timeout": _seconds(45, "How long all drivers of a pod together may take, as in the kubelet."),
        "retry_limit": _seconds(
            120, "The longest pause between two tries of what keeps failing. The first is 1 s, each is twice the last."
        ),
        "reconcile_period": _seconds(
            60, "How often the agent looks for claims of pods that are gone, as in the kubelet."
        ),
        "cdi_policy": {
            "enum": ["off", "warn", "error"],
            "default": "warn",
            "description": "What a prepared CDI name is that no spec defines: nobody's business, a finding, or a "
            "failure of the prepare.",
        },
    },
}

_OWN_KUBERNETES: t.Mapping[str, Schema] = {
    "enabled": {
        "type": "boolean",
        "default": True,
        "description": "Whether pods are followed. Without it claims are prepared only through the local API. With "
        "it, a pod that the API does not have is gone, also if its claims were prepared through the local API.",
    },
    "node_events": {
        "type": "boolean",
        "default": False,
        "description": "Whether an Event is written on the Node object when the kubelet's state file is damaged or "
        "sound again, and when a driver goes or returns. In the mode observe. It needs the rights to create and to "
        "patch events in the namespace default; without them the log says so once.",
    },
    "publish_health": {
        "type": "boolean",
        "default": False,
        "description": "Whether the health that drivers report of their devices goes into the status of the pods that "
        "hold them, as a kubelet with the feature gate ResourceHealthStatus puts it there. In the mode manage. It "
        "needs the right to patch pods/status; without it the log says so once.",
    },
}

_KUBERNETES = connection_section("The API server whose pods the agent serves.", _OWN_KUBERNETES)

SCHEMA = daemon_schema(
    "Settings of the node agent",
    {"node": _NODE, "claims": _CLAIMS, "observe": OBSERVE, "ring": RING, "kubernetes": _KUBERNETES},
    http_port=HTTP_PORT,
)


@dataclasses.dataclass(frozen=True)
class NodeSettings:
    """The section ``node``."""

    mode: str
    name: str | None
    state_directory: str
    kubelet_root: str | None
    registry_directory: str | None
    cdi_directories: tuple[str, ...] | None
    socket: str
    container_files: str | None
    pod_resources_socket: str | None


@dataclasses.dataclass(frozen=True)
class ClaimSettings:
    """The section ``claims``."""

    timeout: float
    retry_limit: float
    reconcile_period: float
    cdi_policy: t.Literal["off", "warn", "error"]


@dataclasses.dataclass(frozen=True)
class KubernetesSettings:
    """The section ``kubernetes``. ``connection`` is the part of it that the controller has too."""

    enabled: bool
    node_events: bool
    publish_health: bool
    connection: ConnectionOptions


def kubernetes_settings(settings: Settings) -> KubernetesSettings:
    """The section ``kubernetes``. Raises ``ConfigurationError`` when its parts contradict each other."""
    section = settings.values["kubernetes"]
    own = {name: section[name] for name in _OWN_KUBERNETES}
    return KubernetesSettings(**own, connection=connection_options(section))
