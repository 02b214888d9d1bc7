# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One spec file: read, decoded, checked, and either usable or a list of findings that says why not."""

from __future__ import annotations

import os
import typing as t
from dataclasses import dataclass, field

from ..checkpoint.findings import Finding
from . import codes
from .decoding import NoYamlError, UndecodableError, as_runtimes_read, decode
from .directories import printable, unreadable
from .features import KNOWN_VERSIONS, NEWEST, parse_version, required_version, retired_fields, version_text
from .names import class_problem, device_problem, kind_parts, quoted, vendor_problem
from .reading import Signature, UnreadableFileError, read_file
from .schema import SPEC_SCHEMA
from .validation import Problem, path_text, schema_problems, shown

#: The only endings that runtimes look at.
EXTENSIONS = (".json", ".yaml")

_MAX_PROBLEMS = 20
_EXCERPT = 64 * 1024

Edits = t.Mapping[str, t.Any]


@dataclass(frozen=True)
class SpecDevice:
    """A device of a spec with its own edits."""

    name: str
    edits: Edits
    annotations: t.Mapping[str, str]


@dataclass(frozen=True)
class Spec:
    """A usable spec. ``edits`` apply once to every container that gets any of its devices."""

    path: str
    priority: int
    version: str
    kind: str
    devices: t.Mapping[str, SpecDevice]
    edits: Edits
    annotations: t.Mapping[str, str]

    def qualified(self, device: str) -> str:
        """The qualified name of one of its devices."""
        return f"{self.kind}={device}"


@dataclass(frozen=True)
class SpecFile:
    """A file of a spec directory. ``spec`` is None when runtimes refuse the file or it could not be read.

    ``excerpt`` is the beginning of the text of a refused file: it may still show which devices were meant.
    """

    path: str
    priority: int
    spec: Spec | None
    findings: tuple[Finding, ...] = ()
    excerpt: str = ""
    signature: Signature | None = field(default=None, compare=False)

    @property
    def stem(self) -> str:
        """The file name without its ending."""
        return os.path.splitext(os.path.basename(self.path))[0]


def load_file(path: str, priority: int, allowed: t.Sequence[str]) -> SpecFile | None:
    """Load the spec file at ``path``; None when it vanished meanwhile. Never raises for what the file is or holds.

    ``allowed`` are the real paths of the spec directories, see ``reading.read_file``.
    """
    try:
        content = read_file(path, allowed)
    except UnreadableFileError as error:
        if error.gone:
            return None
        finding = unreadable(path, error.message, error.severity)
        return SpecFile(path, priority, None, (_with_remedy(finding, error.hint),))
    loaded = parse_spec(content.data, path, priority)
    return SpecFile(path, priority, loaded.spec, loaded.findings, loaded.excerpt, content.signature)


