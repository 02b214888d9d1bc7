# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Request bodies that look at the fence in the very step in which they are written.

aiohttp keeps the headers back until the first piece of the body, so when the fence is shut nothing at all goes out.
Between an earlier check and the socket lie the wait for a connection, DNS and TLS: seconds in which a lease can end.
"""

from __future__ import annotations

import contextlib
import functools
import socket
import struct
import typing as t

from .fence import Fence

if t.TYPE_CHECKING:
    import aiohttp.payload


def guarded_body(body: bytes | None, content_type: str, fence: Fence | None) -> aiohttp.payload.BytesPayload | None:
    """What aiohttp sends for these bytes. A fenced request without a body gets an empty object, so that there is one
    to hold back."""
    if body is None and fence is None:
        return None
    payload = _payload_class()(body if body is not None else b"{}", content_type=content_type)
    payload.fence = fence
    return t.cast("aiohttp.payload.BytesPayload", payload)


@functools.cache
def _payload_class() -> t.Any:
    import aiohttp.payload

    class GuardedPayload(aiohttp.payload.BytesPayload):
        """Bytes that are only written while the fence is open."""

        fence: Fence | None = None
        transport: t.Any = None

        async def write_with_length(self, writer: t.Any, content_length: int | None) -> None:
            """Check and write without giving up control in between."""
            self.transport = getattr(writer, "transport", None)
            if self.fence is not None:
                self.fence.check()
            await super().write_with_length(writer, content_length)

    return GuardedPayload


def abort(payload: t.Any) -> None:
    """Break the connection of a request that may not land any more.

    A plain close would let the kernel go on sending what is still in its buffer; with a zero linger time it drops it.
    """
    transport = getattr(payload, "transport", None)
    if transport is None:
        return
    with contextlib.suppress(OSError, AttributeError):
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
