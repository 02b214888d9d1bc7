# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""From a key to its plan: the one way in, for the daemon and for a single pass."""

from __future__ import annotations

from .caches import Caches
from .claim_decision import decide_claim
from .keys import CLAIM, KINDS, POD, Key
from .plan import NOTHING, Answers, Plan
from .pod_decision import decide_pod, decide_pod_group
from .settings import Switches


def decide(
    caches: Caches, key: Key, switches: Switches, answers: Answers | None = None, *, doubt: bool = False
) -> Plan:
    """The plan for what the key names; nothing when that is gone."""
    obj = caches.get(KINDS[key.what], key.namespace, key.name)
    if obj is None:
        return NOTHING
    if key.what == CLAIM:
        return decide_claim(caches, obj, answers, doubt=doubt)
    if key.what == POD:
        return decide_pod(caches, obj, switches, answers)
    return decide_pod_group(caches, obj, switches, answers)
