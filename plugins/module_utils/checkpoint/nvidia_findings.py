# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What there is to say about a checkpoint of an NVIDIA plugin, and what to do about it."""

from __future__ import annotations

import re
import typing as t

from .findings import Finding, Severity
from .gojson import GoSyntaxError, quote
from .nvidia_layouts import COMPUTE_DOMAIN, GPU, MAIN, V0_4, V25_3, V25_8, V25_12, VERSIONS

if t.TYPE_CHECKING:
    from .driver_files import ChecksumPair, DriverClaim
    from .nvidia import NvidiaReading

_STARTED = "PrepareStarted"
_COMPLETED = "PrepareCompleted"
_ABORTED = "PrepareAborted"
_LISTED = 100

Part = tuple[str, t.Optional[t.Mapping[str, t.Any]]]
"""``v1`` or ``v2``, and its decoded value, None where the file has none."""

_NO_START = "and from 0.4 on the plugin does not even start"
_FIRST = (
    "First stop the plugin's pod on this node, or hold the locks pu.lock and cp.lock beside the file: it rewrites the "
    "file at any prepare and unprepare."
)
_START_EMPTY = (
    f"{_FIRST} Then put back a copy that verifies, or move the file away: the plugin starts with an empty one and no "
    "longer knows the claims listed here, so remove their pods before, and their CDI files and MIG devices after."
)


def unreadable(driver: str, error: GoSyntaxError) -> Finding:
    """The finding for a file that is not one JSON document."""
    what = {"truncated": "ends too early", "trailing_data": "has something after its end"}
    cut = "truncated" if error.cut else error.kind
    return Finding(
        "nvidia_unreadable",
        "error",
        f"offset {error.offset}",
        f"The file {what.get(cut, 'is not JSON')}: {error.go_message}. {driver} can prepare and unprepare no claim "
        f"with it, {_NO_START}.",
        _START_EMPTY,
        {"kind": error.kind, "go_message": error.go_message, "offset": error.offset, "cut": error.cut},
    )


def diagnose(reading: NvidiaReading, part: Part, text: str, boot_id: str, installed: str) -> list[Finding]:
    """Every finding about a file that is JSON.

    ``part`` is what the claims were read from, ``installed`` the version that has to read the file, empty if unknown.
    """
    found = list(_damage(reading))
    found += _skew(reading, text, installed)
    found += _boot(reading, boot_id)
    found += _claim_states(reading)
    if reading.readable_by:
        found += _null_entries(part)
        found += _without_allocation(part)
    return found


def _damage(reading: NvidiaReading) -> t.Iterator[Finding]:
    readers = reading.readable_by
    intact = reading.v1.ok is True and reading.v2.ok is not False
    refused = next((verdict for verdict in reading.verdicts.values() if not verdict.ok), None)
    if not readers and refused is not None and refused.error_class in ("wrong_type", "unparsable"):
        yield Finding(
            "nvidia_wrong_type",
            "error",
            "(document)",
            f"The file is JSON, but a member is not of the type that the plugin stores there: {refused.go_message}. No "
            f"claim can be prepared or unprepared with it, {_NO_START}.",
            _START_EMPTY,
            {"go_message": refused.go_message},
        )
        return
    if not readers and intact and reading.layout:
        yield Finding(
            "nvidia_unknown_version",
            "warning",
            "(document)",
            "The file's checksums match its own members, so it is not damaged, but no version of the plugin that is "
            "known here would write it like that or accept it.",
            "Check that the plugin that runs here is the one that wrote the file; another one may call it corrupted.",
            {"known_versions": list(VERSIONS)},
        )
        return
    newer_reader = any(version != V25_3 for version in readers)
    if not readers and reading.v1.ok is not True:
        yield _checksum("nvidia_checksum_v1", "checksum", "v1", reading, reading.v1, "every version of the plugin")
    if not newer_reader and reading.v2.ok is False:
        yield _checksum("nvidia_checksum_v2", "v2.checksum", "v2", reading, reading.v2, "the plugin from 25.8 on")
    elif readers and not intact:
        yield Finding(
            "nvidia_unknown_field",
            "info",
            "v1" if reading.v1.ok is not True else "v2",
            "The file has members, or spellings of them, that the plugin did not write. It loads the file, since it "
            "hashes what it understood of it, and drops the rest at its next write.",
            "",
            {"readable_by": list(readers)},
        )


