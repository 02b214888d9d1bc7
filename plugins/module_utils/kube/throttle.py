# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A limit on our own request rate, for clusters where the API server has to be spared."""

from __future__ import annotations

import asyncio

from .errors import ConfigurationError


class Throttle:
    """A token bucket: ``burst`` requests at once, then ``qps`` a second, in the order of arrival.

    ``waiting`` and ``waited_seconds`` are for metrics: a queue here means that the limit is what slows things down.
    """

    def __init__(self, qps: float, burst: int) -> None:
        if qps <= 0 or burst < 1:
            raise ConfigurationError(
                f"A rate of {qps:g} requests a second with a burst of {burst} lets nothing through.",
                "Give a qps above 0 and a burst of at least 1, or no qps for no limit.",
            )
        self.qps, self.burst = qps, burst
        self.waiting = 0
        self.waited_seconds = 0.0
        self._full_at = float("-inf")  # when the bucket would be full again, on the loop's clock

    async def take(self, deadline: float) -> float:
        """Wait for a token; returns the seconds waited. Raises ``TimeoutError`` at once when it would come too late."""
        now = asyncio.get_running_loop().time()
        start = max(self._full_at, now)
        # After this request the bucket lacks one token more; more than ``burst`` missing means to wait.
        wait = max(0.0, start + 1 / self.qps - self.burst / self.qps - now)
        if now + wait > deadline:
            raise TimeoutError
        self._full_at = start + 1 / self.qps
        if wait <= 0:
            return 0.0
        self.waiting += 1
        try:
            await asyncio.sleep(wait)
        except asyncio.CancelledError:
            self._full_at -= 1 / self.qps
            raise
        finally:
            self.waiting -= 1
            self.waited_seconds += wait
        return wait
