# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The command ``timeline``: who did what in which millisecond, from the API server's journal and drivers' calls."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import pathlib
import sys
import typing as t

from .apiserver.command import control
from .driver_control import ask

_METHODS = {"prepare": "prepared", "unprepare": "unprepared"}


@dataclasses.dataclass(frozen=True, order=True)
class Line:
    """One thing that somebody did; ``at`` in seconds since 1970."""

    at: float
    who: str
    what: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Print what happened in an embedded API server and in simulated drivers, in order of time."
    parser.add_argument("--kubeconfig", type=pathlib.Path, required=True, help="file that the API server wrote")
    parser.add_argument("--namespace", default="", help="leave out objects that are not in this namespace")
    parser.add_argument("--driver", action="append", default=[], metavar="SOCKET", help="control socket of a driver")


def run(options: argparse.Namespace) -> int:
    """Print the table. DraError when somebody cannot be reached."""
    lines, uids = _of_server(options.kubeconfig, options.namespace)
    for socket in options.driver:
        lines += _of_driver(asyncio.run(ask(socket, "calls")), uids)
    for text in table(lines):
        sys.stdout.write(f"{text}\n")
    return 0


def table(lines: t.Iterable[Line]) -> list[str]:
    """The lines in their order, with milliseconds since the first."""
    ordered = sorted(lines)
    if not ordered:
        return ["nothing has happened"]
    width = max(len(line.who) for line in ordered)
    start = ordered[0].at
    head = f"{'ms':>9}  {'who':<{width}}  what"
    return [head, *(f"{(line.at - start) * 1000:9.1f}  {line.who:<{width}}  {line.what}" for line in ordered)]


def _of_server(kubeconfig: pathlib.Path, namespace: str) -> tuple[list[Line], dict[str, str]]:
    """What the journal tells, and the names of claims by UID."""
    entries = control(kubeconfig, "get", "journal")["entries"]
    lines = [
        Line(entry["at"], entry["who"], f"{entry['kind']} {entry['namespace']}/{entry['name']}: {entry['what']}")
        for entry in entries
        if not namespace or entry["namespace"] == namespace
    ]
    claims = [entry for entry in entries if entry["kind"] == "ResourceClaim"]
    return lines, {claim["uid"]: f"{claim['namespace']}/{claim['name']}" for claim in claims}


def _of_driver(answer: t.Mapping[str, t.Any], names: t.Mapping[str, str]) -> list[Line]:
    """What a driver did with claims that the server knows, at the moment when it was done."""
    lines = []
    for call in answer["calls"]:
        claims = [names[uid] for uid in call["uids"] if uid in names]
        if claims and call["ended"] is not None and call["method"] in _METHODS:
            took = (call["ended"] - call["started"]) * 1000
            what = f"{_METHODS[call['method']]} {', '.join(claims)}: {call['outcome']}, {took:.1f} ms"
            lines.append(Line(call["ended"], "driver", what))
    return lines
