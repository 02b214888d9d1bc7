# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A gRPC server behind a gate of the agent's own: what its APIs on unix sockets have in common."""

from __future__ import annotations

import logging
import os
import typing as t

from ..checkpoint.errors import DraError
from ..driver.connection import MAX_MESSAGE_BYTES
from ..driver.endpoint import grpc_target
from .local_socket import Gate

if t.TYPE_CHECKING:
    import grpc

log = logging.getLogger(__name__)


class GatedServer:
    """Serves what ``handlers`` makes on the socket of ``gate``. ``options`` are further ones of the gRPC server."""

    def __init__(
        self,
        gate: Gate,
        handlers: t.Callable[[], grpc.GenericRpcHandler],
        options: t.Sequence[tuple[str, t.Any]] = (),
    ) -> None:
        self._gate = gate
        self._handlers = handlers
        self._options = options
        self._server: grpc.aio.Server | None = None

    @property
    def refused(self) -> int:
        """How many connections of other users were refused."""
        return self._gate.refused

    async def start(self) -> None:
        """Listen. Raises DraError, and nothing is left behind then."""
        # The C core writes lines of its own to stderr; what matters comes as a status anyway.
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
        import grpc

        self._gate.prepare()
        options = [
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", -1),
            *self._options,
        ]
        server = grpc.aio.server(options=options)
        server.add_generic_rpc_handlers((self._handlers(),))
        try:
            server.add_insecure_port(grpc_target(self._gate.inner))
        except RuntimeError as error:
            raise DraError(
                f"The server of {self._gate.what} cannot listen on {self._gate.inner}: {error}.",
                "Look at the rights of its directory.",
            ) from error
        await server.start()
        self._server = server
        try:
            self._gate.open()
        except BaseException:
            await self.stop(0.0)
            raise
        log.info("%s listens socket=%s", self._gate.what, self._gate.path)

    async def stop(self, grace: float) -> None:
        """Take no more calls, let those under way end within ``grace`` seconds, then cut them."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(grace)
        await self._gate.close()
