# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The parts of ``hack`` that could hide a failure: which Pythons count, and what of a test run is counted."""

from __future__ import annotations

import contextlib
import pathlib
import subprocess
import sys
import types
import typing as t

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture
def hack(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """Modules of ``hack`` as its programs see them."""
    monkeypatch.syspath_prepend(str(ROOT / "hack"))
    names = ("checks", "commands", "molecule_run", "pythons", "workspace")
    modules = types.SimpleNamespace(**{name: __import__(name) for name in names})
    for name in names:
        monkeypatch.delitem(sys.modules, name)
    return modules


def script(path: pathlib.Path, text: str) -> pathlib.Path:
    """An executable shell script."""
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_shim_that_does_not_run_is_no_interpreter(hack: types.SimpleNamespace, tmp_path: pathlib.Path) -> None:
    shim = script(tmp_path / "python3.9", "echo 'python3.9: command not found' >&2; exit 127")
    assert hack.pythons.real_interpreter(shim, "3.9") is None


def test_a_shim_that_runs_is_resolved(hack: types.SimpleNamespace, tmp_path: pathlib.Path) -> None:
    shim = script(tmp_path / f"python{HERE}", f'exec "{sys.executable}" "$@"')
    found = hack.pythons.real_interpreter(shim, HERE)
    assert found is not None
    assert found != shim
    assert found == found.resolve()


def test_another_version_under_the_name_is_refused(hack: types.SimpleNamespace, tmp_path: pathlib.Path) -> None:
    assert hack.pythons.real_interpreter(script(tmp_path / "python3.9", f'exec "{sys.executable}" "$@"'), "3.9") is None


@pytest.mark.parametrize(
    ("closing", "numbers"),
    [
        pytest.param("5 passed in 0.01s", (5, 0, 0), id="passed"),
        pytest.param("==== 1 failed, 3 passed, 3 skipped in 61.00s (0:01:01) ====", (3, 1, 3), id="same-numbers"),
        pytest.param("2 passed, 1 warning, 2 errors in 0.1s", (2, 2, 0), id="errors"),
        pytest.param("1 error in 0.1s", (0, 1, 0), id="one-error"),
        pytest.param("no tests ran in 0.01s", (0, 0, 0), id="none"),
    ],
)
def test_closing_lines_are_counted(hack: types.SimpleNamespace, closing: str, numbers: tuple[int, int, int]) -> None:
    command = hack.commands.Command("pytest", [], output=f"....\n9 passed in 1s\n{closing}\nafter\n")
    if closing.startswith("no tests"):
        command.output = closing
    outcome = hack.checks.counted(hack.commands.Outcome(), [command])
    assert (outcome.passed, outcome.broken, outcome.skipped) == numbers


def test_a_failing_command_is_red_with_its_output(hack: types.SimpleNamespace) -> None:
    good = hack.commands.Command("unit test good", ["sh", "-c", "echo fine"])
    bad = hack.commands.Command("unit test bad", ["sh", "-c", "echo broken; exit 3"])
    outcome = hack.commands.run_together([good, bad])
    assert [command.label for command in outcome.failed] == ["unit test bad"]
    assert outcome.failed[0].output == "broken\n"


def test_every_gate_that_fails_fails_make(tmp_path: pathlib.Path) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import checks, gate; from commands import Command, Outcome;"
        "red = Outcome([Command('x', ['x'], status=1)], 'why');"
        "checks.CHECKS.update(lint=lambda: red, units=lambda: Outcome(passed=2));"
        "raise SystemExit(gate.run_checks(['lint', 'units']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(ROOT / "hack")], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "1 of 2 checks FAILED" in done.stdout
    assert done.stdout.splitlines()[-1] == "2 passed, 0 failed, 0 skipped"


@pytest.mark.parametrize(
    ("scope", "commands"),
    [
        pytest.param(
            "short",
            [
                f"{HERE} --skip-test pylint",
                f"{HERE} --test pylint --exclude tests/",
                "import 3.9",
                "import 3.10",
                "import 3.14",
            ],
            id="make-test",
        ),
        pytest.param(
            "",
            [HERE, *(f"{version} --test compile --test import" for version in ("3.9", "3.10", "3.14"))],
            id="make-sanity",
        ),
    ],
)
def test_sanity_leaves_out_only_what_it_says(
    hack: types.SimpleNamespace,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    scope: str,
    commands: list[str],
) -> None:
    run: list[str] = []

    def record(command: t.Any) -> t.Any:
        run.append(" ".join(command.argv).partition(" --python ")[2] or command.label)
        return command

    pythons = dict.fromkeys(sorted({HERE, "3.9", "3.10", "3.14"}), tmp_path)
    monkeypatch.setattr(hack.checks, "found_pythons", lambda: pythons)
    monkeypatch.setattr(hack.checks.Command, "run", record)
    for name, result in {
        "locked": contextlib.nullcontext(),
        "copy_collection": tmp_path / "ansible_collections" / "nodeops" / "dra",
        "make_home": tmp_path,
    }.items():
        monkeypatch.setattr(hack.workspace, name, lambda *_args, result=result, **_more: result)
    monkeypatch.setenv("SANITY", scope)
    hack.checks.sanity()
    assert run == commands


@pytest.mark.parametrize(
    ("text", "status", "told"),
    [
        pytest.param("import os\n", 0, "2 files, 0 of them", id="sound"),
        pytest.param(
            "from __future__ import annotations\nimport msgspec\n", 1, "No module named 'msgspec'", id="library"
        ),
        pytest.param("pattern = '\\d'\n", 1, "invalid escape sequence", id="warning"),
        pytest.param("raise SystemExit(0)\n", 1, "SystemExit", id="end-of-the-process"),
    ],
)
def test_what_cannot_be_imported_is_found(tmp_path: pathlib.Path, text: str, status: int, told: str) -> None:
    plugins = tmp_path / "ansible_collections" / "nodeops" / "dra" / "plugins"
    for name, content in {"module_utils/kube/a.py": text, "modules/b.py": "", "action/c.py": "import nothing"}.items():
        (plugins / name).parent.mkdir(parents=True)
        (plugins / name).write_text(content, encoding="utf-8")
    argv = [
        sys.executable,
        "-I",
        "-S",
        "-W",
        "error",
        str(ROOT / "hack" / "import_everything.py"),
        str(tmp_path),
        "/none",
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout
    assert told in done.stdout
    assert ("plugins.module_utils.kube.a: cannot be imported" in done.stdout) is bool(status)


def test_what_runs_on_one_python_only_is_there(hack: types.SimpleNamespace) -> None:
    missing = [name for name in hack.checks.ONCE if not (ROOT / hack.checks.LAYER_TESTS / name).is_file()]
    assert missing == []


def test_without_a_container_engine_the_roles_are_not_run_and_one_line_says_so(
    hack: types.SimpleNamespace, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "podman", "exit 1")
    monkeypatch.setenv("PATH", str(tmp_path))
    # The variables of a person who runs this test must not count.
    for name in ("MOLECULE_ENGINE", "CONTAINERS_CONF"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(hack.workspace, "environment", lambda: {"PATH": str(tmp_path)})
    outcome = hack.checks.molecule()
    assert outcome.failed == []
    assert outcome.detail == (
        "NOT RUN: molecule: no container engine, podman or docker, is usable (`podman info` fails). "
        "On Debian: apt-get install podman runc netavark aardvark-dns iptables mmdebstrap"
    )


def test_a_scenario_that_fails_is_red_with_its_time(
    hack: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failed(command: t.Any) -> t.Any:
        command.status, command.output = 1, "TASK [x]\nagent        FAILED  182.9 s  debian12\n"
        return command

    monkeypatch.setattr(hack.checks.Command, "run", failed)
    outcome = hack.checks.molecule()
    assert [command.label for command in outcome.failed] == ["scenarios"]
    assert outcome.detail.endswith("; agent FAILED 182.9 s debian12")