def _checksum(code: str, place: str, part: str, reading: NvidiaReading, pair: ChecksumPair, readers: str) -> Finding:
    found = "holds no checksum" if not pair.stored else f"has the checksum {pair.stored}"
    expected = "" if pair.computed is None else f", its {part} gives {pair.computed}"
    uids = [claim.uid for claim in reading.claims]
    return Finding(
        code,
        "error",
        place,
        f"The file {found}{expected}. {readers[0].upper()}{readers[1:]} answers every prepare and unprepare with: "
        f"checkpoint is corrupted, {_NO_START}. The file lists {_count(uids)}, which an empty one would forget.",
        _START_EMPTY,
        {"stored": pair.stored, "computed": pair.computed, "claims": uids[:_LISTED], "claims_total": len(uids)},
    )


def _skew(reading: NvidiaReading, text: str, installed: str) -> t.Iterator[Finding]:
    """An undamaged file that some versions call corrupted."""
    readers = reading.readable_by
    damaged_v2 = reading.v2.ok is False and not any(version != V25_3 for version in readers)
    refusing = [version for version in VERSIONS if version not in readers]
    if not readers or not refusing or damaged_v2:
        return
    reasons = _reasons(reading, text)
    because = {version: reasons.get(version, "it would write the file differently") for version in refusing}
    severity: Severity = "error" if installed in refusing else "info"
    told = "; ".join(f"{version} ({because[version]})" for version in refusing)
    yield Finding(
        "nvidia_version_skew",
        severity,
        "(document)",
        f"The file is undamaged, yet these versions of the plugin call it corrupted: {told}. "
        f"These load it: {', '.join(readers)}.",
        "Run a version of the plugin that loads the file, or drain the node and let the plugin start with an empty "
        "file when it has to change to one that does not.",
        {"refused_by": refusing, "readable_by": list(readers), "reasons": because, "installed": installed},
    )


class _Feature(t.NamedTuple):
    """A trait of a file, the versions that cannot live with it, and why."""

    present: bool
    refusing: tuple[str, ...]
    reason: str


def _reasons(reading: NvidiaReading, text: str) -> dict[str, str]:
    """Version to the traits of the file that make it refuse, as far as they are known."""

    def has(pattern: str) -> bool:
        return re.search(pattern, text) is not None

    gpu = reading.driver == GPU
    names = any(claim.name or claim.namespace for claim in reading.claims)
    features = [
        _Feature(bool(reading.boot_id), (V25_8, V25_12), "it does not know nodeBootID"),
        _Feature(gpu and names, (V25_8,), "it does not know the name and namespace of a claim"),
        _Feature(has(r'"concrete"\s*:\s*\{'), (V25_3, V25_8), "it expects info, not concrete, for a MIG device"),
        _Feature(
            has(r'"mig"\s*:\s*\{\s*"info"'), (V25_12, V0_4, MAIN), "it expects concrete, not info, for a MIG device"
        ),
        _Feature(has(r'"vfio"\s*:\s*\{'), (V25_3, V25_8), "it does not know vfio devices"),
        _Feature(has(r'"mpsControlDaemonID"\s*:\s*""'), (MAIN,), "it leaves out an empty mpsControlDaemonID"),
        _Feature(
            gpu and has(r'"configState"\s*:\s*\{(?![^{}]*"mpsControlDaemonID")'),
            (V25_3, V25_8, V25_12, V0_4),
            "it writes mpsControlDaemonID also when empty",
        ),
        _Feature(has(r'"(?:ShareID|Metadata)"\s*:'), (V25_3, V25_8, V25_12), "it does not know ShareID and Metadata"),
        _Feature(has(r'"timeSliceApplied"\s*:'), (V25_3, V25_8, V25_12), "it does not know timeSliceApplied"),
        _Feature(has(r'"mpsApplied"\s*:'), (V25_3, V25_8, V25_12, V0_4), "it does not know mpsApplied"),
        _Feature(has(r'"abortedAt"\s*:'), (V25_8, V25_12), "it does not know abortedAt"),
    ]
    reasons: dict[str, list[str]] = {}
    for feature in features:
        for version in feature.refusing if feature.present else ():
            reasons.setdefault(version, []).append(feature.reason)
    return {version: ", ".join(why) for version, why in reasons.items()}


