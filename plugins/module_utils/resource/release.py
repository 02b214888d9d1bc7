# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Kubernetes releases, and what about claims depends on the release and not on the API version.

``v1alpha2`` alone was served by 1.27 to 1.30, which name claims differently, so the release is a fact of its own.
"""

from __future__ import annotations

import re
import typing as t

from ..checkpoint.errors import DraError

_RELEASE = re.compile(r"v?(\d{1,3})\.(\d{1,4})(?:\.(\d{1,4}))?(?:[-+].*)?", re.DOTALL)
_MINOR = re.compile(r"(\d{1,4})\+?")

#: Finalizers that the scheduler's own allocation puts on a claim: of 1.30, and of 1.31 and later.
PROTECTION_FINALIZERS = ("resource.kubernetes.io/delete-protection", "dra.k8s.io/delete-protection")


class Release(t.NamedTuple):
    """A Kubernetes release; compares in the natural order."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def has_deterministic_names(self) -> bool:
        """Up to 1.27 a generated claim is called ``<pod>-<pod claim>``; the name alone ties the two together."""
        return self < (1, 28)

    @property
    def sets_block_owner_deletion(self) -> bool:
        """Whether the built-in controller of this release sets ``blockOwnerDeletion``: seen in 1.34, gone in 1.36."""
        return self < (1, 36)

    @property
    def reserved_for_limit(self) -> int:
        """How many consumers ``status.reservedFor`` may hold: 256 since 1.32.1, 32 before."""
        return 256 if self >= (1, 32, 1) else 32

    @property
    def protection_finalizer(self) -> str:
        """The finalizer that keeps an allocated claim of this release."""
        return PROTECTION_FINALIZERS[0] if self >= (1, 31) else PROTECTION_FINALIZERS[1]

    @property
    def admin_access_label(self) -> str:
        """The namespace label that allows admin access; empty up to 1.32, where none is asked for."""
        if self >= (1, 34):
            return "resource.kubernetes.io/admin-access"
        return "resource.k8s.io/admin-access" if self >= (1, 33) else ""

    @property
    def needs_shareable(self) -> bool:
        """Up to 1.30 a second consumer needs ``status.allocation.shareable``."""
        return self < (1, 31)

    @property
    def prepares_only_referenced_claims(self) -> bool:
        """Up to 1.30 the kubelet prepares only claims that some container refers to."""
        return self < (1, 31)


def parse_release(text: str) -> Release:
    """Read ``v1.36.2``, ``1.31``, ``v1.30.4-gke.123`` or ``v1.29.1+k3s1``; raise ``DraError`` on anything else."""
    match = _RELEASE.fullmatch(text.strip())
    if match is None:
        raise DraError(
            f"{text!r:.80} is not a Kubernetes release, expected something like v1.36.2.",
            "Give the version as `kubectl version` prints it.",
            found=text[:80],
        )
    return Release(int(match[1]), int(match[2]), int(match[3] or 0))


def release_from_version_info(info: t.Mapping[str, t.Any]) -> Release:
    """The release that ``GET /version`` answers: ``gitVersion``, else ``major`` and ``minor`` (``36+`` on clouds)."""
    git_version = info.get("gitVersion")
    if isinstance(git_version, str) and _RELEASE.fullmatch(git_version.strip()):
        return parse_release(git_version)
    major, minor = str(info.get("major", "")), _MINOR.fullmatch(str(info.get("minor", "")))
    if minor is None or not re.fullmatch(r"\d{1,3}", major):
        raise DraError(
            "The API server's answer to GET /version names no release: expected gitVersion like v1.36.2.",
            "Check that the URL is that of a Kubernetes API server: `kubectl version`.",
            found={key: str(info.get(key))[:80] for key in ("gitVersion", "major", "minor")},
        )
    return Release(int(major), int(minor[1]))
