# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The index of all finding codes, from the tables of the guides, which tests hold to the registries of the code.

python hack/finding_codes.py            print the page
python hack/finding_codes.py --write    write it to docs/docsite/rst/finding_codes.rst
"""

from __future__ import annotations

import pathlib
import re
import sys
import typing as t

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs" / "docsite" / "rst"
PAGE = DOCS / "finding_codes.rst"
# Guide to the columns of its table of codes.
GUIDES = {
    "preflight": ("severity", "modes", "meaning"),
    "claims": ("meaning",),
    "checkpoint": ("severity", "meaning", "repair"),
}
TITLES = {"preflight": "the node", "claims": "claims and drivers", "checkpoint": "state files"}
# Code to the runbook that starts with it.
RUNBOOKS = {
    "cgroup_v1": "upgrade",
    "checksum_mismatch": "kubelet",
    "claim_needs_prepare": "reboot",
    "device_plugin_overlap": "device_plugin",
    "driver_missing": "driver",
    "gate_off_in_target": "upgrade",
    "gate_refused": "upgrade",
    "kubelet_state_refused": "kubelet",
    "kubelet_too_old": "upgrade",
    "other_release": "upgrade",
    "pods_gone": "driver",
    "stale_slices": "driver",
    "stale_socket": "driver",
    "state_before_boot": "reboot",
    "truncated": "kubelet",
}


class Code(t.NamedTuple):
    """One code of one guide."""

    code: str
    guide: str
    meaning: str


def codes(guide: str) -> list[Code]:
    """The rows of a guide's table of codes."""
    text = (DOCS / f"{guide}.rst").read_text(encoding="utf-8")
    columns = GUIDES[guide]
    cell = r"     - (.*)\n"
    found = re.findall(rf"^   \* - ``([a-z_0-9]+)``\n{cell * len(columns)}", text, re.MULTILINE)
    return [Code(row[0], guide, row[1 + columns.index("meaning")]) for row in found]


def page() -> str:
    """The whole page."""
    lines = [
        "..",
        "  Copyright (c) 2026 nodeops.dra contributors",
        "  SPDX-License-Identifier: Apache-2.0",
        "  Written by hack/finding_codes.py, do not edit.",
        "",
        ".. _ansible_collections.nodeops.dra.docsite.finding_codes:",
        "",
        "All finding codes",
        "=================",
        "",
        "Every code that modules and agent tell, where it is explained, and the runbook that starts with it.",
        "",
        ".. list-table::",
        "   :header-rows: 1",
        "   :widths: 24 46 15 15",
        "",
        "   * - Code",
        "     - Meaning",
        "     - Guide",
        "     - Runbook",
    ]
    every = sorted(code for guide in GUIDES for code in codes(guide))
    for one in every:
        guide = f":ref:`{TITLES[one.guide]} <ansible_collections.nodeops.dra.docsite.{one.guide}>`"
        runbook = RUNBOOKS.get(one.code)
        link = f" :ref:`{runbook} <ansible_collections.nodeops.dra.docsite.runbooks.{runbook}>`" if runbook else ""
        lines += [f"   * - ``{one.code}``", f"     - {one.meaning}", f"     - {guide}", f"     -{link}"]
    return "\n".join(lines) + "\n"


def main(argv: t.Sequence[str]) -> int:
    """Entry point; returns the exit status."""
    if list(argv) == ["--write"]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
