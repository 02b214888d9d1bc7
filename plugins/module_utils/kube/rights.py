# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Asking the API server which rights we have, before a missing one stops the work."""

from __future__ import annotations

import dataclasses
import typing as t

from .client import KubeClient
from .resources import Call
from .shapes import decoder

_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclasses.dataclass(frozen=True)
class Right:
    """A verb on a resource, which may be a subresource (``pods/status``). No ``namespace`` means in all of them."""

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        target = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {target}" + (f" in {self.namespace}" if self.namespace else "")


@dataclasses.dataclass(frozen=True)
class Review:
    """The server's answer for one right. ``reason`` is its own text, often empty."""

    right: Right
    allowed: bool
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class _ReviewStatus:
    allowed: bool = False
    reason: str = ""
    evaluation_error: str = ""


@dataclasses.dataclass(frozen=True)
class _ReviewAnswer:
    status: _ReviewStatus = dataclasses.field(default_factory=_ReviewStatus)


async def review(client: KubeClient, rights: t.Iterable[Right]) -> list[Review]:
    """One SelfSubjectAccessReview for each right, in their order. Everybody may ask about himself."""
    return [await _review(client, right) for right in rights]


async def _review(client: KubeClient, right: Right) -> Review:
    plain, _unused, subresource = right.resource.partition("/")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": plain,
        "subresource": subresource,
        "namespace": right.namespace,
        "name": right.name,
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }
    call = Call("create", "POST", _PATH, "authorization.k8s.io", "selfsubjectaccessreviews")
    answer = decoder(_ReviewAnswer)(await client.request(call, body=body, repeatable=True)).status
    return Review(right, answer.allowed, answer.reason or answer.evaluation_error)
