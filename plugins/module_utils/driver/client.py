# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One client for a driver, whatever generation it speaks and however many instances it runs.

A call goes to the newest connected instance. If none is connected, it waits a moment for one: a driver that has just
come back needs that long. A call that ends with UNAVAILABLE is repeated once, maybe on another instance; prepare and
unprepare may be repeated by contract.
"""

from __future__ import annotations

import asyncio
import typing as t

from . import codec
from .claims import ClaimRef, DeviceHealth, PrepareResult, ResourceHandle, UnprepareResult
from .connection import CallError
from .errors import AnswerError, DriverCallFailed, DriverNotRegistered, call_failed
from .health import watch_health
from .instances import Instance, Instances

PREPARE = "prepare"
UNPREPARE = "unprepare"


class DriverClient:
    """Calls one driver. Get it from `DriverRegistry.get` for each use: it holds no connection of its own."""

    def __init__(self, name: str, instances: Instances) -> None:
        self.name = name
        self._instances = instances

    @property
    def connected(self) -> bool:
        """Whether an instance is connected at this moment."""
        instance = self._instances.pick(self.name)
        return instance is not None and instance.connection.connected

    async def prepare(self, claims: t.Sequence[ClaimRef], timeout: float | None = None) -> dict[str, PrepareResult]:
        """Prepare claims: a result for each claim UID. ``timeout`` in seconds is for all of it, 45 by default.

        DriverCallFailed when the call as a whole failed, DriverNotRegistered when the driver has gone. A claim that the
        driver refused or left out has its own error in the result. An empty answer for a claim is success, no devices.
        """
        answers = await self._call(PREPARE, claims, timeout)
        return {
            claim.uid: PrepareResult(t.cast("t.Any", answer))
            if not isinstance(answer, DriverCallFailed)
            else PrepareResult(None, answer)
            for claim, answer in answers
        }

    async def unprepare(self, claims: t.Sequence[ClaimRef], timeout: float | None = None) -> dict[str, UnprepareResult]:
        """Unprepare claims: a result for each claim UID. Errors as for `prepare`."""
        answers = await self._call(UNPREPARE, claims, timeout)
        return {
            claim.uid: UnprepareResult(answer if isinstance(answer, DriverCallFailed) else None)
            for claim, answer in answers
        }

    async def probe(self, timeout: float = 5.0) -> None:
        """Show that the service answers: a prepare call with no claims. Errors as for `prepare`.

        Drivers that speak only v1alpha2 have no such call; for them a connection must do.
        """
        deadline = self._deadline(timeout)
        instance = await self._ready_instance(deadline, PREPARE)
        if instance.only_v1alpha2 and instance.connection.connected:
            return
        generation = _batched_generation(instance)
        method = codec.batch_method(generation, prepare=True)
        try:
            await self._rpc(PREPARE, method.path, codec.encode_batch(method, ()), deadline)
        except DriverCallFailed as error:
            if error.code != "UNIMPLEMENTED" or instance.choice.generation != "classic":
                raise
            instance.only_v1alpha2 = True

    def watch_health(self) -> t.AsyncIterator[list[DeviceHealth]]:
        """Health reports, each the complete list of the driver's devices; an empty list when the stream was lost.

        Ends when no instance of the driver offers health (any more); a new registration needs a new call.
        """
        return watch_health(self.name, self._instances)

    # Calls

    async def _call(
        self, method: str, claims: t.Sequence[ClaimRef], timeout: float | None
    ) -> list[tuple[ClaimRef, t.Any]]:
        """(claim, devices or DriverCallFailed) for each claim."""
        claims = list({claim.uid: claim for claim in claims}.values())
        if not claims:
            return []
        deadline = self._deadline(timeout)
        instance = await self._ready_instance(deadline, method)
        if instance.choice.generation != "classic":
            answers = await self._batch(method, instance.choice.generation, [(c, None) for c in claims], deadline)
        else:
            answers = await self._classic(method, instance, claims, deadline)
        return [(claim, answers[claim.uid]) for claim in claims]

    async def _batch(
        self, method: str, generation: str, asked: t.Sequence[codec.Asked], deadline: float
    ) -> dict[str, t.Any]:
        """One batched call: by claim UID the devices or DriverCallFailed."""
        rpc = codec.batch_method(generation, method == PREPARE)
        data, instance = await self._rpc(method, rpc.path, codec.encode_batch(rpc, asked), deadline)
        try:
            if method == UNPREPARE:
                answers = codec.decode_unprepare(rpc, data)
            elif generation == "v1alpha3":
                answers = codec.decode_classic_prepare(data)
            else:
                answers = codec.decode_prepare(rpc, data)
        except AnswerError as error:
            raise self._wrong_answer(method, instance, f"answered nonsense: {error}", permanent=True) from error
        uids = {claim.uid for claim, _handle in asked}
        if strangers := sorted(set(answers) - uids):
            raise self._wrong_answer(
                method, instance, f"answered for claims nobody asked about: {', '.join(strangers)}"
            )
        return {claim.uid: self._answer_for(method, instance, claim, answers) for claim, _handle in asked}

    def _answer_for(self, method: str, instance: Instance, claim: ClaimRef, answers: codec.Answers) -> t.Any:
        if claim.uid not in answers:
            return self._wrong_answer(method, instance, f"left the claim {claim} out of its answer", claim=claim)
        answer = answers[claim.uid]
        if not isinstance(answer, str):
            return answer
        return DriverCallFailed(
            f"The driver {self.name} could not {method} the claim {claim}: {answer}",
            driver=self.name,
            method=method,
            socket=instance.endpoint,
            code="CLAIM",
            text=answer,
            claim_uid=claim.uid,
        )

    # Drivers that advertise "1.0.0"; see services.py

    async def _classic(
        self, method: str, instance: Instance, claims: t.Sequence[ClaimRef], deadline: float
    ) -> dict[str, t.Any]:
        handles = {claim.uid: self._handles(claim) for claim in claims}
        if not instance.only_v1alpha2:
            try:
                return await self._classic_rounds(method, claims, handles, deadline)
            except DriverCallFailed as error:
                if error.code != "UNIMPLEMENTED":
                    raise
                instance.only_v1alpha2 = True
        return await self._single_calls(method, claims, handles, deadline)

    def _handles(self, claim: ClaimRef) -> list[ResourceHandle | None]:
        """The handles for this driver; a claim without any is one call without data, as kubelets do it."""
        own: list[ResourceHandle | None] = [h for h in claim.resource_handles if h.driver_name in ("", self.name)]
        return own or [None]

    async def _classic_rounds(
        self,
        method: str,
        claims: t.Sequence[ClaimRef],
        handles: t.Mapping[str, t.Sequence[ResourceHandle | None]],
        deadline: float,
    ) -> dict[str, t.Any]:
        """One batched call for the first handle of each claim, one for the second ...: answers are keyed by claim."""
        merged: dict[str, t.Any] = {}
        for number in range(max(map(len, handles.values()))):
            asked = [(c, handles[c.uid][number]) for c in claims if number < len(handles[c.uid])]
            asked = [(c, h) for c, h in asked if not isinstance(merged.get(c.uid), DriverCallFailed)]
            if asked:
                answers = await self._batch(method, "v1alpha3", asked, deadline)
                merged.update({uid: _merged(merged.get(uid, ()), answer) for uid, answer in answers.items()})
        return merged

    async def _single_calls(
        self,
        method: str,
        claims: t.Sequence[ClaimRef],
        handles: t.Mapping[str, t.Sequence[ResourceHandle | None]],
        deadline: float,
    ) -> dict[str, t.Any]:
        """v1alpha2: one call for each claim and handle. A failure is that of its claim.

        When the driver does not answer at all, the other claims are not tried: each would wait as long again.
        """
        merged: dict[str, t.Any] = {}
        silent: DriverCallFailed | None = None
        for claim in claims:
            for handle in handles[claim.uid]:
                answer: t.Any = silent
                if silent is None:
                    answer = await self._single(method, claim, handle, deadline)
                merged[claim.uid] = _merged(merged.get(claim.uid, ()), answer)
                if isinstance(answer, DriverCallFailed):
                    silent = answer if answer.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED") else silent
                    break
        return merged

    async def _single(self, method: str, claim: ClaimRef, handle: ResourceHandle | None, deadline: float) -> t.Any:
        rpc = codec.single_method(method == PREPARE)
        try:
            data, instance = await self._rpc(method, rpc.path, codec.encode_single(rpc, claim, handle), deadline)
        except DriverCallFailed as error:
            return error
        try:
            return codec.decode_single_prepare(rpc, data) if method == PREPARE else ()
        except AnswerError as error:
            return self._wrong_answer(method, instance, f"answered nonsense: {error}", claim=claim, permanent=True)

    # One RPC

    def _deadline(self, timeout: float | None) -> float:
        return asyncio.get_running_loop().time() + (self._instances.timings.call if timeout is None else timeout)

    async def _ready_instance(self, deadline: float, method: str) -> Instance:
        """The instance to call, after a short wait if none is connected.

        None may be registered at all for a moment: a driver that restarts is deregistered and registered anew.
        """
        instance = self._instances.pick(self.name)
        if instance is not None and instance.connection.connected:
            return instance

        def settled() -> bool:
            return self._instances.closed or self.connected

        wait = min(self._instances.timings.connect_wait, max(0.0, deadline - asyncio.get_running_loop().time()))
        await self._instances.signal.until(settled, wait)
        instance = self._instances.pick(self.name)
        if instance is None:
            raise DriverNotRegistered(
                f"The driver {self.name} is not registered any more: it went away before it could {method}.",
                "Check that the driver runs on this node.",
                driver=self.name,
                known=self._instances.names(),
            )
        return instance

    async def _rpc(self, method: str, path: str, request: bytes, deadline: float) -> tuple[bytes, Instance]:
        loop = asyncio.get_running_loop()
        may_repeat, uncounted = True, False
        while True:
            instance = await self._ready_instance(deadline, method)
            connection, lost = instance.connection, instance.connection.lost
            start = loop.time()
            try:
                return await connection.call(path, request, deadline - start), instance
            except CallError as error:
                text = error.text
                if error.code == "DEADLINE_EXCEEDED":
                    text += f" (after {loop.time() - start:.1f} s)"
                if error.code == "UNAVAILABLE" and loop.time() < deadline and (may_repeat or uncounted):
                    # Where the loss is not known yet, the repeated call may go down the same broken connection and
                    # never leave this process: such a call does not count.
                    known = await connection.loss_known(lost)
                    if may_repeat or known:
                        may_repeat, uncounted = False, may_repeat and not known
                        continue
                raise call_failed(self.name, method, instance.endpoint, error.code, text) from error

    def _wrong_answer(
        self, method: str, instance: Instance, what: str, claim: ClaimRef | None = None, permanent: bool = False
    ) -> DriverCallFailed:
        return DriverCallFailed(
            f"The driver {self.name} at {instance.endpoint}, asked to {method}, {what}.",
            "This is a defect of the driver; report it there, or try another version of it.",
            driver=self.name,
            method=method,
            socket=instance.endpoint,
            code="ANSWER",
            text=what,
            permanent=permanent,
            **({"claim_uid": claim.uid} if claim else {}),
        )


def _batched_generation(instance: Instance) -> str:
    return "v1alpha3" if instance.choice.generation == "classic" else instance.choice.generation


def _merged(before: t.Any, answer: t.Any) -> t.Any:
    """Devices of several handles of one claim, or the first error among them."""
    if isinstance(before, DriverCallFailed) or isinstance(answer, DriverCallFailed):
        return before if isinstance(before, DriverCallFailed) else answer
    return tuple(dict.fromkeys((*before, *answer)))
