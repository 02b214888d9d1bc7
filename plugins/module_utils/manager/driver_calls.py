# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One batched call for each driver, drivers in parallel, and for each claim what came of it.

Kubernetes symbols: the loops over ``NodePrepareResources`` and ``NodeUnprepareResources`` in
pkg/kubelet/cm/dra/manager.go.
"""

from __future__ import annotations

import asyncio
import typing as t
from dataclasses import dataclass

from ..checkpoint.claims import Device
from ..checkpoint.errors import DraError
from ..driver.claims import ClaimRef, PrepareResult, UnprepareResult
from ..driver.errors import NO_STATUS, DriverCallFailed, DriverNotRegistered
from .observer import Observer

PREPARE_METHOD = "NodePrepareResources"
UNPREPARE_METHOD = "NodeUnprepareResources"


class Driver(t.Protocol):
    """One DRA driver (`driver.client.DriverClient`).

    Both calls raise DraError when the call as a whole failed, else they give a result for each claim UID.
    """

    async def prepare(self, claims: t.Sequence[ClaimRef], timeout: float) -> t.Mapping[str, PrepareResult]: ...

    async def unprepare(self, claims: t.Sequence[ClaimRef], timeout: float) -> t.Mapping[str, UnprepareResult]: ...


class Drivers(t.Protocol):
    """The drivers of this node (`driver.registry.DriverRegistry`). ``get`` raises DraError when there is none."""

    async def get(self, driver_name: str) -> Driver: ...


@dataclass(frozen=True)
class CallFailure:
    """Why a driver did not do its part for a claim. ``called`` is False when nothing was sent to it.

    ``permanent``: the same call would fail in the same way (`driver.errors` says which do).
    """

    text: str
    hint: str = ""
    called: bool = True
    permanent: bool = False


Outcome = t.Union[tuple[Device, ...], CallFailure]
"""A driver's devices for a claim (none for unprepare), or why there are none."""


class DriverCalls:
    """Calls drivers and never raises for what they do, except for the caller's own cancellation."""

    def __init__(self, drivers: Drivers, observer: Observer) -> None:
        self._drivers = drivers
        self._observer = observer

    async def run(
        self,
        method: str,
        claims: t.Mapping[str, t.Sequence[ClaimRef]],
        *,
        deadline: float,
        before: t.Callable[[str, ClaimRef], None],
    ) -> dict[str, dict[str, Outcome]]:
        """Call all drivers of ``claims`` at once; return driver to claim UID to outcome.

        ``deadline`` is a time of the loop's clock. ``before`` is told of each driver and claim right before the call.
        """
        outcomes: dict[str, dict[str, Outcome]] = {}

        async def one(driver: str, refs: t.Sequence[ClaimRef]) -> None:
            outcomes[driver] = await self._call(method, driver, refs, deadline, before)

        names = sorted(claims)
        if len(names) == 1:
            await one(names[0], claims[names[0]])
        else:
            async with asyncio.TaskGroup() as group:
                for name in names:
                    group.create_task(one(name, claims[name]), name=f"dra-call-{name}")
        return outcomes

    async def _call(
        self,
        method: str,
        driver: str,
        claims: t.Sequence[ClaimRef],
        deadline: float,
        before: t.Callable[[str, ClaimRef], None],
    ) -> dict[str, Outcome]:
        loop = asyncio.get_running_loop()
        start = loop.time()
        timeout = deadline - start
        if timeout <= 0:
            return _all_failed(claims, "the time was used up before the driver could be called", called=False)
        try:
            client = await self._drivers.get(driver)
        except DraError as error:
            return _all_failed(claims, error.message.rstrip("."), error.hint, called=False)
        for claim in claims:
            before(driver, claim)
        code = "CANCELLED"  # unless it comes to an end of its own
        try:
            # The driver layer has the same deadline; this one holds even if the transport loses its own.
            async with asyncio.timeout(timeout + 1):
                outcomes: dict[str, Outcome]
                errors: list[DraError | None]
                if method == PREPARE_METHOD:
                    prepared = await client.prepare(claims, timeout)
                    outcomes = {uid: _prepared(result) for uid, result in prepared.items()}
                    errors = [result.error for result in prepared.values()]
                else:
                    unprepared = await client.unprepare(claims, timeout)
                    outcomes = {uid: _unprepared(result) for uid, result in unprepared.items()}
                    errors = [result.error for result in unprepared.values()]
            # Drivers of v1alpha2 are called once a claim: the first status that is none of success counts.
            code = next((status for status in map(_status, errors) if status != "OK"), "OK")
        except DraError as error:
            code = _status(error)
            outcomes = {claim.uid: _failure(method, error) for claim in claims}
        except TimeoutError:
            code = "DEADLINE_EXCEEDED"
            outcomes = _all_failed(claims, f"{method}: no answer within {timeout:.1f} s")
        finally:
            self._observer.driver_call(driver, method, loop.time() - start, code)
        return outcomes


def _all_failed(claims: t.Iterable[ClaimRef], text: str, hint: str = "", *, called: bool = True) -> dict[str, Outcome]:
    return {claim.uid: CallFailure(text, hint, called) for claim in claims}


def _failure(method: str, error: DraError) -> CallFailure:
    """The driver's own words where there are some: who and what is said by whoever shows the failure."""
    permanent = isinstance(error, DriverCallFailed) and error.permanent
    if isinstance(error, DriverCallFailed) and error.code == "CLAIM":
        return CallFailure(f"{method} failed: {error.text}", error.hint, permanent=permanent)
    return CallFailure(f"{method}: {error.message.rstrip('.')}", error.hint, permanent=permanent)


def _status(error: DraError | None) -> str:
    """The gRPC status that a call ended with. A claim that was refused or left out came with an answer, which is OK."""
    if error is None:
        return "OK"
    if isinstance(error, DriverCallFailed):
        return "OK" if error.code in NO_STATUS else error.code
    # It went away between being looked up and being called.
    return "UNAVAILABLE" if isinstance(error, DriverNotRegistered) else "UNKNOWN"


def _prepared(result: PrepareResult) -> Outcome:
    if result.error is not None:
        return _failure(PREPARE_METHOD, result.error)
    return tuple(dict.fromkeys(map(_device, result.devices or ())))


def _device(device: t.Any) -> Device:
    return Device(device.pool_name, device.device_name, device.request_names, device.cdi_device_ids, device.share_id)


def _unprepared(result: UnprepareResult) -> Outcome:
    return () if result.error is None else _failure(UNPREPARE_METHOD, result.error)
