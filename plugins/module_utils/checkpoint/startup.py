# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a kubelet does with claims once it has loaded them: the start that a checksum alone does not tell.

Kubernetes symbols: ``newClaimInfoCache``, ``addCDIDevices`` and ``generateCDIAnnotations`` (1.27 to 1.30).
"""

from __future__ import annotations

import dataclasses
import re

from .claim_list import Claim
from .document import Reading
from .formats import FNV

STARTS = "ok"
FAILS = "fails"
PANICS = "panic"

_ANNOTATION_LIMIT = 63
_PLUGIN_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_VENDOR_OR_CLASS = re.compile(r"[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_DEVICE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.:-]*[A-Za-z0-9])?")


@dataclasses.dataclass(frozen=True)
class Start:
    """How a kubelet comes up with a file: ``ok``, ``fails`` or ``panic``, and how many claims it then knows."""

    outcome: str
    claims: int


def cache_key(family: str, namespace: str, name: str) -> tuple[str, ...]:
    """What two claims must not share in a kubelet's memory; up to 1.30 the two names are glued without a separator."""
    if family == FNV:
        return (name + namespace,)
    return (namespace, name)


def annotation_problem(claim: Claim) -> str:
    """Why kubelets up to 1.30 cannot name the annotation of a claim's CDI devices, or nothing."""
    driver, uid = claim["DriverName"], claim["ClaimUID"]
    if not driver:
        return "the driver's name is empty"
    if not uid:
        return "the claim's UID is empty"
    name = f"{driver}_{uid.replace('/', '_')}"
    if len(name.encode("utf-8", "replace")) > _ANNOTATION_LIMIT:
        return f"driver name and claim UID make {len(name)} characters, {_ANNOTATION_LIMIT} are allowed"
    if _PLUGIN_NAME.fullmatch(name) is None:
        return "driver name and claim UID hold characters other than letters, digits, '_', '-' and '.'"
    return ""


def cdi_problem(device: str) -> tuple[str, str]:
    """What kubelets up to 1.30 do at their start because of a CDI name, and why; ``ok`` and nothing if it is fine."""
    qualifier, equals, name = device.partition("=")
    vendor, slash, kind = qualifier.partition("/")
    if device.startswith("/") or not (equals and slash and name and vendor and kind):
        return FAILS, "it is not of the form vendor/class=name"
    for part, value in (("vendor", vendor), ("class", kind)):
        if not re.match("[A-Za-z]", value):
            return FAILS, f"its {part} '{value}' does not begin with a letter"
        if len(value) == 1:
            return PANICS, f"its {part} '{value}' has one character only"
        if _VENDOR_OR_CLASS.fullmatch(value) is None:
            return FAILS, f"its {part} '{value}' holds characters that are not allowed"
    if _DEVICE.fullmatch(name) is None:
        return FAILS, f"its name '{name}' holds characters that are not allowed"
    return STARTS, ""


def start_with(reading: Reading) -> Start:
    """How the kubelet of a reading's release comes up."""
    if not reading.ok:
        return Start(FAILS, 0)
    family = reading.format.family
    kept: set[tuple[str, ...]] = set()
    for claim in reading.claims or ():
        kept.add(cache_key(family, claim["Namespace"], claim["ClaimName"]))
        if family != FNV:
            continue
        for devices in (claim["CDIDevices"] or {}).values():
            if annotation_problem(claim):
                return Start(FAILS, 0)
            for device in devices or ():
                outcome, _unused = cdi_problem(device)
                if outcome != STARTS:
                    return Start(outcome, 0)
    return Start(STARTS, len(kept))
