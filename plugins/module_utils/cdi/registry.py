# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""All specs of all directories: which device is defined where, what is in the way, and why a name does not resolve."""

from __future__ import annotations

import difflib
import os
import stat
import typing as t
from dataclasses import dataclass

from ..checkpoint.errors import DraError
from ..checkpoint.findings import Finding
from . import codes
from .claims import ClaimFile, claim_files, orphan_findings
from .directories import SpecDirectory, directory_findings, printable, spec_directories
from .edits import ContainerEdits, merge_edits
from .reading import signature_of
from .spec import EXTENSIONS, Spec, SpecDevice, SpecFile, load_file
from .unresolved import explain_unresolved

#: Files that were loaded before, by path; handed in again they are only read where they changed.
FileCache = dict[str, SpecFile]

_MAX_COMPARED = 2000
_MAX_EXPLAINED = 20


@dataclass(frozen=True)
class Device:
    """A device that resolves, with the spec that defines it."""

    name: str
    spec: Spec
    device: SpecDevice


class UnresolvedDevicesError(DraError):
    """Devices that a container asks for do not resolve. Facts: ``unresolved`` (names), ``directories``."""


class Registry:
    """The content of the spec directories at one moment.

    ``files`` in order of priority and name, ``devices`` by qualified name, ``findings`` about files and directories. A
    file that is refused, or a device that conflicts, is in ``files`` but not in ``devices``, as for container runtimes.
    """

    def __init__(self, directories: tuple[SpecDirectory, ...], files: tuple[SpecFile, ...], extra: t.Iterable[Finding]):
        self.directories = directories
        self.files = files
        self.devices: dict[str, Device] = {}
        #: Qualified name to the paths of equal priority that define it.
        self.conflicts: dict[str, list[str]] = {}
        shadowed: dict[tuple[str, str], list[tuple[str, bool]]] = {}
        for file in files:
            if file.spec is not None:
                self._add(file.spec, shadowed)
        for name in self.conflicts:
            del self.devices[name]
        self.findings = [*extra, *(finding for file in files for finding in file.findings)]
        self.findings += self._conflict_findings()
        self.findings += [_shadow_finding(low, high, names) for (low, high), names in sorted(shadowed.items())]
        self.findings.sort(key=lambda finding: (finding.place, finding.code))

    @classmethod
    def load(cls, directories: t.Iterable[str] | None = None, cache: FileCache | None = None) -> Registry:
        """Read the directories (runtimes' defaults when None). Only a relative directory raises (``DraError``).

        ``cache`` is filled and used: files with an unchanged status are not read again.
        """
        known = spec_directories(directories)
        allowed = [directory.real_path for directory in known]
        files: list[SpecFile] = []
        findings: list[Finding] = []
        fresh: FileCache = {}
        for directory in known:
            findings += directory_findings(directory.path)
            for path in _spec_paths(directory, findings):
                file = cached_file(path, directory.priority, cache) or load_file(path, directory.priority, allowed)
                if file is not None:
                    files.append(file)
                    fresh[path] = file
        if cache is not None:
            cache.clear()
            cache.update(fresh)
        return cls(known, tuple(files), findings)

    def _add(self, spec: Spec, shadowed: dict[tuple[str, str], list[tuple[str, bool]]]) -> None:
        for device in spec.devices.values():
            name = spec.qualified(device.name)
            other = self.devices.get(name)
            if other is None:
                self.devices[name] = Device(name, spec, device)
            elif other.spec.priority == spec.priority:
                # Runtimes drop such a name for good, even where a directory of higher priority defines it once more.
                self.conflicts.setdefault(name, [other.spec.path]).append(spec.path)
            else:
                same = (other.device.edits, other.spec.edits) == (device.edits, spec.edits)
                shadowed.setdefault((other.spec.path, spec.path), []).append((name, same))
                self.devices[name] = Device(name, spec, device)

    def _conflict_findings(self) -> t.Iterator[Finding]:
        by_files: dict[tuple[str, ...], list[str]] = {}
        for name, paths in self.conflicts.items():
            by_files.setdefault(tuple(dict.fromkeys(paths)), []).append(name)
        for files, names in by_files.items():
            shown = [printable(path) for path in files]
            yield Finding(
                codes.CONFLICT,
                "error",
                shown[-1],
                f"{_some(names)} {'is' if len(names) == 1 else 'are'} defined by {' and by '.join(shown)}, "
                "which have the same "
                "priority: runtimes offer none of them.",
                "Move away the file that does not belong there; often it was left by an older driver or "
                "written by hand.",
                {"devices": sorted(names), "paths": shown},
            )

    # Questions

    def resolve(self, name: str) -> Device | None:
        """The device of that qualified name, None when runtimes would not find it."""
        return self.devices.get(name)

    def unresolved(self, names: t.Iterable[str]) -> list[str]:
        """Those of ``names`` that do not resolve, each once, in their order."""
        return [name for name in dict.fromkeys(names) if name not in self.devices]

    def kinds(self) -> list[str]:
        """Every kind that some usable spec defines, sorted."""
        return sorted({file.spec.kind for file in self.files if file.spec is not None})

    def near_misses(self, name: str, limit: int = 5) -> list[str]:
        """Names that exist and might have been meant: of the same kind, else of the kinds that look most alike."""
        candidates = self._alike_kinds(name)
        by_device = {known.partition("=")[2]: known for known in candidates[:_MAX_COMPARED]}
        close = difflib.get_close_matches(name.partition("=")[2], by_device, n=limit, cutoff=0.5)
        return [by_device[device] for device in close] or candidates[:limit]

    def _alike_kinds(self, name: str) -> list[str]:
        kind = name.partition("=")[0]
        same = sorted(known for known in self.devices if known.startswith(kind + "="))
        if same:
            return same
        close = difflib.get_close_matches(kind, self.kinds(), n=2, cutoff=0.6)
        return sorted(known for known in self.devices if known.partition("=")[0] in close)

    def check(self, needs: t.Mapping[str, t.Sequence[str]] | t.Sequence[str]) -> list[Finding]:
        """What stands between claims and their devices.

        ``needs`` maps each claim (a UID, or any label that a person understands) to the CDI names it was given; a plain
        list of names asks without a claim. Every name that does not resolve gets one finding, with the cause where it
        can be seen: a conflict, a file that does not load, near misses. Refused files that a claim waits for are named.
        """
        claims_of: dict[str, list[str]] = {}
        for claim, names in needs.items() if isinstance(needs, t.Mapping) else [("", needs)]:
            for name in dict.fromkeys(names):
                claims_of.setdefault(name, []).extend([claim] if claim else [])
        findings: list[Finding] = []
        for name in self.unresolved(claims_of):
            # Looking for similar names is dear; when everything is gone, the first few tell the story.
            near = self.near_misses(name) if len(findings) < _MAX_EXPLAINED else []
            findings.append(explain_unresolved(self, name, claims_of[name], near))
        return findings

    def files_of_claim(self, claim_uid: str) -> list[ClaimFile]:
        """The spec files that belong to a claim, see ``claims.claim_files``."""
        return claim_files(self.files, claim_uid)

    def orphans(self, known_uids: t.Container[str]) -> list[Finding]:
        """Spec files of claims that nobody knows, see ``claims.orphans``."""
        return orphan_findings(self.files, known_uids)

    def container_edits(self, names: t.Sequence[str]) -> ContainerEdits:
        """What a container would get for these devices; raise ``UnresolvedDevicesError`` when one does not resolve."""
        missing = self.unresolved(names)
        if missing:
            where = [printable(directory.path) for directory in self.directories]
            reasons = " ".join(finding.text for finding in self.check(missing))
            raise UnresolvedDevicesError(
                f"unresolvable CDI devices {', '.join(missing)}: {reasons}",
                "Prepare the claim again, or correct the spec files that do not load.",
                unresolved=missing,
                directories=where,
            )
        parts = []
        used: set[str] = set()
        for name in names:
            found = self.devices[name]
            # The edits of the whole spec come once, with its first device.
            if found.spec.path not in used:
                used.add(found.spec.path)
                parts.append(found.spec.edits)
            parts.append(found.device.edits)
        return merge_edits(parts)


