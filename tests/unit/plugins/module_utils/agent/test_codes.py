# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The codes of findings: those that the code uses, those that it lists, and those that the guide explains."""

from __future__ import annotations

import ast
import pathlib
import re

from ansible_collections.nodeops.dra.plugins.module_utils.agent import agent_findings, disagreements, node_slices
from ansible_collections.nodeops.dra.plugins.module_utils.cdi import codes as cdi_codes
from ansible_collections.nodeops.dra.plugins.module_utils.driver import scan

AGENT = pathlib.Path(disagreements.__file__).parent
MANAGER = AGENT.parent / "manager"
GUIDE = AGENT.parents[2] / "docs" / "docsite" / "rst" / "claims.rst"
# These make a finding: their first argument is its code.
MAKERS = {"Finding", "_finding", "unreadable"}
# What nodeops.dra.claim says of its own work.
OF_TASKS = {"driver_not_conformant", "kubelet_still_records"}
OF_MANAGER = {"state_damaged", "state_not_writable", "manager_notes_unusable"}


def used_codes(folder: pathlib.Path) -> set[str]:
    """Codes that are written out where a finding is made."""
    found = set()
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            first = node.args[0]
            if name in MAKERS and isinstance(first, ast.Constant):
                found.add(first.value)
    return found


def scan_codes() -> set[str]:
    """Codes that the documentation of a scan's problems lists."""
    return set(re.findall(r"``([a-z_]+)``", scan.Problem.__doc__ or ""))


def test_every_code_of_the_agent_is_listed() -> None:
    listed = {*disagreements.CODES, *node_slices.CODES, *agent_findings.CODES, *OF_TASKS} - {"manager_notes_unusable"}
    assert used_codes(AGENT) - {"cdi_unreadable"} == listed


def test_every_code_of_the_manager_is_listed() -> None:
    assert used_codes(MANAGER) == OF_MANAGER


def test_the_guide_explains_every_code_and_no_other() -> None:
    explained = re.findall(r"^   \* - ``([a-z_]+)``$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert explained == sorted(explained)
    wanted = {
        *disagreements.CODES,
        *node_slices.CODES,
        *agent_findings.CODES,
        *cdi_codes.ALL,
        *scan_codes(),
        *OF_TASKS,
        *OF_MANAGER,
    }
    assert set(explained) == wanted


def test_the_guide_uses_the_words_of_the_code() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    for code, meaning in {**disagreements.CODES, **node_slices.CODES, **agent_findings.CODES}.items():
        assert f"   * - ``{code}``\n     - {meaning}\n" in text, code
