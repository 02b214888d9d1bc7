# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The settings that matter in the mode ``observe`` alone."""

from __future__ import annotations

import dataclasses
import typing as t

from ..daemon.schema import Schema


def _number(default: float, unit: str, description: str, *, kind: str = "number", **limits: t.Any) -> Schema:
    return {"type": kind, "x-unit": unit, "default": default, "description": description, **limits}


def _flag(default: bool, description: str) -> Schema:
    return {"type": "boolean", "default": default, "description": description}


OBSERVE: Schema = {
    "type": "object",
    "description": "How a node is observed whose kubelet prepares claims itself. Used in the mode observe.",
    "additionalProperties": False,
    "properties": {
        "poll_period": _number(
            30,
            "seconds",
            "How often the kubelet's files are looked at although no file event came. Events tell of every file that a "
            "kubelet writes; a change that somebody makes inside a file is seen by this look only.",
            exclusiveMinimum=0,
            maximum=86400,
        ),
        "survey_period": _number(
            60,
            "seconds",
            "How often findings are looked for although nothing is known to have changed.",
            exclusiveMinimum=0,
            maximum=86400,
        ),
        "health_streams": _flag(
            False,
            "Whether drivers are asked for the health of their devices, as the kubelet asks them too. It opens one "
            "more stream to each driver that offers it.",
        ),
    },
}

RING: Schema = {
    "type": "object",
    "description": "The ring of last good copies of the kubelet's state file, in the directory ring below "
    "node.state_directory. Used in the mode observe.",
    "additionalProperties": False,
    "x-reloadable": True,
    "properties": {
        "enabled": {**_flag(True, "Whether copies are kept."), "x-reloadable": False},
        "copies": _number(20, "copies", "How many copies are kept.", kind="integer", minimum=1, maximum=10000),
        "bytes": _number(
            64 * 1024 * 1024,
            "bytes",
            "How much all copies together may take. The newest good copy is kept however large it is.",
            kind="integer",
            minimum=1,
        ),
        "age": _number(
            30 * 86400,
            "seconds",
            "How old a copy may get. The newest good copy is kept however old it is.",
            exclusiveMinimum=0,
        ),
        "settle": _number(
            2,
            "seconds",
            "How long the file must have been still before it is copied: a kubelet writes it twice for each pod.",
            minimum=0,
            maximum=86400,
        ),
        "interval": _number(
            30,
            "seconds",
            "The least time between two copies, and how long a file that is never still goes without one. A good "
            "content that is not copied yet is copied at once when the file is damaged or removed, and when the agent "
            "ends.",
            minimum=0,
            maximum=86400,
        ),
    },
}


@dataclasses.dataclass(frozen=True)
class ObserveSettings:
    """The section ``observe``."""

    poll_period: float
    survey_period: float
    health_streams: bool


@dataclasses.dataclass(frozen=True)
class RingSettings:
    """The section ``ring``."""

    enabled: bool
    copies: int
    bytes: int
    age: float
    settle: float
    interval: float
