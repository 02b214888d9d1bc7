# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Rules for every file of the repository: licence, size, and nothing that only one machine has."""

from __future__ import annotations

import ast
import os
import pathlib
import re
import subprocess
import typing as t

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

MAX_FILE = 400
# A table of cases for one subject is easier to read in one file than in two.
MAX_TEST_FILE = 600
MAX_FUNCTION = 60
# Path to the reason why it may be longer. Documentation strings of modules do not count.
LONGER_FILES: dict[str, str] = {}
# "path::function" to the reason.
LONGER_FUNCTIONS: dict[str, str] = {}

# What ansible-core's own code is combined with: validate-modules insists for modules, fragments become part of them.
GPL = ("plugins/modules/", "plugins/doc_fragments/")
# Files that others write in a form of their own, or that must keep every byte.
NO_HEADER = ("LICENSES/", "tests/unit/fixtures/", "CHANGELOG.rst", "changelogs/changelog.yaml")
HEADED = {".py", ".pyi", ".yml", ".yaml", ".toml", ".txt", ".proto", ".rst", ".md", ".j2", ".sh", ".cfg", ".ini"}
HEADED_NAMES = {"Makefile", ".gitignore", ".gitattributes", "run", "aliases"}

# Traces of one developer's machine. Written in pieces so that this file does not find itself.
TRACES = [
    re.compile(pattern.replace("~", ""))
    for pattern in (
        r"(?<![\w.-])/wo~rk/",
        r"(?<![\w.-])/fa~rm/",
        r"\.pye~nv/versions/\d",
        r"/ho~me/[a-z]+/",
        r"/opt/(?:py~pi|whe~els)",
        r"index-u~rl\s*=",
        r"https?://[\w.-]*(?:artifac~tory|nex~us|devp~i|pypi\.~org/simple|files\.pythonho~sted)",
    )
]


def repository_files() -> list[str]:
    """Paths of what git tracks or would track; everything that is no tool's folder where there is no git."""
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "-coz", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
        return sorted(name for name in listed if name and (ROOT / name).is_file())
    names = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in {"output", "__pycache__"}]
        names += [(pathlib.Path(folder) / name).relative_to(ROOT).as_posix() for name in files]
    return sorted(names)


FILES = repository_files()
PYTHON = [name for name in FILES if name.endswith(".py")]


def missing_header(name: str, text: str) -> str:
    """What is wrong with the licence header of a file; empty when nothing is."""
    head = "\n".join(text.splitlines()[:8])
    if not re.search(r"Copyright \(c\) 20\d\d nodeops\.dra contributors", head):
        return f"{name}: no copyright line at the top"
    licence = re.search(r"SPDX-License-Identifier: (\S+)", head)
    wanted = "GPL-3.0-or-later" if name.startswith(GPL) else "Apache-2.0"
    if not licence or licence.group(1) != wanted:
        return f"{name}: SPDX-License-Identifier {wanted} is missing at the top"
    return ""


def code_lines(tree: ast.Module, text: str) -> int:
    """Lines of a Python file without the documentation that Ansible wants inside modules."""
    lines = len(text.splitlines())
    for node in tree.body:
        names = {target.id for target in getattr(node, "targets", []) if isinstance(target, ast.Name)}
        if names & {"DOCUMENTATION", "EXAMPLES", "RETURN"}:
            lines -= (node.end_lineno or node.lineno) - node.lineno
    return lines


def too_long(name: str, text: str) -> list[str]:
    """File and functions over the limits that have no reason in the lists above."""
    tree = ast.parse(text, name)
    lines = code_lines(tree, text)
    limit = MAX_TEST_FILE if name.startswith("tests/") else MAX_FILE
    found = [f"{name}: {lines} lines, limit {limit}"] if lines > limit and name not in LONGER_FILES else []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno:
            length = node.end_lineno - node.lineno + 1
            if length > MAX_FUNCTION and f"{name}::{node.name}" not in LONGER_FUNCTIONS:
                found.append(f"{name}:{node.lineno}: {node.name} has {length} lines, limit {MAX_FUNCTION}")
    return found


def traces(name: str, text: str) -> list[str]:
    """Places where a file speaks of one machine."""
    return [
        f"{name}:{number}: {match.group(0)}"
        for number, line in enumerate(text.splitlines(), 1)
        for match in (pattern.search(line) for pattern in TRACES)
        if match
    ]


