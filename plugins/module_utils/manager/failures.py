# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What keeps failing: since when, how often, with which words, and when the next try is due."""

from __future__ import annotations

import logging
import time
import typing as t
from dataclasses import dataclass

from ..checkpoint.errors import DraError

PREPARE = "prepare"
UNPREPARE = "unprepare"

_logger = logging.getLogger(__name__)
_MOST = 4096


class BackingOffError(DraError):
    """An operation failed before and its next try is not due. Facts: those of `Failure.facts`, and ``retry_after``."""


@dataclass(frozen=True)
class Failure:
    """A row of failures of one operation on one claim, without a success in between.

    ``first`` and ``last`` are seconds since the epoch; ``next_try`` is a time of the event loop's clock. ``permanent``
    says that repeating it does not help until somebody changes the claim, the driver or the node.
    """

    operation: str
    claim_uid: str
    claim: str
    text: str
    count: int
    first: float
    last: float
    next_try: float
    permanent: bool = False

    def facts(self) -> dict[str, t.Any]:
        """What to show of it, JSON types only."""
        return {
            "operation": self.operation,
            "claim": self.claim,
            "claim_uid": self.claim_uid,
            "text": self.text,
            "count": self.count,
            "first": self.first,
            "last": self.last,
            "permanent": self.permanent,
        }


@dataclass(frozen=True)
class Backoff:
    """Seconds to wait after a failure: ``base`` after the first, twice as long after each, never more than ``cap``.

    After a permanent one it is ``cap`` at once: not never, since nobody tells when the node was mended.
    """

    base: float = 1.0
    cap: float = 120.0

    def delay(self, count: int, *, permanent: bool = False) -> float:
        """The pause after failure number ``count``."""
        return float(self.cap) if permanent else float(min(self.base * 2 ** min(count - 1, 60), self.cap))


class FailureLog:
    """The failures of all claims. The oldest are forgotten when there are thousands.

    ``clock`` is the loop's clock, by which pauses are measured; ``now`` is the wall clock, which people read. Another
    ``backoff`` holds from the next failure on.
    """

    def __init__(
        self, clock: t.Callable[[], float], *, now: t.Callable[[], float] = time.time, backoff: Backoff | None = None
    ) -> None:
        self._clock = clock
        self._now = now
        self.backoff = backoff or Backoff()
        self._failures: dict[tuple[str, str], Failure] = {}

    def failed(self, operation: str, claim_uid: str, claim: str, text: str, *, permanent: bool = False) -> Failure:
        """Take note of one more failure. New words are logged in full, a repetition as a count."""
        key = operation, claim_uid
        before = self._failures.pop(key, None)
        count = before.count + 1 if before else 1
        now = self._now()
        failure = Failure(
            operation,
            claim_uid,
            claim,
            text,
            count,
            before.first if before else now,
            now,
            self._clock() + self.backoff.delay(count, permanent=permanent),
            permanent,
        )
        self._failures[key] = failure
        if len(self._failures) > _MOST:
            del self._failures[next(iter(self._failures))]
        if before is None or before.text != text:
            _logger.warning("%s failed claim=%s claim_uid=%s count=%d: %s", operation, claim, claim_uid, count, text)
        else:
            _logger.info("%s failed again claim=%s claim_uid=%s count=%d", operation, claim, claim_uid, count)
        return failure

    def succeeded(self, operation: str, claim_uid: str) -> None:
        """The operation went through: its failures are history."""
        failure = self._failures.pop((operation, claim_uid), None)
        if failure is not None:
            _logger.info("%s works again claim=%s failures=%d", operation, failure.claim, failure.count)

    def forget(self, claim_uid: str) -> None:
        """The claim is gone."""
        for operation in (PREPARE, UNPREPARE):
            self._failures.pop((operation, claim_uid), None)

    def of(self, operation: str, claim_uid: str) -> Failure | None:
        """The present row of failures, None when the last try went through or there was none."""
        return self._failures.get((operation, claim_uid))

    def all(self) -> list[Failure]:
        """Every present row, longest-lasting first."""
        return sorted(self._failures.values(), key=lambda failure: failure.first)

    def retry_at_once(self, claim_uids: t.Iterable[str]) -> None:
        """Make the next try of these claims due now, because what they wait for may have changed. Counts stay."""
        wanted = set(claim_uids)
        for key, failure in self._failures.items():
            if failure.claim_uid in wanted:
                self._failures[key] = Failure(**{**failure.__dict__, "next_try": self._clock()})

    def check_due(self, operation: str, claim_uid: str) -> None:
        """Raise BackingOffError when the next try of the operation is not due yet."""
        failure = self.of(operation, claim_uid)
        wait = failure.next_try - self._clock() if failure else 0.0
        if failure is not None and wait > 0:
            raise BackingOffError(
                f"ResourceClaim {failure.claim}: {operation} has failed {failure.count} times, the next try is due in "
                f"{wait:.1f} s. The last failure was: {failure.text}",
                "Repeating it does not help until the claim, the driver or the node is changed."
                if failure.permanent
                else "It is tried again by itself; a change of the driver's registration makes it due at once.",
                retry_after=round(wait, 3),
                **failure.facts(),
            )