def _spec_paths(directory: SpecDirectory, findings: list[Finding]) -> list[str]:
    """Paths of the files in a directory that runtimes read, by name; the others become findings."""
    try:
        entries = sorted(os.scandir(directory.path), key=lambda entry: entry.name)
    except OSError:
        # directory_findings has told it, as far as it is worth telling.
        return []
    paths = []
    for entry in entries:
        path = os.path.join(directory.path, entry.name)
        if _is_directory(entry):
            findings.append(_ignored_directory(path))
        elif os.path.splitext(entry.name)[1] in EXTENSIONS:
            paths.append(path)
        elif entry.name in EXTENSIONS:
            # Go takes ".json" for an ending without a name, Python for a name without an ending.
            paths.append(path)
        else:
            findings.append(_ignored_file(path))
    return paths


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def cached_file(path: str, priority: int, cache: FileCache | None) -> SpecFile | None:
    """The file as it was loaded before, None when it is new, has changed, or is a link."""
    file = cache.get(path) if cache else None
    if file is None or file.signature is None or file.priority != priority:
        return None
    try:
        status = os.lstat(path)
    except OSError:
        return None
    # A link's own status says nothing about the file it leads to.
    unchanged = not stat.S_ISLNK(status.st_mode) and signature_of(status) == file.signature
    return file if unchanged else None