def _boot(reading: NvidiaReading, boot_id: str) -> t.Iterator[Finding]:
    if reading.written_in_this_boot is False:
        uids = [claim.uid for claim in reading.claims]
        yield Finding(
            "nvidia_boot_id_differs",
            "warning",
            "v2.nodeBootID",
            f"The file is from before a reboot of the node (boot {reading.boot_id}, now {boot_id.strip()}). The plugin "
            f"from 0.4 on throws it away at start and forgets {_count(uids)}.",
            "Nothing to mend: let the plugin start, and let the kubelet prepare again the claims of pods that run. "
            "What the file records is no longer the state of the devices.",
            {
                "stored": reading.boot_id,
                "current": boot_id.strip(),
                "claims": uids[:_LISTED],
                "claims_total": len(uids),
            },
        )
    elif boot_id and reading.claims and not reading.boot_id:
        yield Finding(
            "nvidia_boot_id_missing",
            "info",
            "v2.nodeBootID",
            "The file does not say in which boot of the node it was written, so claims from before a reboot pass as "
            "prepared although their devices are no longer set up.",
            "After a reboot, compare the claims with the pods that run and with the CDI files.",
        )


def _claim_states(reading: NvidiaReading) -> t.Iterator[Finding]:
    for claim in reading.claims:
        place = f"v2.preparedClaims[{quote(claim.uid)}]"
        facts = {"claim_uid": claim.uid, "name": claim.name, "namespace": claim.namespace, "state": claim.state}
        if claim.state == _STARTED:
            yield _prepare_started(claim, place, facts)
        elif claim.state == _ABORTED and reading.driver == COMPUTE_DOMAIN:
            yield Finding(
                "nvidia_prepare_aborted",
                "info",
                place,
                f"Preparing {_named(claim)} was given up. The plugin from 0.4.1 on keeps the entry for a while so that "
                "a late prepare of the same claim is refused.",
                "",
                facts,
            )
        elif claim.state != _COMPLETED:
            yield Finding(
                "nvidia_unknown_state",
                "warning",
                place,
                f"{_named(claim)} has the state {quote(claim.state)}, which the plugin does not know.",
                "Unprepare the claim through the driver when its pods are gone.",
                facts,
            )


def _prepare_started(claim: DriverClaim, place: str, facts: t.Mapping[str, t.Any]) -> Finding:
    cleaner = (
        "once the API server no longer has that claim"
        if claim.name
        else "never, since the entry does not say which claim of the API server it belongs to"
    )
    return Finding(
        "nvidia_prepare_started",
        "warning",
        place,
        f"Preparing {_named(claim)} was begun and not finished, so its devices may be half set up. The plugin starts "
        f"over when the claim is prepared again; its own cleaner, from 25.8 on, drops the entry {cleaner}.",
        "If no pod uses the claim any more, let the driver unprepare it. Do not mark it as completed by hand.",
        facts,
    )


def _claims_of(part: Part) -> t.Iterator[tuple[str, str, t.Mapping[str, t.Any]]]:
    """UID, place and decoded value of each claim."""
    name, value = part
    for uid, claim in sorted(((value or {}).get("preparedClaims") or {}).items()):
        yield uid, f"{name}.preparedClaims[{quote(uid)}]", claim


def _null_entries(part: Part) -> t.Iterator[Finding]:
    """The pointers that the plugin follows without a look (``PreparedDeviceGroup.GetDevices``)."""
    for uid, place, claim in _claims_of(part):
        for index, group in enumerate(claim["preparedDevices"] or ()):
            where = f"{place}.preparedDevices[{index}]"
            if group is None:
                yield _null_entry(uid, where)
                continue
            for number, prepared in enumerate(group["devices"] or ()):
                entries = [entry for entry in prepared.values() if entry is not None]
                if not entries or entries[0]["device"] is None:
                    yield _null_entry(uid, f"{where}.devices[{number}]")


def _null_entry(uid: str, place: str) -> Finding:
    return Finding(
        "nvidia_null_device",
        "error",
        place,
        f"The claim {uid} has an entry without a device. The plugin loads the file and then ends with a nil pointer "
        "when that claim is prepared again or unprepared.",
        _START_EMPTY,
        {"claim_uid": uid},
    )


def _without_allocation(part: Part) -> t.Iterator[Finding]:
    for uid, place, claim in _claims_of(part):
        if claim["status"]["allocation"] is None:
            yield Finding(
                "nvidia_no_allocation",
                "warning",
                f"{place}.status",
                f"The claim {uid} is recorded without its allocation. The plugin loads the file; from 0.4 on it "
                "follows the allocation of each recorded claim when another one is prepared, and then ends with a nil "
                "pointer.",
                "Let the driver unprepare the claim, with a plugin before 0.4 if need be.",
                {"claim_uid": uid},
            )


def _named(claim: DriverClaim) -> str:
    name = f"{claim.namespace}/{claim.name}" if claim.name else ""
    return f"claim {name} ({claim.uid})" if name else f"claim {claim.uid}"


def _count(uids: t.Sequence[str]) -> str:
    return f"{len(uids)} claim{'' if len(uids) == 1 else 's'}"
