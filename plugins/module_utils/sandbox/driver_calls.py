# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The calls that the simulated driver got, in order, in memory and on request in a file that survives ``kill -9``."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import time
import typing as t


@dataclasses.dataclass(frozen=True)
class AskedClaim:
    """One claim of a request, with the resource handle of classic DRA and its structured form as JSON, if any."""

    uid: str
    namespace: str
    name: str
    handle: str = ""
    structured: dict[str, t.Any] | None = None


@dataclasses.dataclass
class Call:
    """One call. ``ended`` stays None while it runs; ``outcome`` is ok, a failure in words, or the faults it met."""

    number: int
    method: str
    service: str
    claims: tuple[AskedClaim, ...]
    started: float
    ended: float | None = None
    outcome: str = ""

    @property
    def uids(self) -> list[str]:
        return [claim.uid for claim in self.claims]

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "number": self.number,
            "method": self.method,
            "service": self.service,
            "uids": self.uids,
            "started": self.started,
            "ended": self.ended,
            "outcome": self.outcome,
        }


class CallLog:
    """Records calls. With a file, one JSON line is appended when a call starts and one when it ends."""

    def __init__(self, file: pathlib.Path | None = None, clock: t.Callable[[], float] = time.time) -> None:
        self.calls: list[Call] = []
        self._file = file
        self._clock = clock

    def begin(self, method: str, service: str, claims: t.Iterable[AskedClaim] = ()) -> Call:
        call = Call(len(self.calls) + 1, method, service, tuple(claims), self._clock())
        self.calls.append(call)
        self._append("start", call)
        return call

    def end(self, call: Call, outcome: str) -> None:
        call.ended, call.outcome = self._clock(), outcome
        self._append("end", call)

    def _append(self, event: str, call: Call) -> None:
        if self._file is None:
            return
        line = json.dumps({"event": event, "pid": os.getpid(), **call.as_dict()}) + "\n"
        with open(self._file, "a", encoding="utf-8") as file:
            file.write(line)


def read_calls(file: pathlib.Path) -> list[dict[str, t.Any]]:
    """The lines of a call file, of all processes that wrote it; a half-written last line is left out."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found
