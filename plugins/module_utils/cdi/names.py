# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Qualified CDI device names, ``vendor/class=name``.

The rules are those of the parser that every container runtime shares. Kubelets from 1.27 to 1.30 put the names into
annotations by stricter rules of their own, which are a separate check here.
"""

from __future__ import annotations

import json
import re
import typing as t
from dataclasses import dataclass

from ..checkpoint.errors import DraError

_VENDOR_OR_CLASS = re.compile(r"[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_DEVICE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.:-]*[A-Za-z0-9])?")
_ANNOTATION_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")

ANNOTATION_PREFIX = "cdi.k8s.io/"
_ANNOTATION_LIMIT = 63


class InvalidNameError(DraError):
    """A text is no qualified CDI name. Facts: ``name``, ``reason``."""


@dataclass(frozen=True)
class QualifiedName:
    """A parsed name; ``str()`` gives it back."""

    vendor: str
    class_name: str
    device: str

    @property
    def kind(self) -> str:
        """``vendor/class``, as in the field ``kind`` of a spec."""
        return f"{self.vendor}/{self.class_name}"

    def __str__(self) -> str:
        return f"{self.kind}={self.device}"


def parse_name(text: str) -> QualifiedName:
    """The parts of a qualified name; raise ``InvalidNameError`` that says which part is wrong and why."""
    reason, parts = _parse(text)
    if parts is None:
        raise InvalidNameError(
            f"{quoted(text)} is not a qualified CDI device name: {reason}.",
            "Expected vendor/class=name, such as gpu.example.com/gpu=gpu-0. The DRA driver that returned it "
            "has to be fixed.",
            name=text[:200],
            reason=reason,
        )
    return parts


def is_qualified(text: str) -> bool:
    """Whether ``parse_name`` accepts the text."""
    return _parse(text)[1] is not None


def _parse(text: str) -> tuple[str, QualifiedName | None]:
    left, equals, device = text.partition("=")
    vendor, slash, class_name = left.partition("/")
    if not equals:
        return "it has no '='", None
    if not slash:
        return "it has no '/' before the '='", None
    reason = vendor_problem(vendor) or class_problem(class_name) or device_problem(device)
    return (reason, None) if reason else ("", QualifiedName(vendor, class_name, device))


def kind_parts(kind: str) -> tuple[str, str]:
    """Vendor and class of a spec's ``kind``; the vendor is empty when there is no slash."""
    vendor, slash, class_name = kind.partition("/")
    return (vendor, class_name) if slash else ("", kind)


def spec_stem(vendor: str, class_name: str, transient_id: str = "") -> str:
    """The usual name of a spec file without its ending; with an identifier (a claim UID) for specs that come and go."""
    stem = f"{vendor}-{class_name}"
    return f"{stem}_{transient_id.replace('/', '_')}" if transient_id else stem


def vendor_problem(vendor: str) -> str:
    """Why this is no vendor name, empty when it is one."""
    return _problem("vendor", vendor, _VENDOR_OR_CLASS, "a letter", "'_', '-' and '.'")


def class_problem(class_name: str) -> str:
    """Why this is no class name, empty when it is one."""
    return _problem("class", class_name, _VENDOR_OR_CLASS, "a letter", "'_', '-' and '.'")


def device_problem(device: str) -> str:
    """Why this is no device name, empty when it is one."""
    return _problem("device name", device, _DEVICE, "a letter or digit", "'_', '-', '.' and ':'")


def _problem(what: str, text: str, pattern: re.Pattern[str], first: str, inside: str) -> str:
    if not text:
        return f"the {what} is empty"
    if pattern.fullmatch(text):
        return ""
    return (
        f"the {what} {quoted(text)} must start with {first}, end with a letter or digit, and hold only ASCII letters, "
        f"digits, {inside}"
    )


# Annotations of kubelets 1.27 to 1.30


def annotation(driver: str, claim_uid: str, names: t.Sequence[str]) -> tuple[str, str]:
    """Key and value of the container annotation by which old kubelets ask for the devices of one driver of a claim."""
    return f"{ANNOTATION_PREFIX}{_annotation_name(driver, claim_uid)}", ",".join(names)


def annotation_problems(driver: str, claim_uid: str, names: t.Sequence[str]) -> list[str]:
    """Why a kubelet of 1.27 to 1.30 would refuse these names, nothing when it takes them.

    Such a kubelet fails to prepare, and after a restart fails to start, since it builds the annotation again from its
    checkpoint. Without names there is no annotation, so nothing can be wrong.
    """
    if not names:
        return []
    problems = []
    if not driver:
        problems.append("the driver name is empty")
    if not claim_uid:
        problems.append("the claim UID is empty")
    name = _annotation_name(driver, claim_uid)
    if driver and claim_uid:
        if len(name) > _ANNOTATION_LIMIT:
            problems.append(
                f"driver name and claim UID make an annotation name of {len(name)} characters, the limit is "
                f"{_ANNOTATION_LIMIT}"
            )
        if not _ANNOTATION_NAME.fullmatch(name):
            problems.append(
                f"the annotation name {quoted(name)} may hold only letters, digits, '_', '-' and '.' between "
                "letters or "
                "digits"
            )
    for device in names:
        problem = _annotated_device_problem(device)
        if problem:
            problems.append(problem)
    return problems


def _annotation_name(driver: str, claim_uid: str) -> str:
    return f"{driver}_{claim_uid.replace('/', '_')}"


def _annotated_device_problem(device: str) -> str:
    reason, parts = _parse(device)
    if parts is None:
        return f"{quoted(device)} is not a qualified name: {reason}"
    if "." in parts.class_name:
        return f"{device}: these kubelets allow no dot in the class"
    if len(parts.vendor) == 1 or len(parts.class_name) == 1:
        return f"{device}: these kubelets crash on a vendor or class of one character"
    return ""


def quoted(text: str, limit: int = 120) -> str:
    """Text from a file or an RPC in quotes, printable and not too long for a message."""
    return json.dumps(text if len(text) <= limit else text[: limit - 3] + "...")
