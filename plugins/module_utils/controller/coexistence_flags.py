# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Whether a kube-controller-manager runs its own ResourceClaim controller: by its arguments, or by default."""

from __future__ import annotations

import re
import typing as t

from ..resource.release import Release

#: Its name, and the older one that is still accepted.
NAMES = ("resourceclaim-controller", "resource-claim-controller")
GATE = "DynamicResourceAllocation"

_PROGRAM = re.compile(r"(?:^|[\s/])kube-controller-manager(?:$|\s)")
_FLAG = re.compile(r"--(controllers|feature-gates)(?:=|$)(.*)", re.DOTALL)


def is_manager(arguments: t.Sequence[str]) -> bool:
    """Whether a container's command and arguments start a kube-controller-manager."""
    return any(_PROGRAM.search(argument) for argument in arguments)


def is_on_by_default(release: Release) -> bool:
    """Without any argument: since 1.34, where the gate is on."""
    return release >= (1, 34)


def runs_controller(arguments: t.Sequence[str], release: Release) -> tuple[bool, str]:
    """Whether these arguments leave the controller running, and which of them says so."""
    given = _flags(arguments)
    gate, why_gate = _gate(given["feature-gates"], release)
    if not gate:
        return False, why_gate
    listed, why_listed = _listed(given["controllers"])
    return (True, why_gate) if listed else (False, why_listed)


def _flags(arguments: t.Sequence[str]) -> dict[str, list[str]]:
    """The items of both flags, in order. A shell's whole command line in one argument is split at blanks."""
    words = [word.strip("'\"") for argument in arguments for word in argument.split()]
    found: dict[str, list[str]] = {"controllers": [], "feature-gates": []}
    for word, following in zip(words, (*words[1:], "")):
        match = _FLAG.fullmatch(word)
        if match:
            value = match[2] if "=" in word else following
            found[match[1]] += [item.strip() for item in value.strip("'\"").split(",") if item.strip()]
    return found


def _listed(items: t.Sequence[str]) -> tuple[bool, str]:
    """kube-controller-manager: IsControllerEnabled. The first item that names the controller decides."""
    for item in items:
        if item.lstrip("-") in NAMES:
            return not item.startswith("-"), f"--controllers={item}"
    if not items or "*" in items:
        return True, "no --controllers that leaves it out"
    return False, f"--controllers={','.join(items)} leaves it out"


def _gate(items: t.Sequence[str], release: Release) -> tuple[bool, str]:
    """The gate: alpha up to 1.31, beta but off up to 1.33, on since 1.34, and fixed so since 1.35."""
    gates = {name.strip(): value.strip().lower() in ("true", "1", "t") for name, _eq, value in map(_parted, items)}
    if release >= (1, 35):
        return True, f"{GATE} cannot be switched off in release {release}"
    if GATE in gates:
        return gates[GATE], f"--feature-gates={GATE}={str(gates[GATE]).lower()}"
    group = "AllAlpha" if release < (1, 32) else "AllBeta"
    if release < (1, 34) and group in gates:
        return gates[group], f"--feature-gates={group}={str(gates[group]).lower()}"
    on = is_on_by_default(release)
    return on, f"{GATE} is {'on' if on else 'off'} by default in release {release}"


def _parted(item: str) -> tuple[str, str, str]:
    return item.partition("=")
