# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The checks behind the targets of the Makefile. Each works on what exists and says what it left out."""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import sys
import typing as t

import molecule_run
import workspace
from commands import Command, Outcome, outcome_of, run_together
from workspace import BUILD, ROOT

# Their tests must pass on the oldest Python of a managed node too (see the README).
LAYER_TESTS = "tests/unit/plugins/module_utils"
NODE_LAYERS = ("checkpoint", "cdi", "resource", "bridge", "agent/preflight", "agent/prerequisites")
# Of their tests, those that measure memory and time or try every damage and every moment to die: they are about what is
# done and not about the Python that does it, so that once is enough.
ONCE = (
    "checkpoint/test_driver_file_robustness.py",
    "checkpoint/test_lazyjson.py",
    "checkpoint/test_salvage.py",
    "checkpoint/test_store_kill.py",
)
# What `make test` runs of them.
SCENARIOS = "agent"
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def existing(*paths: str) -> list[str]:
    """Those of the paths, relative to the checkout, that exist."""
    return [path for path in paths if (ROOT / path).exists()]


def found_pythons() -> dict[str, pathlib.Path]:
    """Version to interpreter, as linked at the start of the run."""
    return {path.name[len("python") :]: path for path in sorted(workspace.PYTHONS.glob("python3.*"))}


def lint() -> Outcome:
    """Everything that reads the sources without running them."""
    hack = [f"hack/{path.name}" for path in sorted((ROOT / "hack").glob("*.py"))]
    commands = [
        # The slowest first: two run at a time.
        Command("ansible-lint", ["ansible-lint", "--offline", "-q", "--strict", "--nocolor"]),
        Command("mypy", ["mypy", "-p", "ansible_collections.nodeops.dra.plugins"]),
        Command("mypy hack", ["mypy", "--cache-dir", ".build/mypy-hack", *hack], env={"MYPYPATH": "hack"}),
        Command("ruff", ["ruff", "check", "--quiet", "--output-format", "concise", "."]),
        Command("format", ["ruff", "format", "--check", "."]),
        Command("changelog", ["antsibull-changelog", "lint"]),
    ]
    with workspace.locked("lint"):
        copy = workspace.copy_collection("lint")
        commands.insert(1, Command("docs", ["antsibull-docs", "lint-collection-docs", "--plugin-docs", "."], cwd=copy))
        if (ROOT / "hack" / "gen_proto.py").exists():
            commands.append(Command("proto", [sys.executable, "hack/gen_proto.py", "--check"]))
        return run_together(commands)


def sanity() -> Outcome:
    """ansible-test sanity here, and the tests that depend on the version on every other Python.

    SANITY=short leaves out what costs much and finds little: pylint on our tests, which ruff reads and nobody installs;
    and on other Pythons all but the question whether each file can be imported there.
    """
    pythons, short = found_pythons(), os.environ.get("SANITY") == "short"
    with workspace.locked("sanity"):
        # Fixtures must keep bad line ends and bytes that are no UTF-8; the checks would read them as text.
        copy = workspace.copy_collection("sanity", leave_out="tests/unit/fixtures/")
        env = {"HOME": str(workspace.make_home())}
        base = ["ansible-test", "sanity", "--color", "no", "--python"]
        if short:
            rest = Command(f"all but pylint on {HERE}", [*base, HERE, "--skip-test", "pylint"], copy, env)
            pylint = Command("pylint", [*base, HERE, "--test", "pylint", "--exclude", "tests/"], copy, env)
            commands = [rest.run(), pylint.run()]
        else:
            commands = [Command(f"all on {HERE}", [*base, HERE], copy, env).run()]
        for version in sorted(set(pythons) - {HERE}, key=lambda version: int(version.partition(".")[2])):
            if short:
                bare = [str(pythons[version]), "-I", "-S", "-W", "error"]
                argv = [*bare, "hack/import_everything.py", str(copy.parents[2]), str(ansible_alone())]
                commands.append(Command(f"import {version}", argv).run())
            else:
                argv = [*base, version, "--test", "compile", "--test", "import"]
                commands.append(Command(version, argv, copy, env).run())
    for command in commands:
        if "All targets skipped" in command.output:
            command.status = command.status or 1
    return outcome_of(commands, not_found(found_pythons()))


def not_found(pythons: t.Mapping[str, pathlib.Path]) -> str:
    """Which Python versions were not checked, in words; empty when none is missing."""
    missing = [f"3.{minor}" for minor in range(9, 14) if f"3.{minor}" not in pythons]
    return f"not on this machine: {', '.join(missing)}" if missing else ""


def counted(outcome: Outcome, commands: t.Sequence[Command]) -> Outcome:
    """Add the numbers of pytest's closing lines to the outcome."""
    for command in commands:
        closing = re.findall(r"^=* ?(?:\d+ \w+, )*\d+ \w+(?:, \d+ \w+)* in [\d.]+s.*$", command.output, re.MULTILINE)
        numbers = re.findall(r"(\d+) (passed|failed|errors?|skipped)", closing[-1]) if closing else []
        by_word = {word: int(number) for number, word in numbers}
        outcome.passed += by_word.get("passed", 0)
        outcome.broken += by_word.get("failed", 0) + by_word.get("error", 0) + by_word.get("errors", 0)
        outcome.skipped += by_word.get("skipped", 0)
    outcome.detail += f"; {outcome.passed} passed, {outcome.broken} failed, {outcome.skipped} skipped"
    return outcome


