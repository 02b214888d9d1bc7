# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""From a diagnosis to the bytes that shall be on disk: repair and conversion, planned in full before anything moves."""

from __future__ import annotations

import dataclasses
import typing as t

from . import conversion, mending, startup, universal
from .diagnosis import REFUSED, Diagnosis, diagnose
from .draft import Draft, Step
from .entries import NOTHING, Contents, Entry
from .errors import DraError
from .faults import releases_text
from .formats import CRC, FNV, FNV_1_27, NEWEST, RELEASES, RICHEST, UNIVERSAL, Format, format_for, release_of
from .selection import Selection

_PASSES = 3
"""Mending for a release, converting to it, and mending what only that release minds."""


@dataclasses.dataclass
class Plan:
    """What will be on disk. ``after`` equals ``before`` when there is nothing to do; None stands for no file.

    ``former`` is what the file says before; ``entries`` are the claims in ``after``.
    """

    before: bytes | None
    after: bytes | None
    target: str
    steps: list[Step] = dataclasses.field(default_factory=list)
    entries: list[Entry] = dataclasses.field(default_factory=list)
    former: Contents = NOTHING

    @property
    def changed(self) -> bool:
        """Whether anything would be written."""
        return self.before != self.after

    @property
    def lost(self) -> list[Step]:
        """The steps that lose something."""
        return [step for step in self.steps if step.loses]


def known_release(version: str | None) -> str | None:
    """The release whose rules apply to a kubelet: its own, or the newest one known for what is newer still."""
    if version is None:
        return None
    release = release_of(version)
    format_for(release)  # raises for releases that keep no state file
    return release if release in RELEASES else RELEASES[-1]


def plan_repair(
    data: bytes | None,
    *,
    target: str | None = None,
    known_pods: t.Collection[str] | None = None,
    selection: Selection | None = None,
    diagnosis: Diagnosis | None = None,
) -> Plan:
    """Mend what a diagnosis proposes, for the release or format ``target`` (by default the file's own).

    ``diagnosis`` is that of the same bytes for the same release and pods, if it is there already.

    Raises `DraError` when the result would not be read by the kubelets it is for.
    """
    selection = selection or Selection()
    if target is not None and target.strip() == UNIVERSAL:
        return _plan_universal(data, diagnose(data, known_pods=known_pods), known_pods, selection)
    form = format_for(target) if target else None
    release = release_for(target)
    diagnosis = diagnosis or diagnose(data, release=release, known_pods=known_pods)
    if data is None and not selection.add:
        return Plan(None, None, str(form or ""))
    if not selection and not _to_mend(diagnosis):
        return _unchanged(data, diagnosis, _written_as(diagnosis, form))
    if form is None and diagnosis.universal:
        return _plan_universal(data, diagnosis, known_pods, selection)  # what serves all releases goes on to do so
    draft = mending.mend(diagnosis, (form or NEWEST).family)
    selection.apply(draft)
    former, own = diagnosis.contents, _own_format(diagnosis)
    del diagnosis  # the faults of a large file are large as well
    return _settle(data, draft, former, form, own, release)


def _to_mend(diagnosis: Diagnosis) -> bool:
    return any(item.repair for item in diagnosis.faults)


def _unchanged(data: bytes | None, diagnosis: Diagnosis, target: str) -> Plan:
    return Plan(data, data, target, [], diagnosis.entries, diagnosis.contents)


def release_for(target: str | None) -> str | None:
    """The release to judge a file by: the one named, or the newest that writes the format that was named."""
    if not target:
        return None
    form = format_for(target)
    return form.releases[-1] if target.strip() == form.name else known_release(target)


def _written_as(diagnosis: Diagnosis, form: Format | None) -> str:
    """What a file is called that ``form`` was wanted for: an empty classic file is the same in three formats."""
    if diagnosis.universal:
        return UNIVERSAL
    if form is not None and (form.family == FNV or diagnosis.format is None):
        return form.name
    return diagnosis.format.name if diagnosis.format is not None else ""


def _settle(
    data: bytes | None, draft: Draft, former: Contents, form: Format | None, own: Format | None, release: str | None
) -> Plan:
    """Render a mended draft; mend again what only shows in the new form, until nothing is left to mend."""
    again = diagnose(_render(draft, form, own), release=release)
    for _unused in range(_PASSES):
        if not _to_mend(again):
            break
        draft = _mend_again(draft, again, draft.family)
        again = diagnose(_render(draft, form, _own_format(again)), release=release)
    if draft.source is not None and again.status == REFUSED:
        draft.source = None  # what surrounds the claims is past mending: write it anew
        again = diagnose(_render(draft, form, own), release=release)
    _verify(again, len(draft.entries), form or again.format)
    return _planned(data, former, again, _written_as(again, form), draft.steps)


def _mend_again(draft: Draft, again: Diagnosis, family: str) -> Draft:
    mended = mending.mend(again, family)
    return dataclasses.replace(mended, steps=draft.steps + mended.steps)


def _planned(data: bytes | None, former: Contents, outcome: Diagnosis, target: str, steps: list[Step]) -> Plan:
    """The plan to write what was looked at as ``outcome``: its claims are those that were read again."""
    after = outcome.document.data if outcome.document is not None else None
    return Plan(data, after, target, steps if after != data else [], outcome.entries, former)


