# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Why a CDI name does not resolve, told so that a person knows what to do."""

from __future__ import annotations

import re
import typing as t

from ..checkpoint.findings import Finding
from . import codes
from .directories import SpecDirectory, printable
from .names import InvalidNameError, parse_name, quoted
from .spec import SpecFile

_TELLING = 8


class Specs(t.Protocol):
    """What is needed of a registry."""

    directories: tuple[SpecDirectory, ...]
    files: tuple[SpecFile, ...]
    conflicts: dict[str, list[str]]


def explain_unresolved(specs: Specs, name: str, claims: t.Sequence[str], near_misses: t.Sequence[str]) -> Finding:
    """The finding for one name that does not resolve, needed by ``claims``; ``near_misses`` are names that exist."""
    whose = f" of claim {', '.join(claims)}" if claims else ""
    where = [printable(directory.path) for directory in specs.directories]
    facts: dict[str, t.Any] = {
        "device": name if name.isprintable() else quoted(name)[1:-1],
        "claims": list(claims),
        "directories": where,
        "conflicts": [],
        "broken_files": [],
        "near_misses": list(near_misses),
    }
    place = f"claim {claims[0]}" if claims else facts["device"]
    try:
        parsed = parse_name(name)
    except InvalidNameError as error:
        return Finding(codes.INVALID_NAME, "error", place, f"CDI device{whose}: {error.message}", error.hint, {**facts})
    start = f"CDI device {name}{whose} cannot be resolved: "
    if name in specs.conflicts:
        facts["conflicts"] = [printable(path) for path in dict.fromkeys(specs.conflicts[name])]
        text = f"{start}{' and '.join(facts['conflicts'])} both define it with equal priority."
        return Finding(codes.UNRESOLVED, "error", place, text, "Move away the file that does not belong there.", facts)
    suspects = [file for file in specs.files if file.spec is None and _may_define(file, parsed.kind, name, claims)]
    if suspects:
        facts["broken_files"] = [printable(file.path) for file in suspects]
        causes = " ".join(file.findings[0].text for file in suspects[:3] if file.findings)
        # What only this Python cannot read may be fine for the runtime.
        unchecked = all(f.severity == "warning" for file in suspects for f in file.findings)
        verdict = "could not be checked" if unchecked else "is refused"
        text = f"{start}no usable spec defines it, and a file that may do so {verdict}. {causes}"
        remedy = next((f.remedy for file in suspects for f in file.findings), "")
        return Finding(codes.UNRESOLVED, "warning" if unchecked else "error", place, text, remedy, facts)
    known = f" Defined are {', '.join(facts['near_misses'])}." if facts["near_misses"] else ""
    return Finding(
        codes.UNRESOLVED,
        "error",
        place,
        f"{start}no spec in {', '.join(where) or 'any directory'} defines it.{known}",
        "Prepare the claim again, so that the driver writes its spec anew (specs are lost on every reboot); if "
        "it comes back "
        "empty, compare the driver's CDI directory with the runtime's.",
        facts,
    )


def _may_define(file: SpecFile, kind: str, name: str, claims: t.Sequence[str]) -> bool:
    """Whether a refused file may have been meant to define the name: by its own name, or by its text."""
    vendor, _slash, class_name = kind.partition("/")
    device = name.partition("=")[2]
    if any(_mentions(file.stem, claim) for claim in claims):
        return True
    if re.match(rf"{re.escape(vendor)}[-_]{re.escape(class_name)}(?![A-Za-z0-9])", file.stem):
        return True
    # Short device names such as "0" stand in any text.
    return _mentions(file.excerpt, kind) or (len(device) >= _TELLING and _mentions(file.excerpt, device))


def _mentions(text: str, word: str) -> bool:
    return bool(word) and re.search(rf"(?<![A-Za-z0-9.-]){re.escape(word)}(?![A-Za-z0-9./])", text) is not None
