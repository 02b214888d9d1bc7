# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Runbooks and the index of codes: complete, and only with what exists."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent import agent_findings, disagreements, node_slices
from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight import codes
from ansible_collections.nodeops.dra.plugins.module_utils.cdi import codes as cdi_codes

ROOT = pathlib.Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs" / "docsite" / "rst"
RUNBOOKS = (DOCS / "runbooks.rst").read_text(encoding="utf-8")
INDEX = (DOCS / "finding_codes.rst").read_text(encoding="utf-8")


def test_the_index_is_what_the_guides_say() -> None:
    made = subprocess.run(
        [sys.executable, str(ROOT / "hack" / "finding_codes.py")], capture_output=True, text=True, check=True
    )
    assert made.stdout == INDEX, "run hack/finding_codes.py --write"


def test_the_index_has_every_code_of_the_registries() -> None:
    told = set(re.findall(r"^   \* - ``(\w+)``$", INDEX, re.MULTILINE))
    registries = (codes.CODES, disagreements.CODES, node_slices.CODES, agent_findings.CODES, cdi_codes.ALL)
    assert {code for registry in registries for code in registry} <= told


def test_every_runbook_that_the_index_names_is_there() -> None:
    named = set(re.findall(r"docsite\.runbooks\.(\w+)>", INDEX))
    there = set(
        re.findall(r"^\.\. _ansible_collections\.nodeops\.dra\.docsite\.runbooks\.(\w+):$", RUNBOOKS, re.MULTILINE)
    )
    assert named <= there
    assert there >= {"driver", "kubelet", "reboot", "upgrade", "device_plugin", "controller"}


@pytest.mark.report("F118")
@pytest.mark.report("F119")
def test_runbooks_use_playbooks_modules_variables_and_codes_that_exist() -> None:
    for name in set(re.findall(r"ansible-playbook nodeops\.dra\.(\w+)", RUNBOOKS)):
        assert (ROOT / "playbooks" / f"{name}.yml").is_file(), name
    for name in set(re.findall(r"-m nodeops\.dra\.(\w+)", RUNBOOKS)):
        assert (ROOT / "plugins" / "modules" / f"{name}.py").is_file(), name
    playbooks = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "playbooks").glob("*.yml"))
    for variable in set(re.findall(r"\b(?:unstick|repair|upgrade|preflight)_\w+(?=[=\"])", RUNBOOKS)):
        assert f"# {variable} " in playbooks, variable
    assert "resource.kubernetes.io/admin-access" in RUNBOOKS
