# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Claims of pods that may still run are not taken from them unless somebody insists."""

from __future__ import annotations

import typing as t

from ..checkpoint.errors import DraError
from ..manager.durable_claims import Record
from .claim_place import Place
from .claim_request import identity


def refuse_living_pods(place: Place, records: t.Iterable[Record], who: str | None) -> None:
    """Raise DraError if a pod that may still run would lose a claim. ``who`` is the one that lets go, None: all."""
    for record in records:
        state = record.state
        for holder in sorted(state.pod_uids if who is None else state.pod_uids & {who}):
            pod = place.living_pod(holder)
            if pod is None:
                continue
            _uid, namespace, name = identity(pod)
            deleted = pod["metadata"].get("deletionTimestamp")
            way = f"it is being deleted since {deleted}: look what keeps it" if deleted else "delete the pod"
            raise DraError(
                f"ResourceClaim {state.namespace}/{state.name} ({state.uid}) is held by pod {namespace}/{name} "
                f"({holder}), which may still run: its containers would lose their devices.",
                f"The agent unprepares the claim when the pod has ended; {way}. With force the claim is unprepared "
                "now, and prepared again as long as the pod needs it.",
                claim=f"{state.namespace}/{state.name}",
                claim_uid=state.uid,
                pod=f"{namespace}/{name}",
                pod_uid=holder,
            )
