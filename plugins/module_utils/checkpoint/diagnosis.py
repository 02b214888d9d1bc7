# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One look at a state file: what it is, who can read it, every fault, and what can be saved."""

from __future__ import annotations

import dataclasses
import typing as t

from . import claim_checks, file_checks, salvage, startup
from .document import Document, Reading
from .entries import Contents, Entry, EntryList
from .faults import ALL_THAT_IS_CUT, Fault, counted, fault, releases_text
from .formats import (
    CRC,
    CRC_1_31,
    CRC_1_35,
    FNV,
    FNV_1_27,
    FNV_1_28,
    FNV_1_30,
    FORMATS,
    RELEASES,
    RICHEST,
    Format,
    format_for,
)
from .gojson import encode_text
from .gotypes import fold

SOUND = "sound"
FAULTY = "faulty"
REFUSED = "refused"


@dataclasses.dataclass
class Diagnosis:
    """What a look at one file found.

    ``document`` is the file as it is, None for a file that is not there. ``base`` is what can be edited in place: the
    document itself, or the sound part of a file that has something before or behind it; None where nothing parses.
    ``family`` and ``format`` are None where the bytes do not tell. ``found`` holds the claims of ``base``; where there
    are none to edit, ``saved`` holds those that a search for whole claims brought up. ``faults`` come in a fixed
    order: the file, its members, its claims.
    """

    document: Document | None
    release: str | None = None
    base: Document | None = None
    family: str | None = None
    format: Format | None = None
    found: EntryList | None = None
    saved: salvage.Salvage | None = None
    faults: list[Fault] = dataclasses.field(default_factory=list)
    _starts: dict[str, startup.Start] = dataclasses.field(default_factory=dict, repr=False)

    @property
    def verdicts(self) -> dict[str, str]:
        """Release to what its kubelet says; a missing file is read as an empty one."""
        if self.document is None:
            return dict.fromkeys(RELEASES, "ok:0")
        return self.document.verdicts()

    def starts(self) -> dict[str, startup.Start]:
        """Release to how its kubelet comes up with this file."""
        if self.document is None:
            return dict.fromkeys(RELEASES, startup.Start(startup.STARTS, 0))
        if not self._starts:
            known: dict[int, startup.Start] = {}
            for form in FORMATS:
                reading = self.document.read_as(form)
                key = id(reading.claims) if reading.ok else id(reading)
                if key not in known:  # releases that read the very same claims come up the same way
                    known[key] = startup.start_with(reading)
                self._starts.update(dict.fromkeys(form.releases, known[key]))
        return self._starts

    @property
    def universal(self) -> bool:
        """Whether all releases start with the file and then know all its claims."""
        starts = {(start.outcome, start.claims) for start in self.starts().values()}
        return self.document is not None and starts == {(startup.STARTS, len(self.entries))}

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases that matter: the one asked for, else those that write this format, else all."""
        if self.release is not None:
            return (self.release,)
        return self.format.releases if self.format is not None else RELEASES

    @property
    def status(self) -> str:
        """``refused`` if a kubelet that matters does not start with this file, ``faulty`` if it starts but the file
        has faults worth mending, else ``sound``."""
        starts = self.starts()
        if any(starts[release].outcome != startup.STARTS for release in self.releases):
            return REFUSED
        return FAULTY if any(item.severity != "info" for item in self.faults) else SOUND

    def reading(self) -> Reading | None:
        """How a kubelet of the file's own format reads it."""
        if self.document is None or self.format is None:
            return None
        return self.document.read_as(self.format)

    @property
    def entries(self) -> list[Entry]:
        """The claims that the file holds, or that can be saved from it."""
        if self.found is not None:
            return self.found.entries
        return [item.entry for item in self.saved.saved] if self.saved is not None else []

    @property
    def contents(self) -> Contents:
        """What is left to know when the file itself is not needed any more: what it says."""
        return Contents(self.format.name if self.format is not None else "", self.entries)


