# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The report of a preflight: a table for each node, a summary of all, and which nodes fail."""

from __future__ import annotations

import typing as t

from ansible_collections.nodeops.dra.plugins.plugin_utils.node_answers import Json, chosen, is_unreachable, no_answer
from ansible_collections.nodeops.dra.plugins.plugin_utils.text_tables import counted, facts, table, wrapped

FAIL_ON = ("blocker", "error", "warning", "never")
_BLOCKER = "BLOCKER"
_HEAD = ("NODE", "READY", "KUBELET", "RUNTIME", "CDI", "GATE", "DRIVERS", "PROBLEMS")


def preflight_report(looks: t.Mapping[str, Json], fail_on: str = "blocker") -> dict[str, t.Any]:
    """``nodes`` with the lines for each node, ``summary`` with those for all, ``failed`` nodes and their ``problems``.

    ``looks`` maps nodes to results of ``node_info``, failed and unreachable ones too. ``fail_on`` is one of FAIL_ON: a
    node without a result fails unless it is ``never``.
    """
    chosen("fail_on", fail_on, FAIL_ON)
    names = sorted(looks)
    failed = [name for name in names if _fails(looks[name], fail_on)]
    return {
        "nodes": {name: _node(name, looks[name]) for name in names},
        "summary": [
            *table(_HEAD, [_row(name, looks[name]) for name in names]),
            "",
            *(line for name in names for line in _silence(name, looks[name])),
            *wrapped(_counts(looks)),
        ],
        "failed": failed,
        "problems": [f"{name}: {text}" for name in failed for text in _problems(looks[name], fail_on)],
    }


def _fails(look: Json, fail_on: str) -> bool:
    return fail_on != "never" and bool(_problems(look, fail_on))


def _problems(look: Json, fail_on: str) -> list[str]:
    """What stands against the node, in sentences with the next step."""
    missing = no_answer(look, "ready")
    if missing:
        return [missing]
    found = look["blockers"]
    if fail_on != "blocker":
        severities = ("error",) if fail_on == "error" else ("error", "warning")
        found = [*found, *(one for one in look["findings"] if one not in found and one["severity"] in severities)]
    return [f"{one['text']} {one['remedy']}".strip() for one in found]


def _row(name: str, look: Json) -> list[t.Any]:
    if no_answer(look, "ready"):
        return [name, None, None, None, None, None, None, "UNREACHABLE" if is_unreachable(look) else "LOOK FAILED"]
    blocking = sorted({one["code"] for one in look["blockers"]})
    others = sorted({one["code"] for one in look["findings"] if one["severity"] != "info"} - set(blocking))
    told = [*(code.upper() for code in blocking), *others]
    ready = "yes" if look["ready"] else "NO"
    return [
        name,
        ready,
        _kubelet(look),
        _runtime(look),
        _switch(look["cdi"]["enabled"]),
        _gate(look),
        len(look["drivers"]),
        told,
    ]


def _silence(name: str, look: Json) -> list[str]:
    missing = no_answer(look, "ready")
    return wrapped(f"{name}: {missing}") if missing else []


def _node(name: str, look: Json) -> list[str]:
    """The table of one node: what it is, then what was found, blockers first, each with the next step."""
    silence = _silence(name, look)
    if silence:
        return silence
    verdict = "is ready" if look["ready"] else f"is NOT ready, {counted(len(look['blockers']), 'blocker')}"
    drivers = ", ".join(f"{one['name']} ({counted(one['claims'], 'claim')})" for one in look["drivers"]) or "none"
    lines = [
        *wrapped(f"{name} {verdict} (mode {look['mode']})"),
        *facts(
            {
                "kubelet": f"{_kubelet(look)}, root {look['kubelet']['root'] or 'unknown'}, gate {_gate(look)}",
                "runtime": f"{_runtime(look)}, CDI {_switch(look['cdi']['enabled'])}",
                "drivers": drivers,
            }
        ),
    ]
    blockers = look["blockers"]
    others = [one for one in look["findings"] if one not in blockers]
    rows = []
    for one in (*blockers, *others):
        severity = _BLOCKER if one in blockers else one["severity"]
        rows.append([severity, one["code"], f"{one['text']} {one['remedy']}".strip()])
    return [*lines, "", *(table(("SEVERITY", "CODE", "WHAT AND WHAT TO DO"), rows) if rows else ["Nothing was found."])]


def _counts(looks: t.Mapping[str, Json]) -> str:
    ready = sum(bool(look.get("ready")) for look in looks.values())
    unreachable = sum(is_unreachable(look) for look in looks.values())
    silent = sum(bool(no_answer(look, "ready")) for look in looks.values()) - unreachable
    parts = [f"{ready} ready", f"{len(looks) - ready - unreachable - silent} not ready"]
    parts += [f"{unreachable} unreachable"] if unreachable else []
    parts += [f"{silent} failed"] if silent else []
    return f"{counted(len(looks), 'node')}: {', '.join(parts)}. Codes in capitals are blockers."


def _kubelet(look: Json) -> str:
    kubelet = look["kubelet"]
    if not kubelet["running"]:
        return "not running"
    return str(kubelet["version"] or "unknown")


def _runtime(look: Json) -> str:
    """The runtime that matters, else the first one."""
    wanted = look["cdi"]["runtime"]
    found = [one for one in look["runtimes"] if wanted in (None, one["name"])]
    return f"{found[0]['name']} {found[0]['version'] or ''}".strip() if found else "none"


def _gate(look: Json) -> str:
    gates = [one["on"] for one in look["kubelet"]["gates"] if one["name"] == "DynamicResourceAllocation"]
    return _switch(gates[0] if gates else None)


def _switch(value: bool | None) -> str:
    return "unknown" if value is None else "on" if value else "OFF"
