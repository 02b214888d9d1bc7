# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with the simulated driver, and for which calls.

A fault is written as text (command line, control socket) in the form ``kind:key=value,key=value``, for example
``slow:method=prepare,seconds=3,times=2`` or ``claim_error:uids=u-1;u-2,text=no such device``.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ..checkpoint.errors import DraError

METHODS = ("prepare", "unprepare", "get_info", "notify", "health")

# kind -> what it does. "Work" is what changes the driver's state: devices taken or given back, files written.
KINDS = {
    "slow": "waits `seconds` before the work",
    "slow_after": "does the work, then waits `seconds` before the answer",
    "hang": "never starts the work and never answers",
    "hang_after": "does the work and never answers",
    "error": "fails the whole call with gRPC status `code` and `text`, no work done",
    "error_after": "does the work, then fails the whole call",
    "claim_error": "answers `text` as the error of each claim, no work done for them",
    "skip": "does the work and leaves the claims out of the answer",
    "blank": "answers an empty message for the claims, no work done for them",
    "unknown_uid": "adds an answer for a claim that nobody asked about",
    "nonsense": "answers bytes that are no message",
    "new_devices": "takes new devices on each prepare of the same claim",
    "no_cdi": "prepares without writing the CDI file",
    "crash": "dies before the work, as if killed",
    "crash_after": "does the work, then dies without an answer",
    "end": "ends the health stream",
}


@dataclasses.dataclass
class Fault:
    """One fault. No ``method``: prepare and unprepare. No ``uids``: every claim. ``times`` None: until cleared."""

    kind: str
    method: str = ""
    uids: tuple[str, ...] = ()
    times: int | None = None
    seconds: float = 1.0
    code: str = "INTERNAL"
    text: str = "simulated failure"

    def applies(self, method: str, uids: t.Collection[str]) -> bool:
        wanted = (self.method,) if self.method else ("prepare", "unprepare")
        return method in wanted and (not self.uids or any(uid in self.uids for uid in uids))

    def hits(self, uid: str) -> bool:
        return not self.uids or uid in self.uids


def parse_fault(text: str) -> Fault:
    """A fault from its text form. DraError that lists what is possible."""
    kind, _colon, rest = text.partition(":")
    values: dict[str, t.Any] = {}
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise _invalid(text, f"{item!r} is not key=value")
        values[key] = value
    return fault_from({"kind": kind, **values}, text)


def fault_from(values: t.Mapping[str, t.Any], text: str = "") -> Fault:
    """A fault from its fields, as the control socket brings them."""
    given = dict(values)
    source = text or repr(given)
    try:
        if isinstance(given.get("uids"), str):
            given["uids"] = given["uids"].split(";")
        if "uids" in given:
            given["uids"] = tuple(given["uids"])
        if given.get("times") is not None:
            given["times"] = int(given["times"])
        given["seconds"] = float(given.get("seconds", 1.0))
        fault = Fault(**given)
    except (TypeError, ValueError) as error:
        raise _invalid(source, str(error)) from error
    if fault.kind not in KINDS:
        raise _invalid(source, f"the kind {fault.kind!r} is not known; known are {', '.join(KINDS)}")
    if fault.method and fault.method not in METHODS:
        raise _invalid(source, f"the method {fault.method!r} is not known; known are {', '.join(METHODS)}")
    return fault


def _invalid(text: str, why: str) -> DraError:
    return DraError(f"The fault {text} cannot be read: {why}.", "Write it as kind:key=value,key=value.", fault=text)


class FaultPlan:
    """The faults that are set now. `take` uses up one time of each that applies."""

    def __init__(self, faults: t.Iterable[Fault] = ()) -> None:
        self.faults = list(faults)

    def add(self, fault: Fault | str) -> Fault:
        fault = parse_fault(fault) if isinstance(fault, str) else fault
        self.faults.append(fault)
        return fault

    def clear(self) -> None:
        self.faults.clear()

    def take(self, method: str, uids: t.Collection[str] = ()) -> Active:
        """The faults of one call."""
        active = [fault for fault in self.faults if fault.applies(method, uids)]
        for fault in active:
            if fault.times is not None:
                fault.times -= 1
        self.faults = [fault for fault in self.faults if fault.times is None or fault.times > 0]
        return Active(active)


class Active:
    """The faults that one call suffers."""

    def __init__(self, faults: t.Sequence[Fault]) -> None:
        self.faults = faults

    def first(self, *kinds: str) -> Fault | None:
        return next((fault for fault in self.faults if fault.kind in kinds), None)

    def for_claim(self, uid: str, *kinds: str) -> Fault | None:
        return next((fault for fault in self.faults if fault.kind in kinds and fault.hits(uid)), None)

    def __str__(self) -> str:
        return ",".join(fault.kind for fault in self.faults)
