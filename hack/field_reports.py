# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Field reports of others, and which of our tests cover each: those that are marked ``report("F001")``.

python hack/field_reports.py            print the table
python hack/field_reports.py --write    write it to docs/docsite/rst/field_reports.rst
"""

from __future__ import annotations

import argparse
import ast
import pathlib
import sys
import typing as t

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests" / "unit"
PAGE = ROOT / "docs" / "docsite" / "rst" / "field_reports.rst"


class Report(t.NamedTuple):
    """What somebody else met: how bad it is (1 to 5, worst), in one sentence, and where it was told first."""

    id: str
    part: str
    severity: int
    title: str
    source: str


def reports(text: str) -> list[Report]:
    """The lines of ``field_reports.txt``."""
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, part, severity, title, source = line.split(" | ")
            found.append(Report(name, part, int(severity), title, source))
    return found


REPORTS = reports((ROOT / "hack" / "field_reports.txt").read_text(encoding="utf-8"))


def covering_tests(folder: pathlib.Path = TESTS) -> dict[str, list[str]]:
    """Report to the tests that are marked with it, each as ``path::name``, in the order of the files."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.report(" not in text:
            continue
        for node in ast.walk(ast.parse(text, str(path))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
                for report in sorted(set(_marks(node))):
                    found.setdefault(report, []).append(f"{path.relative_to(folder)}::{node.name}")
    return found


def _marks(test: ast.AST) -> t.Iterator[str]:
    """The reports in ``pytest.mark.report(...)``, on the test or on one of its parameter sets."""
    for node in ast.walk(test):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "report":
            yield from (str(one.value) for one in node.args if isinstance(one, ast.Constant))


def page(tests: t.Mapping[str, t.Sequence[str]]) -> str:
    """The whole page."""
    lines = [
        "..",
        "  Copyright (c) 2026 nodeops.dra contributors",
        "  SPDX-License-Identifier: Apache-2.0",
        "  Written by hack/field_reports.py, do not edit.",
        "",
        ".. _ansible_collections.nodeops.dra.docsite.field_reports:",
        "",
        "Field reports and their tests",
        "=============================",
        "",
        "What others have met with Dynamic Resource Allocation, in public reports, and the tests that would fail if",
        "this collection did the same. The severity is 5 where a device is given twice or a node is stuck, and 1 for",
        "cosmetics. The tests are below ``tests/unit``.",
        "",
    ]
    for part in dict.fromkeys(report.part for report in REPORTS):
        lines += [_capital(part), "-" * len(part), ""]
        for report in REPORTS:
            if report.part == part:
                lines += [
                    f"**{report.id}** {report.title} (severity {report.severity}, {report.source})",
                    "",
                    *([f"- ``{test}``" for test in tests.get(report.id, ())] or ["- no test yet"]),
                    "",
                ]
    return "\n".join(lines).rstrip() + "\n"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def main(argv: t.Sequence[str]) -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(description="Field reports and the tests that cover them.")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args(argv)
    text = page(covering_tests())
    if options.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
