# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the API server was asked: counts for benchmarks, the last requests for tests and people."""

from __future__ import annotations

import collections
import dataclasses
import typing as t


@dataclasses.dataclass(frozen=True)
class Seen:
    """One request. ``resource`` is ``pods``, ``pods/status`` and so on; empty for discovery. ``code`` 0: no answer."""

    verb: str
    resource: str
    path: str
    agent: str
    code: int


class Recorder:
    """Counts requests by verb and resource, and keeps the last ones."""

    def __init__(self, keep: int = 1000) -> None:
        self.counts: collections.Counter[tuple[str, str]] = collections.Counter()
        self.by_agent: dict[str, collections.Counter[tuple[str, str]]] = {}
        self.last: collections.deque[Seen] = collections.deque(maxlen=keep)

    def note(self, seen: Seen) -> None:
        key = (seen.verb, seen.resource)
        self.counts[key] += 1
        agent = seen.agent.partition("/")[0]
        if agent not in self.by_agent:
            self.by_agent[agent] = collections.Counter()
        self.by_agent[agent][key] += 1
        self.last.append(seen)

    def reset(self) -> None:
        self.counts.clear()
        self.by_agent.clear()
        self.last.clear()

    def count(self, verb: str = "", resource: str = "", agent: str = "") -> int:
        """How many requests there were; empty filters take all."""
        counts = self.by_agent.get(agent, collections.Counter()) if agent else self.counts
        return sum(
            number
            for (seen_verb, seen_resource), number in counts.items()
            if (not verb or verb == seen_verb) and (not resource or resource == seen_resource)
        )

    def described(self) -> dict[str, t.Any]:
        """Counts as JSON: ``{"counts": {"create resourceclaims": 3}, "byAgent": {...}, "total": 3}``."""

        def named(counts: t.Mapping[tuple[str, str], int]) -> dict[str, int]:
            return {f"{verb} {resource}".strip(): number for (verb, resource), number in sorted(counts.items())}

        return {
            "total": sum(self.counts.values()),
            "counts": named(self.counts),
            "byAgent": {agent: named(counts) for agent, counts in sorted(self.by_agent.items())},
        }
