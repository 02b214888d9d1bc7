# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Whether the container runtime would find what drivers answered.

CDI directories are on a tmpfs. After a reboot a driver may give its old answer without writing the file anew, and the
pod would fail for ever with nobody asking the driver again.
"""

from __future__ import annotations

import asyncio
import logging
import typing as t

from ..cdi.index import SpecIndex
from ..checkpoint.errors import DraError
from ..checkpoint.findings import Finding
from .prepare import PreparedClaim

CdiPolicy = t.Literal["off", "warn", "error"]
"""What a CDI name that does not resolve is: nobody's business, a warning, or a failure of the prepare."""

_logger = logging.getLogger(__name__)


class CdiUnresolvedError(DraError):
    """A driver answered with CDI names that do not resolve. Facts: ``claims`` (UIDs), ``findings``."""


class CdiCheck:
    """Looks for the names of prepared claims in ``directories`` (those of the runtimes when None)."""

    def __init__(self, policy: CdiPolicy, directories: t.Sequence[str] | None) -> None:
        self.policy = policy
        self._index = SpecIndex(directories)
        self._findings: dict[str, list[Finding]] = {}

    def is_unresolved(self, claim_uid: str) -> bool:
        """Whether the claim's names did not resolve when last looked for; its drivers have to be asked again."""
        return self.policy != "off" and claim_uid in self._findings

    def findings(self) -> list[Finding]:
        """What the last look at each claim found."""
        return [finding for found in self._findings.values() for finding in found] if self.policy != "off" else []

    def forget(self, claim_uids: t.Iterable[str]) -> None:
        """The claims are gone."""
        for uid in claim_uids:
            self._findings.pop(uid, None)

    async def check(self, claims: t.Sequence[PreparedClaim]) -> None:
        """Look for the names of these claims. Raises CdiUnresolvedError if that is the policy; they stay prepared."""
        wanted = {claim.uid: claim for claim in claims if claim.cdi_device_ids}
        if self.policy == "off" or not wanted:
            return
        found = await asyncio.to_thread(self._look, wanted)
        unresolved = {uid: findings for uid, findings in found.items() if findings}
        for uid, findings in unresolved.items():
            if findings != self._findings.get(uid):
                _logger.warning("CDI names do not resolve claim_uid=%s: %s", uid, findings[0].text)
        self.forget(wanted)
        self._findings.update(unresolved)
        if unresolved and self.policy == "error":
            first = next(iter(unresolved.values()))[0]
            raise CdiUnresolvedError(
                f"ResourceClaim {wanted[next(iter(unresolved))].full_name}: {first.text}",
                first.remedy,
                claims=sorted(unresolved),
                findings=[finding.to_dict() for findings in unresolved.values() for finding in findings],
            )

    def _look(self, claims: t.Mapping[str, PreparedClaim]) -> dict[str, list[Finding]]:
        found: dict[str, list[Finding]] = {}
        for uid, claim in claims.items():
            missing = self._index.missing(claim.cdi_device_ids, uid)
            found[uid] = self._index.registry().check({f"{claim.full_name} ({uid})": missing}) if missing else []
        return found
