# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One gRPC channel to one driver socket, and a task that knows at every moment whether it is connected.

The task waits for the next state of the channel and asks for a connection whenever there is none, so that a driver that
comes back is connected again without anybody calling it. Nothing is done inside callbacks of gRPC: a client that
reconnected in one deadlocked after the channel had been idle.
"""

from __future__ import annotations

import asyncio
import os
import time
import typing as t

from ..wire.messages import LibraryMissing
from .endpoint import grpc_target
from .timings import Clock, Timings
from .wakeup import Signal

if t.TYPE_CHECKING:
    import grpc

# One answer with 5000 claims has about 1 MiB for each device of a claim. gRPC's own limit is 4 MiB.
MAX_MESSAGE_BYTES = 64 * 1024 * 1024


# How much later than the failure of a call the state of its channel may follow.
_STATE_LAG = 0.2


class CallError(Exception):
    """A call ended with a gRPC status. Only between the connection and the client."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(code, text)
        self.code, self.text = code, text


def open_channel(path: str, timings: Timings) -> grpc.aio.Channel:
    """A channel to a checked socket path. LibraryMissing when grpcio is not there."""
    # The C core writes lines of its own to stderr; what matters comes as a status anyway. Read when it is loaded.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    try:
        import grpc
    except ImportError as error:
        raise LibraryMissing(
            f"The Python library grpcio, which speaks with DRA drivers, cannot be imported: {error}.",
            "Install grpcio for this interpreter, or run the module with the interpreter of the node agent.",
            library="grpc",
        ) from error
    pause = max(1, int(timings.reconnect * 1000))
    idle = 2**31 - 1 if timings.idle is None else int(timings.idle * 1000)
    options: list[tuple[str, t.Any]] = [
        # http_proxy would hijack even a unix socket.
        ("grpc.enable_http_proxy", 0),
        # A name that every server accepts; by default some versions send the escaped path.
        ("grpc.default_authority", "localhost"),
        # Own connections: a new channel to the path must not inherit the back-off of an old one.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.initial_reconnect_backoff_ms", min(100, pause)),
        ("grpc.min_reconnect_backoff_ms", int(timings.connecting * 1000)),  # deadline of one attempt, despite its name
        ("grpc.max_reconnect_backoff_ms", pause),
        ("grpc.client_idle_timeout_ms", idle),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", -1),
        # Repeating a call is decided in one place, the client.
        ("grpc.enable_retries", 0),
    ]
    return grpc.aio.insecure_channel(grpc_target(path), options=options)


class Connection:
    """The channel and what is known about it. `start` it, `close` it.

    ``on_change`` is called, in the event loop, after each change of `connected`. ``changed_at`` is the wall time of the
    last change, ``lost`` how many times a connection was lost.
    """

    def __init__(self, path: str, timings: Timings, on_change: t.Callable[[], None], clock: Clock = time.time) -> None:
        self.path = path
        self.connected = False
        self.changed_at = clock()
        self._changed = asyncio.get_running_loop().time()
        self.lost = 0
        self.signal = Signal()
        self._timings = timings
        self._clock = clock
        self._on_change = on_change
        self._channel: grpc.aio.Channel | None = None
        self._methods: dict[str, t.Any] = {}
        self._tracker: asyncio.Task[None] | None = None

    @property
    def unchanged_for(self) -> float:
        """Seconds since `connected` changed, by a clock that nobody sets."""
        return asyncio.get_running_loop().time() - self._changed

    def start(self) -> None:
        self._channel = open_channel(self.path, self._timings)
        self._tracker = asyncio.get_running_loop().create_task(self._track(self._channel), name=f"track {self.path}")

    async def close(self, grace: float | None = None) -> None:
        """Stop following and close; running calls may still end within ``grace`` seconds."""
        tracker, self._tracker = self._tracker, None
        channel, self._channel = self._channel, None
        self._methods.clear()
        self._note(False)
        try:
            if tracker is not None:
                tracker.cancel()
                await asyncio.wait({tracker})
        finally:
            if channel is not None:
                await channel.close(grace)

    async def _track(self, channel: grpc.aio.Channel) -> None:
        import grpc

        state = channel.get_state(try_to_connect=True)
        while state is not grpc.ChannelConnectivity.SHUTDOWN:
            self._note(state is grpc.ChannelConnectivity.READY)
            await channel.wait_for_state_change(state)
            state = channel.get_state(try_to_connect=True)

    async def loss_known(self, lost: int) -> bool:
        """After a call that failed: whether the connection was lost since ``lost`` was noted, known after a moment.

        The call fails first, and gRPC tells the state of the channel a little later.
        """
        return await self.signal.until(lambda: self.lost > lost or not self.connected, _STATE_LAG)

    def _note(self, connected: bool) -> None:
        if connected == self.connected:
            return
        self.connected, self.changed_at = connected, self._clock()
        self._changed = asyncio.get_running_loop().time()
        self.lost += not connected
        self.signal.notify()
        self._on_change()

    async def call(self, path: str, request: bytes, timeout: float) -> bytes:
        """One unary call, bytes to bytes. CallError with the status; never waits longer than timeout and grace."""
        import grpc

        if self._channel is None:
            raise CallError("UNAVAILABLE", "the connection is closed")
        method = self._methods.get(path)
        if method is None:
            method = self._methods[path] = self._channel.unary_unary(path)
        call = method(request, timeout=max(0.0, timeout))
        try:
            async with asyncio.timeout(max(0.0, timeout) + self._timings.grace):
                return t.cast("bytes", await call)
        except grpc.aio.AioRpcError as error:
            raise CallError(error.code().name, error.details() or "") from error
        except grpc.aio.UsageError as error:
            raise CallError("UNAVAILABLE", f"the connection is closed: {error}") from error
        except asyncio.TimeoutError as error:
            text = f"gRPC did not end the call {self._timings.grace:g} s after its deadline of {timeout:g} s"
            raise CallError("DEADLINE_EXCEEDED", text) from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Nobody cancelled us: gRPC cancels calls when the channel is closed under them.
            raise CallError("UNAVAILABLE", "the connection was closed during the call") from error

    def stream(self, path: str) -> grpc.aio.UnaryStreamCall[bytes, bytes]:
        """Open a server stream with an empty request. CallError when the connection is closed."""
        if self._channel is None:
            raise CallError("UNAVAILABLE", "the connection is closed")
        return t.cast("grpc.aio.UnaryStreamCall[bytes, bytes]", t.cast("t.Any", self._channel.unary_stream(path))(b""))
