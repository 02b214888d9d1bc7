# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The controller's deployment as a task: from the options of a person to a result that can be shown."""

from __future__ import annotations

import asyncio
import json
import typing as t

from ..checkpoint.errors import DraError
from ..kube.client import KubeClient
from ..kube.cluster import resolve
from ..kube.declared import Planned, perform, plan_absent, plan_present
from ..kube.options import options_from
from .manifests import FIELD_MANAGER, Deployment, Json, manifests
from .target import find_target


async def deploy(options: t.Mapping[str, t.Any], *, act: bool) -> Json:
    """Make the cluster have the deployment, or not have it: ``state``, ``purge``, ``timeout`` and what it may be.

    All other keys say how to reach the API server. Without ``act`` nothing is written, and the result is the same.
    """
    chosen = deployment_of(options)
    access = resolve(options_from(options))
    try:
        async with asyncio.timeout(options["timeout"]), KubeClient.connect(access) as client:
            target = await find_target(client)
            objects = manifests(chosen, [target])
            if options["state"] == "present":
                plan = await plan_present(client, objects, FIELD_MANAGER)
            else:
                purge = options["purge"]
                plan = await plan_absent(client, [one for one in objects if purge or one["kind"] != "Namespace"])
            if act:
                await perform(client, plan, FIELD_MANAGER)
    except TimeoutError:
        raise DraError(
            f"The deployment in {access.server} was not done after {options['timeout']:g} seconds.",
            "What was done is whole: run it again to go on, with a longer timeout.",
            server=access.server,
            timeout=options["timeout"],
        ) from None
    return {**result_of(plan), "api_version": target.version.group_version, "lease": "/".join(chosen.lease)}


def deployment_of(options: t.Mapping[str, t.Any]) -> Deployment:
    """What was chosen. Raises ``DraError`` for what cannot be deployed."""
    if options["state"] == "present" and not options.get("image"):
        raise DraError("The image of the controller is missing.", "Give image, with a tag or a digest.")
    if options["replicas"] < 0:
        raise DraError(f"replicas is {options['replicas']}, expected 0 or more.", "Correct it.")
    return Deployment(
        image=options.get("image") or "",
        namespace=options["namespace"],
        replicas=options["replicas"],
        settings=options.get("settings") or {},
        resources=options.get("resources") or {},
        pull_secrets=tuple(options.get("pull_secrets") or ()),
        node_selector=options.get("node_selector") or {},
        tolerations=tuple(options.get("tolerations") or ()),
        priority_class=options.get("priority_class") or "",
        api_ports=tuple(options.get("api_ports") or (443, 6443)),
    )


def result_of(plan: t.Sequence[Planned]) -> Json:
    """``changed``, the objects with what becomes of each, and the text of them ``before`` and ``after``."""
    objects = []
    for step in plan:
        action = "unchanged"
        if step.changes:
            action = "removed" if step.after is None else "created" if step.before is None else "changed"
        meta = step.manifest["metadata"]
        objects.append(
            {
                "kind": step.manifest["kind"],
                "namespace": meta.get("namespace", ""),
                "name": meta["name"],
                "action": action,
            }
        )
    due = [step for step in plan if step.changes]
    return {
        "changed": bool(due),
        "objects": objects,
        "before": "".join(_text(step.title, step.before) for step in due),
        "after": "".join(_text(step.title, step.after) for step in due),
    }


def _text(title: str, body: Json | None) -> str:
    return "" if body is None else f"# {title}\n{json.dumps(body, indent=2, sort_keys=True)}\n"
