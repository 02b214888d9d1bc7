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
from ..resource.handles import ResourceHandle
from .observer import Observer

PREPARE_METHOD = "NodePrepareResources"
UNPREPARE_METHOD = "NodeUnprepareResources"


@dataclass(frozen=True)
class ClaimRef:
    """A claim as drivers are told of it. ``resource_handles`` are those of the called driver (classic claims only)."""

    uid: str
    namespace: str
    name: str
    resource_handles: tuple[ResourceHandle, ...] = ()


class PrepareResult(t.Protocol):
    """What a driver says of one claim: an error, or its devices."""

    @property
    def devices(self) -> t.Sequence[Device]: ...

    @property
    def error(self) -> str: ...


class UnprepareResult(t.Protocol):
    """What a driver says of one claim: an error, or nothing."""

    @property
    def error(self) -> str: ...


class Driver(t.Protocol):
    """One DRA driver. Both calls raise DraError when the call as a whole failed; results are by claim UID."""

    async def prepare(self, claims: t.Sequence[t.Any], timeout: float) -> t.Mapping[str, PrepareResult]: ...

    async def unprepare(self, claims: t.Sequence[t.Any], timeout: float) -> t.Mapping[str, UnprepareResult]: ...


class Drivers(t.Protocol):
    """The drivers of this node. ``get`` raises DraError when there is none of that name."""

    def get(self, name: str) -> Driver: ...


@dataclass(frozen=True)
class CallFailure:
    """Why a driver did not do its part for a claim. ``called`` is False when nothing was sent to it."""

    text: str
    hint: str = ""
    called: bool = True


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
            client = self._drivers.get(driver)
        except DraError as error:
            return _all_failed(claims, error.message, error.hint, called=False)
        for claim in claims:
            before(driver, claim)
        failed = True
        try:
            # The driver layer has the same deadline; this one holds even if the transport loses its own.
            async with asyncio.timeout(timeout + 1):
                if method == PREPARE_METHOD:
                    outcomes = _prepared(claims, await client.prepare(claims, timeout))
                else:
                    outcomes = _unprepared(claims, await client.unprepare(claims, timeout))
            failed = any(isinstance(outcome, CallFailure) for outcome in outcomes.values())
        except DraError as error:
            outcomes = _all_failed(claims, f"{method}: {error.message}", error.hint)
        except TimeoutError:
            outcomes = _all_failed(claims, f"{method}: no answer within {timeout:.1f} s")
        finally:
            self._observer.driver_call(driver, method, loop.time() - start, failed)
        return outcomes


def _all_failed(claims: t.Iterable[ClaimRef], text: str, hint: str = "", *, called: bool = True) -> dict[str, Outcome]:
    return {claim.uid: CallFailure(text, hint, called) for claim in claims}


def _prepared(claims: t.Sequence[ClaimRef], results: t.Mapping[str, PrepareResult]) -> dict[str, Outcome]:
    outcomes = _checked(PREPARE_METHOD, claims, results)
    for claim in claims:
        if claim.uid not in outcomes:
            result = results[claim.uid]
            failure = CallFailure(f"{PREPARE_METHOD} failed: {result.error}") if result.error else None
            outcomes[claim.uid] = failure or tuple(dict.fromkeys(result.devices))
    return outcomes


def _unprepared(claims: t.Sequence[ClaimRef], results: t.Mapping[str, UnprepareResult]) -> dict[str, Outcome]:
    outcomes = _checked(UNPREPARE_METHOD, claims, results)
    for claim in claims:
        if claim.uid not in outcomes:
            error = results[claim.uid].error
            outcomes[claim.uid] = CallFailure(f"{UNPREPARE_METHOD} failed: {error}") if error else ()
    return outcomes


def _checked(method: str, claims: t.Sequence[ClaimRef], results: t.Mapping[str, t.Any]) -> dict[str, Outcome]:
    """The failures that show before any single result is looked at.

    A claim left out was not worked on. A claim that nobody asked for means that the driver mixes things up: then none
    of what it says can be used.
    """
    unknown = sorted(set(results) - {claim.uid for claim in claims})
    if unknown:
        return _all_failed(
            claims,
            f"{method} returned a result for unknown claim UID {unknown[0]!r:.80}, so the whole answer is not used",
            "The driver is faulty: report it to its makers with this message.",
        )
    return {
        claim.uid: CallFailure(
            f"{method} skipped the claim: the driver's answer has no entry for it",
            "The driver is faulty: report it to its makers with this message.",
        )
        for claim in claims
        if claim.uid not in results
    }
