# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""PodSchedulingContext: how a node was agreed between scheduler and driver controllers (1.27 to 1.31).

1.26 calls the same shape PodScheduling.
"""

from __future__ import annotations

import typing as t

from .allocation import is_allocated, is_classic
from .ownership import claim_view
from .pod import node_name, pod_view
from .versions import ApiVersion
from .view import JsonObject, ObjectView


def needs_scheduling_context(pod: JsonObject, claim: JsonObject) -> bool:
    """Whether the controller has to name the node: the pod is bound already, its claim waits for a consumer."""
    view = claim_view(claim)
    if not node_name(pod) or is_allocated(claim):
        return False
    if is_classic(claim):
        return view.text("spec", "allocationMode") != "Immediate"
    return bool(view.text("spec", "controller"))


def scheduling_context(pod: JsonObject, version: ApiVersion) -> dict[str, t.Any]:
    """The object that selects the pod's node, owned by the pod; same name and namespace as the pod."""
    view = pod_view(pod)
    identity = view.identity()
    owner = {"apiVersion": "v1", "kind": "Pod", "name": identity.name, "uid": identity.uid, "controller": True}
    return {
        "apiVersion": version.group_version,
        "kind": version.scheduling_kind,
        "metadata": {"name": identity.name, "namespace": identity.namespace, "ownerReferences": [owner]},
        "spec": {"selectedNode": view.required_text("spec", "nodeName")},
    }


def selected_node(context: JsonObject, version: ApiVersion) -> str:
    """``spec.selectedNode`` of an existing object, empty when the scheduler has not chosen."""
    return ObjectView(version.scheduling_kind, context).text("spec", "selectedNode")


def belongs_to(context: JsonObject, pod: JsonObject, version: ApiVersion) -> bool:
    """Whether the object is controlled by this very pod and not by an earlier one of the same name."""
    view = ObjectView(version.scheduling_kind, context)
    uid = pod_view(pod).required_text("metadata", "uid")
    listed = ("metadata", "ownerReferences")
    return any(
        view.flag(*listed, index, "controller") and view.text(*listed, index, "uid") == uid
        for index, _entry in enumerate(view.entries(*listed))
    )
