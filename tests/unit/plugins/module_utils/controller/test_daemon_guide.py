# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The guide of the controller: its reference is what the code says.

Run as a program it writes the reference anew.
"""

from __future__ import annotations

import pathlib

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.controller.coexistence import RECENT
from ansible_collections.nodeops.dra.plugins.module_utils.controller.daemon import ControllerDaemon
from ansible_collections.nodeops.dra.plugins.module_utils.controller.daemon_metrics import CONTROLLER_METRICS
from ansible_collections.nodeops.dra.plugins.module_utils.controller.daemon_settings import SCHEMA
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.exit_codes import ExitCode, exit_codes_rst
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.metric_table import COMMON_METRICS, metrics_rst
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.settings_guide import settings_rst

ROOT = pathlib.Path(__file__).resolve().parents[5]
GUIDE = ROOT / "docs" / "docsite" / "rst" / "controller.rst"
BEGIN = ".. begin of what is made from the code: tests/unit/plugins/module_utils/controller/test_daemon_guide.py "
BEGIN += "writes it anew\n"
END = ".. end of what is made from the code\n"


def titled(title: str, body: str) -> str:
    """A section."""
    return f"{title}\n{'-' * len(title)}\n\n{body.rstrip()}\n\n"


def reference() -> str:
    """The part of the guide that is made from the code."""
    return (
        titled("Settings", settings_rst(SCHEMA, ControllerDaemon.name))
        + titled("Metrics", metrics_rst([*CONTROLLER_METRICS, *COMMON_METRICS]))
        + titled("Exit statuses", exit_codes_rst())
    )


def test_the_reference_is_what_the_code_says() -> None:
    found = GUIDE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert found.strip() == reference().strip(), "run this file as a program"


def test_the_numbers_of_the_guide_are_those_of_the_code() -> None:
    text = " ".join(GUIDE.read_text(encoding="utf-8").partition(BEGIN)[0].split())
    assert RECENT == 300.0
    assert "within the last five minutes" in text
    assert f"exit status {ExitCode.LEASE_LOST.value}" in text
    assert f"exit status {ExitCode.REFUSED.value}" in text


def test_the_guide_is_valid() -> None:
    docutils = pytest.importorskip("docutils.core")
    text = GUIDE.read_text(encoding="utf-8").replace(".. code-block::", ".. code::")
    docutils.publish_string(text, settings_overrides={"halt_level": 2, "report_level": 2, "syntax_highlight": "none"})


def write() -> None:
    """Write the reference into the guide."""
    before, _begin, rest = GUIDE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    GUIDE.write_text(f"{before}{BEGIN}\n{reference().rstrip()}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    write()
