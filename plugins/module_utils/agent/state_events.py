# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a kubelet has done, from two contents of its state file. Pure."""

from __future__ import annotations

import typing as t

from .kubelet_state import MISSING, KubeletState

Json = t.Mapping[str, t.Any]

DAMAGED, SOUND, GONE = "checkpoint_damaged", "checkpoint_sound", "checkpoint_missing"


class StateEvents:
    """Remembers the last content that could be read, so that a damaged one in between loses no event."""

    def __init__(self, first: KubeletState) -> None:
        self._claims: t.Mapping[str, Json] = first.claims if not first.problem else {}
        self._interrupted = bool(first.problem)

    def of(self, before: KubeletState, now: KubeletState) -> list[tuple[str, str, str]]:
        """Kind, subject and text of each event."""
        events = []
        if now.problem and not before.problem:
            events.append((DAMAGED, now.path, now.problem))
        elif now.status == MISSING and before.status != MISSING:
            events.append((GONE, now.path, "the kubelet makes it anew when it starts"))
        elif now.good and self._interrupted:
            events.append((SOUND, now.path, f"{len(now.claims)} claims"))
        if not now.good:
            # Without claims before, those that come are prepared, not brought back.
            self._interrupted = self._interrupted or bool(now.problem or self._claims)
            return events
        events += self._of_claims(now.claims)
        self._claims, self._interrupted = now.claims, False
        return events

    def _of_claims(self, claims: t.Mapping[str, Json]) -> t.Iterator[tuple[str, str, str]]:
        for uid, claim in claims.items():
            known = self._claims.get(uid)
            if claim["prepared"] and (known is None or not known["prepared"]) and (known or not self._interrupted):
                yield "claim_prepared", label(claim), f"by the kubelet for pods {', '.join(claim['pods']) or 'none'}"
        for uid, claim in self._claims.items():
            if uid not in claims and not self._interrupted:
                yield "claim_unprepared", label(claim), "by the kubelet"
            elif uid not in claims:
                yield "claim_forgotten", label(claim), "the kubelet began a new file without it"


def label(claim: Json) -> str:
    """How a person is told which claim is meant."""
    return f"{claim['namespace']}/{claim['name']} ({claim['uid']})"
