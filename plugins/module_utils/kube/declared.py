# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Objects that shall be as they are declared: server-side apply, planned first by a dry run, and their removal."""

from __future__ import annotations

import dataclasses
import json
import typing as t

from ..checkpoint.errors import DraError
from ..resource.view import SAFE_NAME
from . import errors
from .client import APPLY_PATCH, KubeClient, write_query
from .resources import Call

Json = dict[str, t.Any]

#: Kind and API version to the plural name, and whether it lives in namespaces.
_PLACES = {
    ("v1", "Namespace"): ("namespaces", False),
    ("v1", "ServiceAccount"): ("serviceaccounts", True),
    ("v1", "ConfigMap"): ("configmaps", True),
    ("apps/v1", "Deployment"): ("deployments", True),
    ("policy/v1", "PodDisruptionBudget"): ("poddisruptionbudgets", True),
    ("networking.k8s.io/v1", "NetworkPolicy"): ("networkpolicies", True),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): ("clusterroles", False),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): ("clusterrolebindings", False),
    ("rbac.authorization.k8s.io/v1", "Role"): ("roles", True),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): ("rolebindings", True),
}
#: What the server keeps by itself.
_SERVERS_OWN = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink")


@dataclasses.dataclass(frozen=True)
class Planned:
    """One object before and after; None where it does not exist."""

    manifest: Json
    before: Json | None
    after: Json | None

    @property
    def changes(self) -> bool:
        """Whether a request is due."""
        return self.before != self.after

    @property
    def title(self) -> str:
        """``Deployment dra-system/nodeops-dra-controller``."""
        meta = self.manifest["metadata"]
        place = f"{meta['namespace']}/" if meta.get("namespace") else ""
        return f"{self.manifest['kind']} {place}{meta['name']}"


async def plan_present(client: KubeClient, manifests: t.Sequence[Json], field_manager: str) -> list[Planned]:
    """What an apply of each would make of it, after the server. Raises ``KubeError`` where it refuses one.

    In a namespace that is still to be made nothing can be tried; what is declared is taken for what would be.
    """
    missing: set[str] = set()
    found = []
    for manifest in manifests:
        before = await _read(client, manifest)
        if manifest["kind"] == "Namespace" and before is None:
            missing.add(manifest["metadata"]["name"])
        untried = manifest["metadata"].get("namespace") in missing
        after = _shown(manifest) if untried else await _apply(client, manifest, field_manager, dry_run=True)
        found.append(Planned(manifest, before, after))
    return found


async def plan_absent(client: KubeClient, manifests: t.Sequence[Json]) -> list[Planned]:
    """The removal of each, the last one first."""
    return [Planned(manifest, await _read(client, manifest), None) for manifest in reversed(manifests)]


async def perform(client: KubeClient, plan: t.Sequence[Planned], field_manager: str) -> None:
    """Make the requests of a plan, in its order."""
    for step in plan:
        if not step.changes:
            continue
        if step.after is None:
            await _delete(client, step.manifest)
        else:
            await _apply(client, step.manifest, field_manager, dry_run=False)


async def _read(client: KubeClient, manifest: Json) -> Json | None:
    try:
        return _shown(json.loads(await client.request(_call("get", "GET", manifest))))
    except errors.NotServedError:
        raise
    except errors.NotFoundError:
        return None


async def _apply(client: KubeClient, manifest: Json, field_manager: str, *, dry_run: bool) -> Json:
    query = [*write_query(field_manager=field_manager, dry_run=dry_run), ("force", "true")]
    answer = await client.request(
        _call("patch", "PATCH", manifest), query=query, body=manifest, content_type=APPLY_PATCH, repeatable=True
    )
    return _shown(json.loads(answer))


async def _delete(client: KubeClient, manifest: Json) -> None:
    try:
        await client.request(_call("delete", "DELETE", manifest), query=[("propagationPolicy", "Background")])
    except errors.NotFoundError:
        return  # somebody else was faster


def _shown(body: Json) -> Json:
    """Without what changes by itself."""
    meta = {key: value for key, value in body["metadata"].items() if key not in _SERVERS_OWN}
    annotations = {
        key: value
        for key, value in (meta.get("annotations") or {}).items()
        if not key.startswith("deployment.kubernetes.io/")
    }
    meta.pop("annotations", None)
    kept = {key: value for key, value in body.items() if key not in ("status", "metadata")}
    return {**kept, "metadata": {**meta, "annotations": annotations} if annotations else meta}


def _call(verb: str, method: str, manifest: Json) -> Call:
    version, kind, meta = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
    name, namespace = meta["name"], meta.get("namespace", "")
    plural, namespaced = _PLACES[version, kind]
    for text in (name, *([namespace] if namespaced else [])):
        if not SAFE_NAME.fullmatch(text):
            raise DraError(
                f"{text!r:.80} cannot be the name of a {kind} or of its namespace.",
                "Expected lower-case letters, digits, '-' and '.'.",
                found=text[:80],
            )
    group = version.rpartition("/")[0]
    root = f"/apis/{version}" if group else f"/api/{version}"
    inside = f"/namespaces/{namespace}" if namespaced else ""
    return Call(verb, method, f"{root}{inside}/{plural}/{name}", group, plural, namespace=namespace, name=name)
