# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One request for claims from end to end: by the agent if one runs, with the API where objects have to be fetched."""

from __future__ import annotations

import typing as t

from ..checkpoint.errors import DraError
from ..resource.view import JsonObject
from .claim_request import CHECKED, PREPARED, ClaimRequest, gather
from .claim_work import work
from .local_client import LocalClient
from .running_agent import agent_of

Json = dict[str, t.Any]

WAYS_TO_API = ("kubeconfig", "context", "host")
"""Options that say how a task itself reaches the API."""


def needs_api(request: ClaimRequest) -> bool:
    """Whether an object that has to be prepared was given without what is needed of it."""
    if request.state not in (PREPARED, CHECKED):
        return False
    whole_pod = request.pod is None or request.pod.get("spec") is not None
    whole_claims = all(claim.get("status") is not None for claim in request.claims)
    return not (whole_pod and whole_claims and (request.pod is None or bool(request.claims)))


async def perform(request: ClaimRequest, options: t.Mapping[str, t.Any], *, check: bool) -> Json:
    """What the module claim returns. ``options`` say how to reach the API. Raises `DraError`."""
    if request.pod is None and not request.claims:
        raise DraError("There is nothing to do: neither claims nor a pod was given.", "Give claims or pod.")
    if request.timeout <= 0:
        raise DraError(
            f"The timeout is {request.timeout:g} s, expected more than 0.", "Leave it out for the kubelet's 45 s."
        )
    if request.state == CHECKED:  # records nothing, so the agent need not do it
        return await _by_lock(request, options, check=check)
    # One that observes prepares nothing, and does not hold the lock either.
    async with agent_of(request.state_directory, options, mode="manage") as agent:
        if agent is not None:
            return await _by_agent(agent, request, options, check=check)
    return await _by_lock(request, options, check=check)


async def _by_agent(agent: LocalClient, request: ClaimRequest, options: t.Mapping[str, t.Any], *, check: bool) -> Json:
    if needs_api(request) and any(options.get(name) for name in WAYS_TO_API):
        from .api_objects import connected

        async with connected(options) as api:
            request = await gather(request, api.fetch)
    # What is missing now the agent fetches itself.
    return await agent.change(request, check=check)


async def _by_lock(request: ClaimRequest, options: t.Mapping[str, t.Any], *, check: bool) -> Json:
    if not needs_api(request):
        return await work(request, _refuse, check=check)
    from .api_objects import connected

    async with connected(options) as api:
        return await work(request, api.fetch, check=check)


async def _refuse(kind: str, namespace: str, name: str) -> JsonObject:
    raise DraError(
        f"{kind} {namespace}/{name} was not given.",
        "Give its manifest too, or leave out the manifests so that all are fetched from the API.",
        kind=kind,
    )
