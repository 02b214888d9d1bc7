# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""``ctl resources`` gives the text of the files; and the guide of containers says what is so."""

from __future__ import annotations

import pathlib
import re
import shlex

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent import ctl
from ansible_collections.nodeops.dra.plugins.module_utils.agent.container_file_texts import (
    ENV,
    MARKER,
    QUADLET,
    Subject,
    text_of,
)
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.running_agent import running
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.test_ctl import NAME, ask, manifest
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim, pod

GUIDE = pathlib.Path(__file__).resolve().parents[5] / "docs" / "docsite" / "rst" / "containers.rst"


@pytest.mark.asyncio
async def test_formats_of_a_pod_a_claim_and_a_holder(node: Node) -> None:
    whole = manifest(pod(), "Pod")
    async with node.driver(), running(node) as agent:
        await agent.client.change(node.request("prepared", claim(), pod=pod()))
        await agent.client.change(node.request("prepared", claim(), holder="unit"))
        of_pod = await ask(agent, "resources", "--file", "-", "--format", "env", stdin=whole)
        of_claim = await ask(agent, "resources", "--claim", "team-a/c1", "--format", "quadlet")
        of_holder = await ask(agent, "resources", "--holder", "unit", "--format", "env")
        table = await ask(agent, "resources", "--holder", "unit")
        as_json = await ask(agent, "resources", "--claim", "team-a/c1", "--output", "json")
    assert of_pod == (0, text_of(Subject("pod_team-a_name-of-p-1_main", (NAME,)), ENV), "")
    assert of_claim == (0, text_of(Subject("claim_team-a_c1", (NAME,)), QUADLET), "")
    assert of_holder == (0, text_of(Subject("holder_unit", (NAME,)), ENV), "")
    assert table.out.splitlines()[1].split() == ["unit", NAME]
    assert as_json.json == {"cdi_devices": [NAME], "device_arguments": [f"--device={NAME}"]}


@pytest.mark.asyncio
async def test_what_is_not_prepared_or_not_clear_has_no_text(node: Node) -> None:
    uses = {"resources": {"claims": [{"name": "ref-c1"}]}}
    two = manifest(pod(containers=[{"name": "a", **uses}, {"name": "b", **uses}]), "Pod")
    async with node.driver(), running(node) as agent:
        await agent.client.change(node.request("prepared", claim(), pod=pod()))
        missing = await ask(agent, "resources", "--claim", "team-a/none", "--format", "env")
        unclear = await ask(agent, "resources", "--file", "-", "--format", "env", stdin=two)
        both = await ask(agent, "resources", "--claim", "team-a/c1", "--holder", "unit")
    assert [(one.status, one.out) for one in (missing, unclear, both)] == [(2, "")] * 3
    assert "team-a/none is not prepared on this node" in missing.err
    assert "The pod has 2 containers: a, b" in unclear.err
    assert "Too much was given" in both.err


def test_the_guide_is_valid_and_its_commands_are_understood() -> None:
    docutils = pytest.importorskip("docutils.core")
    text = GUIDE.read_text(encoding="utf-8")
    settings = {"halt_level": 2, "report_level": 2, "syntax_highlight": "none"}
    docutils.publish_string(text.replace(".. code-block::", ".. code::"), settings_overrides=settings)
    lines = re.findall(r"(?:\$ ctl|nodeops-dra-ctl) (\w+ --.+)$", text, re.MULTILINE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ctl, "_objects_in", lambda _path: [])
        used = [ctl._parser().parse_args(shlex.split(line)).command for line in lines]
    assert used == ["prepare", "unprepare", "resources", "resources", "resources"]


def test_the_guide_shows_a_file_as_it_is() -> None:
    shown = text_of(Subject("claim_team-a_training", ("k8s.gpu.example.com/claim=u-1-gpu-0",)), ENV)
    assert shown.startswith(MARKER)
    assert "".join(f"    {line}\n" for line in shown.splitlines()) in GUIDE.read_text(encoding="utf-8")
