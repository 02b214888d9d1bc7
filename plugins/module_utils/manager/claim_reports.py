# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the manager tells of its claims, one by one."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .claim_table import ClaimTable
from .durable_claims import Record
from .failures import Failure


@dataclass(frozen=True)
class ClaimReport:
    """One claim as the manager sees it. ``status``: needs_prepare, planned, prepared or unpreparing."""

    record: Record
    status: str
    drivers_called: tuple[str, ...]
    failures: tuple[Failure, ...]


def claim_reports(table: ClaimTable, failures: t.Iterable[Failure]) -> list[ClaimReport]:
    """Every claim that is recorded, sorted by namespace and name, with those of the failures that are its own."""
    of_claim: dict[str, list[Failure]] = {}
    for failure in failures:
        of_claim.setdefault(failure.claim_uid, []).append(failure)
    reports = []
    for entry in table:
        record = table.record(entry.uid)
        if record is not None:
            mine = tuple(of_claim.get(entry.uid, ()))
            reports.append(ClaimReport(record, entry.status, tuple(sorted(entry.called)), mine))
    return reports
