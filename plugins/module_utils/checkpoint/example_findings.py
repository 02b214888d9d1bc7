# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What there is to say about a checkpoint of dra-example-driver, and what to do about it."""

from __future__ import annotations

import collections
import typing as t

from .driver_files import MISMATCH, ReaderVerdict
from .findings import Finding, Severity
from .gojson import GoSyntaxError

if t.TYPE_CHECKING:
    from .example_driver import ExampleReading

_OLD = "v0.1-v0.2"
_NEW = "v0.3-v0.4"
_LISTED = 100
_REPLACE = (
    "Stop the driver's pod on this node. Put back a copy that reads well, or move the file away: without a file the "
    "driver starts with no claims. Compare with the CDI files what was prepared."
)
_KEEP = (
    "Before the driver changes to a version of the other layout, drain the node so that no claim is prepared, or keep "
    "the version that wrote the file."
)


def diagnose(reading: ExampleReading, error: GoSyntaxError | None) -> list[Finding]:
    """Every finding about a file; ``error`` is why it is not JSON."""
    new = reading.verdicts[_NEW]
    if error is not None:
        return [_empty(error) if new.ok else _unreadable(error, new)]
    found: list[Finding] = []
    if reading.layout == _OLD:
        found.append(_old_layout(reading))
    else:
        found += _new_layout(reading, new)
    if not any(finding.code == "example_wrong_type" for finding in found):
        found += _claim_list(reading)
    return found


def _unreadable(error: GoSyntaxError, new: ReaderVerdict) -> Finding:
    unsure = " From 0.3 on the driver reads it as YAML, which was not tried here." if new.error_class is None else ""
    return Finding(
        "example_unreadable",
        "error",
        f"offset {error.offset}",
        f"The file is not one JSON document: {error.go_message}. With it every prepare fails, and from 0.3 on "
        f"an unprepare overwrites it with an empty list and then ends with a nil pointer.{unsure}",
        _REPLACE,
        {"kind": error.kind, "go_message": error.go_message, "offset": error.offset, "cut": error.cut},
    )


def _empty(error: GoSyntaxError) -> Finding:
    return Finding(
        "example_empty_file",
        "warning",
        "(document)",
        "The file is empty. From 0.3 on the driver takes that for an empty list; 0.1 and 0.2 fail every prepare and "
        f"unprepare with: {error.go_message}. No version writes such a file, so a crash or a full disk left it.",
        _REPLACE,
        {"kind": error.kind, "go_message": error.go_message},
    )


def _old_layout(reading: ExampleReading) -> Finding:
    verdict = reading.verdicts[_OLD]
    uids = [claim.uid for claim in reading.claims]
    facts = {"claims": uids[:_LISTED], "claims_total": len(uids)}
    if verdict.ok:
        severity: Severity = "warning" if uids else "info"
        return Finding(
            "example_old_layout",
            severity,
            "v1",
            "The file has the layout of 0.1 and 0.2. From 0.3 on the driver finds nothing in it and says nothing, so "
            f"an upgrade forgets {_count(uids)}.",
            _KEEP,
            facts,
        )
    if verdict.error_class == MISMATCH:
        pair = reading.checksum
        return Finding(
            "example_checksum",
            "error",
            "checksum",
            f"The file's checksum is {pair.stored}, its v1 gives {pair.computed}. The driver, 0.1 and 0.2, fails every "
            f"prepare and unprepare with: {verdict.go_message}. The file lists {_count(uids)}.",
            _REPLACE,
            {"stored": pair.stored, "computed": pair.computed, **facts},
        )
    return _wrong_type(verdict)


def _wrong_type(verdict: ReaderVerdict) -> Finding:
    return Finding(
        "example_wrong_type",
        "error",
        "(document)",
        f"The file is JSON, but not what the driver stores there: {verdict.go_message}. With it every prepare fails.",
        _REPLACE,
        {"go_message": verdict.go_message},
    )


def _new_layout(reading: ExampleReading, new: ReaderVerdict) -> t.Iterator[Finding]:
    uids = [claim.uid for claim in reading.claims]
    facts = {"claims": uids[:_LISTED], "claims_total": len(uids)}
    if new.error_class == "no_kind":
        yield Finding(
            "example_wrong_kind",
            "error",
            "kind",
            f"The file is of a kind or version that the driver does not know: {new.go_message}. With it every prepare "
            "fails, and an unprepare overwrites it with an empty list.",
            _REPLACE,
            {"go_message": new.go_message, **facts},
        )
    elif not new.ok:
        yield _wrong_type(new)
    elif uids and not new.claims:
        yield Finding(
            "example_no_kind",
            "error",
            "kind",
            "The file does not say of which kind and version it is. The driver loads it without an error and as empty, "
            f"although it lists {_count(uids)}.",
            "Stop the driver's pod, then add kind Checkpoint and apiVersion checkpoint.internal.example.com/v1.",
            facts,
        )
    elif reading.layout:
        yield Finding(
            "example_new_layout",
            "info",
            "(document)",
            "The file has the layout of 0.3 and later. 0.1 and 0.2 fail every prepare and unprepare with: checkpoint "
            "is corrupted.",
            _KEEP,
            facts,
        )
    else:
        yield Finding(
            "example_no_claims",
            "info",
            "(document)",
            "The file holds nothing that any version of the driver writes. From 0.3 on it counts as an empty list; 0.1 "
            "and 0.2 call it corrupted.",
        )
    if reading.misspelt:
        yield Finding(
            "example_key_case",
            "warning",
            reading.misspelt[0],
            f"The key {reading.misspelt[0]} is not spelled preparedClaims. The driver minds the case of keys, so it "
            "does not see the claims under it.",
            "Stop the driver's pod, then correct the spelling.",
            {"keys": list(reading.misspelt[:_LISTED])},
        )


def _claim_list(reading: ExampleReading) -> t.Iterator[Finding]:
    empty = sum(1 for claim in reading.claims if not claim.uid)
    if empty:
        yield Finding(
            "example_empty_uid",
            "warning",
            "preparedClaims",
            f"{empty} entr{'y' if empty == 1 else 'ies'} of the list name{'s' if empty == 1 else ''} no claim. The "
            "driver loads them; nothing ever removes them.",
            "Stop the driver's pod, then take the entries out.",
            {"entries": empty},
        )
    times = collections.Counter(claim.uid for claim in reading.claims if claim.uid)
    for uid, number in sorted(times.items()):
        if number > 1:
            yield Finding(
                "example_duplicate_claim",
                "warning",
                "preparedClaims",
                f"The claim {uid} is listed {number} times. The driver writes each claim once, so the file was edited "
                "or two drivers wrote it.",
                "Stop the driver's pod, make sure that only one runs here, then take the extra entries out.",
                {"claim_uid": uid, "times": number},
            )


def _count(uids: t.Sequence[str]) -> str:
    return f"{len(uids)} claim{'' if len(uids) == 1 else 's'}"
