# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Targets of the Makefile that talk to the person at the terminal, and the build."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time
import typing as t

import workspace
from commands import Command
from workspace import ROOT


def foreground(name: str, argv: t.Sequence[str], needs: str) -> int:
    """Run a program on this terminal; a clear line and status 2 when its file is not there."""
    if not (ROOT / needs).exists():
        sys.stderr.write(f"{name}: {needs} does not exist in this checkout\n")
        return 2
    started = time.monotonic()
    status = subprocess.run(list(argv), cwd=ROOT, env=workspace.environment(), check=False).returncode
    state = "ok" if status == 0 else f"FAILED (status {status})"
    sys.stdout.write(f"{name:<12} {state:<6} {time.monotonic() - started:6.1f} s\n")
    return status


def quickstart() -> int:
    """The playbook of the same name, on this machine only."""
    argv = ["ansible-playbook", "--inventory", "localhost,", "--connection", "local"]
    argv += ["--extra-vars", f"ansible_python_interpreter={sys.executable}", "playbooks/quickstart.yml"]
    return foreground("quickstart", argv, "playbooks/quickstart.yml")


def bench() -> int:
    """The benchmarks, on the terminal because their table is the result."""
    return foreground("bench", [sys.executable, "tests/bench/run.py"], "tests/bench/run.py")


def fuzz() -> int:
    """The long run of the fuzzers."""
    return foreground("fuzz", [sys.executable, "tests/fuzz/run.py"], "tests/fuzz/run.py")


def soak() -> int:
    """Random histories of a cluster with controllers that fail and die."""
    return foreground("soak", [sys.executable, "tests/soak/run.py"], "tests/soak/run.py")


def kills() -> int:
    """Every point at which a process can be killed while it writes, prepares or unprepares, then the agent at random.

    The counts are printed. AGENT_KILLS sets how often the agent is killed.
    """
    tests = ["checkpoint/test_store_kill.py", "manager/test_crash.py"]
    paths = [f"tests/unit/plugins/module_utils/{name}" for name in tests]
    os.environ["DRA_EVERY_CRASH_POINT"] = "1"
    points = foreground("kills", [sys.executable, "-m", "pytest", "-q", "-s", "--color=no", *paths], paths[0])
    agent = [sys.executable, "tests/soak/agent.py", "--kills", os.environ.get("AGENT_KILLS") or "500"]
    return foreground("agent kills", agent, agent[1]) or points


def chaos() -> int:
    """What can go wrong around the node agent, and how it took it; the table is the result."""
    return foreground("chaos", [sys.executable, "tests/soak/agent_chaos.py"], "tests/soak/agent_chaos.py")


def contract() -> int:
    """The contract suite, against the cluster of CONTRACT_KUBECONFIG, else against the embedded API server."""
    where = os.environ.get("CONTRACT_KUBECONFIG", "")
    if where and not pathlib.Path(where).is_file():
        sys.stderr.write(f"contract: the kubeconfig {where} is not there\n")
        return 2
    sys.stdout.write(
        f"the cluster of {where}\n" if where else "the embedded API server; KUBECONFIG=FILE for a cluster\n"
    )
    return foreground(
        "contract", [sys.executable, "-m", "pytest", "-q", "--color=no", "tests/contract"], "tests/contract"
    )


def proto() -> int:
    """Generate the message descriptors again."""
    return foreground("proto", [sys.executable, "hack/gen_proto.py"], "hack/gen_proto.py")


def wheelhouse() -> int:
    """Wheels for nodes without an index, and the proof that the daemons run from them."""
    folder = str(ROOT / "dist" / "wheelhouse")
    filled = foreground("wheels", [sys.executable, "hack/wheelhouse.py", folder], "hack/wheelhouse.py")
    return filled or foreground("node trial", [sys.executable, "hack/node_trial.py", folder], "hack/node_trial.py")


def build() -> int:
    """Collection archive, archive for nodes and zipapp in ``dist``."""
    started = time.monotonic()
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    with workspace.locked("build"):
        copy = workspace.copy_collection("build")
        commands = [
            Command("archive", ["ansible-galaxy", "collection", "build", "--force", "--output-path", str(dist)], copy),
            Command("zipapp", [sys.executable, "hack/build_zipapp.py", str(dist / "dra-checkpoint.pyz")]),
            Command("node archive", [sys.executable, "hack/build_node_archive.py", str(dist)]),
        ]
        failed = [command for command in commands if command.run().status]
    for command in failed:
        sys.stdout.write(f"--- build: {command.label} failed\n{command.output.rstrip()}\n")
    made = ", ".join(f"dist/{path.name}" for path in sorted(dist.iterdir()))
    state = "FAILED" if failed else "ok"
    sys.stdout.write(f"{'build':<12} {state:<6} {time.monotonic() - started:6.1f} s  {made}\n")
    return 1 if failed else 0


def molecule() -> int:
    """The roles in containers."""
    return foreground("molecule", [sys.executable, "hack/molecule_run.py"], "hack/molecule_run.py")


PROGRAMS: dict[str, t.Callable[[], int]] = {
    "quickstart": quickstart,
    "bench": bench,
    "fuzz": fuzz,
    "soak": soak,
    "kills": kills,
    "chaos": chaos,
    "contract": contract,
    "proto": proto,
    "build": build,
    "wheelhouse": wheelhouse,
    "molecule": molecule,
}
