# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One pass of the controller as a task: from the options of a person to a result that can be shown."""

from __future__ import annotations

import asyncio
import typing as t

from ..checkpoint.errors import DraError
from ..kube.client import KubeClient
from ..kube.cluster import resolve
from ..kube.options import options_from
from .keys import KINDS, Key
from .plan import describe
from .settings import ControllerSettings, Switches
from .shapes import Json
from .single_pass import KeyResult, PassResult, Selection, run_pass


class IncompletePassError(DraError):
    """Some objects could not be brought in line. Facts: everything that a pass without failures returns."""


async def sync(options: t.Mapping[str, t.Any], *, perform: bool) -> Json:
    """One pass over what ``options`` select: ``namespaces``, ``pods`` and ``claims`` (``namespace/name``), or all.

    ``admin_access`` and ``prioritized_list`` are switches, ``timeout`` is in seconds; all other keys say how to reach
    the API server. Without ``perform`` nothing is written, and the result is the same but for the names of claims that
    the API server would have chosen. Raises ``IncompletePassError`` at the end, or what stands against a pass at all.
    """
    selection = Selection(
        tuple(options.get("namespaces") or ()),
        tuple(_named("pods", name) for name in options.get("pods") or ()),
        tuple(_named("claims", name) for name in options.get("claims") or ()),
    )
    settings = ControllerSettings(switches=Switches(options["admin_access"], options["prioritized_list"]))
    access = resolve(options_from(options))
    try:
        async with asyncio.timeout(options["timeout"]), KubeClient.connect(access) as client:
            found = await run_pass(client, selection, settings, perform=perform)
    except TimeoutError:
        raise DraError(
            f"The pass over {access.server} was not done after {options['timeout']:g} seconds.",
            "What was done is whole: run it again to go on, with a longer timeout or over fewer namespaces.",
            server=access.server,
            timeout=options["timeout"],
        ) from None
    result = result_of(found)
    failures = result["failures"]
    if failures:
        first = failures[0]
        others = f", and {len(failures) - 1} others" if len(failures) > 1 else ""
        raise IncompletePassError(
            f"{first['kind']} {first['namespace']}/{first['name']}{others} could not be brought in line: "
            f"{first['message']}",
            first["hint"] or "Run it again: a pass goes on from what is there.",
            **result,
        )
    return result


def result_of(found: PassResult) -> Json:
    """What was done or is due, as data."""
    return {
        "changed": bool(found.steps),
        "api_version": found.target.version.group_version,
        "release": str(found.target.release),
        "looked_at": found.looked_at,
        "requests": [describe(step) for step in found.steps],
        "problems": [
            {**_object(one.key), "reason": problem.reason, "message": problem.message}
            for one in found.results
            for problem in one.problems
        ],
        "failures": [_failure(one, one.error) for one in found.results if one.error is not None],
        "missing": [_object(key) for key in found.missing],
    }


def shown(requests: t.Sequence[Json]) -> str:
    """One line for each request, for a diff."""
    return "".join(
        f"{one['verb']} {one['resource']} {one['namespace']}/{one['name']}: {one['reason']}\n" for one in requests
    )


def _failure(one: KeyResult, error: DraError) -> Json:
    return {**_object(one.key), "message": error.message, "hint": error.hint}


def _object(key: Key) -> Json:
    return {"kind": KINDS[key.what], "namespace": key.namespace, "name": key.name}


def _named(option: str, text: str) -> tuple[str, str]:
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise DraError(
            f"{option} holds {text!r:.80}, expected a namespace and a name like team-a/training.",
            "Write the namespace in front of the name.",
            option=option,
            found=text[:253],
        )
    return namespace, name
