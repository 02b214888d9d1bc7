# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Is another ResourceClaim controller at work in the cluster? Looked for before anything is written.

Four places are looked at, each of which gives pieces of evidence:

1. Pods of kube-controller-manager in kube-system that run. Their arguments tell whether the controller in them is
   switched off or on, and so do gate and release where no argument does. One that has it on is enough to refuse: it may
   not lead now, but it is there to. If all that are seen have it off, that goes before what the Lease would mean by
   default.
2. The Lease of kube-controller-manager in kube-system. If it is renewed while we watch and no pod tells more, the
   default of the release counts: on since 1.34. This is all there is to see of a hosted control plane.
3. Generated claims that were made within the last ``RECENT`` seconds, by the manager that their owner reference was
   written by. Another one than ours is enough to refuse, whatever it is called. Claims from before the present
   kube-controller-manager began to lead, or was started with the controller off, prove nothing and are passed over.
4. Leases of this collection's own controllers, by their label, under other names or in other namespaces than ours. One
   that is renewed while we watch is enough to refuse, unless its holder and we look after different namespaces.

What may not be read proves nothing either way. If it is the Lease, in a release in which the controller is on by
default, and no pod says that it is off, then nobody can be ruled out: that is refused as well, and the rights that
would settle it are named.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import enum
import logging
import time
import typing as t

from ..checkpoint.errors import DraError
from ..kube import errors
from ..kube.client import KubeClient
from ..kube.lease_record import LeaseObject, LeaseSpec
from ..kube.resources import resource_of
from ..kube.shapes import RawJson, decode_any, decoder
from ..kube.transport import USER_AGENT
from ..resource.names import EXTENDED_RESOURCE_ANNOTATION
from . import requests
from .coexistence_flags import is_manager, is_on_by_default, runs_controller
from .requests import MANAGER_LEASE, MANAGER_NAMESPACE, Use
from .target import Target

log = logging.getLogger(__name__)

#: Claims that are older tell of the past, in seconds.
RECENT = 300.0
#: A Lease that was renewed so long ago is a leftover, however wrong a clock is; a younger one is watched.
_LEFTOVER = 3600.0
_LONGEST_WATCH, _LOOK_EVERY = 30.0, 0.5
#: So many claims are named as evidence for each manager.
_EXAMPLES = 3

#: How controllers of this collection know each other's Leases.
LEASE_LABEL, LEASE_LABEL_VALUE = "app.kubernetes.io/name", "nodeops-dra-controller"
#: Which namespaces the holder looks after, with commas between them; empty for all.
NAMESPACES_ANNOTATION = "nodeops.dra/namespaces"


