# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Every kind of fault of a kubelet's state file: its stable code, what kubelets do with it, and what mends it."""

from __future__ import annotations

import dataclasses
import types
import typing as t

from .findings import Finding, Severity
from .formats import RELEASES

OLD = "1.27-1.30"
NEW = "1.31 and later"
ALL = "all releases"


@dataclasses.dataclass(frozen=True)
class Kind:
    """What is always true of a fault with this code.

    ``repair`` names the action that mends it, empty where nothing is proposed; ``loses`` says what that action may
    lose, empty for nothing. ``effects`` maps releases to what their kubelet does.
    """

    severity: Severity
    effects: t.Mapping[str, str]
    repair: str = ""
    loses: str = ""
    remedy: str = ""


_FAILS = {ALL: "does not start"}
ALL_THAT_IS_CUT = "every claim that is not complete in the file"
_NOTHING: t.Mapping[str, str] = {ALL: "loads it without a word"}

KINDS: t.Mapping[str, Kind] = {
    "missing_file": Kind(
        "info",
        {ALL: "creates an empty file, and does not know which prepared claims to unprepare"},
        remedy="Restore a backup if claims were prepared on this node; otherwise nothing needs to be done.",
    ),
    "missing_directory": Kind(
        "warning",
        {ALL: "makes the directory at its start"},
        remedy="Check the path: a kubelet that ran on this node has made its root directory.",
    ),
    "empty_file": Kind("error", _FAILS, "rebuild", "all claims: the file holds none"),
    "blank_file": Kind("error", _FAILS, "rebuild", "all claims: the file holds none"),
    "zero_filled": Kind("error", _FAILS, "rebuild", "all claims: the file holds only zero bytes"),
    "zero_bytes": Kind("error", _FAILS, "rebuild", ALL_THAT_IS_CUT),
    "truncated": Kind("error", _FAILS, "rebuild", ALL_THAT_IS_CUT),
    "trailing_data": Kind("error", _FAILS, "cut_trailing_data", "the bytes after the document"),
    "not_json": Kind("error", _FAILS, "rebuild", ALL_THAT_IS_CUT),
    "byte_order_mark": Kind("error", _FAILS, "rebuild", ""),
    "utf16": Kind("error", _FAILS, "rebuild", ""),
    "too_deep": Kind("error", _FAILS, "rebuild", ALL_THAT_IS_CUT),
    "invalid_utf8": Kind("warning", {ALL: "reads each invalid byte as U+FFFD, so names differ from the real ones"}),
    "wrong_type": Kind("error", _FAILS, "reset_field", "the value of that field"),
    "impossible_claim": Kind("error", _FAILS, "drop_claim", "the claim: its driver is never told to unprepare it"),
    "checksum_mismatch": Kind("error", _FAILS, "recompute_checksum", ""),
    "other_release": Kind("error", {}, "convert", "what the format of that release cannot hold, see the steps"),
    "unknown_format": Kind("error", {OLD: "does not start", NEW: "loads an empty list"}, "rebuild", ALL_THAT_IS_CUT),
    "unknown_version": Kind(
        "warning",
        {OLD: "ignores it, but it counts for the checksum", NEW: "ignores it"},
        remedy="Find out which program wrote the file before changing it.",
    ),
    "prerelease_list_key": Kind(
        "error", {NEW: "ignores the list and loads no claims, so none of them is ever unprepared"}, "rename_list_key"
    ),
    "misplaced_claims": Kind(
        "error", {ALL: "ignores them, so none of them is ever unprepared"}, "rebuild", "what stands around the claims"
    ),
    "duplicate_key": Kind("warning", {ALL: "takes the last one"}),
    "key_spelling": Kind("info", _NOTHING),
    "unknown_field": Kind("info", {ALL: "ignores it and drops it at its next write"}),
    "foreign_field": Kind(
        "info", {ALL: "ignores a field that its release does not know and drops it at its next write"}
    ),
    "duplicate_claim": Kind("warning", {ALL: "keeps the last one"}, "drop_claim", ""),
    "conflicting_claim": Kind(
        "error",
        {ALL: "keeps the last one and never unprepares the others"},
        "drop_claim",
        "the earlier entries: what they alone hold is never unprepared",
    ),
    "duplicate_claim_uid": Kind(
        "warning",
        {ALL: "keeps both and calls the driver for either"},
        remedy="Compare with the ResourceClaim in the API and drop the entry that is wrong.",
    ),
    "colliding_claim_key": Kind(
        "warning",
        {OLD: "keeps the last one, since name and namespace put together are the same", NEW: "keeps both"},
        remedy="Convert the file for the release that the node will run, or drop one of the two claims.",
    ),
    "doubled_devices": Kind(
        "warning", {ALL: "hands every CDI name to the runtime as often as it is listed"}, "drop_repeats", ""
    ),
    "pods_null": Kind("error", {ALL: "loads it, then panics when a pod is added to the claim"}, "set_empty", ""),
    "no_pods": Kind(
        "warning",
        {OLD: "keeps it for ever", NEW: "keeps it for ever: its clean-up goes by pods"},
        remedy="Unprepare the claim with its driver (state=unprepared of the module claim), or drop it.",
    ),
    "empty_pod_uid": Kind(
        "warning", {OLD: "keeps it for ever", NEW: "takes it for a pod that is gone"}, "drop_pod_reference", ""
    ),
    "unknown_pod": Kind(
        "warning",
        {OLD: "keeps the claim for ever", NEW: "unprepares the claim within a minute of its start"},
        remedy="Nothing for kubelets from 1.31 on; before that unprepare the claim with its driver.",
    ),
    "no_claim_uid": Kind(
        "error",
        {OLD: "does not start if the claim has CDI devices", NEW: "calls the driver with no UID"},
        "drop_claim",
        "the claim: without a UID no driver can be told",
    ),
    "no_claim_name": Kind(
        "warning",
        {ALL: "never finds it again when its pod comes or goes"},
        remedy="Look the claim up by its UID in the API and correct the name, or drop the claim.",
    ),
    "no_driver_name": Kind(
        "warning", {NEW: "calls a driver without a name, which always fails"}, "drop_driver", "the devices listed there"
    ),
    "devices_pending": Kind(
        "info", {NEW: "was about to call this driver when it wrote the file, and will call it again"}
    ),
    "cdi_name_refused": Kind(
        "error",
        {OLD: "does not start", NEW: "accepts it, the runtime may not"},
        "drop_cdi_device",
        "that CDI device: a container that restarts does not get it",
    ),
    "cdi_class_too_short": Kind(
        "error",
        {OLD: "panics at its start", NEW: "accepts it"},
        "drop_cdi_device",
        "that CDI device: a container that restarts does not get it",
    ),
    "cdi_annotation_too_long": Kind(
        "error",
        {OLD: "does not start", NEW: "accepts it"},
        "drop_cdi_device",
        "the CDI devices of that driver: a container that restarts does not get them",
    ),
    "no_resource_handles": Kind(
        "info",
        {"1.27": "calls the claim's driver", "1.28-1.30": "calls no driver, so the end of its pod never finishes"},
        remedy="Convert the file to the release that the node runs: each claim gets a handle that names its driver.",
    ),
    "leftover_temporary": Kind(
        "info",
        {ALL: "ignores it"},
        remedy="Remove it when no kubelet is writing: it is what a crash left of an unfinished write.",
    ),
    "symlink": Kind(
        "warning",
        {ALL: "replaces the link by a file at its next write"},
        remedy="Name the file that the link points to.",
    ),
}


