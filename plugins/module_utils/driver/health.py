# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The health stream of a driver, followed across losses and across a rolling update.

It is opened only where the driver advertises the service. UNIMPLEMENTED ends it for that registration: the 1.36 kubelet
asks such drivers every five seconds, for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import typing as t

from . import codec
from .claims import DeviceHealth
from .connection import CallError
from .errors import AnswerError

if t.TYPE_CHECKING:
    from .instances import Instance, Instances

log = logging.getLogger(__name__)


async def watch_health(driver: str, instances: Instances) -> t.AsyncIterator[list[DeviceHealth]]:
    """See `DriverClient.watch_health`."""

    def over() -> bool:
        return not any(instance.has_health for instance in instances.of(driver))

    def usable() -> bool:
        instance = instances.pick(driver)
        return instance is not None and instance.has_health and instance.connection.connected

    while True:
        await instances.signal.until(lambda: usable() or over())
        instance = instances.pick(driver)
        if instance is None or over():
            return
        told = False
        async with contextlib.aclosing(_reports(driver, instance, instances)) as reports:
            async for report in reports:
                told = True
                yield report
        if told:
            yield []  # what was reported holds no more
        await _pause(driver, instance, instances)


async def _pause(driver: str, instance: Instance, instances: Instances) -> None:
    """Wait before the next attempt on a connection that is still there; return at once when it is not."""

    def changed() -> bool:
        same = instances.pick(driver) is instance and instance.has_health
        return not same or not instance.connection.connected

    await instances.signal.until(changed, instances.timings.health_retry)


async def _reports(driver: str, instance: Instance, instances: Instances) -> t.AsyncGenerator[list[DeviceHealth]]:
    """Reports of one stream, until it ends, fails, or another instance takes over."""
    import grpc

    method = codec.health_method(instance.choice.health or "")
    try:
        call = instance.connection.stream(method.path)
    except CallError:
        return
    moved = asyncio.ensure_future(instances.signal.until(lambda: instances.pick(driver) is not instance))
    try:
        while (data := await _read(call, moved)) is not None:
            yield codec.decode_health(method, data)
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            instance.health_refused = True
            log.info("driver has no health service although it advertises it driver=%s", driver)
        else:
            log.debug("health stream lost driver=%s code=%s text=%s", driver, error.code().name, error.details())
    except AnswerError as error:
        log.warning("health report cannot be read driver=%s error=%s", driver, error)
    finally:
        call.cancel()
        moved.cancel()
        await asyncio.wait({moved})


async def _read(call: t.Any, moved: asyncio.Future[bool]) -> bytes | None:
    """The next message; None when the stream ended or another instance took over."""
    import grpc

    read = asyncio.ensure_future(call.read())
    try:
        await asyncio.wait({read, moved}, return_when=asyncio.FIRST_COMPLETED)
        if not read.done():
            return None
        data = read.result()
        return None if data is grpc.aio.EOF else t.cast("bytes", data)
    finally:
        if not read.done():
            read.cancel()
            await asyncio.wait({read})
            if not read.cancelled():
                read.exception()  # looked at: the stream may have broken at the same moment