class Weight(enum.Enum):
    """What a piece of evidence does for the decision."""

    AT_WORK = "another controller is at work"
    NOT_RULED_OUT = "another controller cannot be ruled out"
    NOTE = "nothing to refuse for"


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What was seen: on which object, of what time (empty: now), and what it means."""

    weight: Weight
    object: str
    time: str
    meaning: str

    def __str__(self) -> str:
        return f"{self.object}{f' ({self.time})' if self.time else ''}: {self.meaning}"


class AnotherControllerError(DraError):
    """Another ResourceClaim controller is at work, or cannot be ruled out. Facts: ``evidence``, a list of texts."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """All evidence; ``against`` is what speaks against beginning."""

    evidence: tuple[Evidence, ...]

    @property
    def against(self) -> tuple[Evidence, ...]:
        """Enough to refuse, unless it is empty."""
        return tuple(one for one in self.evidence if one.weight is not Weight.NOTE)

    def error(self) -> AnotherControllerError:
        """The refusal."""
        sure = any(one.weight is Weight.AT_WORK for one in self.evidence)
        first = (
            "Another ResourceClaim controller is at work in this cluster"
            if sure
            else ("Another ResourceClaim controller in this cluster cannot be ruled out")
        )
        return AnotherControllerError(
            f"{first}: {'; '.join(map(str, self.against))}.",
            "Switch it off (kube-controller-manager --controllers=*,-resourceclaim-controller), give all replicas of "
            "this one the same Lease, or set controller.allow_coexistence when you are sure that it does not work.",
            evidence=[str(one) for one in self.evidence],
        )


async def refuse_others(
    client: KubeClient, target: Target, namespaces: t.Sequence[str], own_lease: str, *, allowed: bool
) -> Verdict:
    """Look, tell what was seen, and raise ``AnotherControllerError`` when it is enough, unless it is ``allowed``."""
    return judge(await look(client, target, namespaces, own_lease), allowed=allowed)


def judge(verdict: Verdict, *, allowed: bool) -> Verdict:
    """Tell what was seen, and raise ``AnotherControllerError`` when it is enough, unless it is ``allowed``."""
    for one in verdict.evidence:
        level = logging.INFO if one.weight is Weight.NOTE else logging.WARNING if allowed else logging.ERROR
        log.log(level, "looked for another controller means=%s evidence=%s", one.weight.value, one)
    if verdict.against and not allowed:
        raise verdict.error()
    return verdict


async def look(
    client: KubeClient,
    target: Target,
    namespaces: t.Sequence[str] = (),
    own_lease: str = "",
    now: t.Callable[[], float] = time.time,
) -> Verdict:
    """Gather the evidence. Raises a ``KubeError`` when something cannot be read for another reason than rights.

    ``own_lease`` is ``NAMESPACE/NAME`` of ours, which we are or will be a candidate for.
    """
    pods, off_since = await _pods(client, target)
    lease, leads_since = await _lease(client, target, known_off=off_since is not None, now=now)
    since = max(now() - RECENT, off_since or 0.0, leads_since)
    claims = [found for name in namespaces or ("",) for found in await _claims(client, target, name, since)]
    siblings = await look_for_siblings(client, namespaces, own_lease, now)
    return Verdict((*pods, *lease, *claims, *siblings))


def _not_readable(use: Use, error: errors.ForbiddenError, weight: Weight, meaning: str) -> Evidence:
    what = f"{use.resource}.{use.group}" if use.group else use.resource
    text = f"the right to {use.verb} {what} in {MANAGER_NAMESPACE} is missing, so {meaning}"
    log.debug("not readable error=%s", error)
    return Evidence(weight, f"{use.resource} in {MANAGER_NAMESPACE}", "", text)


# Pods


@dataclasses.dataclass(frozen=True)
class _PodMeta:
    name: str = ""


@dataclasses.dataclass(frozen=True)
class _Container:
    command: list[str] | None = None
    args: list[str] | None = None


@dataclasses.dataclass(frozen=True)
class _PodSpec:
    containers: list[_Container] | None = None


@dataclasses.dataclass(frozen=True)
class _PodStatus:
    phase: str = ""
    start_time: str | None = None


@dataclasses.dataclass(frozen=True)
class _Pod:
    metadata: _PodMeta = dataclasses.field(default_factory=_PodMeta)
    spec: _PodSpec = dataclasses.field(default_factory=_PodSpec)
    status: _PodStatus = dataclasses.field(default_factory=_PodStatus)


async def _pods(client: KubeClient, target: Target) -> tuple[list[Evidence], float | None]:
    """What the pods tell, and since when all of them have the controller off; None when they do not say that."""
    use = requests.LIST_MANAGER_PODS
    try:
        pods = await client.list(resource_of(use.kind), MANAGER_NAMESPACE, shape=_Pod)
    except errors.ForbiddenError as error:
        return [_not_readable(use, error, Weight.NOTE, "its arguments are not known")], None
    found: list[Evidence] = []
    started: list[float] = []
    for pod in pods:
        arguments = [word for one in pod.spec.containers or () for word in (*(one.command or ()), *(one.args or ()))]
        if pod.status.phase != "Running" or not is_manager(arguments):
            continue
        on, why = runs_controller(arguments, target.release)
        since = pod.status.start_time or ""
        meaning = f"runs kube-controller-manager with its ResourceClaim controller {'on' if on else 'off'}: {why}"
        weight = Weight.AT_WORK if on else Weight.NOTE
        found.append(Evidence(weight, f"Pod {MANAGER_NAMESPACE}/{pod.metadata.name}", since, meaning))
        started.append(_seconds(since))
    all_off = bool(found) and all(one.weight is Weight.NOTE for one in found)
    return found, max(started) if all_off else None


# Lease


async def _lease(
    client: KubeClient, target: Target, *, known_off: bool, now: t.Callable[[], float]
) -> tuple[list[Evidence], float]:
    """What the Lease tells, and since when its holder leads; 0 when nobody does."""
    use = requests.GET_MANAGER_LEASE
    on = is_on_by_default(target.release)
    name = f"Lease {MANAGER_NAMESPACE}/{MANAGER_LEASE}"
    try:
        first = await _read_manager(client)
    except errors.ForbiddenError as error:
        weight = Weight.NOT_RULED_OUT if on and not known_off else Weight.NOTE
        return [_not_readable(use, error, weight, "whether a kube-controller-manager is at work is not known")], 0.0
    if not first.holder_identity:
        return [Evidence(Weight.NOTE, name, first.renew_time or "", "nobody holds it")], 0.0
    last = await _renewed(lambda: _read_manager(client), first, now)
    holder = f"held by {first.holder_identity}"
    if last is None:
        return [Evidence(Weight.NOTE, name, first.renew_time or "", f"{holder}, but not renewed any more")], 0.0
    default = f"in release {target.release} the ResourceClaim controller in it is {'on' if on else 'off'} by default"
    if known_off:
        default = "its pods have the ResourceClaim controller off"
    weight = Weight.AT_WORK if on and not known_off else Weight.NOTE
    meaning = f"{holder} and being renewed, so a kube-controller-manager is at work; {default}"
    return [Evidence(weight, name, last.renew_time or "", meaning)], _seconds(last.acquire_time or "")


async def _read_manager(client: KubeClient) -> LeaseSpec:
    return await _read(client, MANAGER_LEASE, MANAGER_NAMESPACE)


async def _read(client: KubeClient, name: str, namespace: str) -> LeaseSpec:
    try:
        lease = await client.get(resource_of("Lease"), name, namespace, shape=LeaseObject)
    except errors.NotFoundError:
        return LeaseSpec()
    return t.cast("LeaseObject", lease).spec or LeaseSpec()


async def _renewed(
    read: t.Callable[[], t.Awaitable[LeaseSpec]], first: LeaseSpec, now: t.Callable[[], float]
) -> LeaseSpec | None:
    """The Lease as soon as it is renewed; None when it is not. Seen to happen: the clocks of hosts need not agree."""
    if now() - _seconds(first.renew_time or "") > _LEFTOVER:
        return None
    loop = asyncio.get_running_loop()
    until = loop.time() + min(float(first.lease_duration_seconds or 1), _LONGEST_WATCH)
    while loop.time() < until:
        await asyncio.sleep(_LOOK_EVERY)
        spec = await read()
        if (spec.holder_identity, spec.renew_time) != (first.holder_identity, first.renew_time):
            return spec if spec.holder_identity else None
    return None


# Leases of our own kind


@dataclasses.dataclass(frozen=True)
class _SiblingMeta:
    name: str = ""
    namespace: str = ""
    annotations: dict[str, str] | None = None


@dataclasses.dataclass(frozen=True)
class _SiblingLease:
    metadata: _SiblingMeta = dataclasses.field(default_factory=_SiblingMeta)
    spec: LeaseSpec | None = None


async def look_for_siblings(
    client: KubeClient, namespaces: t.Sequence[str], own_lease: str, now: t.Callable[[], float] = time.time
) -> list[Evidence]:
    """What the Leases of other controllers of this collection tell."""
    use = requests.LIST_LEASES
    selector = f"{LEASE_LABEL}={LEASE_LABEL_VALUE}"
    try:
        leases = await client.list(resource_of(use.kind), label_selector=selector, shape=_SiblingLease)
    except errors.ForbiddenError:
        meaning = (
            f"the right to {use.verb} {use.resource}.{use.group} is missing, so those of this collection are unknown"
        )
        return [Evidence(Weight.NOTE, f"{use.resource} in all namespaces", "", meaning)]
    others = [one for one in leases if f"{one.metadata.namespace}/{one.metadata.name}" != own_lease]
    seen = await asyncio.gather(*(_sibling(client, one, set(namespaces), now) for one in others))
    return [one for one in seen if one is not None]


async def _sibling(
    client: KubeClient, lease: _SiblingLease, ours: set[str], now: t.Callable[[], float]
) -> Evidence | None:
    meta, first = lease.metadata, lease.spec or LeaseSpec()
    if not first.holder_identity:
        return None
    last = await _renewed(lambda: _read(client, meta.name, meta.namespace), first, now)
    if last is None:
        return None
    theirs = set(filter(None, (meta.annotations or {}).get(NAMESPACES_ANNOTATION, "").split(",")))
    apart = bool(ours and theirs) and not ours & theirs
    what = "other namespaces than ours" if apart else ", ".join(sorted(theirs & ours or theirs)) or "all namespaces"
    meaning = (
        f"held by {first.holder_identity} and being renewed, a controller of this collection that looks after {what}"
    )
    weight = Weight.NOTE if apart else Weight.AT_WORK
    return Evidence(weight, f"Lease {meta.namespace}/{meta.name}", last.renew_time or "", meaning)


# Claims


@dataclasses.dataclass(frozen=True)
class _Owner:
    kind: str = ""
    controller: bool = False


@dataclasses.dataclass(frozen=True)
class _ClaimMeta:
    name: str = ""
    namespace: str = ""
    creation_timestamp: str = ""
    annotations: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None
    managed_fields: list[RawJson] | None = None


@dataclasses.dataclass(frozen=True)
class _Claim:
    metadata: _ClaimMeta = dataclasses.field(default_factory=_ClaimMeta)


async def _claims(client: KubeClient, target: Target, namespace: str, since: float) -> list[Evidence]:
    """Generated claims that another manager than ours made after ``since``."""
    made: dict[str, list[_ClaimMeta]] = {}
    resource, decode, token = target.resource("ResourceClaim"), decoder(_Claim), ""
    while True:
        page = await client.page(resource, namespace, continue_token=token)
        for raw in page.items:
            meta = decode(raw).metadata
            if _seconds(meta.creation_timestamp) >= since and _is_generated(meta):
                made.setdefault(_maker(meta), []).append(meta)
        token = page.continue_token
        if not token:
            break
    return [_made_by(maker, claims) for maker, claims in sorted(made.items()) if maker not in ("", USER_AGENT)]


def _made_by(maker: str, claims: t.Sequence[_ClaimMeta]) -> Evidence:
    latest = sorted(claims, key=lambda claim: claim.creation_timestamp, reverse=True)
    names = ", ".join(f"{claim.namespace}/{claim.name}" for claim in latest[:_EXAMPLES])
    more = f" and {len(latest) - _EXAMPLES} more" if len(latest) > _EXAMPLES else ""
    meaning = f"made for pods by the manager {maker!r:.80}, which is not ours ({USER_AGENT})"
    return Evidence(Weight.AT_WORK, f"ResourceClaim {names}{more}", latest[0].creation_timestamp, meaning)


def _is_generated(meta: _ClaimMeta) -> bool:
    """Made for a pod or group by a ResourceClaim controller, not by the scheduler for extended resources."""
    if EXTENDED_RESOURCE_ANNOTATION in (meta.annotations or {}):
        return False
    return any(owner.controller and owner.kind in ("Pod", "PodGroup") for owner in meta.owner_references or ())


def _maker(meta: _ClaimMeta) -> str:
    """Who wrote the owner references, which only its maker does; empty when the server keeps no such notes."""
    for raw in meta.managed_fields or ():
        entry = decode_any(t.cast("bytes", raw))
        if not entry.get("subresource") and "f:ownerReferences" in (entry.get("fieldsV1") or {}).get("f:metadata", {}):
            return str(entry.get("manager", ""))
    return ""


def _seconds(text: str) -> float:
    """A time of the API since 1970; 0 when there is none, or none that can be read."""
    try:
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
