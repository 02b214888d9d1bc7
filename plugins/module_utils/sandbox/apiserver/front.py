# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The HTTP side: who asks, what for, and the answer on the wire, with whatever fault is due."""

from __future__ import annotations

import asyncio
import dataclasses
import typing as t

from . import accepting, creation, protobuf_bodies, reading, removal, rights, updating, watching
from .cluster import Answer, Cluster
from .control import Control
from .discovery import Discovery
from .failures import (
    MODIFIED,
    ApiError,
    conflict,
    expired,
    internal,
    too_large_body,
    too_many_requests,
    unauthorized,
    unsupported_media_type,
)
from .faults import Fault
from .journal import ACTOR
from .json_text import from_bytes, to_bytes
from .recorder import Recorder, Seen
from .request import ApiRequest, find_place, verb_of
from .rights import User
from .store import DELETED

if t.TYPE_CHECKING:
    from aiohttp import web

MAX_BODY = 3 * 1024 * 1024
_JSON = "application/json"
_WRITERS: dict[str, t.Callable[[Cluster, ApiRequest, bytes], Answer]] = {
    "create": creation.create,
    "update": updating.update,
    "patch": updating.patch,
    "delete": removal.delete,
    "deletecollection": removal.delete_collection,
}


# What everybody may read: that is how load balancers and installers look at a cluster.
_PUBLIC = User("system:anonymous")


def _is_public(http: web.BaseRequest) -> bool:
    return "Authorization" not in http.headers and http.path.startswith(("/healthz", "/readyz", "/livez", "/version"))


class _ClosedError(Exception):
    """The connection goes away without an answer."""


@dataclasses.dataclass
class _Pending:
    """A request that is not counted yet."""

    verb: str
    resource: str
    path: str
    agent: str
    code: int = 0
    noted: bool = False


