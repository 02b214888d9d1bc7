# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Prove that the wheels and the archive make a node's daemons run, without an index and without ansible-core.

    python hack/node_trial.py WHEELHOUSE

For each Python that the wheels are for and this machine has: a fresh virtual environment from the wheels alone, the
archive unpacked beside it, and both daemons at work from there, with a driver and an API server of this environment.
"""

from __future__ import annotations

import io
import os
import pathlib
import platform
import subprocess
import sys
import tarfile
import tempfile
import typing as t

import pythons
import wheelhouse
from build_node_archive import NodeArchive, pack

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODULES = "ansible_collections.nodeops.dra.plugins.module_utils"
DAEMONS = ("agent", "controller")
# What the two import when they work, and what must not be there.
IMPORTS = "import aiohttp, google.protobuf, grpc.aio, jsonschema, msgspec, prometheus_client, yaml"
TESTS = "tests/unit/plugins/module_utils/agent/test_bare_tree.py"
WITHOUT_ANSIBLE = "import importlib.util, sys; sys.exit(importlib.util.find_spec('ansible') is not None)"


def run(argv: t.Sequence[str | pathlib.Path], folder: pathlib.Path, code: pathlib.Path, **variables: str) -> None:
    """Run a step as on the node: no settings of this machine's pip, no modules but those of ``code``."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "PYTHON"))}
    env.update(PIP_CONFIG_FILE=os.devnull, PIP_DISABLE_PIP_VERSION_CHECK="1", PYTHONPATH=str(code), **variables)
    words = [str(part) for part in argv]
    done = subprocess.run(words, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise wheelhouse.WheelhouseError(f"{' '.join(words)}\n{done.stdout.decode(errors='replace').rstrip()}")


def try_out(python: pathlib.Path, wheels: pathlib.Path, archive: NodeArchive, folder: pathlib.Path) -> None:
    """Install into the empty folder as a node would, and start both daemons."""
    code, venv, settings = folder / archive.release, folder / "venv", folder / "settings.yml"
    with tarfile.open(fileobj=io.BytesIO(archive.content)) as packed:
        packed.extractall(code, filter="data")
    settings.touch()
    requirements = code / "ansible_collections" / "nodeops" / "dra" / "requirements"
    node_python = venv / "bin" / "python"
    constraints = requirements / "constraints.txt"
    install: list[str | pathlib.Path] = [node_python, "-m", "pip", "install", "--quiet", "--no-compile", "--no-index"]
    install += ["--find-links", wheels, "--constraint", constraints]
    run([python, "-m", "venv", venv], folder, code)
    for daemon in DAEMONS:
        run([*install, "--requirement", requirements / f"{daemon}.txt"], folder, code)
    run([node_python, "-m", "pip", "check"], folder, code)
    run([node_python, "-c", WITHOUT_ANSIBLE], folder, code)
    run([node_python, "-c", IMPORTS], folder, code)
    for daemon in DAEMONS:
        run([node_python, "-m", f"{MODULES}.{daemon}", "--version"], folder, code)
        run([node_python, "-m", f"{MODULES}.{daemon}", "--config", settings, "--check-config"], folder, code)
    test: list[str | pathlib.Path] = [sys.executable, "-m", "pytest", "-q", ROOT / TESTS, "-k", "without_ansible"]
    run(test, ROOT, ROOT / ".build", NODEOPS_DRA_NODE_PYTHON=str(node_python))


def main(argv: t.Sequence[str]) -> int:
    """Entry point; returns the exit status."""
    if len(argv) != 1:
        sys.stderr.write("usage: node_trial.py WHEELHOUSE\n")
        return 2
    wheels, wanted = pathlib.Path(argv[0]).absolute(), wheelhouse.pythons_wanted()
    if not wheelhouse.platform_wanted().endswith(f"_{platform.machine()}"):
        sys.stdout.write(f"not tried: these wheels are not for this machine, {platform.machine()}\n")
        return 0
    found = {version: path for version, path in pythons.find().items() if version in wanted}
    archive = pack()
    for version, python in found.items():
        with tempfile.TemporaryDirectory(prefix="node-trial-") as folder:
            try:
                try_out(python, wheels, archive, pathlib.Path(folder))
            except wheelhouse.WheelhouseError as error:
                sys.stderr.write(f"node_trial: Python {version}: {error}\n")
                return 1
        sys.stdout.write(f"Python {version}: installed without an index, both daemons work without ansible-core\n")
    missing = [version for version in wanted if version not in found]
    if missing:
        sys.stdout.write(f"not tried, not on this machine: Python {', '.join(missing)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
