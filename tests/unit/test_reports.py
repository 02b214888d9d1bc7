# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Every field report that this collection answers has a test, and the page that lists them is up to date."""

from __future__ import annotations

import pathlib
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Reports without a test so far. A report that gets one has to leave this list.
NOT_YET = {
    "F103": "roles",
}
# Parts of which every report has to have a test.
COMPLETE = {"manager", "plugin client", "checkpoint", "CDI", "modules", "daemon"}


@pytest.fixture(scope="module")
def table() -> types.ModuleType:
    """The program that makes the table."""
    sys.path.insert(0, str(ROOT / "hack"))
    try:
        import field_reports
    finally:
        sys.path.remove(str(ROOT / "hack"))
        sys.modules.pop("field_reports", None)
    return field_reports  # type: ignore[no-any-return]


def test_reports_are_listed_once_and_in_order(table: types.ModuleType) -> None:
    names = [report.id for report in table.REPORTS]
    assert names == sorted(set(names))


def test_every_mark_names_a_report(table: types.ModuleType) -> None:
    known = {report.id for report in table.REPORTS}
    unknown = {name: tests for name, tests in table.covering_tests().items() if name not in known}
    assert unknown == {}


def test_every_report_has_a_test_or_is_known_to_have_none(table: types.ModuleType) -> None:
    tests = table.covering_tests()
    missing = {report.id: report.part for report in table.REPORTS if report.id not in tests}
    assert missing == NOT_YET
    assert COMPLETE.isdisjoint(missing.values())


def test_the_page_is_up_to_date(table: types.ModuleType) -> None:
    written = table.PAGE.read_text(encoding="utf-8") if table.PAGE.exists() else ""
    assert written == table.page(table.covering_tests()), "run: python hack/field_reports.py --write"


def test_marks_are_found_on_tests_and_on_their_parameters(table: types.ModuleType, tmp_path: pathlib.Path) -> None:
    (tmp_path / "test_a.py").write_text(
        "import pytest\n"
        "@pytest.mark.report('F001', 'F002')\n"
        "def test_one(): ...\n"
        "@pytest.mark.parametrize('a', [pytest.param(1, marks=pytest.mark.report('F002'))])\n"
        "async def test_two(a): ...\n"
        "def helper(): pytest.mark.report('F003')\n",
        encoding="utf-8",
    )
    assert table.covering_tests(tmp_path) == {
        "F001": ["test_a.py::test_one"],
        "F002": ["test_a.py::test_one", "test_a.py::test_two"],
    }
