# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Who may do what: a table of rules per user, as in a ClusterRole, and the answers to access reviews."""

from __future__ import annotations

import dataclasses
import typing as t

from .failures import ApiError, forbidden
from .json_text import Json


@dataclasses.dataclass(frozen=True)
class Rule:
    """As a rule of a ClusterRole; ``namespaces`` empty: everywhere. "*" stands for all. Verbs, groups, resources."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ("*",)
    resources: tuple[str, ...] = ("*",)
    names: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()

    def allows(self, asked: Access) -> bool:
        return (
            _has(self.verbs, asked.verb)
            and _has(self.groups, asked.group)
            and (_has(self.resources, asked.full_resource) or f"*/{asked.subresource}" in self.resources)
            and (not self.names or asked.name in self.names)
            and (not self.namespaces or asked.namespace in self.namespaces)
        )


def _has(allowed: t.Collection[str], wanted: str) -> bool:
    return "*" in allowed or wanted in allowed


@dataclasses.dataclass(frozen=True)
class Access:
    """One right that a request needs."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def full_resource(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@dataclasses.dataclass(frozen=True)
class User:
    """Somebody with a token. ``denied`` holds (verb, resource) pairs that no rule can allow; "*" is every verb."""

    name: str
    rules: tuple[Rule, ...] = ()
    groups: tuple[str, ...] = ()
    denied: tuple[tuple[str, str], ...] = ()

    def may(self, asked: Access) -> bool:
        for verb, resource in self.denied:
            if verb in ("*", asked.verb) and resource == asked.full_resource:
                return False
        return any(rule.allows(asked) for rule in self.rules)

    def without(self, verb: str, resource: str) -> User:
        """The same user less one right, for example ``without("update", "resourceclaims/status")``."""
        return dataclasses.replace(self, denied=(*self.denied, (verb, resource)))


ADMIN = User("sandbox-admin", (Rule(("*",)),), ("system:masters",))


def refusal(user: User, asked: Access) -> ApiError:
    """The 403 answer, worded as Kubernetes words it."""
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    why = (
        f'User "{user.name}" cannot {asked.verb} resource "{asked.full_resource}" in API group "{asked.group}" {where}'
    )
    return forbidden(asked.group, asked.resource, asked.name, why)


def check(user: User, asked: Access) -> None:
    """ApiError 403 when the user lacks the right."""
    if not user.may(asked):
        raise refusal(user, asked)


def review(user: User, spec: Json) -> Json:
    """Status of a SelfSubjectAccessReview."""
    attributes = spec.get("resourceAttributes")
    if attributes is None:
        return {"allowed": True}
    allowed = user.may(
        Access(
            attributes.get("verb", ""),
            attributes.get("group", ""),
            attributes.get("resource", ""),
            attributes.get("subresource", ""),
            attributes.get("namespace", ""),
            attributes.get("name", ""),
        )
    )
    return {"allowed": True, "reason": "sandbox rights"} if allowed else {"allowed": False}


def user_from(values: t.Mapping[str, t.Any]) -> User:
    """A user from plain data: ``{"name": ..., "rules": [{"verbs": [...], "apiGroups": [...], ...}]}``, as in RBAC."""
    rules = tuple(
        Rule(
            tuple(rule.get("verbs", ())),
            tuple(rule.get("apiGroups", ("*",))),
            tuple(rule.get("resources", ("*",))),
            tuple(rule.get("resourceNames", ())),
            tuple(rule.get("namespaces", ())),
        )
        for rule in values.get("rules", ())
    )
    return User(str(values["name"]), rules, tuple(values.get("groups", ())))
