# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a client asks: path, query and user of a request for objects, taken apart once."""

from __future__ import annotations

import dataclasses
import typing as t

from .failures import bad_request, method_not_allowed, no_such_path
from .kind_table import KindTable, Served
from .rights import Access, User

_LIST_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_TRUE = ("1", "true", "True", "TRUE", "t", "T")
_FALSE = ("", "0", "false", "False", "FALSE", "f", "F")


@dataclasses.dataclass(frozen=True)
class ApiRequest:
    """One request on a kind. ``query`` holds the last value of each parameter."""

    verb: str
    served: Served
    namespace: str
    name: str
    subresource: str
    query: t.Mapping[str, str]
    user: User
    agent: str
    content_type: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.served.kind.namespaced else self.name

    @property
    def access(self) -> Access:
        kind = self.served.kind
        return Access(self.verb, kind.group, kind.plural, self.subresource, self.namespace, self.name)

    @property
    def resource(self) -> str:
        """Plural name and subresource, as the recorder counts them."""
        plural = self.served.kind.plural
        return f"{plural}/{self.subresource}" if self.subresource else plural

    def flag(self, name: str) -> bool:
        """A boolean parameter. ApiError 400 for other text."""
        value = self.query.get(name, "")
        if value in _TRUE:
            return True
        if value not in _FALSE:
            raise bad_request(f'strconv.ParseBool: parsing "{value}": invalid syntax')
        return False

    def number(self, name: str) -> int | None:
        """A number, None when it is absent. ApiError 400 for other text."""
        value = self.query.get(name, "")
        if not value:
            return None
        try:
            return int(value)
        except ValueError:
            raise bad_request(f'strconv.ParseInt: parsing "{value}": invalid syntax') from None

    @property
    def manager(self) -> str:
        """Name of the field manager: the parameter, else the client's name."""
        return self.query.get("fieldManager") or self.agent.partition("/")[0][:128] or "unknown"

    @property
    def dry_run(self) -> bool:
        value = self.query.get("dryRun", "")
        if value not in ("", "All"):
            raise bad_request(f'Invalid value: "{value}": dryRun: Unsupported value: supported values: "All"')
        return value == "All"


@dataclasses.dataclass(frozen=True)
class Place:
    """A path taken apart, before it is known who asks."""

    served: Served
    namespace: str
    name: str
    subresource: str


def find_place(table: KindTable, path: str) -> Place:
    """What a path means. ApiError 404 when nothing is served there."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise no_such_path()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3 and (group, version, rest[2]) in table.by_path:
        namespace, rest = rest[1], rest[2:]
    served = table.by_path.get((group, version, rest[0]))
    if served is None or len(rest) > 3:
        raise no_such_path()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if bool(namespace) != served.kind.namespaced and (namespace or name):
        raise no_such_path()
    return Place(served, namespace, name, subresource)


def verb_of(method: str, place: Place, query: t.Mapping[str, str]) -> str:
    """The verb as rights know it. ApiError 405 when the kind does not have it, 404 for an unknown subresource."""
    kind = place.served.kind
    if place.subresource:
        if place.subresource in ("binding", "eviction") and kind.plural == "pods" and method == "POST":
            return "create"
        if place.subresource != "status" or not kind.status:
            raise no_such_path()
        verb = {"GET": "get", "PUT": "update", "PATCH": "patch"}.get(method, "")
        if not verb:
            raise method_not_allowed()
        return verb
    verb = (_OBJECT_VERBS if place.name else _LIST_VERBS).get(method, "")
    if verb == "list" and query.get("watch", "") in _TRUE:
        verb = "watch"
    needs_namespace = kind.namespaced and verb in ("create", "deletecollection")
    if verb not in kind.verbs or (needs_namespace and not place.namespace):
        raise method_not_allowed()
    return verb
