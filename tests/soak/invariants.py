# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The one right state of a cluster at rest, told from what its API server holds."""

from __future__ import annotations

import collections
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.resource.names import POD_CLAIM_ANNOTATION, deterministic_name
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.controller.world import World

Json = dict[str, t.Any]
_DONE = ("Succeeded", "Failed")


def _name(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def is_done(pod: Json) -> bool:
    """Whether a pod needs nothing any more."""
    if pod.get("status", {}).get("phase") in _DONE:
        return True
    return "deletionTimestamp" in pod["metadata"] and not pod["spec"].get("nodeName")


def find_wrongs(cluster: World) -> list[str]:
    """Everything that is not as it should be."""
    state = _State(cluster)
    return [*state.consumers(), *state.claims(), *state.duplicates(), *state.pods(), *state.templates()]


class _State:
    def __init__(self, cluster: World) -> None:
        self.cluster = cluster
        self.pod_list = cluster.stored("Pod")
        self.claim_list = cluster.stored("ResourceClaim")
        self.by_name = {_name(claim): claim for claim in self.claim_list}
        self.groups = cluster.stored("PodGroup") if cluster.release >= (1, 36) else []
        self.live = {pod["metadata"]["uid"]: pod for pod in self.pod_list if not is_done(pod)}
        self.owners = {obj["metadata"]["uid"]: obj for obj in (*self.pod_list, *self.groups)}
        self.template_names = {_name(template) for template in cluster.stored("ResourceClaimTemplate")}

    def consumers(self) -> t.Iterator[str]:
        """No reservation of a gone pod, none twice."""
        groups = {group["metadata"]["uid"] for group in self.groups}
        for claim in self.claim_list:
            uids = [entry["uid"] for entry in claim.get("status", {}).get("reservedFor") or ()]
            if len(uids) != len(set(uids)):
                yield f"claim {_name(claim)} is reserved twice: {uids}"
            for entry in claim.get("status", {}).get("reservedFor") or ():
                if entry["uid"] not in self.live and entry["uid"] not in groups:
                    yield f"claim {_name(claim)} is reserved for {entry['name']}, which is gone or done"

    def claims(self) -> t.Iterator[str]:
        """None leaked, none held for nothing."""
        for claim in self.claim_list:
            status = claim.get("status", {})
            # A driver's own controller allocates before anybody reserves; what nobody came for stays for the next pod.
            if status.get("allocation") and not status.get("reservedFor") and not self.cluster.classic:
                yield f"claim {_name(claim)} is allocated for nobody"
            if "deletionTimestamp" in claim["metadata"] and not status.get("reservedFor"):
                yield f"claim {_name(claim)} is deleted and does not go: {claim['metadata'].get('finalizers')}"
            for owner in claim["metadata"].get("ownerReferences") or ():
                found = self.owners.get(owner["uid"])
                if found is None:
                    yield f"claim {_name(claim)} has outlived {owner['kind']} {owner['name']}"
                elif owner["kind"] == "Pod" and is_done(found) and not status.get("reservedFor"):
                    yield f"claim {_name(claim)} has outlived the work of pod {owner['name']}"

    def duplicates(self) -> t.Iterator[str]:
        """One claim for each entry of an owner."""
        made: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
        for claim in self.claim_list:
            for owner in claim["metadata"].get("ownerReferences") or ():
                entry = (claim["metadata"].get("annotations") or {}).get(POD_CLAIM_ANNOTATION) or _name(claim)
                made[owner["uid"], entry].append(_name(claim))
        for (uid, entry), names in made.items():
            if len(names) > 1:
                yield f"{names} were all made for {entry} of {uid}"

    def pods(self) -> t.Iterator[str]:
        """Each live pod has what it can have."""
        for pod in self.live.values():
            if "deletionTimestamp" in pod["metadata"]:
                continue
            group = self._group(pod)
            if group is None:
                continue  # it waits for its group
            for entry in pod["spec"].get("resourceClaims") or ():
                yield from self._entry(pod, entry, group)

    def _group(self, pod: Json) -> Json | None:
        """The pod's group; empty when it wants none, None when it waits for it."""
        wanted = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName") if self.groups is not None else None
        if not wanted or self.cluster.release < (1, 36):
            return {}
        return next((group for group in self.groups if _name(group) == wanted), None)

    def _entry(self, pod: Json, entry: Json, group: Json) -> t.Iterator[str]:
        source = entry.get("source") or entry
        template, what = source.get("resourceClaimTemplateName"), f"pod {_name(pod)} entry {entry['name']}"
        name = source.get("resourceClaimName")
        shared = entry in (group.get("spec", {}).get("resourceClaims") or ())
        if template:
            name = self._published(pod, entry["name"])
            if template not in self.template_names:
                return
            if name is None:
                yield f"{what} has no claim although template {template} exists"
                return
            if name not in self.by_name:
                yield f"{what} names claim {name}, which does not exist"
                return
            owner = self.by_name[name]["metadata"]["ownerReferences"][0]["uid"]
            if owner != (group if shared else pod)["metadata"]["uid"]:
                yield f"{what} names claim {name} of somebody else"
        claim = self.by_name.get(name or "")
        if claim is None or not pod["spec"].get("nodeName"):
            return
        status, metadata = claim.get("status", {}), claim["metadata"]
        uids = {item["uid"] for item in status.get("reservedFor") or ()}
        wanted = {pod["metadata"]["uid"], *([group["metadata"]["uid"]] if shared else [])}
        if not status.get("allocation") or "deletionTimestamp" in metadata or status.get("deallocationRequested"):
            return
        if not wanted & uids and (status["allocation"].get("shareable", True) or not uids):
            yield f"{what} is bound and not among the consumers of {name}"

    def _published(self, pod: Json, entry: str) -> str | None:
        if self.cluster.release < (1, 28):
            name = deterministic_name(_name(pod), entry)
            return name if name in self.by_name else None
        statuses = pod.get("status", {}).get("resourceClaimStatuses") or ()
        return next((item.get("resourceClaimName") for item in statuses if item["name"] == entry), None)

    def templates(self) -> t.Iterator[str]:
        """Nobody has changed a template."""
        for template in self.cluster.stored("ResourceClaimTemplate"):
            if template["spec"].get("metadata") != {"annotations": {"of": _name(template)}}:
                yield f"template {_name(template)} was changed: {template['spec'].get('metadata')}"
            if template["metadata"].get("generation", 1) != 1:
                yield f"template {_name(template)} was written to"