def diagnose(
    data: bytes | None,
    *,
    release: str | None = None,
    known_pods: t.Collection[str] | None = None,
) -> Diagnosis:
    """Look at the bytes of a ``dra_manager_state``, or at None for a file that is not there.

    ``release`` (``1.31``, one of `RELEASES`) is the kubelet that the node runs: what only other releases mind is then
    no fault. ``known_pods`` are the UIDs of the pods that exist, None if nobody knows. Never raises for what the bytes
    hold.
    """
    if data is None:
        missing = fault("missing_file", "", "There is no state file.")
        return Diagnosis(None, release, faults=[missing])
    document = Document(data)
    diagnosis = Diagnosis(document, release)
    diagnosis.faults = file_checks.check_bytes(document)
    diagnosis.base = document if document.error is None else _sound_part(document)
    _distrust_an_early_end(diagnosis)
    if diagnosis.base is None:
        _search_whole(diagnosis, file_checks.utf16_text(data) or document.text)
    else:
        _diagnose_document(diagnosis, diagnosis.base, known_pods)
    if release is not None:
        diagnosis.faults = _for_release(diagnosis, release)
    return diagnosis


def _search_whole(diagnosis: Diagnosis, text: str) -> None:
    """Look for whole claims where there is no document to read them from, and for the family of what is left."""
    diagnosis.saved = salvage.search(text)
    diagnosis.family = diagnosis.saved.family if diagnosis.saved.saved else salvage.family_hint(text)


def _sound_part(document: Document) -> Document | None:
    """The document inside a file that has a byte order mark before it or something else behind it."""
    data = document.data
    if data.startswith(file_checks.BYTE_ORDER_MARK):
        inner = Document(data, start=len(file_checks.BYTE_ORDER_MARK))
        return inner if inner.error is None else None
    if document.error is not None and document.error.kind == "trailing_data":
        return Document(data, end=len(encode_text(document.text[: document.error.offset])))
    return None


def _distrust_an_early_end(diagnosis: Diagnosis) -> None:
    """Search the whole file where its document was closed by chance: lost bytes can leave brackets that happen to fit.

    Kubelets write the checksum last, so a document that has none was not meant to end there. Whole claims behind it
    are then its own, unless one of them is in the document as well: that is the rest of an older file.
    """
    base = diagnosis.base
    if base is None or "checksum" in {fold(key) for key, _unused in base.outer.root.members()}:
        return
    for number, item in enumerate(diagnosis.faults):
        if item.code == "trailing_data" and 0 < item.facts["claims_in_rest"] == item.facts["claims_only_in_rest"]:
            diagnosis.base = None
            again = fault(item.code, item.place, item.text, item.facts, repair="rebuild", loses=ALL_THAT_IS_CUT)
            diagnosis.faults[number] = again


def _diagnose_document(diagnosis: Diagnosis, document: Document, known_pods: t.Collection[str] | None) -> None:
    faults = diagnosis.faults
    family = diagnosis.family = family_of(document)
    if family is None:
        faults.append(fault("unknown_format", "", "The file is JSON, but none of its members belongs to a state file."))
        _search_whole(diagnosis, document.text)
        return
    faults += file_checks.check_members(document, family)
    if family == CRC:
        faults += file_checks.check_inner_text(document)
    faults += file_checks.check_types(document, family)
    faults += file_checks.check_checksum(document, family)
    found = EntryList(document, family)
    diagnosis.format = format_of(document, family, found)
    misplaced = salvage.search(document.text) if not found.entries else None
    if found.part.error is not None or _list_lost(document, found):
        diagnosis.saved = misplaced
    elif misplaced is not None and misplaced.saved:
        count = len(misplaced.saved)
        text = f"{counted(count, 'claim')} {'stands' if count == 1 else 'stand'} where no kubelet looks for claims."
        faults.append(fault("misplaced_claims", "", text, {"claims": count}))
        diagnosis.saved = misplaced
    else:
        if _is_foreign(document):
            text = "The file is a JSON object, but none of its members belongs to a state file."
            faults.append(fault("unknown_format", "", text, loses="all that is in the file"))
        diagnosis.found = found
        faults += claim_checks.check_claims(found, known_pods)


def _list_lost(document: Document, found: EntryList) -> bool:
    """Whether the list of claims is not where a kubelet looks for it: of another type, or under another name."""
    list_key = RICHEST[found.family].list_key
    faults = list(found.faults) + (document.outer_faults if found.family == CRC else [])
    if {"", "Data", list_key} & {item.path for item in faults}:
        return True
    keys = {fold(key) for key, _unused in found.part.root.members()}
    return found.family == CRC and "entries" in keys and fold(list_key) not in keys


