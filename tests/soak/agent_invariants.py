# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What must be true of a node at every moment, and what when all is quiet, told from its files."""

from __future__ import annotations

import collections
import dataclasses
import pathlib
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.claims import ClaimState, claim_states
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.diagnosis import diagnose
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.document import Document
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.formats import NEWEST
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_store import (
    CdiFiles,
    ClaimStore,
    PreparedClaim,
)
from ansible_collections.nodeops.dra.tests.soak.agent_load import Load
from ansible_collections.nodeops.dra.tests.soak.agent_node import SoakNode

STATE = "dra_manager_state"
KEPT = {STATE, f"{STATE}.lock", "dra_manager_notes"}
"""All that may lie in the state directory when nothing is under way."""


@dataclasses.dataclass
class Told:
    """What the log of the agent said of pods, by UID."""

    prepared: set[str] = dataclasses.field(default_factory=set)
    released: set[str] = dataclasses.field(default_factory=set)


@dataclasses.dataclass
class Seen:
    """The files of a node. ``faults`` says what is wrong with the state file itself."""

    recorded: dict[str, ClaimState]
    held: dict[str, dict[str, PreparedClaim]]
    faults: list[str]


def look(node: SoakNode) -> Seen:
    """Read everything; drivers first, so that what they prepare meanwhile does not count as lost."""
    stores = {name: ClaimStore(node.root / "plugins" / name / "sandbox_state.json") for name in node.names}
    held = {name: store.claims() for name, store in stores.items()}
    path = node.state / STATE
    if not path.exists():
        return Seen({}, held, [])
    data = path.read_bytes()
    reading = Document(data).read_as(NEWEST)
    if not reading.ok:
        return Seen({}, held, [f"{path} is not valid: {reading.go_message}"])
    claims = claim_states(reading.claims)
    faults = [f"{path} names a claim twice"] if len({one.uid for one in claims}) != len(claims) else []
    diagnosis = diagnose(data)
    if diagnosis.status != "sound":
        faults.append(f"{path} is {diagnosis.status}: {[fault.text for fault in diagnosis.faults]}")
    return Seen({one.uid: one for one in claims}, held, faults)


def always(node: SoakNode, load: Load, told: Told) -> list[str]:
    """What is wrong whatever is under way. The agent must not run: its files would change between two looks."""
    seen = look(node)
    wrongs = [*seen.faults, *_lost(seen), *_doubled(seen)]
    for uid, state in seen.recorded.items():
        claim = load.claims.get(uid)
        if claim is None:
            wrongs.append(f"claim {uid} is recorded, and nobody ever made it")
        elif strangers := state.pod_uids - claim.pods:
            wrongs.append(f"claim {claim.name} ({uid}) is recorded for {sorted(strangers)}, who never had it")
    for uid in sorted(told.prepared):
        pod = load.pods[uid]
        for claim_uid in pod.claims if not pod.ended else ():
            one = seen.recorded.get(claim_uid)
            if one is None or uid not in one.pod_uids or None in one.drivers.values():
                wrongs.append(f"pod {pod.name} was told to be prepared, and its claim {claim_uid} is {one}")
    for uid in sorted(told.released):
        for one in seen.recorded.values():
            if uid in one.pod_uids:
                wrongs.append(f"pod {load.pods[uid].name} was told to be released, and still has {one}")
    for uid, is_held in load.services.items():
        if is_held is not None and (uid in seen.recorded) is not is_held:
            wrongs.append(f"claim {uid} of a service: held must be {is_held}, recorded is {seen.recorded.get(uid)}")
    return wrongs


def _lost(seen: Seen) -> t.Iterator[str]:
    for driver, claims in seen.held.items():
        for uid, claim in claims.items():
            state = seen.recorded.get(uid)
            if state is None or driver not in state.drivers:
                yield f"driver {driver} holds {claim.namespace}/{claim.name} ({uid}), recorded is {state}"


def _doubled(seen: Seen) -> t.Iterator[str]:
    recorded = [
        (driver, device.device_name, uid)
        for uid, state in seen.recorded.items()
        for driver, devices in state.drivers.items()
        for device in devices or ()
    ]
    held = [
        (driver, device.device, uid)
        for driver, claims in seen.held.items()
        for uid, claim in claims.items()
        for device in claim.devices
    ]
    for what, found in (("recorded for", recorded), ("held by drivers for", held)):
        users: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
        for driver, device, uid in found:
            users[driver, device].append(uid)
        for (driver, device), uids in users.items():
            if len(uids) > 1:
                yield f"device {driver}/{device} is {what} {len(uids)} claims: {sorted(uids)}"


def at_rest(node: SoakNode, load: Load) -> list[str]:
    """What is wrong when everybody has had the time to finish: recorded, prepared and needed must be the same."""
    seen, needed = look(node), load.needed()
    wrongs = [*seen.faults, *_doubled(seen)]
    for uid, claim in needed.items():
        state = seen.recorded.get(uid)
        pods = {pod.uid for pod in load.living if uid in pod.claims} or claim.pods
        if state is None or state.pod_uids != pods or _devices(state) != set(claim.devices):
            wrongs.append(f"claim {claim.name} with {claim.devices} is needed by {sorted(pods)}, recorded is {state}")
    leaked = [state for uid, state in seen.recorded.items() if uid not in needed]
    wrongs += [f"claim {state.name} ({state.uid}) is recorded, and nobody needs it" for state in leaked]
    for name in node.names:
        wanted = {uid for uid, claim in needed.items() if name in dict(claim.devices)}
        if wanted != set(seen.held[name]):
            more, less = sorted(set(seen.held[name]) - wanted), sorted(wanted - set(seen.held[name]))
            wrongs.append(f"driver {name}: leaked {more}, lost {less}")
    return [*wrongs, *_left_over(node, needed)]


def _devices(state: ClaimState) -> set[tuple[str, str]]:
    return {(driver, one.device_name) for driver, devices in state.drivers.items() for one in devices or ()}


def _left_over(node: SoakNode, needed: t.Mapping[str, t.Any]) -> t.Iterator[str]:
    paths: set[pathlib.Path] = set()
    for name in node.names:
        files = CdiFiles(node.cdi, name)
        paths |= {files.path(uid) for uid, claim in needed.items() if name in dict(claim.devices)}
    found = set(node.cdi.iterdir())
    if found != paths:
        yield f"CDI files: too many {sorted(map(str, found - paths))}, missing {sorted(map(str, paths - found))}"
    names = {path.name for path in node.state.iterdir()} - {f".{STATE}.twin-a", f".{STATE}.twin-b"}
    if names - KEPT:
        yield f"left over in {node.state}: {sorted(names - KEPT)}"
