# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What calls of the local API have in common in every mode: how pods are given, how drivers and events are told."""

from __future__ import annotations

import json
import typing as t

from ..checkpoint.errors import DraError
from ..daemon.version import VERSION
from ..driver.registry import DriverRegistry
from ..resource.view import JsonObject
from .claim_request import identity
from .events import EventLog
from .local_messages import message
from .workplace import Directories

if t.TYPE_CHECKING:
    from ..wire import nodeops_dra_agent_v1_pb2 as pb

FindPod = t.Callable[[str, str, str], t.Optional[JsonObject]]
"""UID (may be empty), namespace and name to the pod of this node, None where it is not known."""


def json_object(data: bytes, what: str) -> JsonObject:
    """An object that came as JSON; ``what`` is its field. Raises DraError for anything else."""
    try:
        found = json.loads(data)
    except ValueError as error:
        raise DraError(f"{what} is no JSON: {error}.", "Send the object as the API server gives it, as JSON.") from None
    if not isinstance(found, dict):
        raise DraError(f"{what} is a {type(found).__name__}, expected a JSON object.", "Send one object.")
    return found


def whole_pod(given: JsonObject, find: FindPod) -> JsonObject:
    """The pod that was given, or the one that is known under its metadata; raises DraError when there is none."""
    if given.get("spec") is not None:
        return given
    uid, namespace, name = identity(given)
    found = find(uid, namespace, name)
    if found is None:
        raise DraError(
            f"Pod {namespace}/{name} ({uid or 'any UID'}) is not known on this node.",
            "Give the whole pod, or look whether it is bound to this node and has claims.",
            pod=f"{namespace}/{name}",
            pod_uid=uid,
        )
    return found


def version_response(mode: str, where: Directories, node_name: str, degraded: str) -> t.Any:
    """VersionResponse of the agent that runs."""
    return message(
        "VersionResponse",
        version=VERSION,
        mode=mode,
        state_directory=where.state,
        kubelet_root=where.kubelet_root,
        registry_directory=where.registry,
        cdi_directories=where.cdi or (),
        node_name=node_name,
        degraded=degraded,
    )


async def event_messages(events: EventLog, request: pb.WatchEventsRequest) -> t.AsyncIterator[t.Any]:
    """Events as they come, after those that the watcher knows."""
    async for event in events.follow(events.last if request.only_new else request.after):
        yield message("Event", **event._asdict())


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