def _is_foreign(document: Document) -> bool:
    """Whether the file is an object with members, none of which any kubelet reads."""
    keys = {fold(key) for key, _unused in document.outer.root.members()}
    return bool(keys) and not keys & {"data", "checksum", "entries", "version"}


def family_of(document: Document) -> str | None:
    """Which family a JSON document belongs to; a file for both families counts as ``crc``, the newer one."""
    root = document.outer.root
    if root.kind != "object":
        return CRC if root.kind == "null" else None
    keys = {fold(key) for key, _unused in root.members()}
    if "data" in keys:
        return CRC
    if keys & {"entries", "version"} or document.read_as(FNV_1_27).ok:
        return FNV
    if document.read_as(CRC_1_31).ok or not keys or "checksum" in keys:
        return CRC
    return None


def format_of(document: Document, family: str, found: EntryList) -> Format:
    """The format of a file: the one whose checksum fits, and among those the oldest that holds all its fields."""
    readings = [document.read_as(form) for form in FORMATS if form.family == family]
    own = [reading.format for reading in readings if reading.ok and not reading.fallback]
    fitting = own or [reading.format for reading in readings if reading.ok]
    needed = _needed_format(family, found)
    later = [form for form in fitting if FORMATS.index(form) >= FORMATS.index(needed)]
    if family == CRC:
        return (later or [needed])[0]  # the checksum fits all formats of this family, only the fields tell
    return (later or fitting or [needed])[0]


def _needed_format(family: str, found: EntryList) -> Format:
    if family == CRC:
        return CRC_1_35 if '"ShareID"' in found.part.text else CRC_1_31
    odd = (entry for entry in found.entries if not entry.well_formed)
    handles = (handle for entry in odd for handle in entry.fields["ResourceHandles"] or ())
    if any(handle.get("structuredData") is not None for handle in handles):
        return FNV_1_30
    return FNV_1_28 if any("ResourceHandles" in entry.text for entry in found.entries) else FNV_1_27


def _for_release(diagnosis: Diagnosis, release: str) -> list[Fault]:
    """The faults as the node's own kubelet minds them, and one more if the file was made for another release."""
    verdicts = diagnosis.verdicts
    if verdicts[release].startswith("ok:"):
        return [*_passed_over(diagnosis, release), *(item for item in diagnosis.faults if _concerns(item, release))]
    if diagnosis.format is None or release in diagnosis.format.releases:
        return diagnosis.faults
    good = [name for name, verdict in verdicts.items() if verdict.startswith("ok:")]
    if not good and format_for(release).family == diagnosis.family:
        return diagnosis.faults  # read by nobody as it is, so nothing tells that it was not made for this release
    good = good or list(diagnosis.format.releases)
    text = f"The file is for Kubernetes {releases_text(good)}; the kubelet of {release} does not read it."
    effects = {release: f"does not start ({verdicts[release]})"}
    facts = {"written_for": good, "release": release}
    return [fault("other_release", "", text, facts, effects=effects), *diagnosis.faults]


def _passed_over(diagnosis: Diagnosis, release: str) -> list[Fault]:
    """Claims that a kubelet of the other family does not see: it takes a file without a checksum for an empty one."""
    loaded, there = int(diagnosis.verdicts[release][3:]), len(diagnosis.entries)
    if diagnosis.format is None or diagnosis.family == format_for(release).family or loaded >= there:
        return []
    written_for = releases_text(diagnosis.format.releases)
    claims = counted(there, "claim")
    text = f"The file is for Kubernetes {written_for}; the kubelet of {release} loads {loaded} of its {claims}."
    effects = {release: "starts, and never unprepares the claims that it does not see"}
    facts = {"written_for": list(diagnosis.format.releases), "release": release, "loaded": loaded, "claims": there}
    return [fault("other_release", "", text, facts, effects=effects)]


def _concerns(item: Fault, release: str) -> bool:
    """Whether a fault matters to a release: one that only other releases mind does not."""
    if item.severity == "info" or "all releases" in item.effects:
        return True
    return any(release in expand(releases) for releases in item.effects)


def expand(text: str) -> set[str]:
    """The releases of a text such as ``1.27-1.30``, ``1.31 and later`` or ``1.28, 1.30``."""
    chosen: set[str] = set()
    for part in text.split(", "):
        first, _unused, last = part.replace(" and later", f"-{RELEASES[-1]}").partition("-")
        chosen.update(RELEASES[RELEASES.index(first) : RELEASES.index(last or first) + 1])
    return chosen
