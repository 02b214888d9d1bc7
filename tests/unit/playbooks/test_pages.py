# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What playbooks say of themselves: at the top of the file, in the guide, and in what they really read."""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "docsite" / "rst" / "playbooks.rst"
PREFIXES = {
    "preflight": "preflight",
    "repair_checkpoint": "repair",
    "upgrade_check": "upgrade",
    "unstick_pods": "unstick",
}
# What the plays note for themselves, and what the results of their tasks are called.
OWN = {
    "preflight": {"look", "looks", "result"},
    "repair_checkpoint": {
        *("apply", "backup", "changes", "claims", "cordon", "failed_result", "failed_task", "look", "lost", "node"),
        *("plan", "repaired", "restore_plan", "restored", "result", "service", "service_first", "service_last"),
        *("service_state", "silence", "target", "undo", "undo_cordon", "undo_file", "undo_new_file", "undo_service"),
        *("undo_stop", "undone", "unit", "written", "checkpoint"),
    },
    "unstick_pods": {"api", "entry", "forgotten", "kubelets", "look", "looks", "others", "pods", "result"},
    "upgrade_check": {"answers", "drivers", "file", "found", "looks", "node", "report", "result"},
}


def text_of(name: str) -> str:
    """The playbook with the task files that it includes."""
    playbook = (ROOT / "playbooks" / f"{name}.yml").read_text(encoding="utf-8")
    files = sorted((ROOT / "playbooks" / "tasks").glob(f"{PREFIXES[name]}_*.yml"))
    return "".join([playbook, *(path.read_text(encoding="utf-8") for path in files)])


def told(name: str) -> dict[str, str]:
    """The variables at the top of the file with their defaults, "-" for none."""
    head = text_of(name).partition("\n- ")[0]
    return dict(re.findall(rf"^# ({PREFIXES[name]}_\w+) +(\S+) ", head, re.MULTILINE))


@pytest.mark.parametrize("name", PREFIXES)
def test_the_top_of_the_file_tells_every_variable(name: str) -> None:
    body = text_of(name).partition("\n- ")[2]
    used = set(re.findall(rf"\b{PREFIXES[name]}_\w+", body)) - {f"{PREFIXES[name]}_{own}" for own in OWN[name]}
    assert used - {f"{PREFIXES[name]}_report"} == set(told(name))


@pytest.mark.parametrize("name", PREFIXES)
def test_defaults_are_those_that_are_told(name: str) -> None:
    body = text_of(name).partition("\n- ")[2]
    for variable, default in told(name).items():
        if default == "-":
            continue  # found out on the node
        found = set(re.findall(rf"\b{variable} \| default\('?([^,')]+|\[\])'?[,)]", body))
        assert found <= {default}, variable


@pytest.mark.parametrize("name", PREFIXES)
def test_the_guide_explains_every_variable_with_its_default(name: str) -> None:
    section = re.split(rf"^{name}\n-+\n", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    section = re.split(r"^\w+\n-+\n", section, flags=re.MULTILINE)[0]
    rows = dict(re.findall(r"^   \* - ``(\w+)``\n     -(?: ``(.*)``)?$", section, re.MULTILINE))
    assert rows == {variable: "" if default == "-" else default for variable, default in told(name).items()}