def py39_python(python: pathlib.Path) -> tuple[Command, pathlib.Path]:
    """Make the Python 3.9 environment when it is not there; its interpreter."""
    folder = BUILD / "py39"
    digest = hashlib.sha256()
    for path in (*sorted((ROOT / "requirements").glob("*.txt")), ROOT / "hack" / "make_venv.py", python):
        digest.update(os.path.realpath(path).encode() if path == python else path.read_bytes())
    stamp = folder / f".ready-{digest.hexdigest()[:16]}"
    argv = [str(python), "hack/make_venv.py", str(folder), "requirements/py39.txt", str(stamp)]
    command = Command("venv 3.9", argv)
    return (command if stamp.exists() else command.run()), folder / "bin" / "python"


def ansible_alone() -> pathlib.Path:
    """A folder for the import path that holds ``ansible`` and nothing else of .venv.

    bridge and modules import ansible.module_utils, which nodes get from the controller in any Python.
    """
    shared = BUILD / "py39-path"
    shared.mkdir(parents=True, exist_ok=True)
    library = shared / "ansible"
    if not library.exists():
        library.unlink(missing_ok=True)
        library.symlink_to(next((ROOT / ".venv" / "lib").glob("python3*/site-packages/ansible")))
    return shared


def units() -> Outcome:
    """pytest on everything, then the layers for managed nodes on Python 3.9."""
    pytest = ["-m", "pytest", "-q", "-n", "2", "-m", "not e2e and not bench", "--color=no"]
    commands = [Command(f"pytest {HERE}", [sys.executable, *pytest, *existing("tests/unit", "tests/contract")]).run()]
    layers = existing(*(f"{LAYER_TESTS}/{layer}" for layer in NODE_LAYERS))
    python39 = found_pythons().get("3.9")
    if python39 is None or not layers:
        missing = "no Python 3.9 on this machine: the layers for managed nodes ran on one version only"
        return counted(outcome_of(commands, missing if python39 is None else ""), commands)
    with workspace.locked("py39"):
        made, python = py39_python(python39)
    if made.status:
        commands.append(made)
        return counted(outcome_of(commands), commands)
    env = {"PYTHONPATH": str(ansible_alone()), "PYTHONPYCACHEPREFIX": str(BUILD / "pycache39")}
    once = [f"--ignore={LAYER_TESTS}/{name}" for name in ONCE]
    commands.append(Command("pytest 3.9", [str(python), *pytest, *once, *layers], env=env).run())
    return counted(outcome_of(commands), commands)


def integration() -> Outcome:
    """ansible-test integration of every target, with modules on the interpreters that the targets ask for."""
    targets = (ROOT / "tests" / "integration" / "targets").glob("*/aliases")
    names = sorted(path.parent.name for path in targets if "hidden" not in path.read_text(encoding="utf-8").split())
    wanted = os.environ.get("TARGETS", "").split() or names
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        raise SystemExit(f"integration: no such target: {', '.join(unknown)}; there are: {', '.join(names)}")
    if not names:
        return Outcome(detail="no targets yet")
    with workspace.locked("integration"):
        copy = workspace.copy_collection("integration")
        lines = ["---", "node_pythons:", *(f'  "{v}": {os.path.realpath(p)}' for v, p in found_pythons().items())]
        (copy / "tests" / "integration" / "integration_config.yml").write_text(
            "\n".join(lines) + "\n", encoding="utf-8"
        )
        argv = ["ansible-test", "integration", "--color", "no", "--python", HERE, "--allow-root", *wanted]
        command = Command("ansible-test", argv, copy, {"HOME": str(workspace.make_home())}).run()
    return outcome_of([command], f"{len(wanted)} targets: {', '.join(wanted)}")


def molecule() -> Outcome:
    """The roles in containers; where no container can be run, one line says so and nothing is red."""
    command = Command("scenarios", [sys.executable, "hack/molecule_run.py"], env={"SCENARIOS": SCENARIOS}).run()
    if command.status == molecule_run.NO_ENGINE:
        return Outcome(detail=f"NOT RUN: {command.output.strip().splitlines()[-1]}")
    told = re.findall(r"^\w+ +(?:ok|FAILED) +[\d.]+ s .*$", command.output, re.MULTILINE)
    return outcome_of([command], *(" ".join(line.split()) for line in told))


# In the order in which they start, two at a time. Those that keep a single core busy come first, the longest at the
# head; the unit tests use every core that is free, so they come last and leave none idle at the end.
CHECKS: dict[str, t.Callable[[], Outcome]] = {
    "sanity": sanity,
    "integration": integration,
    "molecule": molecule,
    "lint": lint,
    "units": units,
}
