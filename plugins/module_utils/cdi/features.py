# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Versions of the CDI specification, and which one a spec needs for what it uses."""

from __future__ import annotations

import re
import typing as t

Spec = t.Mapping[str, t.Any]
Version = tuple[int, int, int]
Path = tuple[t.Union[str, int], ...]

#: Every version the shared library knows, oldest first.
KNOWN_VERSIONS: tuple[Version, ...] = (
    (0, 1, 0),
    (0, 2, 0),
    (0, 3, 0),
    (0, 4, 0),
    (0, 5, 0),
    (0, 6, 0),
    (0, 7, 0),
    (0, 8, 0),
    (1, 0, 0),
    (1, 1, 0),
)
NEWEST = KNOWN_VERSIONS[-1]
#: Needed by any spec at all: files that say 0.1.0 or 0.2.0 are known and still refused.
EARLIEST_USABLE: Version = (0, 3, 0)


def parse_version(text: str) -> Version | None:
    """The version in ``text``, with or without a leading v; None when it is none."""
    match = re.fullmatch(r"v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})", text, re.ASCII)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def version_text(version: Version) -> str:
    """``1.1.0``."""
    return ".".join(map(str, version))


def required_version(spec: Spec) -> tuple[Version, str]:
    """The lowest version that allows everything in a well-formed spec, and the feature that asks for it."""
    best: tuple[Version, str] = (EARLIEST_USABLE, "any spec")
    for version, feature in _features(spec):
        if version > best[0]:
            best = (version, feature)
    return best


def retired_fields(spec: Spec) -> list[Path]:
    """Paths of fields in use that 1.1.0 took away again."""
    return [
        (*where, "intelRdt", field)
        for where, edits in _all_edits(spec)
        for field in ("enableCMT", "enableMBM")
        if field in edits.get("intelRdt", {})
    ]


def _features(spec: Spec) -> t.Iterator[tuple[Version, str]]:
    class_name = str(spec.get("kind", "")).partition("/")[2]
    if "." in class_name:
        yield (0, 6, 0), "a dot in the class of kind"
    if spec.get("annotations"):
        yield (0, 6, 0), "annotations"
    for device in spec.get("devices", ()):
        name = device.get("name", "")
        if name[:1].isdigit():
            yield (0, 5, 0), f"a device name that starts with a digit ({name[:60]})"
        if device.get("annotations"):
            yield (0, 6, 0), "annotations of a device"
    for _where, edits in _all_edits(spec):
        yield from _edit_features(edits)


def _edit_features(edits: Spec) -> t.Iterator[tuple[Version, str]]:
    if any(mount.get("type") for mount in edits.get("mounts", ())):
        yield (0, 4, 0), "the type of a mount"
    if any(node.get("hostPath") for node in edits.get("deviceNodes", ())):
        yield (0, 5, 0), "the hostPath of a device node"
    if edits.get("additionalGids"):
        yield (0, 7, 0), "additionalGids"
    if edits.get("netDevices"):
        yield (1, 1, 0), "netDevices"
    rdt = edits.get("intelRdt")
    if rdt is not None:
        yield (0, 7, 0), "intelRdt"
        if "schemata" in rdt or rdt.get("enableMonitoring"):
            yield (1, 1, 0), "schemata or enableMonitoring of intelRdt"


def _all_edits(spec: Spec) -> t.Iterator[tuple[Path, Spec]]:
    yield ("containerEdits",), spec.get("containerEdits", {})
    for index, device in enumerate(spec.get("devices", ())):
        yield ("devices", index, "containerEdits"), device.get("containerEdits", {})
