# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A bare gRPC client of one socket, independent of our driver client, for tests of the simulated driver."""

from __future__ import annotations

import contextlib
import pathlib
import typing as t

import grpc
from ansible_collections.nodeops.dra.plugins.module_utils.wire.messages import api


class RawClient:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel

    async def call(self, api_name: str, method: str, timeout: float = 10.0, **fields: t.Any) -> t.Any:
        rpc = api(api_name).service()[method]
        call = self.channel.unary_unary(rpc.path, request_serializer=lambda m: m.SerializeToString())
        # Decoded here: grpc.aio logs what it cannot decode and returns None.
        return rpc.response.FromString(await call(rpc.request(**fields), timeout=timeout))

    async def stream(self, api_name: str, method: str) -> t.AsyncIterator[t.Any]:
        rpc = api(api_name).service()[method]
        call = self.channel.unary_stream(
            rpc.path, request_serializer=lambda m: m.SerializeToString(), response_deserializer=rpc.response.FromString
        )
        async for message in call(rpc.request()):
            yield message


@contextlib.asynccontextmanager
async def connect(path: pathlib.Path | str) -> t.AsyncIterator[RawClient]:
    options = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(f"unix:{path}", options=options) as channel:
        yield RawClient(channel)
