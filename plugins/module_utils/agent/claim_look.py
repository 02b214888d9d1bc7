# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The whole look at a node's claims: its files, drivers' sockets and the agent if grpcio is there, the API if asked."""

from __future__ import annotations

import contextlib
import os
import sys
import typing as t

from .sources import Sources, read_sources
from .survey import survey

Json = dict[str, t.Any]


async def look(kubelet_root: str, options: t.Mapping[str, t.Any]) -> Json:
    """What claim_info returns. ``options`` are those of the module. Raises `DraError` when the API does not answer."""
    sources = read_sources(
        state_directory=options["state_directory"],
        kubelet_root=kubelet_root,
        cdi_directories=options["cdi_directories"],
    )
    registry = options["registry_directory"] or os.path.join(kubelet_root, "plugins_registry")
    await _ask_drivers(sources, registry)
    if options["with_api"]:
        await _ask_api(sources, options)
    told = await _ask_agent(options)
    found = survey(sources)
    _add(found, told or [])
    return {
        "changed": False,
        "via": "files" if told is None else "agent",
        **found,
        "kubelet_root": kubelet_root,
        "drivers_checked": sources.registered is not None,
    }


async def _ask_drivers(sources: Sources, registry: str) -> None:
    if sys.version_info < (3, 11):
        return  # the driver client needs a later Python; what drivers say stays unknown
    from ..driver.scan import scan
    from ..wire.messages import LibraryMissing
    from .driver_report import registered

    with contextlib.suppress(LibraryMissing):  # as on an old Python: the files tell enough
        sources.registered = registered(await scan(registry))


async def _ask_agent(options: t.Mapping[str, t.Any]) -> list[Json] | None:
    """The findings of the agent, None where none works on the state directory."""
    if sys.version_info < (3, 11):
        return None
    from ..wire.messages import LibraryMissing
    from .local_errors import AgentSilentError
    from .running_agent import agent_of

    # One that went meanwhile is like none; its files are there.
    with contextlib.suppress(LibraryMissing, AgentSilentError):
        async with agent_of(options["state_directory"], options) as agent:
            return None if agent is None else await agent.findings()
    return None


def _add(found: Json, told: t.Iterable[Json]) -> None:
    """Put what the agent tells to what was found, and its codes to their claims."""
    known = {(one["code"], one["place"]) for one in found["findings"]}
    for finding in told:
        if (finding["code"], finding["place"]) in known:
            continue
        found["findings"].append(finding)
        for claim in found["claims"]:
            if claim["uid"] == finding["facts"].get("claim_uid"):
                claim["findings"] = sorted({*claim["findings"], finding["code"]})


async def _ask_api(sources: Sources, options: t.Mapping[str, t.Any]) -> None:
    from .api_objects import connected

    async with connected(options) as api:
        sources.claims = await api.list("ResourceClaim")
        node = sources.node_name = options["node_name"] or ""
        sources.pods = await api.list("Pod", field_selector=f"spec.nodeName={node}" if node else "")
