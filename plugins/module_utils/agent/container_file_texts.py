# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a container needs, as a file for systemd and for podman: names of files and their text. Pure.

Names and devices come from other people's objects and from drivers. A name becomes part of a file name only after every
character that could mean something else was replaced, and a device is written only if it is a qualified CDI name, which
holds no blank, quote, backslash, dollar or percent sign. So neither can add a line, a word or a specifier to a unit.
"""

from __future__ import annotations

import hashlib
import re
import typing as t
from dataclasses import dataclass

from ..cdi.names import is_qualified

Json = t.Mapping[str, t.Any]

MARKER = "# Written by nodeops-dra-agent, which replaces and removes it. Do not edit."
"""The first line of every file that is ours."""
ENV, QUADLET = "env", "quadlet"
SUFFIXES: t.Mapping[str, str] = {ENV: ".env", QUADLET: ".conf"}
"""Format to the ending of its files."""

_KINDS = {"claim": "ResourceClaim", "holder": "holder", "pod": "container of pod"}
_HOLDER = "holder:"
_ODD = re.compile(rb"[^A-Za-z0-9.@:-]")
_ODD_IN_LAST = re.compile(rb"[^A-Za-z0-9.@:_-]")
_STEM_LIMIT = 200
_STEM_KEPT = 160


@dataclass(frozen=True)
class Subject:
    """Who needs devices: a claim, a request of one, a holder that is no pod, or a container of a pod.

    ``stem`` is the name of its files without their ending, ``devices`` are CDI names, each once.
    """

    stem: str
    devices: tuple[str, ...]

    @property
    def refused(self) -> tuple[str, ...]:
        """Devices that are no qualified CDI names. With one of them there is no file: it would lack a device."""
        return tuple(name for name in self.devices if not is_qualified(name))


def stem_of(kind: str, *parts: str) -> str:
    """``kind`` (claim, holder or pod) and names, joined by underscores; always one safe file name.

    Characters other than ASCII letters, digits and ``. @ : -`` become ``+`` and two hex digits for each of their bytes.
    So does an underscore, except in the name of a holder, which is alone. What would be too long ends in a hash.
    """
    odd = _ODD_IN_LAST if len(parts) == 1 else _ODD
    stem = "_".join([kind, *(_escaped(part, odd) for part in parts)])
    if len(stem) <= _STEM_LIMIT:
        return stem
    return f"{stem[:_STEM_KEPT]}++{hashlib.sha256(stem.encode()).hexdigest()[:16]}"


def _escaped(text: str, odd: re.Pattern[bytes]) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return odd.sub(lambda found: b"".join(b"+%02x" % byte for byte in found[0]), data).decode("ascii")


def claim_subjects(claims: t.Iterable[Json]) -> list[Subject]:
    """Claims that can be used, their requests, and holders of nothing but such claims.

    ``claims`` have the fields of `record_report.record_report` and ``status``. One can be used when all its drivers
    have answered in this boot and nobody began to take it back.
    """
    found: list[Subject] = []
    holders: dict[str, dict[str, None] | None] = {}
    for claim in claims:
        usable = claim["prepared"] and claim["status"] != "unpreparing"
        if usable:
            found += _of_claim(claim)
        for holder in (uid[len(_HOLDER) :] for uid in claim["pods"] if uid.startswith(_HOLDER)):
            known = holders.setdefault(holder, {})
            if not usable:
                holders[holder] = None
            elif known is not None:
                known.update(dict.fromkeys(claim["cdi_devices"]))
    found += [Subject(stem_of("holder", name), tuple(all_)) for name, all_ in holders.items() if all_ is not None]
    return found


def _of_claim(claim: Json) -> t.Iterator[Subject]:
    where = (claim["namespace"], claim["name"])
    yield Subject(stem_of("claim", *where), tuple(claim["cdi_devices"]))
    devices = [device for driver in claim["drivers"] for device in driver["devices"] or ()]
    requests = [frozenset(name.partition("/")[0] for name in device["requests"]) for device in devices]
    for request in sorted(set().union(*requests)):
        mine = [device["cdi_devices"] for device, names in zip(devices, requests) if not names or request in names]
        yield Subject(stem_of("claim", *where, request), tuple(dict.fromkeys(name for names in mine for name in names)))


def text_of(subject: Subject, form: str) -> str:
    """The file of a subject with qualified devices: variables for systemd, or lines for a quadlet."""
    kind, _under, rest = subject.stem.partition("_")
    lines = [MARKER, f"# {_KINDS[kind]}: {rest.replace('_', '/') if kind != 'holder' else rest}"]
    if form == QUADLET:
        lines += ["[Container]", *(f"AddDevice={name}" for name in subject.devices)]
    else:
        lines += [
            f'NODEOPS_DRA_DEVICES="{" ".join(subject.devices)}"',
            f'NODEOPS_DRA_ARGUMENTS="{" ".join(f"--device={name}" for name in subject.devices)}"',
        ]
    return "\n".join(lines) + "\n"


def files_of(subjects: t.Iterable[Subject]) -> dict[str, bytes]:
    """File name to content, in every format. Subjects with a refused device have none."""
    usable = [subject for subject in subjects if not subject.refused]
    return {one.stem + end: text_of(one, form).encode() for one in usable for form, end in SUFFIXES.items()}


def is_our_name(name: str) -> bool:
    """Whether a file could be one of a subject."""
    return name.startswith(tuple(f"{kind}_" for kind in _KINDS)) and name.endswith(tuple(SUFFIXES.values()))
