# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Control of a running simulated driver: one JSON object a line on a unix socket, one JSON object a line back.

A request is ``{"op": "<name>", ...}``; the answer holds ``"ok": true`` and the result, or ``"ok": false`` and
``"error"``. `ask` is the client.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import typing as t

from ..checkpoint.errors import DraError
from ..driver.endpoint import check_length
from .driver_faults import fault_from

if t.TYPE_CHECKING:
    from .driver import SimulatedDriver

# op -> what it does, for the help text and for the error about an unknown one
OPERATIONS = {
    "fault": "set a fault: kind and, as needed, method, uids, times, seconds, code, text",
    "clear": "remove all faults",
    "faults": "list the faults that are set",
    "calls": "list all calls so far",
    "prepared": "list the prepared claims",
    "notifications": "list what the registration told the driver",
    "health": "report a device: device, health (HEALTHY, UNHEALTHY, UNKNOWN), message, timeout",
    "stop_service": "close the DRA socket only",
    "start_service": "open the DRA socket again",
    "stop_registration": "close the registration socket only",
    "start_registration": "open the registration socket again",
    "exit": "end the driver as SIGTERM does",
}


class ControlServer:
    """Serves the control socket of one driver; use it as an async context manager."""

    def __init__(self, driver: SimulatedDriver, path: str, on_exit: t.Callable[[], None]) -> None:
        self.path = path
        self._driver = driver
        self._on_exit = on_exit
        self._server: asyncio.AbstractServer | None = None
        self._clients: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> ControlServer:
        check_length(self.path)
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self._server = await asyncio.start_unix_server(self._serve, self.path)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        if self._server is not None:
            self._server.close()
            for client in self._clients:
                client.close()
            await self._server.wait_closed()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        with contextlib.closing(writer), contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                writer.write(json.dumps(await self._answer(line)).encode() + b"\n")
                await writer.drain()
        self._clients.discard(writer)

    async def _answer(self, line: bytes) -> dict[str, t.Any]:
        try:
            request = json.loads(line)
            operation = request.pop("op")
            return {"ok": True, **await self._run(operation, request)}
        except DraError as error:
            return {"ok": False, "error": str(error)}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return {"ok": False, "error": f"the request {line!r} cannot be read: {error!r}"}

    async def _run(self, operation: str, values: dict[str, t.Any]) -> dict[str, t.Any]:
        driver = self._driver
        if operation == "fault":
            driver.faults.add(fault_from(values))
        elif operation == "clear":
            driver.faults.clear()
        elif operation == "faults":
            return {"faults": [dataclasses.asdict(fault) for fault in driver.faults.faults]}
        elif operation == "calls":
            return {"calls": [call.as_dict() for call in driver.calls]}
        elif operation == "prepared":
            return {"claims": {uid: dataclasses.asdict(claim) for uid, claim in driver.prepared().items()}}
        elif operation == "notifications":
            return {"notifications": [dataclasses.asdict(item) for item in driver.notifications]}
        elif operation == "health":
            driver.set_health(**values)
        elif operation == "exit":
            self._on_exit()
        elif operation in OPERATIONS:  # start and stop of one socket
            await getattr(driver, operation)()
        else:
            raise DraError(f"The operation {operation!r} is not known.", f"Known are {', '.join(OPERATIONS)}.")
        return {}


async def ask(path: str, operation: str, /, **values: t.Any) -> dict[str, t.Any]:
    """Send one request to a driver's control socket and return the answer. DraError when it is refused or not there."""
    try:
        async with asyncio.timeout(10):
            reader, writer = await asyncio.open_unix_connection(path, limit=2**26)
            with contextlib.closing(writer):
                writer.write(json.dumps({"op": operation, **values}).encode() + b"\n")
                answer = json.loads(await reader.readline())
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise DraError(
            f"The simulated driver cannot be reached at its control socket {path}: {error!r}.",
            "Check that it runs; it prints the path of this socket when it starts.",
            socket=path,
        ) from error
    if not answer.pop("ok"):
        raise DraError(f"The simulated driver refused {operation}: {answer['error']}", socket=path)
    return t.cast("dict[str, t.Any]", answer)
