# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What ``kubectl get`` prints for each kind, beside name and age."""

from __future__ import annotations

import typing as t

from .json_text import Json
from .kinds import Column


def _at(*path: str, default: str = "<none>") -> t.Callable[[Json], t.Any]:
    def find(body: Json) -> t.Any:
        value: t.Any = body
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return default if value in (None, "") else value

    return find


def _claim_state(claim: Json) -> str:
    status = claim.get("status", {})
    states = [
        name
        for name, present in (
            ("deleted", claim["metadata"].get("deletionTimestamp")),
            ("deallocating", status.get("deallocationRequested")),
            ("allocated", status.get("allocation")),
            ("reserved", status.get("reservedFor")),
        )
        if present
    ]
    return ",".join(states) or "pending"


def _pod_state(pod: Json) -> str:
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    status = pod.get("status", {})
    return str(status.get("reason") or status.get("phase", "Unknown"))


def _ready(pod: Json) -> str:
    statuses = pod.get("status", {}).get("containerStatuses", ())
    ready = sum(1 for status in statuses if status.get("ready"))
    return f"{ready}/{len(pod.get('spec', {}).get('containers') or ())}"


def _restarts(pod: Json) -> int:
    return sum(status.get("restartCount", 0) for status in pod.get("status", {}).get("containerStatuses", ()))


def _node_state(node: Json) -> str:
    conditions = node.get("status", {}).get("conditions", ())
    ready = next((condition.get("status") for condition in conditions if condition.get("type") == "Ready"), "Unknown")
    state = {"True": "Ready", "False": "NotReady"}.get(str(ready), "Unknown")
    return f"{state},SchedulingDisabled" if node.get("spec", {}).get("unschedulable") else state


def _event_object(event: Json) -> str:
    about = event.get("involvedObject", {})
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


COLUMNS: dict[str, tuple[Column, ...]] = {
    "Pod": (
        Column("Ready", _ready),
        Column("Status", _pod_state),
        Column("Restarts", _restarts, "integer"),
        Column("Node", _at("spec", "nodeName"), wide=True),
    ),
    "Node": (Column("Status", _node_state),),
    "Namespace": (Column("Status", _at("status", "phase")),),
    "ResourceClaim": (Column("State", _claim_state),),
    "ResourceSlice": (
        Column("Node", _at("spec", "nodeName")),
        Column("Driver", _at("spec", "driver")),
        Column("Pool", _at("spec", "pool", "name")),
    ),
    "PodSchedulingContext": (Column("Node", _at("spec", "selectedNode")),),
    "ResourceClass": (Column("Driver", _at("driverName")),),
    "Lease": (Column("Holder", _at("spec", "holderIdentity")),),
    "ConfigMap": (Column("Data", lambda body: len(body.get("data", {})) + len(body.get("binaryData", {})), "integer"),),
    "Event": (
        Column("Type", _at("type")),
        Column("Reason", _at("reason")),
        Column("Object", _event_object),
        Column("Message", _at("message")),
    ),
}
