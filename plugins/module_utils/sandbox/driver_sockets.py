# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One listening socket of the simulated driver, with control over its file.

gRPC removes the file it bound when the server stops. So the socket is bound under a short hidden name and linked to its
real one: then a clean stop removes the file, a simulated kill leaves it, and nobody sees the socket before it listens.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import typing as t

from ..checkpoint.errors import DraError
from ..driver.endpoint import EndpointError, check_length, grpc_target

if t.TYPE_CHECKING:
    import grpc

_numbers = itertools.count()


class Listener:
    """A gRPC server on one unix socket; can be started again after a stop."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._server: grpc.aio.Server | None = None
        self._inode: int | None = None

    async def start(self, handlers: t.Sequence[grpc.GenericRpcHandler], connection_age: float | None = None) -> None:
        """Listen; a file that is in the way is removed first, as drivers do. DraError when it cannot listen."""
        import grpc

        options: list[tuple[str, t.Any]] = [
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1),
        ]
        if connection_age is not None:
            age = max(1, int(connection_age * 1000))
            options += [("grpc.max_connection_age_ms", age), ("grpc.max_connection_age_grace_ms", 0)]
        folder = os.path.dirname(self.path)
        os.makedirs(folder, exist_ok=True)
        hidden = f"{folder}/.{os.getpid():x}{next(_numbers):x}"
        bound = hidden if _fits(hidden) else self.path
        server = grpc.aio.server(options=options)
        server.add_generic_rpc_handlers(tuple(handlers))
        try:
            if bound == self.path:
                _remove(self.path)
            server.add_insecure_port(grpc_target(bound))
        except RuntimeError as error:
            raise DraError(
                f"The simulated driver cannot listen on {self.path}: {error}.",
                "Check that the directory exists and may be written to.",
                socket=self.path,
            ) from error
        await server.start()
        if bound != self.path:
            _remove(self.path)
            os.link(bound, self.path)
            os.unlink(bound)
        self._server, self._inode = server, os.stat(self.path).st_ino

    async def stop(self, abrupt: bool = False) -> None:
        """Stop serving. ``abrupt`` breaks running calls and leaves the file; else the file goes first if it is ours."""
        server, self._server = self._server, None
        if server is None:
            return
        if not abrupt:
            with contextlib.suppress(FileNotFoundError):
                if os.stat(self.path).st_ino == self._inode:  # a newer instance may have taken the name over
                    os.unlink(self.path)
        await server.stop(None if abrupt else 0.2)


def _fits(path: str) -> bool:
    try:
        check_length(path)
    except EndpointError:
        return False
    return True


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
