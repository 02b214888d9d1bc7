# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The server of the local API: gRPC behind the agent's own gate."""

from __future__ import annotations

import logging
import typing as t

from ..checkpoint.errors import DraError
from .events import EventLog
from .gated_server import GatedServer
from .local_errors import KEY, OPTIONS, encode_error
from .local_messages import agent_api
from .local_socket import Gate, Peer

if t.TYPE_CHECKING:
    import grpc

log = logging.getLogger(__name__)


class LocalApi:
    """Serves ``service`` on the unix socket ``path``. Use it as an async context manager.

    ``service`` has one method for each call of agent.proto, as `local_service.LocalService` has them. ``users`` are the
    user IDs that may use it: root and the agent's own unless given.
    """

    def __init__(self, path: str, service: object, events: EventLog, *, users: t.Collection[int] | None = None) -> None:
        self._events = events
        self._server = GatedServer(Gate(path, "local API", users), lambda: _handlers(service), OPTIONS)

    @property
    def refused(self) -> int:
        """How many connections of other users were refused."""
        return self._server.refused

    async def __aenter__(self) -> LocalApi:
        await self._server.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.stop(0.0)

    async def stop(self, grace: float) -> None:
        """Take no more calls, let those under way end within ``grace`` seconds, then cut them."""
        self._events.close()  # watchers would use up the grace
        await self._server.stop(grace)


def _handlers(service: object) -> grpc.GenericRpcHandler:
    import grpc

    api = agent_api()
    handlers: dict[str, t.Any] = {}
    for name, method in api.service().items():
        make: t.Any = (
            grpc.unary_stream_rpc_method_handler if method.server_streaming else (grpc.unary_unary_rpc_method_handler)
        )
        wrap = _streaming if method.server_streaming else _unary
        handlers[name] = make(
            wrap(getattr(service, name), name),
            request_deserializer=method.request.FromString,
            response_serializer=method.response.SerializeToString,
        )
    return grpc.method_handlers_generic_handler(api.service_name(), handlers)


def _unary(call: t.Callable[[t.Any, Peer], t.Awaitable[t.Any]], name: str) -> t.Any:
    async def serve(request: t.Any, context: grpc.aio.ServicerContext[t.Any, t.Any]) -> t.Any:
        try:
            return await call(request, Peer.named(context.peer()))
        except Exception as error:
            return await _abort(context, name, error)

    return serve


def _streaming(call: t.Callable[[t.Any, Peer], t.AsyncIterator[t.Any]], name: str) -> t.Any:
    async def serve(request: t.Any, context: grpc.aio.ServicerContext[t.Any, t.Any]) -> t.AsyncIterator[t.Any]:
        try:
            async for item in call(request, Peer.named(context.peer())):
                yield item
        except Exception as error:
            await _abort(context, name, error)

    return serve


async def _abort(context: grpc.aio.ServicerContext[t.Any, t.Any], name: str, error: Exception) -> t.NoReturn:
    """End the call with what went wrong. Whatever a call meets, the agent goes on."""
    import grpc

    if isinstance(error, DraError):
        log.info("local API call failed method=%s error=%s", name, error)
        code = grpc.StatusCode.FAILED_PRECONDITION
    else:
        log.exception("local API call ended by a bug method=%s", name)
        code = grpc.StatusCode.INTERNAL
        error = DraError(
            f"The agent met a bug in {name} ({type(error).__name__}).", "Its log has the details; please report them."
        )
    await context.abort(code, error.message[:500], trailing_metadata=((KEY, encode_error(error)),))
    raise AssertionError("abort does not return")