def parse_spec(data: bytes, path: str, priority: int = 0) -> SpecFile:
    """What a spec file with these bytes is."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = Problem((), f"is not UTF-8 text: byte {data[error.start]:#04x} at offset {error.start}")
        return _refused(path, priority, [problem], data.decode("utf-8", "replace"))
    try:
        document = decode(text)
    except NoYamlError as error:
        finding = unreadable(path, f"was not checked: {error.message}", "warning")
        return SpecFile(path, priority, None, (_with_remedy(finding, error.hint),), text[:_EXCERPT])
    except UndecodableError as error:
        return _refused(path, priority, [Problem((), f"cannot be loaded: {error.message}")], text)
    document = as_runtimes_read(document, SPEC_SCHEMA)
    problems = document_problems(document)
    if any(problem.fatal for problem in problems):
        return _refused(path, priority, problems, text)
    return SpecFile(path, priority, _build(document, path, priority), tuple(_findings(path, problems)))


def document_problems(document: t.Any) -> list[Problem]:
    """Everything that is wrong with a decoded spec, worst first.

    A version that is newer than any known here is no fault of the file: then unknown fields are expected, and both are
    told as warnings.
    """
    if not isinstance(document, dict):
        what = "is empty" if document is None or document == "" else f"is {shown(document)}"
        return [Problem((), f"{what}, expected an object with cdiVersion, kind and devices")]
    problems = schema_problems(document, SPEC_SCHEMA)
    version_text_found = document.get("cdiVersion")
    version = parse_version(version_text_found) if isinstance(version_text_found, str) else None
    if version is not None and version > NEWEST:
        problems = [Problem(p.path, p.text, fatal=p.rule != "additionalProperties", rule=p.rule) for p in problems]
    if not any(problem.fatal for problem in problems):
        problems += _field_problems(document)
        problems += _version_problems(document)
    return sorted(problems, key=lambda problem: not problem.fatal)


def _version_problems(document: Edits) -> list[Problem]:
    text = document["cdiVersion"]
    version = parse_version(text)
    at = ("cdiVersion",)
    if version is not None and version > NEWEST:
        return [
            Problem(
                at,
                f"is {text}, newer than the newest known here ({version_text(NEWEST)}); not all is checked",
                fatal=False,
            )
        ]
    if version is None or version not in KNOWN_VERSIONS:
        known = ", ".join(map(version_text, KNOWN_VERSIONS))
        return [Problem(at, f"is {quoted(text, 60)}, expected one of {known}")]
    problems = []
    required, feature = required_version(document)
    if required > version:
        problems.append(
            Problem(at, f"is {text}, but {feature} needs at least {version_text(required)}; runtimes refuse the file")
        )
    if version >= (1, 1, 0):
        problems += [Problem(where, f"is not allowed in {text} any more") for where in retired_fields(document)]
    return problems


def _field_problems(document: Edits) -> list[Problem]:
    vendor, class_name = kind_parts(document["kind"])
    problems = []
    reason = vendor_problem(vendor) or class_problem(class_name)
    if reason:
        problems.append(Problem(("kind",), f"is {quoted(document['kind'], 60)}: {reason}"))
    problems += _edit_problems(document.get("containerEdits", {}), ("containerEdits",))
    seen: set[str] = set()
    for index, device in enumerate(document["devices"]):
        at = ("devices", index)
        name = device["name"]
        reason = device_problem(name)
        if reason:
            problems.append(Problem((*at, "name"), f"is {quoted(name, 60)}: {reason}"))
        if name in seen:
            problems.append(Problem((*at, "name"), f"is {quoted(name, 60)} for the second time in this file"))
        seen.add(name)
        edits = device.get("containerEdits", {})
        if not any(edits.get(part) for part in edits if part != "intelRdt") and "intelRdt" not in edits:
            problems.append(Problem((*at, "containerEdits"), f"of device {quoted(name, 60)} has no edits"))
        problems += _edit_problems(edits, (*at, "containerEdits"))
    return problems


def _edit_problems(edits: Edits, at: tuple[t.Any, ...]) -> list[Problem]:
    problems = []
    for index, hook in enumerate(edits.get("hooks", ())):
        where = (*at, "hooks", index)
        if not hook["path"].startswith("/"):
            text = f"is {quoted(hook['path'], 60)}, not an absolute path; OCI runtimes refuse such a hook"
            problems.append(Problem((*where, "path"), text, fatal=False))
        if hook.get("timeout", 1) <= 0:
            text = f"is {hook['timeout']}, not above zero; OCI runtimes refuse such a hook"
            problems.append(Problem((*where, "timeout"), text, fatal=False))
    closid = edits.get("intelRdt", {}).get("closID", "")
    if closid in (".", "..") or "\n" in closid or ("/" in closid and closid != "/"):
        problems.append(Problem((*at, "intelRdt", "closID"), f"is {quoted(closid, 60)}, expected a plain file name"))
    for name in ("hostInterfaceName", "name"):
        seen: set[str] = set()
        for index, device in enumerate(edits.get("netDevices", ())):
            if device[name] in seen:
                text = f"is {quoted(device[name], 60)} for the second time"
                problems.append(Problem((*at, "netDevices", index, name), text))
            seen.add(device[name])
    return problems


def _build(document: Edits, path: str, priority: int) -> Spec:
    return Spec(
        path=path,
        priority=priority,
        version=document["cdiVersion"],
        kind=document["kind"],
        devices={
            device["name"]: SpecDevice(device["name"], device.get("containerEdits", {}), device.get("annotations", {}))
            for device in document["devices"]
        },
        edits=document.get("containerEdits", {}),
        annotations=document.get("annotations", {}),
    )


def _refused(path: str, priority: int, problems: list[Problem], text: str) -> SpecFile:
    return SpecFile(path, priority, None, tuple(_findings(path, problems)), text[:_EXCERPT])


def _findings(path: str, problems: t.Sequence[Problem]) -> t.Iterator[Finding]:
    for problem in problems[:_MAX_PROBLEMS]:
        where = path_text(problem.path)
        subject = f"{where} " if where else ""
        consequence = "; runtimes ignore the whole file" if problem.fatal else ""
        yield Finding(
            codes.INVALID_SPEC,
            "error" if problem.fatal else "warning",
            f"{printable(path)}: {where}" if where else printable(path),
            f"CDI spec {printable(path)}: {subject}{problem.text}{consequence}.",
            "Let the driver that wrote the file write it again (restart it, or prepare the claim again); "
            "correct or move away "
            "a file written by hand."
            if problem.fatal
            else "",
            {"path": printable(path), "field": where, "rule": problem.rule},
        )
    if len(problems) > _MAX_PROBLEMS:
        yield Finding(
            codes.INVALID_SPEC,
            "error" if problems[_MAX_PROBLEMS].fatal else "warning",
            printable(path),
            f"CDI spec {printable(path)} has {len(problems) - _MAX_PROBLEMS} more problems.",
            "",
            {"path": printable(path), "field": "", "rule": ""},
        )


def _with_remedy(finding: Finding, remedy: str) -> Finding:
    if not remedy:
        return finding
    return Finding(finding.code, finding.severity, finding.place, finding.text, remedy, finding.facts)
