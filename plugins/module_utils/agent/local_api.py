# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The server of the local API: gRPC behind the agent's own gate."""

from __future__ import annotations

import logging
import os
import typing as t

from ..checkpoint.errors import DraError
from ..driver.connection import MAX_MESSAGE_BYTES
from ..driver.endpoint import grpc_target
from .events import EventLog
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
        self._gate = Gate(path, users)
        self._service = service
        self._events = events
        self._server: grpc.aio.Server | None = None

    @property
    def refused(self) -> int:
        """How many connections of other users were refused."""
        return self._gate.refused

    async def __aenter__(self) -> LocalApi:
        # The C core writes lines of its own to stderr; what matters comes as a status anyway.
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
        import grpc

        self._gate.prepare()
        options = [
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", -1),
            *OPTIONS,
        ]
        server = grpc.aio.server(options=options)
        server.add_generic_rpc_handlers((_handlers(self._service),))
        try:
            server.add_insecure_port(grpc_target(self._gate.inner))
        except RuntimeError as error:
            raise DraError(
                f"The local API cannot listen on {self._gate.inner}: {error}.", "Look at the rights of its directory."
            ) from error
        await server.start()
        self._server = server
        try:
            self._gate.open()
        except BaseException:
            await self.stop(0.0)
            raise
        log.info("local API listens socket=%s", self._gate.path)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.stop(0.0)

    async def stop(self, grace: float) -> None:
        """Take no more calls, let those under way end within ``grace`` seconds, then cut them."""
        server, self._server = self._server, None
        self._events.close()  # watchers would use up the grace
        if server is not None:
            await server.stop(grace)
        await self._gate.close()


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