def read(name: str) -> str:
    """Text of a file; bytes that are no UTF-8 are of no interest here."""
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def refuse(faults: t.Iterable[str]) -> None:
    """Fail with all faults, one a line."""
    found = list(faults)
    assert not found, "\n" + "\n".join(found)


def test_there_are_files() -> None:
    assert "galaxy.yml" in FILES
    assert PYTHON


def test_licence_headers() -> None:
    headed = [
        name
        for name in FILES
        if not name.startswith(NO_HEADER)
        and (pathlib.Path(name).suffix in HEADED or pathlib.Path(name).name in HEADED_NAMES)
    ]
    refuse([fault for fault in (missing_header(name, read(name)) for name in headed) if fault])


def test_length_of_files_and_functions() -> None:
    refuse([fault for name in PYTHON for fault in too_long(name, read(name))])


def test_reasons_for_long_code_are_still_needed() -> None:
    for name in LONGER_FILES:
        assert name not in FILES or code_lines(ast.parse(read(name)), read(name)) > MAX_FILE, name
    for name in LONGER_FUNCTIONS:
        assert name.split("::")[0] in FILES, name


def test_nothing_of_one_machine() -> None:
    refuse([fault for name in FILES for fault in traces(name, read(name))])


def test_no_package_files() -> None:
    refuse(name for name in FILES if name.endswith("__init__.py"))


def test_no_link_leaves_the_repository() -> None:
    refuse([name for name in FILES if ROOT not in (ROOT / name).resolve().parents])


HEADER = "# Copyright (c) 2026 nodeops.dra contributors\n# SPDX-License-Identifier: {}\n"


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        pytest.param("hack/a.py", HEADER.format("Apache-2.0"), "", id="sound"),
        pytest.param("plugins/modules/a.py", HEADER.format("GPL-3.0-or-later"), "", id="sound-module"),
        pytest.param("hack/a.py", "", "no copyright", id="empty"),
        pytest.param("hack/a.py", HEADER.format("MIT"), "Apache-2.0 is missing", id="other-licence"),
        pytest.param("plugins/modules/a.py", HEADER.format("Apache-2.0"), "GPL-3.0-or-later is missing", id="module"),
        pytest.param("hack/a.py", "\n" * 8 + HEADER.format("Apache-2.0"), "no copyright", id="not-at-the-top"),
    ],
)
def test_header_rule(name: str, text: str, found: str) -> None:
    fault = missing_header(name, text)
    assert found in fault
    assert bool(fault) == bool(found)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param("a = 1\n" * MAX_FILE, 0, id="file-at-limit"),
        pytest.param("a = 1\n" * (MAX_FILE + 1), 1, id="file-over"),
        pytest.param("RETURN = '''\n" + "a\n" * MAX_FILE + "'''\n", 0, id="documentation"),
        pytest.param("def f():\n" + "    a = 1\n" * (MAX_FUNCTION - 1), 0, id="function-at-limit"),
        pytest.param("class A:\n  async def f():\n" + "    a = 1\n" * MAX_FUNCTION, 1, id="method-over"),
    ],
)
def test_length_rule(text: str, count: int) -> None:
    assert len(too_long("hack/a.py", text)) == count


# Lines that must be found, put together here so that the scan of this file stays clean.
BAD_LINES = [
    pytest.param("".join(parts), id=name)
    for name, parts in {
        "tree": ("/wo", "rk/main/hack"),
        "interpreter": ("/ro", "ot/.pye", "nv/versions/3.9.18/bin/python"),
        "user": ("/ho", "me/", "jane/src"),
        "mirror": ("/opt/", "py", "pi/simple"),
        "index": ("--index-u", "rl=http://x"),
        "registry": ("https://pypi.", "org/simple"),
    }.items()
]


@pytest.mark.parametrize("line", BAD_LINES)
def test_trace_rule(line: str) -> None:
    assert traces("a.txt", f"first\nsee {line}\n") != []


@pytest.mark.parametrize(
    "line", ["/var/lib/kubelet/work/main", "~/.cache", "the homepage", "/root", "https://pypi.python"]
)
def test_trace_rule_leaves_other_text(line: str) -> None:
    assert traces("a.txt", line) == []
