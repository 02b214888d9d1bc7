# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Going back to the newest good copy of a state file, and saying what that changes."""

from __future__ import annotations

import dataclasses
import typing as t

from . import store
from .backups import Backup, list_backups
from .diagnosis import REFUSED, Diagnosis, diagnose
from .draft import Step
from .entries import Contents, Entry
from .errors import DraError
from .file_errors import StoreError
from .formats import UNIVERSAL
from .planning import Plan, release_for
from .report import claim_report


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A copy that was looked at: why it will not do, or nothing."""

    backup: Backup
    problem: str = ""

    def to_dict(self) -> dict[str, t.Any]:
        """As modules return it."""
        return {"path": self.backup.path, "recorded_at": self.backup.recorded_at, "problem": self.problem}


@dataclasses.dataclass
class Restoration:
    """The plan to restore one copy, and all copies that were considered, newest first.

    ``chosen`` is None where the file is good as it is.
    """

    plan: Plan
    chosen: Backup | None
    candidates: list[Candidate]


def plan_restore(
    path: str,
    data: bytes | None,
    *,
    backup: str | None = None,
    ring: str | None = None,
    target: str | None = None,
) -> Restoration:
    """Restore ``backup``, or the newest copy beside ``path`` or in the directory ``ring`` that will do.

    A file that will do itself is only replaced by a ``backup`` that is named: the newest copy of a good file is often
    the one that was made before it was restored. A file will do if the kubelet of ``target`` (a release or a format;
    any kubelet if None, all of them if ``universal``) starts with it and nothing in it breaks that kubelet later.
    Raises `DraError` when there is no copy, or none that will do, with the reason for each.
    """
    before, problem = _look(data, target)
    if backup is not None:
        chosen, content = _single(backup), store.read_file(backup, follow=True).data
        after, problem = _look(content, target)
        if problem:
            raise DraError(
                f"Backup {backup} is not good: {problem}",
                "Choose another copy, repair this one first, or repair the file itself (state=repaired).",
                backup=backup,
            )
        return Restoration(_plan(data, before, content, after), chosen, [Candidate(chosen)])
    if data is not None and not problem:
        return Restoration(_plan(data, before, data, before), None, [])
    candidates: list[Candidate] = []
    for item in list_backups(path, ring=ring):
        try:
            content = store.read_file(item.path).data
        except StoreError as error:
            candidates.append(Candidate(item, str(error)))
            continue
        after, problem = _look(content, target)
        candidates.append(Candidate(item, problem))
        if not problem:
            return Restoration(_plan(data, before, content, after), item, candidates)
        del content, after  # not two copies at once
    raise DraError(_none_good(path, ring, candidates), "Repair the file itself instead (state=repaired).", path=path)


def _look(data: bytes | None, target: str | None) -> tuple[Contents, str]:
    """What a file says, and why it will not do for a target."""
    for_all = target is not None and target.strip() == UNIVERSAL
    diagnosis = diagnose(data, release=None if for_all else release_for(target))
    return diagnosis.contents, why_not(diagnosis, for_all=for_all)


def _single(path: str) -> Backup:
    return Backup(path=path, origin="copy", recorded_at=0.0, time_in_name=False, counter=0, size=0)


def _none_good(path: str, ring: str | None, candidates: t.Sequence[Candidate]) -> str:
    where = f"beside {path}" + (f" and in {ring}" if ring else "")
    if not candidates:
        return f"There is no copy of the state file {where}."
    reasons = "; ".join(f"{item.backup.path}: {item.problem}" for item in candidates)
    return f"None of the {len(candidates)} copies {where} is good ({reasons})."


def why_not(diagnosis: Diagnosis, *, for_all: bool = False) -> str:
    """Why a content will not do, empty if it will: a kubelet starts with it and nothing in it breaks that one later.

    Which kubelet is meant is the diagnosis' matter; ``for_all``: all of them. Says so of a ring's copies too.
    """
    if diagnosis.status == REFUSED or any(item.severity == "error" for item in diagnosis.faults):
        return next((item.text for item in diagnosis.faults if item.severity == "error"), "no kubelet starts with it")
    return "Not every release reads it." if for_all and not diagnosis.universal else ""


def _plan(data: bytes | None, before: Contents, content: bytes, after: Contents) -> Plan:
    steps = differences(before, after) if data != content else []
    return Plan(data, content, after.format, steps, after.entries, before)


def differences(before: Contents, after: Contents) -> list[Step]:
    """How the claims of two files differ, as the steps from the one to the other. Claims are matched by UID."""
    old = {entry.uid: entry for entry in before.entries}
    new = {entry.uid: entry for entry in after.entries}
    known: dict[str, str] = {}
    steps = [_gone(entry, known) for uid, entry in old.items() if uid not in new]
    for uid, entry in new.items():
        if uid not in old:
            steps.append(Step("add_claim", entry.label, f"Claim {entry.label} comes back from the copy."))
        elif claim_report(entry) != claim_report(old[uid]):
            text = f"Claim {entry.label} goes back to what the copy says."
            steps.append(Step("change_claim", entry.label, text, "what the file says of it now"))
    steps.sort(key=lambda step: (step.action, step.place))
    return steps or [Step("restore", "", "The copy holds the same claims.")]


def _gone(entry: Entry, known: dict[str, str]) -> Step:
    """``known`` holds what was said to be lost, so that it is in memory once."""
    drivers = ", ".join(entry.drivers()) or "(none)"
    loses = f"the claim: its drivers {drivers} are not told to unprepare it"
    label = entry.label
    return Step("drop_claim", label, f"Claim {label} is not in the copy.", known.setdefault(loses, loses))
