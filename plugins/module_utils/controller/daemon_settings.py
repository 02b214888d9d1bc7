# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The settings of the controller's daemon, and what they mean for the parts that it is made of."""

from __future__ import annotations

import dataclasses
import typing as t

from ..daemon.common_settings import LifeSettings, daemon_schema
from ..daemon.schema import Schema
from ..daemon.settings import Settings
from ..kube.connection_settings import connection_options, connection_section
from ..kube.lease import LeaseSettings
from ..kube.options import ConnectionOptions
from .settings import ControllerSettings, Switches

#: Beside the agent's, so that both can run on one host.
HTTP_PORT = 9466

_DAY = 86400


def _optional(description: str, example: t.Any, **more: t.Any) -> Schema:
    return {"type": ["string", "null"], "default": None, "examples": [example], "description": description, **more}


def _seconds(default: float, description: str, **more: t.Any) -> Schema:
    found = {"type": "number", "exclusiveMinimum": 0, "maximum": _DAY, "default": default, "x-unit": "seconds"}
    return {**found, "description": description, **more}


_CLUSTER = connection_section("The API server of the cluster that the controller works for.")

_CONTROLLER: Schema = {
    "type": "object",
    "description": "What the controller does.",
    "additionalProperties": False,
    "properties": {
        "namespaces": {
            "type": "array",
            "items": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", "x-expected": "a namespace"},
            "uniqueItems": True,
            "default": [],
            "examples": [["team-a", "team-b"]],
            "description": "Look after these namespaces only. Empty: all.",
        },
        "workers": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1000,
            "default": ControllerSettings.workers,
            "x-unit": "workers",
            "description": "How many pods and claims are worked on at a time.",
        },
        "sweep": _seconds(
            ControllerSettings.sweep,
            "Time between two looks at everything, for what events may have missed.",
            **{"x-reloadable": True},
        ),
        "admin_access": {
            "type": "boolean",
            "default": True,
            "x-reloadable": True,
            "description": "Whether claims are made from templates that ask for admin access.",
        },
        "prioritized_list": {
            "type": "boolean",
            "default": True,
            "x-reloadable": True,
            "description": "Whether claims are made from templates with lists of alternatives (firstAvailable).",
        },
        "allow_coexistence": {
            "type": "boolean",
            "default": False,
            "description": "Work even when another ResourceClaim controller seems to be at work in the cluster, or "
            "when that cannot be found out. Two of them do each other's work twice and undo each other's events.",
        },
    },
}

_LEASE: Schema = {
    "type": "object",
    "description": "The Lease that lets one of several replicas write at a time. All replicas need the same name and "
    "namespace.",
    "additionalProperties": False,
    "properties": {
        "name": {
            "type": "string",
            "pattern": "^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$",
            "x-expected": "a name as Kubernetes allows it",
            "default": "nodeops-dra-controller",
            "description": "Name of the Lease.",
        },
        "namespace": {
            "type": "string",
            "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
            "x-expected": "a namespace",
            "default": "kube-system",
            "description": "Namespace of the Lease, which must exist.",
        },
        "duration": _seconds(
            LeaseSettings.duration,
            "How long others wait for a sign of life of the leader before one of them takes over.",
            minimum=1,
        ),
        "renew_deadline": _seconds(
            LeaseSettings.renew_deadline,
            "How long the leader goes on without a renewal that succeeds. Then it writes nothing more and ends.",
            **{"x-less-than": "duration"},
        ),
        "retry": _seconds(
            LeaseSettings.retry,
            "Time between two tries to renew or to get the Lease.",
            **{"x-less-than": "renew_deadline"},
        ),
        "identity": _optional(
            "Name of this replica in the Lease. Absent: host, process and a random part. A fixed one must be no other "
            "replica's.",
            "node-1",
            minLength=1,
        ),
    },
}

SCHEMA = daemon_schema(
    "Settings of nodeops-dra-controller",
    {"cluster": _CLUSTER, "controller": _CONTROLLER, "lease": _LEASE},
    http_port=HTTP_PORT,
)


@dataclasses.dataclass(frozen=True)
class Candidacy:
    """The section ``lease``."""

    name: str
    namespace: str
    duration: float
    renew_deadline: float
    retry: float
    identity: str | None

    def times(self) -> LeaseSettings:
        """For the election."""
        return LeaseSettings(self.duration, self.renew_deadline, self.retry)


@dataclasses.dataclass(frozen=True)
class Work:
    """The section ``controller``."""

    namespaces: tuple[str, ...]
    workers: int
    sweep: float
    admin_access: bool
    prioritized_list: bool
    allow_coexistence: bool


def candidacy(settings: Settings) -> Candidacy:
    """The section ``lease``."""
    return settings.section(Candidacy, "lease")


def work(settings: Settings) -> Work:
    """The section ``controller``."""
    return settings.section(Work, "controller")


def connection(settings: Settings) -> ConnectionOptions:
    """The section ``cluster``. Raises ``ConfigurationError`` when its parts contradict each other."""
    return connection_options(settings.values["cluster"])


def controller_settings(settings: Settings) -> ControllerSettings:
    """For the controller. It asks for no rights by itself: the daemon does, for all that it needs, before it begins."""
    chosen = work(settings)
    # While requests under way end, nobody renews the lease; and the release of the lease needs some time as well.
    drain = min(candidacy(settings).renew_deadline, settings.section(LifeSettings, "life").drain_timeout / 2)
    return ControllerSettings(
        workers=chosen.workers,
        namespaces=chosen.namespaces,
        switches=Switches(chosen.admin_access, chosen.prioritized_list),
        sweep=chosen.sweep,
        check_rights=False,
        drain=drain,
    )
