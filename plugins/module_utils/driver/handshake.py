# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The conversation on a registration socket. (kubelet: operationexecutor, GenerateRegisterPluginFunc)"""

from __future__ import annotations

import dataclasses
import os
import re
import socket
import typing as t

from ..wire.messages import Method, api
from .connection import CallError, Connection
from .endpoint import check_length, check_owner, socket_path
from .errors import RegistrationError
from .services import Choice, choose
from .timings import Timings

if t.TYPE_CHECKING:
    from ..wire import registration_v1_pb2

DRA_PLUGIN = "DRAPlugin"
# What claims and slices can hold is a DNS subdomain; this is a little wider, and safe in paths and logs.
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
# After these the plugin has not seen the call, or we do not know.
_UNDELIVERED = ("UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED")
# A socket that refuses connections may be between bind and listen; it is not worth the whole time for dialling.
_REFUSED_PATIENCE = 1.0


@dataclasses.dataclass(frozen=True)
class PluginInfo:
    """The answer of GetInfo, unchecked."""

    type: str
    name: str
    endpoint: str
    versions: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Plugin:
    """A checked DRA plugin: what is needed to call it."""

    name: str
    endpoint: str
    versions: tuple[str, ...]
    choice: Choice


def connect_problem(path: str) -> str:
    """Why nobody can connect to a unix socket now; empty when somebody listens."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except BlockingIOError:
            return ""  # somebody listens and has more callers than it takes
        except ConnectionRefusedError:
            return "nobody listens on it; a driver that was killed leaves its socket behind"
        except OSError as error:
            return (error.strerror or str(error)).lower()
    return ""


class RegistrationCall:
    """One connection to a registration socket; use it as an async context manager."""

    def __init__(self, path: str, timings: Timings) -> None:
        self.path = path
        self._timings = timings
        self._connection: Connection | None = None
        self._methods: dict[str, Method] = {}

    async def __aenter__(self) -> RegistrationCall:
        check_length(self.path)
        self._methods = api("registration/v1").service()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._hang_up()

    async def get_info(self) -> PluginInfo:
        """Ask who is there. RegistrationError when nobody answers in time, or with nonsense."""
        from google.protobuf.message import DecodeError

        await self._dial()
        try:
            data = await self._call("GetInfo", b"", self._timings.get_info)
        except CallError as error:
            raise self._error(f"does not answer GetInfo: {error.code}, {error.text}", code=error.code) from error
        try:
            message = self._methods["GetInfo"].response.FromString(data)
        except DecodeError as error:
            raise self._error(f"answers GetInfo with {len(data)} bytes that are no PluginInfo") from error
        info = t.cast("registration_v1_pb2.PluginInfo", message)
        return PluginInfo(info.type, info.name, info.endpoint, tuple(info.supported_versions))

    async def notify(self, registered: bool, error: str = "") -> None:
        """Tell the plugin how it went, over a new connection if the one of GetInfo has died.

        RegistrationError when it could not be told, or when it answered good news with an error. Bad news that it
        answers with an error has been delivered.
        """
        message = self._methods["NotifyRegistrationStatus"].request()
        request = t.cast("registration_v1_pb2.RegistrationStatus", message)
        request.plugin_registered, request.error = registered, error
        data = request.SerializeToString()
        try:
            try:
                await self._call("NotifyRegistrationStatus", data, self._timings.notify)
            except CallError as failure:
                if failure.code not in _UNDELIVERED:
                    raise
                await self._hang_up()
                await self._dial()
                await self._call("NotifyRegistrationStatus", data, self._timings.notify)
        except CallError as failure:
            if registered or failure.code in _UNDELIVERED:
                word = "success" if registered else "failure"
                raise self._error(
                    f"could not be told of the {word} of its registration: {failure.code}, {failure.text}",
                    code=failure.code,
                ) from failure

    async def _dial(self) -> None:
        problem = connect_problem(self.path)
        self._connection = connection = Connection(self.path, self._timings, lambda: None)
        connection.start()
        patience = min(self._timings.dial, _REFUSED_PATIENCE) if problem else self._timings.dial
        if not await connection.signal.until(lambda: connection.connected, patience):
            problem = connect_problem(self.path) or f"it does not speak gRPC within {patience:g} s"
            raise self._error(f"cannot be reached: {problem}")

    async def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _call(self, method: str, request: bytes, timeout: float) -> bytes:
        if self._connection is None:
            raise CallError("UNAVAILABLE", "there is no connection")
        return await self._connection.call(self._methods[method].path, request, timeout)

    def _error(self, what: str, **facts: t.Any) -> RegistrationError:
        return RegistrationError(
            f"The registration socket {self.path} {what}.",
            "Check the driver that made this socket; remove the file if that driver is gone for good.",
            registration_socket=self.path,
            **facts,
        )


def check_plugin(info: PluginInfo, registration_socket: str) -> Plugin:
    """Check what a DRA plugin said of itself and choose its service. RegistrationError or EndpointError."""
    if not _NAME.fullmatch(info.name):
        raise RegistrationError(
            f"The plugin at {registration_socket} calls itself {info.name!r}, which cannot be the name of a driver.",
            "A driver name is a DNS name, such as gpu.example.com.",
            registration_socket=registration_socket,
            driver=info.name,
        )
    endpoint = socket_path(info.endpoint) if info.endpoint else registration_socket
    check_owner(endpoint, _owner(registration_socket))
    return Plugin(info.name, endpoint, info.versions, choose(info.versions, info.name, registration_socket))


def _owner(path: str) -> tuple[int, ...]:
    try:
        return (os.stat(path).st_uid,)
    except OSError:
        return ()
