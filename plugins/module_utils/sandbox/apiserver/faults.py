# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with the embedded API server, and for which requests.

A fault is written as text in the form ``kind:key=value,key=value``, for example ``error:verb=update,code=503,times=2``
or ``latency:resource=pods/status,seconds=0.5``.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import typing as t

from ...checkpoint.errors import DraError

# kind -> what it does.
KINDS = {
    "latency": "waits `seconds` before the work",
    "hang": "never answers",
    "error": "answers with status `code` and `text`, no work done",
    "error_after": "does the work, then answers with status `code`",
    "throttle": "answers 429 with Retry-After `seconds`, no work done",
    "conflict": "answers 409 as if somebody else had been faster, no work done",
    "read_only": "refuses every write with 503",
    "close": "closes the connection without an answer, no work done",
    "close_after": "does the work, then closes the connection without an answer",
    "drop_watch": "ends a watch after `after` events, in the middle of a line when `cut` is set",
    "silent_watch": "accepts a watch, sends `after` events and then nothing more, and does not end it",
    "gone": "answers a watch with HTTP status 410",
    "expired": "answers a watch with an ERROR event of code 410",
    "split": "sends a watch in chunks of `size` bytes, in the middle of characters too",
    "no_bookmarks": "leaves out the bookmarks of a watch",
    "lost_deletes": "leaves out the DELETED events of a watch",
    "stale_list": "answers lists from the state at the time when the fault was set",
}
WRITES = ("create", "update", "patch", "delete", "deletecollection")


@dataclasses.dataclass
class Fault:
    """One fault. Empty filters: every request. ``times`` None: until cleared, ``skip`` requests pass first.

    ``resource`` is a pattern for ``pods`` or ``pods/status``, ``path`` one for the whole path, ``agent`` one for the
    client's name.
    """

    kind: str
    verb: str = ""
    resource: str = ""
    path: str = ""
    agent: str = ""
    times: int | None = None
    skip: int = 0
    seconds: float = 1.0
    code: int = 500
    text: str = "simulated failure"
    after: int = 0
    size: int = 7
    cut: bool = False
    version: int = 0

    def applies(self, verb: str, resource: str, path: str, agent: str) -> bool:
        if self.kind == "read_only" and verb not in WRITES:
            return False
        return (
            (not self.verb or verb in self.verb.split(";"))
            and (not self.resource or any(fnmatch.fnmatchcase(resource, part) for part in self.resource.split(";")))
            and (not self.path or fnmatch.fnmatchcase(path, self.path))
            and (not self.agent or fnmatch.fnmatchcase(agent, self.agent))
        )

    def described(self) -> dict[str, t.Any]:
        """The fault as JSON, defaults left out."""
        blank = Fault(self.kind)
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name == "kind" or getattr(self, field.name) != getattr(blank, field.name)
        }


def parse_fault(text: str) -> Fault:
    """A fault from its text form. DraError that lists what is possible."""
    kind, _colon, rest = text.partition(":")
    values: dict[str, t.Any] = {"kind": kind}
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise _invalid(text, f"{item!r} is not key=value")
        values[key] = value
    return fault_from(values, text)


def fault_from(values: t.Mapping[str, t.Any], text: str = "") -> Fault:
    """A fault from its fields, as the control end point brings them. DraError when they make no sense."""
    given = dict(values)
    source = text or repr(given)
    types: dict[str, t.Callable[[t.Any], t.Any]] = {
        "times": int, "skip": int, "code": int, "after": int, "size": int, "version": int, "seconds": float,
        "cut": lambda value: str(value).lower() in ("1", "true", "yes"),
    }  # fmt: skip
    try:
        for name, convert in types.items():
            if given.get(name) is not None:
                given[name] = convert(given[name])
        fault = Fault(**given)
    except (TypeError, ValueError) as error:
        raise _invalid(source, str(error)) from error
    if fault.kind not in KINDS:
        raise _invalid(source, f"the kind {fault.kind!r} is not known; known are {', '.join(KINDS)}")
    if fault.size < 1:
        raise _invalid(source, "size must be 1 or more")
    return fault


def _invalid(text: str, why: str) -> DraError:
    return DraError(f"The fault {text} cannot be read: {why}.", "Write it as kind:key=value,key=value.", fault=text)


class Faults:
    """The faults that are set now."""

    def __init__(self) -> None:
        self.active: list[Fault] = []

    def add(self, fault: Fault | str) -> Fault:
        """Set a fault, given as such or as text."""
        made = parse_fault(fault) if isinstance(fault, str) else fault
        self.active.append(made)
        return made

    def clear(self) -> None:
        self.active.clear()

    def remove(self, fault: Fault) -> None:
        """Take one fault back; nothing when it is used up already."""
        if fault in self.active:
            self.active.remove(fault)

    def take(self, verb: str, resource: str, path: str, agent: str) -> dict[str, Fault]:
        """The faults of one request by kind, the oldest of each. Uses up one time of each."""
        if not self.active:
            return {}
        found: dict[str, Fault] = {}
        for fault in list(self.active):
            if fault.kind in found or not fault.applies(verb, resource, path, agent):
                continue
            if fault.skip > 0:
                fault.skip -= 1
                continue
            if fault.times is not None:
                fault.times -= 1
                if fault.times <= 0:
                    self.active.remove(fault)
            found[fault.kind] = fault
        return found
