# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The guide of the agent: its reference is what the code says, and its commands exist.

Run as a program it writes the reference anew.
"""

from __future__ import annotations

import pathlib
import re
import shlex

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent import ctl
from ansible_collections.nodeops.dra.plugins.module_utils.agent.agent_metrics import AGENT_METRICS
from ansible_collections.nodeops.dra.plugins.module_utils.agent.local_messages import agent_api
from ansible_collections.nodeops.dra.plugins.module_utils.agent.settings import NAME, SCHEMA
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.exit_codes import exit_codes_rst
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.metric_table import COMMON_METRICS, metrics_rst
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.settings_guide import settings_rst

ROOT = pathlib.Path(__file__).resolve().parents[5]
GUIDE = ROOT / "docs" / "docsite" / "rst" / "agent.rst"
PROTO = ROOT / "proto" / "nodeops" / "dra" / "agent" / "v1" / "agent.proto"
BEGIN = ".. begin of what is made from the code: tests/unit/plugins/module_utils/agent/test_guide.py writes it anew\n"
END = ".. end of what is made from the code\n"


def calls() -> dict[str, str]:
    """Every call of the local API with the comment above it."""
    text = PROTO.read_text(encoding="utf-8")
    found = re.findall(r"((?:  // .+\n)+)  rpc (\w+)\(", text)
    return {name: " ".join(line.strip().lstrip("/ ") for line in comment.splitlines()) for comment, name in found}


def titled(title: str, body: str) -> str:
    return f"{title}\n{'-' * len(title)}\n\n{body.rstrip()}\n\n"


def reference() -> str:
    """The part of the guide that is made from the code."""
    local = "".join(f"``{name}``\n   {text}\n\n" for name, text in calls().items())
    about = f"The service ``{agent_api().service_name()}``; ``{PROTO.relative_to(ROOT)}`` describes its messages.\n\n"
    return (
        titled("Local API", about + local)
        + titled("Settings", settings_rst(SCHEMA, NAME))
        + titled("Metrics", metrics_rst([*AGENT_METRICS, *COMMON_METRICS]))
        + titled("Exit statuses", exit_codes_rst())
    )


def test_the_reference_is_what_the_code_says() -> None:
    found = GUIDE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert found.strip() == reference().strip(), "run this file as a program"


def test_every_call_is_in_the_guide() -> None:
    assert set(calls()) == set(agent_api().service())
    assert all(calls().values())


def test_the_guide_is_valid() -> None:
    docutils = pytest.importorskip("docutils.core")
    text = GUIDE.read_text(encoding="utf-8").replace(".. code-block::", ".. code::")
    docutils.publish_string(text, settings_overrides={"halt_level": 2, "report_level": 2, "syntax_highlight": "none"})


def test_the_commands_of_the_guide_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctl, "_objects_in", lambda _path: [])
    lines = re.findall(r"^    \$ (?:.+\| )?ctl (.+)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    used = {ctl._parser().parse_args(shlex.split(line)).command for line in lines}
    assert used == {"claims", "drivers", "findings", "prepare", "resources", "unprepare", "watch"}


def write() -> None:
    """Write the reference into the guide."""
    before, _begin, rest = GUIDE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    GUIDE.write_text(f"{before}{BEGIN}\n{reference().rstrip()}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    write()
