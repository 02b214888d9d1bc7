# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Claims that nobody can take back because their driver is gone, who holds them since when, and which to forget."""

from __future__ import annotations

import typing as t

from ansible_collections.nodeops.dra.plugins.plugin_utils.node_answers import Json, no_answer
from ansible_collections.nodeops.dra.plugins.plugin_utils.text_tables import counted, table, wrapped

_HEAD = ("NODE", "CLAIM", "DRIVERS", "KNOWN TO", "HELD BY")


def stuck_report(looks: t.Mapping[str, Json], forget: t.Sequence[str] = ()) -> dict[str, t.Any]:
    """``summary`` has the lines of a table, ``stuck`` maps nodes to their stuck claims, ``forget`` maps nodes to those
    that are named, as ``manager`` and ``kubelet`` have recorded them, ``unknown`` are names without a stuck claim.

    ``looks`` maps nodes to results of ``claim_info``, failed ones too. ``forget`` names claims by UID or by namespace
    and name with a slash between.
    """
    names = sorted(looks)
    stuck = {name: _stuck(looks[name]) for name in names}
    chosen = {name: [one for one in claims if _names(one) & set(forget)] for name, claims in stuck.items()}
    matched = {text for claims in chosen.values() for one in claims for text in _names(one)}
    return {
        "summary": _summary(looks, stuck),
        "stuck": stuck,
        "forget": {name: _forget(claims) for name, claims in chosen.items()},
        "unknown": [text for text in forget if text not in matched],
    }


def _stuck(look: Json) -> list[Json]:
    if no_answer(look, "claims"):
        return []
    return [
        one
        for one in look["claims"]
        if "driver_missing" in one["findings"] and (one["in_manager"] or one["in_kubelet"])
    ]


def _names(claim: Json) -> set[str]:
    return {claim["uid"], f"{claim['namespace']}/{claim['name']}"}


def _forget(claims: t.Iterable[Json]) -> dict[str, list[dict[str, t.Any]]]:
    found: dict[str, list[dict[str, t.Any]]] = {"manager": [], "kubelet": []}
    for one in claims:
        keys = {key: one[key] for key in ("uid", "namespace", "name")}
        if one["in_manager"]:
            found["manager"].append({"metadata": keys})
        if one["in_kubelet"]:
            found["kubelet"].append(keys)
    return found


def _summary(looks: t.Mapping[str, Json], stuck: t.Mapping[str, t.Sequence[Json]]) -> list[str]:
    rows = [[name, *_row(one)] for name, claims in stuck.items() for one in claims]
    lines = [*table(_HEAD, rows), ""] if rows else []
    for name, look in looks.items():
        missing = no_answer(look, "claims")
        lines += wrapped(f"{name}: {missing}") if missing else []
    held = sum(len(claims) for claims in stuck.values())
    return [*lines, f"{counted(held, 'claim')} on {counted(len(looks), 'node')} wait for a driver that is gone."]


def _row(claim: Json) -> list[t.Any]:
    who = [label for key, label in (("in_manager", "agent"), ("in_kubelet", "kubelet")) if claim[key]]
    drivers = [driver["name"] for driver in claim["drivers"]]
    label = f"{claim['namespace']}/{claim['name']}"
    return [label, drivers, who, "; ".join(_holder(pod) for pod in claim["pods"])]


def _holder(pod: Json) -> str:
    words = [str(pod["name"] or pod["uid"])]
    if pod["deleting_since"]:
        words.append(f"terminating since {pod['deleting_since']}")
    elif pod["alive"] is False:
        words.append("gone")
    elif pod["phase"]:
        words.append(str(pod["phase"]))
    return " ".join(words)
