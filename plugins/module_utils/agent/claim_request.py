# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What somebody wants of ResourceClaims on this node, and the objects that this needs, given or fetched."""

from __future__ import annotations

import dataclasses
import os
import typing as t

from ..checkpoint.errors import DraError
from ..manager.planning import Holder, PlannedClaim, holder_of, plan_claim, plan_pod
from ..resource.pod import claim_references
from ..resource.view import JsonObject

PREPARED, UNPREPARED, FORGOTTEN, CHECKED = "prepared", "unprepared", "forgotten", "checked"
STATES = (PREPARED, UNPREPARED, FORGOTTEN, CHECKED)
DEFAULT_HOLDER = "nodeops.dra"
DEFAULT_STATE_DIRECTORY = "/var/lib/nodeops-dra"

Fetch = t.Callable[[str, str, str], t.Awaitable[JsonObject]]
"""Gets one object from the API: kind, namespace, name. Raises `DraError`."""


@dataclasses.dataclass(frozen=True)
class ClaimRequest:
    """One call of the module or of the command line.

    ``pod`` and ``claims`` are objects as the API gives them, or only their ``metadata``. A claim without a pod is held
    by ``holder``, or by `DEFAULT_HOLDER`; without either it is unprepared for everybody. ``state_directory`` is where
    our manager keeps its files, ``kubelet_root`` where the kubelet keeps its own. Durations are seconds.
    """

    state: str
    pod: JsonObject | None = None
    claims: t.Sequence[JsonObject] = ()
    holder: str | None = None
    state_directory: str = DEFAULT_STATE_DIRECTORY
    kubelet_root: str = "/var/lib/kubelet"
    registry_directory: str | None = None
    cdi_directories: tuple[str, ...] | None = None
    timeout: float = 45.0
    reason: str = ""
    by: str = ""
    force: bool = False

    @property
    def registry(self) -> str:
        """The directory where drivers register."""
        return self.registry_directory or os.path.join(self.kubelet_root, "plugins_registry")


@dataclasses.dataclass(frozen=True)
class Wanted:
    """The plans for a request to prepare, and who holds the claims afterwards."""

    holder: Holder
    plans: tuple[PlannedClaim, ...]


async def plan(request: ClaimRequest, fetch: Fetch) -> Wanted:
    """What has to be prepared. Raises `DraError` for anything that forbids it; nothing was touched then."""
    whole = await gather(request, fetch)
    if whole.pod is not None:
        return Wanted(holder_of(whole.pod), tuple(plan_pod(whole.pod, whole.claims)))
    # All claims together, so that one that cannot be prepared keeps the others from being touched.
    holder = named_holder(request) or Holder.named(DEFAULT_HOLDER)
    plans: dict[str, PlannedClaim] = {}
    for claim in whole.claims:
        planned = plan_claim(claim)
        plans.setdefault(planned.uid, planned)
    return Wanted(holder, tuple(plans.values()))


async def gather(request: ClaimRequest, fetch: Fetch) -> ClaimRequest:
    """The request with every object whole, and with a pod exactly its claims."""
    if request.pod is None:
        return dataclasses.replace(
            request, claims=[await complete("ResourceClaim", claim, fetch, "status") for claim in request.claims]
        )
    pod = await complete("Pod", request.pod, fetch, "spec")
    namespace = holder_of(pod).namespace
    given = {(_meta(claim, "namespace"), _meta(claim, "name")): claim for claim in request.claims}
    claims = []
    for reference in claim_references(pod):
        known = given.get((namespace, reference.claim_name))
        if known is None:
            known = {"metadata": {"namespace": namespace, "name": reference.claim_name}}
        claims.append(await complete("ResourceClaim", known, fetch, "status"))
    return dataclasses.replace(request, pod=pod, claims=claims)


def named_holder(request: ClaimRequest) -> Holder | None:
    """The holder that was named, None when none was. Raises `DraError` when that is no name."""
    if request.holder is None:
        return None
    if not request.holder.strip() or not request.holder.isprintable():
        raise DraError(
            f"The holder is {request.holder!r:.80}, expected a name.", "Name who holds the claims, such as a unit."
        )
    return Holder.named(request.holder)


async def complete(kind: str, given: JsonObject, fetch: Fetch, needs: str) -> JsonObject:
    """The object itself if it was given whole, else the one that the API has under its name."""
    if given.get(needs) is not None:
        return given
    namespace, name = _meta(given, "namespace"), _meta(given, "name")
    if not (namespace and name):
        raise DraError(
            f"The {kind} that was given has no {needs}, and no namespace and name to fetch it by: "
            f"found namespace '{namespace}', name '{name}'.",
            f"Give the whole manifest, or metadata.namespace and metadata.name of a {kind} in the API.",
            kind=kind,
        )
    try:
        found = await fetch(kind, namespace, name)
    except DraError as error:
        raise DraError(
            f"{kind} {namespace}/{name} was given without its {needs} and could not be fetched: {error.message}",
            error.hint,
            **{**error.facts, "kind": kind},
        ) from error
    wanted_uid = _meta(given, "uid")
    if wanted_uid and _meta(found, "uid") != wanted_uid:
        raise DraError(
            f"{kind} {namespace}/{name} has UID {_meta(found, 'uid')} in the API, UID {wanted_uid} was asked for.",
            "The object was made anew under its old name: ask for the new one, or leave out the UID.",
            kind=kind,
            expected=wanted_uid,
            found=_meta(found, "uid"),
        )
    return found


def check_named(request: ClaimRequest) -> None:
    """Raise `DraError` unless it is clear which recorded claims are meant: names of pods come again, UIDs do not."""
    if request.pod is not None:
        if not identity(request.pod)[0]:
            raise DraError("The pod has no UID.", "Give metadata.uid of the pod: names come again, UIDs do not.")
        return
    for claim in request.claims:
        uid, namespace, name = identity(claim)
        if not (uid or (namespace and name)):
            raise DraError(
                f"A claim was given without metadata.uid, and without metadata.namespace and metadata.name: found "
                f"namespace '{namespace}', name '{name}'.",
                "Give the UID, or both the namespace and the name.",
            )


def identity(thing: JsonObject) -> tuple[str, str, str]:
    """UID, namespace and name of an object, empty where they are missing."""
    return _meta(thing, "uid"), _meta(thing, "namespace"), _meta(thing, "name")


def _meta(thing: JsonObject, key: str) -> str:
    metadata = thing.get("metadata")
    value = metadata.get(key) if isinstance(metadata, t.Mapping) else None
    return value if isinstance(value, str) else ""
