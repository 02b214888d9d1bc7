# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the repair of a state file is going to do, has done, or has put back, in lines for people."""

from __future__ import annotations

import typing as t

from ansible_collections.nodeops.dra.plugins.plugin_utils.node_answers import Json
from ansible_collections.nodeops.dra.plugins.plugin_utils.text_tables import counted, facts, table

_STATUS = {
    "sound": "SOUND, the kubelet starts with it",
    "faulty": "FAULTY, the kubelet starts with it, and something breaks later",
    "refused": "REFUSED, the kubelet does not start with it",
}
_UNDONE = {
    "file": ("the state file is as it was", "the old state file was put back", "the old state file was NOT put back"),
    "kubelet": (
        "the kubelet's service was not touched",
        "the kubelet's service is as it was",
        "the kubelet's service is NOT as it was",
    ),
    "cordon": (
        "the node takes pods as it did before",
        "the node takes pods again",
        "the node is still cordoned",
    ),
}


def repair_report(look: Json, plan: Json, restore: Json | None = None, service: Json | None = None) -> list[str]:
    """``look`` is a result of ``checkpoint_info``, ``plan`` and ``restore`` are results of ``checkpoint``, planned or
    real (``restore`` may have been skipped), ``service`` is what systemd says of the kubelet."""
    lines = facts({"file": look["file"], "status": _status(look), "kubelet": _service(service or {})})
    if look["faults"]:
        rows = [[one["severity"], one["code"], one["text"]] for one in look["faults"]]
        lines += ["", *table(("SEVERITY", "CODE", "WHAT"), rows)]
    steps = [*_steps("restore", restore or {}), *_steps("repair", plan)]
    if not steps:
        return [*lines, "", "Nothing is to be done."]
    lines += ["", *table(("STEP", "CLAIMS", "LOSES", "WHAT"), steps)]
    backups = [one["backup_file"] for one in (restore or {}, plan) if one.get("backup_file")]
    return [*lines, "", *(f"The old file is kept as {path}" for path in backups)]


def repair_undone(node: str, task: str, result: Json, undone: t.Mapping[str, Json]) -> str:
    """Why ``node`` was not repaired, and how it is now. ``undone`` has the results of putting back ``file``,
    ``kubelet`` and ``cordon``; those that were skipped had nothing to put back."""
    said = str(result.get("msg") or "Unknown error")
    # Where the task did its work and only what it found is wrong, Ansible has no words for it.
    why = said if "Unknown error" not in said else _state(result) or "it did not come out as expected."
    states = []
    for name, (untouched, back, stuck) in _UNDONE.items():
        one = undone[name]
        if one.get("failed"):
            states.append(f"{stuck} ({one.get('msg', 'no reason was given')})")
        else:
            states.append(untouched if one.get("skipped") else back)
    is_whole = not any(one.get("failed") for one in undone.values())
    verdict = "is as it was found" if is_whole else "is NOT as it was found, see to it yourself"
    return (
        f'{node} was not repaired: "{task}" failed: {why} '
        f"The node {verdict}: {', '.join(states)}. Look at the journal of the kubelet (journalctl -u kubelet) and "
        "at the file (nodeops.dra.checkpoint_info), then run it again. Pods that were evicted do not come back."
    )


def _status(look: Json) -> str:
    if not look["exists"]:
        return "there is no such file, the kubelet makes one"
    claims = look["claims_in_file"]
    held = f"{counted(look['claims_saved'] or 0, 'claim')} can be saved" if claims is None else counted(claims, "claim")
    release = f" (Kubernetes {look['target_version']})" if look["target_version"] else ""
    return f"{_STATUS[look['status']]}{release}, format {look['format'] or 'unknown'}, {held}"


def _service(service: Json) -> str:
    text = f"{service.get('ActiveState', 'unknown')} ({service.get('SubState', 'unknown')})"
    restarts = str(service.get("NRestarts") or "0")
    return text if restarts == "0" else f"{text}, restarted {restarts} times"


def _steps(name: str, plan: Json) -> t.Iterator[list[t.Any]]:
    if plan.get("failed") or not plan.get("changed"):
        return
    claims = f"{plan['claims_before']} -> {plan['claims_after']}"
    source = plan.get("restored_from")
    if source:
        yield [name, claims, "-", f"from {source}"]
    for step in plan["steps"]:
        yield [name, claims, "YES" if step["loses"] else "-", _sentence(step)]


def _sentence(step: Json) -> str:
    return f"{step['action']}: {step['text']}" + (f" Lost is {step['loses']}." if step["loses"] else "")


def _state(result: Json) -> str:
    """What systemd or the file says, where a task failed because of what it found."""
    if "status" not in result:
        return ""
    if isinstance(result["status"], str):
        return f"the new file is {result['status']}."
    return f"the service is {_service(result['status'])}, expected active."
