# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The way of every single request of the controller to the API server: only what is in the list goes through."""

from __future__ import annotations

import typing as t

from ..checkpoint.errors import DraError
from ..kube import errors
from ..kube.client import KubeClient, Preconditions
from ..kube.resources import Resource
from .plan import Question
from .requests import Use, requests_of
from .shapes import SHAPES, Json
from .target import Target

#: As in the original: with it, and ``force``, an apply takes the list of names over from an earlier controller.
FIELD_MANAGER = "ResourceClaimController"


class Gateway:
    """Requests through ``client``, whose fence holds back every write once the lease is lost."""

    def __init__(self, client: KubeClient, target: Target) -> None:
        self._client, self._target = client, target
        self._allowed = frozenset(requests_of(target))

    async def ask(self, question: Question) -> Json | None:
        """The object as it is now, None when there is none."""
        resource = self._resource(question.use)
        shape = SHAPES[question.kind]
        try:
            return t.cast(Json, await self._client.get(resource, question.name, question.namespace, shape=shape))
        except errors.NotServedError:
            raise
        except errors.NotFoundError:
            return None

    async def create(self, use: Use, body: Json, namespace: str) -> Json:
        """Make an object."""
        return t.cast(Json, await self._client.create(self._resource(use), body, namespace, shape=SHAPES[use.kind]))

    async def patch(self, use: Use, patch: Json, name: str, namespace: str) -> Json:
        """A merge patch on an object or its status."""
        return t.cast(
            Json,
            await self._client.patch(
                self._resource(use), patch, name, namespace, subresource=use.subresource, shape=SHAPES[use.kind]
            ),
        )

    async def apply_status(self, use: Use, body: Json, name: str, namespace: str) -> Json:
        """Server-side apply of a status."""
        return t.cast(
            Json,
            await self._client.apply(
                self._resource(use),
                body,
                name,
                namespace,
                field_manager=FIELD_MANAGER,
                subresource=use.subresource,
                shape=SHAPES[use.kind],
            ),
        )

    async def delete(self, use: Use, name: str, namespace: str, preconditions: Preconditions) -> Json:
        """Delete an object; the answer is the object when it stays for its finalizers."""
        return await self._client.delete(self._resource(use), name, namespace, preconditions=preconditions)

    def _resource(self, use: Use) -> Resource:
        if use not in self._allowed:
            raise DraError(
                f"The controller wanted to {use.verb} {use.resource}, which is not in its list of requests for a "
                f"cluster with {self._target.version.group_version}.",
                "This is a bug: please report it.",
                verb=use.verb,
                resource=use.resource,
            )
        return self._target.resource(use.kind)
