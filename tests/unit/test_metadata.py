# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Metadata that repeats what is said elsewhere, compared with it."""

from __future__ import annotations

import pathlib
import re
import typing as t

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "requirements"


def load(name: str) -> t.Any:
    """A YAML file of the repository."""
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


PIN = re.compile(r"[A-Za-z0-9_.-]+==[^=;\s]+(; python_version (?:>=|<) \"3\.11\")?")


def names_in(path: pathlib.Path) -> list[str]:
    """What a requirement file names, without comments; included files are followed."""
    names = []
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.split("#")[0].strip()
        if text.startswith("-r "):
            names += names_in(path.parent / text[3:])
        elif text:
            names.append(text)
    return names


def test_action_group_lists_every_module() -> None:
    modules = sorted(path.stem for path in (ROOT / "plugins" / "modules").glob("*.py"))
    assert load("meta/runtime.yml")["action_groups"]["dra"] == modules


def test_requirement_files_hold_names_only() -> None:
    for path in REQUIREMENTS.glob("*.txt"):
        if path.name != "constraints.txt":
            assert [name for name in names_in(path) if not re.fullmatch(r"[A-Za-z0-9_.-]+", name)] == [], path.name


def test_every_requirement_is_pinned_exactly() -> None:
    pins = names_in(REQUIREMENTS / "constraints.txt")
    assert [
        pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9_.-]+==[^=;\s]+(; python_version [<>]=? .3\.11.)?", pin)
    ] == []
    pinned = {re.sub(r"[-_.]+", "-", pin.split("==")[0]).lower() for pin in pins}
    for path in REQUIREMENTS.glob("*.txt"):
        wanted = {re.sub(r"[-_.]+", "-", name.split("==")[0]).lower() for name in names_in(path)}
        assert wanted - pinned == set(), path.name


def test_ansible_test_gets_the_same_requirements() -> None:
    wanted = {*names_in(REQUIREMENTS / "agent.txt"), *names_in(REQUIREMENTS / "test.txt")}
    assert sorted(names_in(ROOT / "tests" / "unit" / "requirements.txt"), key=str.lower) == sorted(
        wanted, key=str.lower
    )


def test_no_sanity_check_is_ignored() -> None:
    lines = [
        line for path in (ROOT / "tests" / "sanity").glob("ignore-*.txt") for line in path.read_text().splitlines()
    ]
    assert [line for line in lines if line.strip()] == []


def test_every_integration_target_says_where_it_runs() -> None:
    targets = [path for path in (ROOT / "tests" / "integration" / "targets").glob("*") if path.is_dir()]
    assert [path.name for path in targets if not (path / "aliases").is_file()] == []