def _own_format(diagnosis: Diagnosis) -> Format | None:
    """The format that a file keeps when it is mended for no other; None where nobody can tell who will read it."""
    reading = diagnosis.reading()
    if diagnosis.family != FNV:
        return (diagnosis.format or NEWEST) if diagnosis.family == CRC else None
    return reading.format if reading is not None and reading.ok else FNV_1_27


def _render(draft: Draft, form: Format | None, own: Format | None) -> bytes:
    if form is not None and form.family == draft.family == CRC:
        return draft.render(form)  # these formats are read by one another's kubelets as they are
    if form is not None:
        draft_for = conversion.convert(draft, form)
        draft.entries, draft.family, draft.source = draft_for.entries, draft_for.family, draft_for.source
        return draft_for.render(form)
    if own is None and draft.source is None and not draft.entries:
        return universal.render([])  # nobody can tell which kubelet will read it
    if own is not None and own.family == draft.family:
        return draft.render(own)
    return draft.render(NEWEST if draft.family == CRC else FNV_1_27)


def plan_convert(
    data: bytes | None,
    target: str,
    *,
    selection: Selection | None = None,
) -> Plan:
    """Carry a sound file to the release or format ``target``, or make it ``universal``.

    Raises `DraError` when no release reads the file as it is, and when the target's kubelets would not start with the
    result.
    """
    selection = selection or Selection()
    universal_file = target.strip() == UNIVERSAL
    form = NEWEST if universal_file else format_for(target)
    if data is None:
        plan = plan_repair(None, target=target, selection=selection)
        return plan if selection.add else Plan(None, None, UNIVERSAL if universal_file else form.name)
    diagnosis = diagnose(data)
    if not any(verdict.startswith("ok:") for verdict in diagnosis.verdicts.values()):
        first = diagnosis.faults[0]
        raise DraError(
            f"The file cannot be converted: no release reads it ({first.text})",
            "Repair it first: state=repaired with the same target_version does both.",
            code=first.code,
        )
    if universal_file:
        return _plan_universal(data, diagnosis, None, selection)
    draft = Draft(diagnosis.family or form.family, list(diagnosis.entries), diagnosis.found, diagnosis.base)
    selection.apply(draft)
    if not selection and diagnosis.format is form and document_fits(diagnosis, form):
        _verify(diagnosis, len(draft.entries), form)
        return _unchanged(data, diagnosis, form.name)
    converted = conversion.convert(draft, form)
    if not converted.steps and diagnosis.format is not form:
        converted.did("convert", "", f"The file is written for Kubernetes {releases_text(form.releases)}.")
    after, former, steps, planned = converted.render(form), diagnosis.contents, converted.steps, len(converted.entries)
    del diagnosis, draft, converted  # the texts of converted claims are as large as the file
    outcome = diagnose(after)
    _verify(outcome, planned, form)
    return _planned(data, former, outcome, form.name, steps)


def document_fits(diagnosis: Diagnosis, form: Format) -> bool:
    """Whether a file is of a format already, down to the checksum that its own kubelets compute."""
    reading = diagnosis.document.read_as(form) if diagnosis.document is not None else None
    return reading is not None and reading.ok and not reading.fallback


def _plan_universal(
    data: bytes | None, diagnosis: Diagnosis, known_pods: t.Collection[str] | None, selection: Selection
) -> Plan:
    if data is None and not selection.add:
        return Plan(None, None, UNIVERSAL)
    if diagnosis.universal and not selection and not _to_mend(diagnosis):
        return _unchanged(data, diagnosis, UNIVERSAL)
    draft = mending.mend(diagnosis, CRC)
    selection.apply(draft)
    for _unused in range(_PASSES):
        again = diagnose(draft.render(RICHEST[draft.family]), known_pods=known_pods)
        if not _to_mend(again):
            break
        draft = _mend_again(draft, again, CRC)
    del again
    outcome = diagnose(universal.render(draft.entries))
    bad = [release for release, start in outcome.starts().items() if start.outcome != startup.STARTS]
    if bad:
        raise DraError(
            f"No file serves all releases: with these claims kubelets of {releases_text(bad)} do not start.",
            "Convert to one release instead, or repair for the oldest release first.",
            releases=bad,
        )
    conversion.note_fields_of_the_file(draft)
    draft.did("convert", "", "The file is written so that every release from 1.27 on reads it.")
    return _planned(data, diagnosis.contents, outcome, UNIVERSAL, draft.steps)


def _verify(outcome: Diagnosis, planned: int, form: Format | None) -> None:
    """Refuse a result that the kubelets it is for would refuse, or that lost a claim on the way."""
    releases = form.releases if form is not None else outcome.releases
    if any(outcome.starts()[release].outcome != startup.STARTS for release in releases):
        data = outcome.document.data if outcome.document is not None else None
        faults = diagnose(data, release=releases[-1]).faults
        reason = next((item.text for item in faults if item.severity == "error"), outcome.status)
        raise DraError(
            f"The result would not serve kubelets of {releases_text(releases)}: {reason}",
            "Repair for that release (state=repaired, target_version), which leaves out what it refuses.",
            target=form.name if form is not None else UNIVERSAL,
        )
    if len(outcome.entries) != planned:
        raise DraError(
            f"The result would hold {len(outcome.entries)} claims where {planned} were planned.",
            "Please report this with the file; it was not changed.",
        )
