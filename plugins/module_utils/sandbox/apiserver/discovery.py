# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the API server tells about itself: groups, versions, kinds, its release, and a small OpenAPI."""

from __future__ import annotations

import base64
import hashlib
import typing as t

from .failures import no_such_path
from .json_text import Json
from .kind_table import KindTable, Served
from .kinds import STATUS_VERBS, group_version
from .settings import ServerSettings

_HEALTH = ("/healthz", "/readyz", "/livez")


class Discovery:
    """Answers for everything that is no object."""

    def __init__(self, settings: ServerSettings, table: KindTable) -> None:
        self._settings = settings
        self._table = table

    def answer(self, path: str, address: str) -> Json | str:
        """The document at a path, text for health checks. ApiError 404 when there is none."""
        path = path.rstrip("/") or "/"
        if any(path == health or path.startswith(health + "/") for health in _HEALTH):
            return "ok"
        fixed: dict[str, t.Callable[[], Json]] = {
            "/": self._root,
            "/api": lambda: self._core_versions(address),
            "/apis": self._groups,
            "/version": self._version,
            "/openapi/v3": self._openapi_index,
        }
        if path in fixed:
            return fixed[path]()
        parts = path.strip("/").split("/")
        if parts[:2] == ["openapi", "v3"]:
            return self._openapi(parts[2:])
        if parts[0] == "api" and len(parts) == 2:
            return self._resources("", parts[1])
        if parts[0] == "apis" and len(parts) == 2 and parts[1] in self._table.groups:
            return {"kind": "APIGroup", "apiVersion": "v1", **self._group(parts[1])}
        if parts[0] == "apis" and len(parts) == 3:
            return self._resources(parts[1], parts[2])
        raise no_such_path()

    def _root(self) -> Json:
        paths = ["/api", "/api/v1", "/apis", *_HEALTH, "/openapi/v3", "/version"]
        for group, versions in self._table.groups.items():
            if group:
                paths += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
        return {"paths": sorted(paths)}

    @staticmethod
    def _core_versions(address: str) -> Json:
        served_at = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": served_at}

    def _group(self, group: str) -> Json:
        versions = [
            {"groupVersion": group_version(group, version), "version": version} for version in self._table.groups[group]
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _groups(self) -> Json:
        groups = [self._group(group) for group in self._table.groups if group]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _version(self) -> Json:
        major, minor, patch = self._settings.played_release
        return {
            "major": str(major),
            "minor": str(minor),
            "emulationMajor": str(major),
            "emulationMinor": str(minor),
            "minCompatibilityMajor": str(major),
            "minCompatibilityMinor": str(minor - 1),
            "gitVersion": f"v{major}.{minor}.{patch}",
            "gitCommit": "",
            "gitTreeState": "",
            "buildDate": "",
            "goVersion": "nodeops.dra-sandbox",
            "compiler": "python",
            "platform": "linux/amd64",
        }

    def _resources(self, group: str, version: str) -> Json:
        served = self._table.served(group, version)
        if not served:
            raise no_such_path()
        resources = [entry for one in served for entry in _entries(one)]
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version(group, version),
            "resources": resources,
        }

    def _openapi_index(self) -> Json:
        paths = {}
        for group, versions in self._table.groups.items():
            for version in versions:
                path = f"apis/{group}/{version}" if group else f"api/{version}"
                paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}"}
        return {"paths": paths}

    def _openapi(self, parts: list[str]) -> Json:
        """Enough for clients to learn that the server checks fields itself; no schemas."""
        if parts[:1] == ["api"] and len(parts) == 2:
            group, version = "", parts[1]
        elif parts[:1] == ["apis"] and len(parts) == 3:
            group, version = parts[1], parts[2]
        else:
            raise no_such_path()
        paths: Json = {}
        for served in self._table.served(group, version):
            paths.update(_openapi_paths(served, "/" + "/".join(parts)))
        if not paths:
            raise no_such_path()
        info = {"title": "Kubernetes", "version": self._version()["gitVersion"]}
        return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": {}}}


def _entries(served: Served) -> list[Json]:
    kind = served.kind
    entry: Json = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if "list" in kind.verbs:
        entry["storageVersionHash"] = _storage_hash(served)
    entries = [entry]
    if kind.plural == "pods":
        binding = {"name": "pods/binding", "singularName": "", "namespaced": True, "kind": "Binding"}
        eviction = {"name": "pods/eviction", "singularName": "", "namespaced": True, "kind": "Eviction"}
        entries.append({**binding, "verbs": ["create"]})
        entries.append({**eviction, "group": "policy", "version": "v1", "verbs": ["create"]})
    if kind.status:
        status = {"name": f"{kind.plural}/status", "singularName": "", "namespaced": kind.namespaced}
        entries.append({**status, "kind": kind.kind, "verbs": list(STATUS_VERBS)})
    return entries


def _storage_hash(served: Served) -> str:
    """Changes when objects are stored in another version: the first eight bytes of a SHA-256."""
    stored = next(iter(served.kind.shapes))
    text = f"{served.kind.group}/{stored}/{served.kind.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def _openapi_paths(served: Served, prefix: str) -> Json:
    kind = served.kind
    identity = {"group": kind.group, "version": served.version, "kind": kind.kind}
    names = ("dryRun", "fieldManager", "fieldValidation", "force")
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names]
    middle = "/namespaces/{namespace}" if kind.namespaced else ""
    responses = {"200": {"description": "OK"}}

    def operation(action: str, with_parameters: bool) -> Json:
        made: Json = {
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": identity,
            "responses": responses,
        }
        if with_parameters:
            made["parameters"] = parameters
        return made

    collection = {"get": operation("list", False), "post": operation("post", True)}
    one = {
        "get": operation("get", False),
        "put": operation("put", True),
        "patch": operation("patch", True),
        "delete": operation("delete", False),
    }
    return {f"{prefix}{middle}/{kind.plural}": collection, f"{prefix}{middle}/{kind.plural}/{{name}}": one}