def _ignored_directory(path: str) -> Finding:
    shown = printable(path)
    return Finding(
        codes.IGNORED_DIRECTORY,
        "info",
        shown,
        f"{shown} is a directory inside a CDI directory: runtimes do not look into it.",
        "Specs in it have no effect; move them up or name the directory in cdi_spec_dirs.",
        {"path": shown},
    )


def _ignored_file(path: str) -> Finding:
    name, ending = os.path.splitext(os.path.basename(path))
    shown = printable(path)
    temporary = ending == ".tmp" or name.startswith(".")
    looks_like_spec = not temporary and _mentions_cdi(path)
    if looks_like_spec or ending.lower() in (".yml", ".yaml", ".json"):
        severity: t.Literal["warning", "info"] = "warning"
        remedy = "Rename it so that it ends in .json or .yaml (small letters), or move it away if it is a backup."
    else:
        severity, remedy = "info", "Nothing has to be done; a left-over temporary file may be removed."
    return Finding(
        codes.IGNORED_EXTENSION,
        severity,
        shown,
        f"{shown} is read by no runtime: only names that end in .json or .yaml count.",
        remedy,
        {"path": shown, "looks_like_spec": looks_like_spec},
    )


def _mentions_cdi(path: str) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode) and b"cdiVersion" in os.read(descriptor, 4096)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _shadow_finding(low: str, high: str, names: list[tuple[str, bool]]) -> Finding:
    same = all(equal for _name, equal in names)
    listed = sorted(name for name, _equal in names)
    verb = "is" if len(listed) == 1 else "are"
    detail = "with the same content" if same else "with other content"
    return Finding(
        codes.SHADOWED,
        "info" if same else "warning",
        printable(low),
        f"{_some(listed)} of {printable(low)} {verb} defined again in {printable(high)}, {detail}; that "
        "directory comes later "
        "and wins.",
        "" if same else "Remove the older of the two if this is not meant.",
        {"devices": listed, "path": printable(low), "winner": printable(high), "same": same},
    )


def _some(names: t.Sequence[str]) -> str:
    shown = sorted(names)[:3]
    rest = len(names) - len(shown)
    listed = ", ".join(shown) + (f" and {rest} more" if rest else "")
    return f"{'Device' if len(names) == 1 else 'Devices'} {listed}"