@dataclasses.dataclass(frozen=True)
class Fault(Finding):
    """A finding about a state file, with what kubelets do and the repair that is proposed."""

    effects: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    repair: str = ""
    loses: str = ""

    def to_dict(self) -> dict[str, t.Any]:
        """As modules return it."""
        kubelets = [{"releases": releases, "effect": effect} for releases, effect in self.effects.items()]
        return {**super().to_dict(), "kubelets": kubelets, "repair": self.repair, "loses": self.loses}


_NO_FACTS: t.Mapping[str, t.Any] = types.MappingProxyType({})


def fault(
    code: str,
    place: str,
    text: str,
    facts: t.Mapping[str, t.Any] | None = None,
    *,
    effects: t.Mapping[str, str] | None = None,
    repair: str | None = None,
    loses: str | None = None,
    severity: Severity | None = None,
) -> Fault:
    """A fault of a known kind; what the kind says can be made more exact."""
    kind = KINDS[code]
    action = kind.repair if repair is None else repair
    return Fault(
        code=code,
        severity=severity or kind.severity,
        place=place,
        text=text,
        remedy=kind.remedy or (_REMEDIES.get(action, "") if action else ""),
        facts=facts or _NO_FACTS,
        effects=kind.effects if effects is None else effects,
        repair=action,
        loses=kind.loses if loses is None else loses,
    )


_REMEDIES = {
    "rebuild": "Stop the kubelet, then repair: a new file is written from the claims that are complete.",
    "cut_trailing_data": "Stop the kubelet, then repair: what follows the document is cut off.",
    "reset_field": "Stop the kubelet, then repair: the field is set to its empty value.",
    "drop_claim": "Stop the kubelet, then repair: the entry is left out.",
    "recompute_checksum": "Compare the claims with the API, stop the kubelet, then repair: the checksum is made anew.",
    "convert": "Stop the kubelet, then convert the file to the release that the node runs.",
    "rename_list_key": "Stop the kubelet, then repair: the list gets the name that kubelets read.",
    "drop_repeats": "Repair when the kubelet is stopped anyway: repeats are left out.",
    "set_empty": "Stop the kubelet, then repair: null becomes an empty set.",
    "drop_pod_reference": "Stop the kubelet, then repair: the reference is left out.",
    "drop_driver": "Stop the kubelet, then repair: the driver without a name is left out.",
    "drop_cdi_device": "Stop the kubelet, then repair for the release that the node runs.",
}


def counted(number: int, noun: str) -> str:
    """A number with its noun in the right form: ``1 claim``, ``2 claims``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def releases_text(releases: t.Sequence[str]) -> str:
    """Some releases as people write them: ``1.27-1.30, 1.35``."""
    runs: list[list[str]] = []
    for release in sorted(releases, key=RELEASES.index):
        if runs and RELEASES.index(release) == RELEASES.index(runs[-1][-1]) + 1:
            runs[-1].append(release)
        else:
            runs.append([release])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