class Front:
    """Turns HTTP requests into operations on the cluster."""

    def __init__(self, cluster: Cluster, control: Control, recorder: Recorder) -> None:
        self._cluster = cluster
        self._control = control
        self._recorder = recorder
        self._discovery = Discovery(cluster.settings, cluster.table)
        #: Set when the server stops: running watches end.
        self.stopping = asyncio.Event()

    async def handle(self, http: web.BaseRequest) -> web.StreamResponse:
        """Answer one HTTP request, and remember it."""
        from aiohttp import web

        agent = http.headers.get("User-Agent", "")
        seen = _Pending(http.method.lower(), "", http.path, agent)
        try:
            response = await self._answer(http, agent, seen)
            seen.code = response.status
        except ApiError as error:
            seen.code = error.code
            response = web.Response(
                body=to_bytes(error.status()), status=error.code, content_type=_JSON, headers=error.headers
            )
        except _ClosedError:
            if http.transport is not None:
                http.transport.abort()
            response = web.Response(status=500)
        finally:
            self._note(seen)
        return response

    def _note(self, seen: _Pending) -> None:
        """Count a request once; a watch is counted when it starts."""
        if not seen.noted:
            seen.noted = True
            self._recorder.note(Seen(seen.verb, seen.resource, seen.path, seen.agent, seen.code))

    async def _answer(self, http: web.BaseRequest, agent: str, seen: _Pending) -> web.StreamResponse:
        from aiohttp import web

        path = http.path
        user = _PUBLIC if _is_public(http) else self._user(http)
        ACTOR.set(user.name)
        if path.startswith("/sandbox/"):
            seen.noted = True  # Whoever looks does not count.
            rights.check(user, rights.Access("*", "sandbox", "control"))
            data = await _body(http)
            try:
                value = from_bytes(data) if data.strip() else None
            except ValueError:
                value = data.decode("utf-8", "replace")
            return web.json_response(self._control.answer(http.method, path, value))
        query = {name: http.query[name] for name in http.query}
        place = None
        if path.startswith(("/api/v1/", "/apis/")) and path.strip("/").count("/") >= 2:
            parts = path.strip("/").split("/")
            if parts[0] == "api" or len(parts) > 3:
                place = find_place(self._cluster.table, path)
        if place is None:
            await self._fault_before(self._control.faults.take(http.method.lower(), "", path, agent), None)
            document = self._discovery.answer(path, http.host)
            if isinstance(document, str):
                return web.Response(text=document)
            return web.Response(body=to_bytes(document), content_type=_JSON)
        request = ApiRequest(
            verb=verb_of(http.method, place, query),
            served=place.served,
            namespace=place.namespace,
            name=place.name,
            subresource=place.subresource,
            query=query,
            user=user,
            agent=agent,
            content_type=http.content_type if "Content-Type" in http.headers else "",
        )
        seen.verb, seen.resource = request.verb, request.resource
        if request.served.kind.kind != "SelfSubjectAccessReview":
            rights.check(user, request.access)
        return await self._operate(http, request, seen)

    def _user(self, http: web.BaseRequest) -> User:
        settings = self._cluster.settings
        kind, _space, token = http.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "bearer":
            user = settings.tokens.get(token.strip())
            if user is None:
                raise unauthorized()
            return user
        if settings.anonymous is None:
            raise unauthorized()
        return settings.anonymous

    async def _operate(self, http: web.BaseRequest, request: ApiRequest, seen: _Pending) -> web.StreamResponse:
        from aiohttp import web

        faults = self._control.faults.take(request.verb, request.resource, http.path, request.agent)
        if faults:
            await self._fault_before(faults, request)
        if request.verb == "watch":
            return await self._watch(http, request, faults, seen)
        form = accepting.form_of(http.headers.get("Accept", ""))
        include = request.query.get("includeObject", "")
        if request.verb in ("get", "list"):
            body = self._read(request, form, include, faults)
            return web.Response(body=body, content_type=_JSON)
        data = await _body(http)
        if request.verb in ("create", "update") and request.content_type not in ("", _JSON):
            if request.content_type != protobuf_bodies.MEDIA_TYPE or not protobuf_bodies.can_read(data):
                raise unsupported_media_type([_JSON])
            data = to_bytes(protobuf_bodies.from_protobuf(data))
        answer = _WRITERS[request.verb](self._cluster, request, data)
        if "error_after" in faults:
            raise internal(faults["error_after"].text, faults["error_after"].code)
        if "close_after" in faults:
            raise _ClosedError
        response = web.Response(body=answer.body, status=answer.code, content_type=_JSON)
        for warning in answer.warnings:
            quoted = warning.replace("\\", "\\\\").replace('"', '\\"')
            response.headers.add("Warning", f'299 - "{quoted}"')
        return response

    def _read(self, request: ApiRequest, form: str, include: str, faults: dict[str, Fault]) -> bytes:
        cluster, served = self._cluster, request.served
        if request.verb == "get":
            return accepting.object_text(cluster, served, reading.get(cluster, request), form, include)
        stale = faults["stale_list"].version if "stale_list" in faults else None
        page = reading.list_objects(cluster, request, stale)
        if form == accepting.PLAIN:
            return reading.page_text(cluster, served, page)
        return accepting.page_in_form(cluster, served, page, form, include)

    async def _fault_before(self, faults: dict[str, Fault], request: ApiRequest | None) -> None:
        """Faults that come before any work."""
        if "latency" in faults:
            await asyncio.sleep(faults["latency"].seconds)
        if "hang" in faults:
            await self.stopping.wait()
            raise _ClosedError
        if "close" in faults:
            raise _ClosedError
        if "throttle" in faults:
            raise too_many_requests(max(int(faults["throttle"].seconds), 0))
        if "read_only" in faults:
            raise internal("the server is read-only at the moment", 503)
        if "error" in faults:
            raise internal(faults["error"].text, faults["error"].code)
        if request is not None and "conflict" in faults:
            kind = request.served.kind
            raise conflict(kind.group, kind.plural, request.name, MODIFIED)
        if request is not None and request.verb == "watch" and "gone" in faults:
            raise expired(f"too old resource version: {request.query.get('resourceVersion', '0')} (0)")

    async def _watch(
        self, http: web.BaseRequest, request: ApiRequest, faults: dict[str, Fault], seen: _Pending
    ) -> web.StreamResponse:
        from aiohttp import web

        cluster, served = self._cluster, request.served
        form = accepting.form_of(http.headers.get("Accept", ""))
        include = request.query.get("includeObject", "")
        plan = watching.plan_watch(cluster, request)
        if "no_bookmarks" in faults:
            plan.bookmarks = False
        started = False

        def render(kind: str, body: bytes) -> bytes:
            nonlocal started
            if kind == DELETED and "lost_deletes" in faults:
                return b""
            if form != accepting.PLAIN:
                body = accepting.event_body(cluster, served, body, form, include, not started)
                started = True
            return watching.event(kind, body)

        seen.code = 200
        self._note(seen)
        response = web.StreamResponse(headers={"Content-Type": _JSON})
        response.enable_chunked_encoding()
        await response.prepare(http)
        if "expired" in faults:
            asked = int(request.query.get("resourceVersion") or 0)
            await response.write(watching.error_event(expired(f"too old resource version: {asked} (0)")))
            return response
        watch = watching.Watch(cluster, served, request.namespace, plan, render)
        await self._stream(response, watch, faults)
        return response

    async def _stream(self, response: web.StreamResponse, watch: watching.Watch, faults: dict[str, Fault]) -> None:
        """Send a watch, until it ends, the client goes, or the server stops."""
        lines = watch.lines()
        stopping = asyncio.ensure_future(self.stopping.wait())
        quota = _Quota.of(faults)
        try:
            while not quota.is_used_up:
                following = asyncio.ensure_future(_next(lines))
                try:
                    await asyncio.wait((following, stopping), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    if not following.done():
                        following.cancel()
                        await asyncio.gather(following, return_exceptions=True)
                batch = b"" if following.cancelled() else following.result()
                if not batch:
                    return
                await _send(response, quota.cut(batch), faults.get("split"))
            if quota.silent:
                await stopping
            elif quota.abrupt:
                raise _ClosedError
        except ConnectionResetError:
            return
        finally:
            stopping.cancel()
            await lines.aclose()


class _Quota:
    """How many events a watch may send before a fault stops it."""

    def __init__(self, fault: Fault | None) -> None:
        self._left = fault.after if fault else None
        self.silent = fault is not None and fault.kind == "silent_watch"
        self.abrupt = fault is not None and fault.cut

    @classmethod
    def of(cls, faults: dict[str, Fault]) -> _Quota:
        return cls(faults.get("silent_watch") or faults.get("drop_watch"))

    @property
    def is_used_up(self) -> bool:
        return self._left is not None and self._left <= 0

    def cut(self, batch: bytes) -> bytes:
        """What of a batch may be sent; with an abrupt end half a line more."""
        if self._left is None:
            return batch
        lines = batch.splitlines(keepends=True)
        sent = lines[: self._left]
        if self.abrupt and len(lines) > self._left:
            following = lines[self._left]
            sent.append(following[: len(following) // 2])
        self._left -= len(lines)
        return b"".join(sent)


async def _next(lines: t.AsyncGenerator[bytes, None]) -> bytes:
    """The next batch, b"" at the end."""
    try:
        return await lines.__anext__()
    except StopAsyncIteration:
        return b""


async def _send(response: web.StreamResponse, batch: bytes, split: Fault | None) -> None:
    if split is None:
        if batch:
            await response.write(batch)
        return
    for start in range(0, len(batch), split.size):
        await response.write(batch[start : start + split.size])


async def _body(http: web.BaseRequest) -> bytes:
    """The whole body. ApiError 413 when it is too large."""
    parts, size = [], 0
    async for chunk in http.content.iter_any():
        size += len(chunk)
        if size > MAX_BODY:
            raise too_large_body(MAX_BODY)
        parts.append(chunk)
    return b"".join(parts)
