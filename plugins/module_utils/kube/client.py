# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The verbs of the Kubernetes API: get, list, create, replace, patch, apply, delete."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import typing as t

from . import errors
from .access import ClusterAccess
from .exchange import Query, Requester
from .resources import Call, Resource, call_for, path_call
from .shapes import Buffer, ListPage, decode_any, decoder
from .transport import Transport

JsonObject = dict[str, t.Any]

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


@dataclasses.dataclass(frozen=True)
class Preconditions:
    """What must hold for a delete: this very object, in this very state."""

    uid: str = ""
    resource_version: str = ""

    def as_json(self) -> dict[str, str]:
        """As in DeleteOptions."""
        pairs = (("uid", self.uid), ("resourceVersion", self.resource_version))
        return {key: value for key, value in pairs if value}


@dataclasses.dataclass(frozen=True)
class Page:
    """A part of a list. ``items`` are the objects as bytes, each valid as long as it is kept."""

    items: t.Sequence[Buffer]
    resource_version: str
    continue_token: str
    remaining: int | None


class KubeClient(Requester):
    """The verbs of the API. Answers are plain dicts unless a ``shape`` is given (see ``shapes``).

    All methods raise ``KubeError``: see ``errors`` for what each one means and ``Requester`` for deadlines.
    """

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, access: ClusterAccess, **settings: t.Any) -> t.AsyncIterator[KubeClient]:
        """A client with a transport of its own, closed at the end. ``settings`` as for the constructor."""
        async with Transport(access) as transport:
            yield cls(transport, **settings)

    # Reads

    async def get(
        self, resource: Resource, name: str, namespace: str = "", *, shape: t.Any = None, timeout: float | None = None
    ) -> t.Any:
        """One object; raises ``NotFoundError``."""
        call = call_for(resource, "get", namespace, name)
        return self._decode(call, await self.request(call, timeout=timeout), shape)

    async def path(self, path: str, *, shape: t.Any = None, timeout: float | None = None) -> t.Any:
        """The JSON behind a path that is no resource: ``/version``, ``/apis/resource.k8s.io``."""
        call = path_call(path)
        return self._decode(call, await self.request(call, timeout=timeout), shape)

    async def page(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        selectors: Query = (),
        limit: int = 500,
        continue_token: str = "",
        query: Query = (),
        timeout: float | None = None,
    ) -> Page:
        """A part of a list; ``limit`` 0 asks for everything at once. Raises ``GoneError`` for an old token."""
        call = call_for(resource, "list", namespace)
        asked = [*selectors, *query]
        if limit:
            asked.append(("limit", str(limit)))
        if continue_token:
            asked.append(("continue", continue_token))
        answer = await self.request(call, query=asked, timeout=timeout)
        found = self._decode(call, answer, ListPage)
        meta = found.metadata
        return Page(found.items or (), meta.resource_version, meta.continue_, meta.remaining_item_count)

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        shape: t.Any = None,
        timeout: float | None = None,
    ) -> list[t.Any]:
        """All objects, fetched page by page. A list that grows too old on the way is started again, once."""
        selectors = list(selector_query(label_selector, field_selector))
        decode = decode_any if shape is None else decoder(shape)
        deadline = self.deadline_in(timeout)
        for last_try in (False, True):
            items: list[t.Any] = []
            token = ""
            try:
                while True:
                    left = deadline - asyncio.get_running_loop().time()
                    page = await self.page(
                        resource, namespace, selectors=selectors, limit=limit, continue_token=token, timeout=left
                    )
                    items.extend(decode(raw) for raw in page.items)
                    token = page.continue_token
                    if not token:
                        return items
            except errors.GoneError:
                if last_try:
                    raise
        return items

    # Writes

    async def create(
        self,
        resource: Resource,
        body: t.Mapping[str, t.Any],
        namespace: str = "",
        *,
        field_manager: str = "",
        dry_run: bool = False,
        shape: t.Any = None,
        timeout: float | None = None,
    ) -> t.Any:
        """Make an object; apiVersion and kind are filled in. Raises ``AlreadyExistsError``."""
        call = call_for(resource, "create", namespace, str((body.get("metadata") or {}).get("name", "")))
        query = write_query(field_manager=field_manager, dry_run=dry_run)
        answer = await self.request(call, query=query, body=_typed(resource, body), timeout=timeout)
        return self._decode(call, answer, shape)

    async def replace(
        self,
        resource: Resource,
        body: t.Mapping[str, t.Any],
        name: str,
        namespace: str = "",
        *,
        subresource: str = "",
        field_manager: str = "",
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> JsonObject:
        """Put the exact object as it was read, with changes. Never a trimmed one: what is left out is deleted."""
        call = call_for(resource, "update", namespace, name, subresource)
        query = write_query(field_manager=field_manager, dry_run=dry_run)
        answer = await self.request(call, query=query, body=_typed(resource, body), timeout=timeout)
        return t.cast("JsonObject", self._decode(call, answer, None))

    async def patch(
        self,
        resource: Resource,
        body: t.Any,
        name: str,
        namespace: str = "",
        *,
        kind: str = MERGE_PATCH,
        subresource: str = "",
        field_manager: str = "",
        dry_run: bool = False,
        shape: t.Any = None,
        timeout: float | None = None,
    ) -> t.Any:
        """Change an object; fields that the patch does not name stay as they are, known to us or not.

        With ``metadata.resourceVersion`` in a merge patch it only succeeds on that state (else ``ConflictError``).
        ``kind`` is one of MERGE_PATCH, JSON_PATCH (a list), STRATEGIC_PATCH.
        """
        call = call_for(resource, "patch", namespace, name, subresource)
        query = write_query(field_manager=field_manager, dry_run=dry_run)
        answer = await self.request(call, query=query, body=body, content_type=kind, timeout=timeout)
        return self._decode(call, answer, shape)

    async def apply(
        self,
        resource: Resource,
        body: t.Mapping[str, t.Any],
        name: str,
        namespace: str = "",
        *,
        field_manager: str,
        force: bool = True,
        subresource: str = "",
        dry_run: bool = False,
        shape: t.Any = None,
        timeout: float | None = None,
    ) -> t.Any:
        """Server-side apply: fields of an earlier apply by this manager that are left out now are removed."""
        call = call_for(resource, "patch", namespace, name, subresource)
        query = [*write_query(field_manager=field_manager, dry_run=dry_run), ("force", "true" if force else "false")]
        answer = await self.request(
            call,
            query=query,
            body=_typed(resource, body),
            content_type=APPLY_PATCH,
            timeout=timeout,
            repeatable=True,
        )
        return self._decode(call, answer, shape)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        preconditions: Preconditions | None = None,
        grace_period_seconds: int | None = None,
        propagation_policy: str = "",
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> JsonObject:
        """Delete an object. Raises ``NotFoundError``, and ``ConflictError`` when a precondition does not hold."""
        call = call_for(resource, "delete", namespace, name)
        options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if preconditions and preconditions.as_json():
            options["preconditions"] = preconditions.as_json()
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        if propagation_policy:
            options["propagationPolicy"] = propagation_policy
        if dry_run:
            options["dryRun"] = ["All"]
        # With the UID a repetition cannot hit another object of the same name.
        safe = bool(preconditions and preconditions.uid)
        answer = await self.request(call, body=options, timeout=timeout, repeatable=safe)
        return t.cast("JsonObject", self._decode(call, answer, None))

    def _decode(self, call: Call, raw: Buffer, shape: t.Any) -> t.Any:
        try:
            return decode_any(raw) if shape is None else decoder(shape)(raw)
        except ValueError as error:
            raise malformed_answer(call, self.transport.url(call), error) from error


def malformed_answer(call: Call, url: str, error: ValueError) -> errors.MalformedAnswerError:
    """The error for an answer that could not be decoded; msgspec's text names the path, never the content."""
    return errors.MalformedAnswerError(
        f"Could not {call.describe()}: {call.method} {url} was answered with something unexpected: {error!s:.200}.",
        "Check that this is a Kubernetes API server, and that no proxy changes its answers.",
        **call.facts(),
        url=url,
    )


def selector_query(label_selector: str = "", field_selector: str = "") -> t.Iterator[tuple[str, str]]:
    """The selectors that are set, as query parameters."""
    if label_selector:
        yield "labelSelector", label_selector
    if field_selector:
        yield "fieldSelector", field_selector


def write_query(*, field_manager: str = "", dry_run: bool = False) -> list[tuple[str, str]]:
    """Query parameters that writes have in common."""
    query = [("fieldManager", field_manager)] if field_manager else []
    return [*query, ("dryRun", "All")] if dry_run else query


def _typed(resource: Resource, body: t.Mapping[str, t.Any]) -> JsonObject:
    return {"apiVersion": resource.api_version, "kind": resource.kind.name, **body}
