# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A client of the agent's local API. What comes back has the shapes that the modules return."""

from __future__ import annotations

import contextlib
import json
import os
import typing as t

from ..driver.connection import MAX_MESSAGE_BYTES
from ..driver.endpoint import grpc_target, socket_path
from ..resource.view import JsonObject
from ..wire.messages import LibraryMissing
from .claim_request import FORGOTTEN, PREPARED, UNPREPARED, ClaimRequest
from .local_errors import OPTIONS, decode_error
from .local_messages import agent_api, change_result, claim_report, finding_report, message, plain

if t.TYPE_CHECKING:
    import grpc

Json = dict[str, t.Any]

CHANGES = {PREPARED: "Prepare", UNPREPARED: "Unprepare", FORGOTTEN: "Forget"}
"""The wanted state of a claim to the call that brings it about."""
ANSWER = 5.0
"""Seconds that an agent has for questions that need no driver."""
_MORE = 15.0
"""Seconds that a change may take beside its drivers: the file, the API, a busy machine."""


class LocalClient:
    """Made by `connected`. Every method raises DraError: the agent's own, or `AgentSilentError`."""

    def __init__(self, path: str, channel: grpc.aio.Channel) -> None:
        self.path = path
        self._channel = channel

    async def version(self) -> Json:
        """Who answers: the fields of VersionResponse."""
        return plain(await self._call("Version"))

    async def claims(self, namespace: str = "") -> list[Json]:
        """Recorded claims as the module claim returns them, with ``status``, ``failures``, ``earlier_boot``, and
        ``stopped``."""
        answer = await self._call("ListClaims", namespace=namespace)
        return [
            {
                **claim_report(one),
                "status": one.status,
                "earlier_boot": one.earlier_boot,
                "stopped": one.stopped,
                "failures": [
                    {name: getattr(f, name) for name in ("operation", "text", "count", "first", "last", "retry_in")}
                    for f in one.failures
                ],
            }
            for one in answer.claims
        ]

    async def change(self, request: ClaimRequest, *, check: bool = False) -> Json:
        """Prepare, unprepare or forget, as ``request.state`` says; what `claim_work.work` gives.

        The directories of the request do not count: the agent has its own.
        """
        fields: Json = {} if request.holder is None else {"holder": request.holder}
        answer = await self._call(
            CHANGES[request.state],
            timeout=request.timeout + _MORE,
            fields={
                **fields,
                "pod": b"" if request.pod is None else json.dumps(request.pod).encode(),
                "claims": [json.dumps(claim).encode() for claim in request.claims],
                "force": request.force,
                "check": check,
                "timeout": request.timeout,
                "reason": request.reason,
                "by": request.by,
            },
        )
        return change_result(answer)

    async def resources(self, pod: JsonObject, container: str = "") -> dict[str, list[str]]:
        """CDI names by container."""
        answer = await self._call("GetResources", pod=json.dumps(pod).encode(), container=container)
        return {one.name: list(one.cdi_devices) for one in answer.containers}

    async def drivers(self) -> Json:
        """``drivers`` and ``registrations`` with the fields of their messages."""
        return plain(await self._call("ListDrivers"))

    async def findings(self) -> list[Json]:
        """Findings as modules return them."""
        return [finding_report(one) for one in (await self._call("ListFindings")).findings]

    async def watch(self, after: int = 0, *, only_new: bool = False) -> t.AsyncIterator[Json]:
        """Events as they come, with the fields of Event, until the agent ends."""
        import grpc

        method = agent_api().service()["WatchEvents"]
        open_call = self._channel.unary_stream(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        call = open_call(message("WatchEventsRequest", after=after, only_new=only_new))
        try:
            async for event in call:
                yield {name: getattr(event, name) for name in ("number", "at", "kind", "subject", "text")}
        except grpc.aio.AioRpcError as error:
            raise decode_error(error, self.path, "WatchEvents") from None
        finally:
            call.cancel()

    async def _call(self, name: str, *, timeout: float = ANSWER, fields: Json | None = None, **more: t.Any) -> t.Any:
        import grpc

        method = agent_api().service()[name]
        call = self._channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        try:
            return await call(method.request(**{**(fields or {}), **more}), timeout=timeout)
        except grpc.aio.AioRpcError as error:
            raise decode_error(error, self.path, name) from None


@contextlib.asynccontextmanager
async def connected(path: str) -> t.AsyncIterator[LocalClient]:
    """A client of the agent behind a socket; nothing is sent before the first question.

    Raises EndpointError for what is no path of a socket, LibraryMissing without grpcio.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    try:
        import grpc
    except ImportError as error:
        raise LibraryMissing(
            f"The Python library grpcio, which speaks with the agent, cannot be imported: {error}.",
            "Install grpcio for this interpreter, or use that of the agent.",
            library="grpc",
        ) from error
    options = [
        # http_proxy would hijack even a unix socket.
        ("grpc.enable_http_proxy", 0),
        ("grpc.default_authority", "localhost"),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", -1),
        ("grpc.enable_retries", 0),
        *OPTIONS,
    ]
    checked = socket_path(path)
    async with grpc.aio.insecure_channel(grpc_target(checked), options=options) as channel:
        yield LocalClient(checked, channel)
